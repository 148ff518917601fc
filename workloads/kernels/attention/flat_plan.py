"""FlatAttention cut over groups of tiles, side by side on the grid, each of which works on a head.

A head's block of Q lies over the rows of a group, its block of keys and values over the columns.
Tiles of the diagonal send slices on along their lines.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from workloads.kernels.attention.core import Core, in_place
from workloads.kernels.attention.dealing import alike, dealt
from workloads.kernels.attention.groups import Groups, PartlySeen
from workloads.kernels.attention.items import blocks_brought, masks_brought
from workloads.kernels.attention.plan import AttentionPlan, Cut, held
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
    def cut(self) -> Cut:
        """How rows and keys are cut."""
        block, turns = self.block, 2 if self.schedule == "async" else 1
        blocks = self.q_blocks, self.kv_blocks
        return Cut(block.rows, block.keys, *blocks, self.group[1], turns, self.shape.kv_length)

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return 2 if self.schedule == "async" and self.streams * self.kv_blocks > 1 else 1

    @property
    def padded(self) -> bool:
        """Whether a stream's last blocks have keys that are padding, and no causal mask."""
        filled = self.block.keys * self.kv_blocks * self.group[1]
        return filled > self.shape.kv_length and not self.shape.causal

    @cached_property
    def streams(self) -> int:
        """Blocks of rows of Q that a group goes through; of the group with the most."""
        return ceil_div(self.shape.heads * self.q_blocks, self.most_groups)

    @cached_property
    def alike(self) -> int:
        """Streams of one head, one after the other, in every group."""
        return int(_alike(self.streams, self.q_blocks))

    @property
    def loads(self) -> int:
        """See `AttentionPlan`: streams of a head that take turns share what is brought.

        As many as that if every stream sees all keys.
        """
        return int(
            brought_blocks(self.cut, self.streams, min(self.depth, self.heads, self.streams))
        )

    @property
    def items(self) -> int:
        """See `AttentionPlan`."""
        return sum(self.core.blocks)

    @cached_property
    def groups(self) -> Groups:
        """Groups that have streams: the last of the grid."""
        (rows, cols), place = self.group, self.place
        needed = ceil_div(self.shape.heads * self.q_blocks, self.streams)
        across = min(needed, place.cols // cols)
        end = place.rows // rows
        first = end - ceil_div(needed, across)
        return Groups(self.group, range(first, end), range(across), first)

    @property
    def most_groups(self) -> int:
        """Groups that the grid has."""
        return int(most_groups(self.place, self.group))

    @property
    def tiles(self) -> TileSet:
        """Tiles of the groups that have streams."""
        return self.groups.tiles

    @property
    def balance(self) -> float:
        """Cycles of a block's products over the flits that a tile of the diagonal sends for it."""
        flits = self.flits
        sent = flits("k") + flits("v") + (flits("q") + flits("o")) / self.kv_blocks
        return (self.core.scores_cycles + self.core.output_cycles) / sent

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
        """Of each group the heads and the blocks of rows of its streams, in their order.

        Groups take whole heads or equal parts of one if they can, whose streams share keys and
        values. With a causal mask early and late rows of a head go together, to and fro.
        """
        (_, down, across, _), streams, blocks = self.groups, self.streams, self.q_blocks
        groups, heads = len(down) * len(across), self.shape.heads
        if not self.shape.causal or streams % blocks == 0:
            every = [divmod(number, blocks) for number in range(heads * blocks)]
            return [every[at * streams : (at + 1) * streams] for at in range(groups)]
        if blocks % streams == 0:
            parts = dealt(streams, blocks // streams, blocks).T.tolist()
            found = [[(head, block) for block in part] for part in parts for head in range(heads)]
            return found + [[]] * (groups - len(found))
        numbers = dealt(streams, groups, heads * blocks).T.tolist()
        return [[divmod(one, heads)[::-1] for one in own if one >= 0] for own in numbers]

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
        if not self.shape.causal or self.group == (1, 1):
            return None
        return PartlySeen(groups, self.partly)

    @cached_property
    def core(self) -> Core:
        """The work of a tile; of one with the most, of these one that brings the most."""
        return self.longest[0]

    @cached_property
    def longest(self) -> list[Core]:
        """Work of tiles of which one ends last: with the most, and with the longest stream.

        While a stream has no other one beside it, its products and its softmax wait for each other.
        """

        def work(core: Core) -> tuple[int, int]:
            return sum(core.blocks), blocks_brought(core.blocks, core.alike, core.states)

        def alone(core: Core) -> tuple[int, int]:
            return 2 * max(core.blocks) - sum(core.blocks), sum(core.blocks)

        # Cores of as many masked blocks in each stream take as long.
        cores = {(core.blocks, *map(len, core.masks)): core for _, core in reversed(self.cores)}
        every = [*reversed(cores.values())]
        most = max(map(work, every))
        found = [core for core in every if work(core) == most]
        longest = max(every, key=alone)
        return found if work(longest) == most else [*found, longest]

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(needed_bytes(self, self.cut, self.group))

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        parts = [self._moved(*each) for each in self.cores]
        read, written, taken = map(sum, zip(*parts, strict=True))
        unit = self.place.timing.flit_bytes
        return Moved(read * unit, written * unit, (read + taken) * unit)

    def _moved(self, groups: Groups, core: Core) -> tuple[int, int, int]:
        """Flits read, written, and taken in from other tiles by some groups."""
        flits, (rows, cols), streams = self.flits, self.group, core.streams
        number = len(groups.down) * len(groups.across)
        turns = core.alike, core.states
        kept = blocks_brought(core.blocks, *turns) * (flits("k") + flits("v"))
        kept += flits("mask") if self.padded else 0
        read = streams * rows * flits("q") + cols * kept
        written = streams * rows * (flits("o") + flits("total"))
        # All tiles take in what is multicast, but for roots that send messages; rows what comes
        # together.
        own = self.operands in BY_MESSAGES and self.place.offchip is not None
        taken = rows * (cols - own) * streams * flits("q") + cols * (rows - own) * kept
        taken += rows * streams * reduce_messages(self.outputs(groups, 0)[0]) * flits("o")
        for each in (core.maximum[0], core.total[0]):
            taken += rows * sum(core.blocks) * all_reduce_messages(each) * each.flits
        if self.shape.causal:
            every = rows * cols
            partly = [len(each) if core.parts else every for each in self.partly]
            masks = masks_brought(core.blocks, core.masks, *turns)
            read += sum(partly[each] for each in masks) * flits("mask")
            read += bool(core.parts) * every * len(masks) * flits("unseen")
        return number * read, number * written, number * taken

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


def _alike(streams: Any, q_blocks: Any) -> Any:
    """`FlatPlan.alike` of so many streams, of heads cut into so many blocks of rows."""
    part = np.where(q_blocks % streams == 0, streams, 1)
    return np.where(streams % q_blocks == 0, q_blocks, part)


def brought_blocks(cut: Cut, streams: Any, states: Any) -> Any:
    """`FlatPlan.loads` of so many streams, some of which are under way at a time."""
    alike = _alike(streams, cut.q_blocks)
    turns = np.where(alike > 1, streams // alike * ceil_div(alike, states), streams)
    return turns * cut.kv_blocks


def most_groups(place: Place, group: tuple[Any, Any]) -> Any:
    """Groups of so many rows and columns that a grid has."""
    return (place.rows // group[0]) * (place.cols // group[1])


def needed_bytes(problem: FlatPlan, cut: Cut, group: tuple[Any, Any]) -> Any:
    """`FlatPlan.tile_bytes` of cuts and groups of a problem, whose own do not matter."""
    place, shape = problem.place, problem.shape
    sums, elements = place.sum_bits, place.element_bits

    def size(rows: Any, columns: Any, bits: int) -> Any:
        return ceil_div(rows * columns * bits, 8)

    streams = ceil_div(shape.heads * cut.q_blocks, most_groups(place, group))
    depth = np.minimum(cut.turns, streams * cut.kv_blocks)
    column, output = size(cut.rows, 1, sums), size(cut.rows, shape.v_depth, sums)
    q = size(cut.rows, shape.qk_depth, elements)
    kv = size(shape.qk_depth, cut.keys, elements)
    if not problem.shared:
        kv = kv + size(cut.keys, shape.v_depth, elements)
    scores = size(cut.rows, cut.keys, sums)
    powers = 0 if in_place(place) else size(cut.rows, cut.keys, elements)
    padded = (cut.keys * cut.kv_blocks * cut.run > cut.length) | shape.causal
    mask = np.where(padded, scores, 0)
    # What comes together: the sum, or two parts that come.
    parts = 1 if problem.method == "network" else 2
    states = np.minimum(np.minimum(depth, problem.heads), streams)
    kept = held(problem, depth, brought_blocks(cut, streams, states)) * kv
    items = states * (q + output + 2 * column) + depth * (scores + powers) + kept
    copied = column if place.offchip is not None else 0
    if shape.causal:
        mask = mask + np.where(group[0] * group[1] > 1, column, 0)
    return (4 + 2 * parts) * column + parts * output + mask + items + copied
