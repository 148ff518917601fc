"""FlatAttention cut over groups of tiles, side by side on the grid, each of which works on a head.

A head's block of Q lies over the rows of a group, its block of keys and values over the columns.
Tiles of the diagonal send slices on along their lines.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tlm.interconnect.packets import TileSet
from workloads.kernels.attention.core import Core, in_place, products
from workloads.kernels.attention.dealing import alike
from workloads.kernels.attention.flat_memory import Sizes, brought_blocks, cut_bytes
from workloads.kernels.attention.flat_work import (
    Head,
    Streams,
    Totals,
    deal,
    streams_of,
    totals_of,
)
from workloads.kernels.attention.groups import Groups, PartlySeen
from workloads.kernels.attention.plan import AttentionPlan, TileWork, shares
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.parts.broadcast import BY_MESSAGES, Broadcast
from workloads.kernels.parts.collectives import (
    Reduction,
    all_reduce_messages,
    reduce_messages,
)
from workloads.kernels.parts.passes import Factor
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.place import Place

SCHEDULES = ("naive", "async")


@dataclass(frozen=True)  # without slots: the work of a tile is kept
class FlatPlan(AttentionPlan):
    """Attention on groups of tiles.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut beside the rows of a group.
        kv_blocks: Blocks of keys beside the columns of a group, the last of them filled up.
        group: Rows and columns of a group, of which the grid's are whole numbers.
        method: How parts of rows come together (`workloads.kernels.parts.collectives`).
        schedule: One of `SCHEDULES`.
        exponent: From scores to exponents of two.
        operands: How slices are sent to many (`workloads.kernels.parts.broadcast`).
        heads: Streams that a group has under way: 1, or of ``async`` 2.
    """

    place: Place
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int
    group: tuple[int, int]
    method: str
    schedule: str
    exponent: Factor
    operands: str = "network"
    heads: int = 2

    @property
    def turns(self) -> int:
        """Blocks under way at a time, if there are as many."""
        return 2 if self.schedule == "async" else 1

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return self.all_streams.depth

    @property
    def mask_parts(self) -> bool:
        """See `AttentionPlan`; not if tiles work alone."""
        return self.shape.causal and self.group != (1, 1)

    @property
    def padded(self) -> bool:
        """Whether a stream's last blocks have keys that are padding, and no causal mask."""
        return self.all_streams.padded > 0

    @property
    def streams(self) -> int:
        """Blocks of rows of Q that a group goes through; of the group with the most."""
        return self.all_streams.streams

    @property
    def alike(self) -> int:
        """Streams of one head, one after the other, in every group."""
        return self.all_streams.alike

    @property
    def loads(self) -> int:
        """See `AttentionPlan`: streams of a head that take turns share what is brought.

        As many as that if every stream sees all keys.
        """
        return int(
            brought_blocks(
                self.q_blocks,
                self.kv_blocks,
                self.streams,
                min(self.depth, self.heads, self.streams),
            )
        )

    @cached_property
    def all_streams(self) -> Streams:
        """Streams of all groups, for compiled code; without a causal mask those of one."""
        return streams_of(self.head, *self.cut, *self.group)

    @cached_property
    def totals(self) -> Totals:
        """What is to do in all; without a causal mask, by one group."""
        found: Totals = totals_of(self.all_streams)
        return found

    @property
    def items(self) -> int:
        """See `AttentionPlan`."""
        return self.totals.items

    @property
    def work(self) -> TileWork:
        """See `AttentionPlan`."""
        return TileWork(self.totals.streams, self.totals.items, self.totals.masked)

    @property
    def busiest(self) -> Groups:
        """The rows of groups of which one has the most to do, and others have the same streams.

        All if they are alike: then it makes no difference which.
        """
        every = self.groups
        if not self.shape.causal or not every.differ:
            return every
        return every.with_work(self.totals.busiest, self.totals.alike)

    @cached_property
    def groups(self) -> Groups:
        """Groups that have streams: the last of the grid."""
        first, end = self.all_streams.first, self.place.rows // self.group[0]
        return Groups(self.group, range(first, end), range(self.all_streams.beside), first)

    @property
    def most_groups(self) -> int:
        """Groups that the grid has."""
        (rows, cols), place = self.group, self.place
        return (place.rows // rows) * (place.cols // cols)

    @property
    def tiles(self) -> TileSet:
        """Tiles of the groups that have streams."""
        return self.groups.tiles

    @property
    def balance(self) -> float:
        """Cycles of a block's products over the flits that a tile of the diagonal sends for it."""
        flits = self.flits
        sent = flits("k") + flits("v") + (flits("q") + flits("o")) / self.kv_blocks
        return sum(products(self.place, self.block)) / sent

    @property
    def pieces(self) -> Pieces:
        """Blocks of the tiles of a group."""
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces(self.group, size, {"rows": self.streams, "keys": self.kv_blocks})

    @property
    def team(self) -> tuple[int, int]:
        """See `AttentionPlan`: the tiles of a group share a block of rows."""
        return self.group

    @cached_property
    def dealt(self) -> list[list[tuple[int, int]]]:
        """Of each group the heads and the blocks of rows of its streams, in their order."""
        (_, down, across, _), shape = self.groups, self.shape
        found = np.empty((len(down) * len(across), self.streams, 2), dtype=np.int64)
        deal(found, shape.heads, self.q_blocks, shape.causal)
        return [[(head, block) for head, block in own if head >= 0] for own in found.tolist()]

    @cached_property
    def cores(self) -> list[tuple[Groups, Core]]:
        """The work of all tiles, by groups whose streams have as many blocks of keys as others'."""
        every = self.groups
        if not self.shape.causal:
            masks = ((0,),) * self.streams if self.padded else ()
            return [(every, self._core(every, (self.kv_blocks,) * self.streams, masks))]
        work = [tuple(block for _, block in own) for own in self.dealt]
        found = []
        for places, row_blocks in alike(work, TileSet(every.down, every.across)):
            groups = every._replace(down=places.rows, across=places.cols)
            blocks = tuple(self.extents[block][0] for block in row_blocks)
            found.append((groups, self._core(groups, blocks, self.masks(row_blocks))))
        return found

    def _core(
        self, groups: Groups, blocks: tuple[int, ...], masks: tuple[tuple[int, ...], ...]
    ) -> Core:
        return Core(
            tiles=groups.tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            blocks=blocks,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            masks=masks,
            maximum=self._all_reductions(groups, "top", "maximum"),
            total=self._all_reductions(groups, "sum", "sum"),
            alike=self.alike,
            turns=self.heads,
            parts=self._parts(groups),
        )

    def _parts(self, groups: Groups) -> PartlySeen | None:
        """Of each causal mask the tiles that bring one; all do if they work alone."""
        return PartlySeen(groups, self.partly) if self.mask_parts else None

    @cached_property
    def core(self) -> Core:
        """The work of a tile; of one with the most, of these one that brings the most."""
        if not self.shape.causal:
            return self.cores[0][1]
        row, col = divmod(self.totals.busiest, len(self.groups.across))
        down, across = self.groups.down[row], self.groups.across[col]
        return next(one for at, one in self.cores if down in at.down and across in at.across)

    @property
    def cut(self) -> tuple[int, int, int, int]:
        """Rows and keys of a block, and blocks of rows and of keys."""
        return self.block.rows, self.block.keys, self.q_blocks, self.kv_blocks

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(cut_bytes(self.sizes, *self.cut, *self.group))

    @cached_property
    def head(self) -> Head:
        """What decides what there is to do."""
        return Head(self.sizes, self.shape.sharers, self.shape.q_length)

    @cached_property
    def sizes(self) -> Sizes:
        """What decides how much memory a cut takes."""
        return sizes_of(self.place, self.shape, self.method, self.turns, self.heads)

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        (rows, cols), unit, totals = self.group, self.place.timing.flit_bytes, self.totals
        q, k, v, output, mask, unseen, total = self.all_flits
        number = 1 if self.shape.causal else len(self.groups.down) * len(self.groups.across)
        kept = totals.all_loads * (k + v) + (mask if self.padded else 0)
        read = totals.all_streams * rows * q + cols * kept
        written = totals.all_streams * rows * (output + total)
        # All tiles take in what is multicast, but for roots that send messages; rows what comes
        # together.
        own = self.operands in BY_MESSAGES and self.place.offchip is not None
        taken = rows * (cols - own) * totals.all_streams * q + cols * (rows - own) * kept
        taken += rows * totals.all_streams * reduce_messages(self.method, cols) * output
        taken += 2 * rows * totals.all_items * all_reduce_messages(self.method, cols) * total
        if self.shape.causal:
            read += totals.parts * mask
            read += self.mask_parts * rows * cols * totals.masks * unseen
        return Moved(number * read * unit, number * written * unit, number * (read + taken) * unit)

    def broadcasts(self, groups: Groups, name: str, index: int) -> list[Broadcast]:
        """Of slices of ``q`` along rows, of others along columns, to the buffer of a number."""
        target, there = f"{name}.{index}", f"{name}.there.{index}"
        return [
            Broadcast(
                lines,
                groups.line_roots(name),
                self.operands,
                self.flits(name),
                source="",
                target=target,
                free=(f"{name}.free.{index}",),
                there=there,
                label=name,
            )
            for lines in groups.lines(name)
        ]

    @property
    def multicasts(self) -> tuple[str, ...]:
        """What is multicast from the diagonal."""
        return ("q", *self.kept, *(("mask",) if self.padded else ()))

    @property
    def kept(self) -> tuple[str, ...]:
        """What is multicast for every block of keys."""
        return ("k",) if self.shared else ("k", "v")

    def outputs(self, groups: Groups, state: int) -> list[Reduction]:
        """The reductions of a stream's output to the diagonal, in each column of groups."""
        output, passes = f"o.{state}", self.place.vector.pass_cycles
        cycles, there = passes(self.block.rows, self.block.v_depth), f"o.there.{state}"
        roots, flits = groups.line_roots("q"), self.flits("o")
        how = roots, self.method, "o.sum", output, there, flits, cycles
        return [Reduction(lines, *how, left=f"{output}.left") for lines in groups.lines("q")]

    def _all_reductions(
        self, groups: Groups, name: str, operation: Literal["sum", "maximum"]
    ) -> tuple[Reduction, ...]:
        """Of ``top`` or ``sum`` along the rows of each column of groups."""
        flits = self.place.flits(self.block.rows, 1, self.place.sum_bits)
        cycles, roots = self.place.vector.pass_cycles(self.block.rows, 1), groups.line_roots("q")
        how = roots, self.method, name, name, f"{name}.there", flits, cycles, operation
        return tuple(Reduction(lines, *how) for lines in groups.lines("q"))


def sizes_of(place: Place, shape: AttentionShape, method: str, turns: int, states: int) -> Sizes:
    """What decides how much memory a cut of a problem takes.

    Args:
        place: The grid.
        shape: The problem.
        method: How parts of rows come together.
        turns: Blocks under way, if there are as many.
        states: Streams under way, at most.
    """
    return Sizes(
        place.rows, place.cols, shape.heads, shape.kv_length, shape.qk_depth, shape.v_depth,
        place.sum_bits, place.element_bits, shares(place, shape), in_place(place), shape.causal,
        place.offchip is not None, turns, states, 1 if method == "network" else 2,
    )  # fmt: skip
