"""FlatAttention cut over groups of tiles, side by side on the grid, each of which works on a head.

A head's block of Q lies over the rows of a group, its block of keys and values over the columns.
Tiles of the diagonal send slices on along their lines.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from workloads.kernels.attention.core import Core, in_place
from workloads.kernels.attention.plan import AttentionPlan, Cut, held
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.parts.broadcast import BY_MESSAGES, Broadcast
from workloads.kernels.parts.collectives import (
    Reduction,
    all_reduce_messages,
    reduce_messages,
)
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.passes import Factor
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.vector.softmax import diagonal
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
        """Whether a stream's last blocks have keys that are padding."""
        return self.block.keys * self.kv_blocks * self.group[1] > self.shape.kv_length

    @cached_property
    def streams(self) -> int:
        """Blocks of rows of Q that a group goes through, of one head after the other."""
        return ceil_div(self.shape.heads * self.q_blocks, self.most_groups)

    @property
    def alike(self) -> int:
        """Streams of one head, one after the other, in every group."""
        return int(_alike(self.streams, self.q_blocks))

    @property
    def loads(self) -> int:
        """See `AttentionPlan`: streams of a head that take turns share what is brought."""
        return int(_loads(self.cut, self.streams, min(self.depth, self.heads, self.streams)))

    @property
    def groups(self) -> tuple[int, int]:
        """Rows and columns of groups that have streams: the last of the grid."""
        needed = ceil_div(self.shape.heads * self.q_blocks, self.streams)
        across = min(needed, self.place.cols // self.group[1])
        return ceil_div(needed, across), across

    @property
    def most_groups(self) -> int:
        """Groups that the grid has."""
        return (self.place.rows // self.group[0]) * (self.place.cols // self.group[1])

    @property
    def tiles(self) -> TileSet:
        """Tiles of these groups."""
        (down, across), (rows, cols) = self.groups, self.group
        return TileSet(range(self.place.rows - down * rows, self.place.rows), range(across * cols))

    @property
    def balance(self) -> float:
        """Cycles of a block's products over the flits that a tile of the diagonal sends for it."""
        flits = self.flits
        sent = flits("k") + flits("v") + (flits("q") + flits("o")) / self.kv_blocks
        return (self.core.scores_cycles + self.core.output_cycles) / sent

    @property
    def pieces(self) -> Pieces:
        """The tiles of a group share a block of rows."""
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces(self.group, size, {"rows": self.streams, "keys": self.kv_blocks})

    @cached_property
    def core(self) -> Core:
        """The work of a tile."""
        return Core(
            tiles=self.tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            blocks=(self.kv_blocks,) * self.streams,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            masks=((0,),) * self.streams if self.padded else (),
            maximum=self._all_reductions("top", "maximum"),
            total=self._all_reductions("sum", "sum"),
            alike=self.alike,
            turns=self.heads,
        )

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(needed_bytes(self, self.cut))

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        flits, (rows, cols) = self.flits, self.group
        items, groups = self.streams * self.kv_blocks, self.groups[0] * self.groups[1]
        mask = flits("mask") if self.padded else 0
        kept = self.loads * (flits("k") + flits("v")) + mask
        read = self.streams * rows * flits("q") + cols * kept
        written = self.streams * rows * (flits("o") + flits("total"))
        # All tiles take in what is multicast, but for roots that send messages; rows what comes
        # together.
        own = self.operands in BY_MESSAGES and self.place.offchip is not None
        taken = rows * (cols - own) * self.streams * flits("q") + cols * (rows - own) * kept
        summed = rows * self.streams * reduce_messages(self.outputs(0)[0]) * flits("o")
        for each in (self.core.maximum[0], self.core.total[0]):
            summed += rows * items * all_reduce_messages(each) * each.flits
        unit = groups * self.place.timing.flit_bytes
        return Moved(read * unit, written * unit, (read + taken + summed) * unit)

    def lines(self, name: str) -> list[Lines]:
        """Rows of tiles along which slices of ``q`` go, or columns of others; each of a group."""
        (rows, cols), (down, across) = (self.tiles.rows, self.tiles.cols), self.group
        if name == "q":
            return [Lines("row", rows, across, first) for first in cols[::across]]
        return [Lines("column", cols, down, first) for first in rows[::down]]

    def diagonals(self, name: str) -> list[list[int]]:
        """Places of the roots on the lines of each group of a column of groups, or of a row.

        Roots of ``q`` are in other columns of one group than of the next below where columns are
        more than rows: each channel has as many of them as another.
        """
        (rows, cols), (down, across) = self.group, self.groups
        if name != "q":
            return [diagonal(cols, rows)] * across
        apart, places = max(1, cols // rows), diagonal(rows, cols)
        return [[place + number % apart for place in places] for number in range(down)]

    def _roots(self, name: str) -> tuple[int, ...]:
        """Their places on all lines, one after the other."""
        return tuple(chain.from_iterable(self.diagonals(name)))

    def roots(self, name: str) -> list[TileSet]:
        """Tiles that multicast slices of ``q``, ``k``, ``v`` or the ``mask``: one of each group."""
        tiles, (rows, cols) = self.tiles, self.group
        if name != "q":
            places = enumerate(self.diagonals(name)[0])
            return [TileSet(tiles.rows[row::rows], tiles.cols[col::cols]) for col, row in places]
        alike = min(max(1, cols // rows), self.groups[0])  # groups whose roots are in other columns
        return [
            TileSet(tiles.rows[number * rows + row :: alike * rows], tiles.cols[col::cols])
            for number, places in enumerate(self.diagonals(name)[:alike])
            for row, col in enumerate(places)
        ]

    def broadcasts(self, name: str, index: int) -> list[Broadcast]:
        """Of slices of ``q`` along rows, of others along columns, to the buffer of a number."""
        target, there = f"{name}.{index}", f"{name}.there.{index}"
        return [
            Broadcast(
                lines,
                self._roots(name),
                self.operands,
                self.flits(name),
                source="",
                target=target,
                free=(f"{name}.free.{index}",),
                there=there,
                label=name,
            )
            for lines in self.lines(name)
        ]

    @property
    def multicasts(self) -> tuple[str, ...]:
        """What is multicast from the diagonal."""
        return ("q", *self.kept, *(("mask",) if self.padded else ()))

    @property
    def kept(self) -> tuple[str, ...]:
        """What is multicast for every block of keys."""
        return ("k",) if self.shared else ("k", "v")

    def outputs(self, state: int) -> list[Reduction]:
        """The reductions of a stream's output to the diagonal, in each column of groups."""
        output, passes = f"o.{state}", self.place.vector.pass_cycles
        cycles, there = passes(self.block.rows, self.block.v_depth), f"o.there.{state}"
        how = self._roots("q"), self.method, "o.sum", output, there, self.flits("o"), cycles
        return [Reduction(lines, *how, left=f"{output}.left") for lines in self.lines("q")]

    def _all_reductions(
        self, name: str, operation: Literal["sum", "maximum"]
    ) -> tuple[Reduction, ...]:
        """Of ``top`` or ``sum`` along the rows of each column of groups."""
        flits = self.place.flits(self.block.rows, 1, self.place.sum_bits)
        cycles = self.place.vector.pass_cycles(self.block.rows, 1)
        how = self._roots("q"), self.method, name, name, f"{name}.there", flits, cycles, operation
        return tuple(Reduction(lines, *how) for lines in self.lines("q"))


def _alike(streams: Any, q_blocks: Any) -> Any:
    """`FlatPlan.alike` of so many streams, of heads cut into so many blocks of rows."""
    part = np.where(q_blocks % streams == 0, streams, 1)
    return np.where(streams % q_blocks == 0, q_blocks, part)


def _loads(cut: Cut, streams: Any, states: Any) -> Any:
    """`FlatPlan.loads` of so many streams, some of which are under way at a time."""
    alike = _alike(streams, cut.q_blocks)
    turns = np.where(alike > 1, streams // alike * ceil_div(alike, states), streams)
    return turns * cut.kv_blocks


def needed_bytes(problem: FlatPlan, cut: Cut) -> Any:
    """`FlatPlan.tile_bytes` of cuts of a problem, whose own does not matter."""
    place, shape = problem.place, problem.shape
    sums, elements = place.sum_bits, place.element_bits

    def size(rows: Any, columns: Any, bits: int) -> Any:
        return ceil_div(rows * columns * bits, 8)

    streams = ceil_div(shape.heads * cut.q_blocks, problem.most_groups)
    depth = np.minimum(cut.turns, streams * cut.kv_blocks)
    column, output = size(cut.rows, 1, sums), size(cut.rows, shape.v_depth, sums)
    q = size(cut.rows, shape.qk_depth, elements)
    kv = size(shape.qk_depth, cut.keys, elements)
    if not problem.shared:
        kv = kv + size(cut.keys, shape.v_depth, elements)
    scores = size(cut.rows, cut.keys, sums)
    powers = 0 if in_place(place) else size(cut.rows, cut.keys, elements)
    mask = np.where(cut.keys * cut.kv_blocks * cut.run > cut.length, scores, 0)
    # What comes together: the sum, or two parts that come.
    parts = 1 if problem.method == "network" else 2
    states = np.minimum(np.minimum(depth, problem.heads), streams)
    kept = held(problem, depth, _loads(cut, streams, states)) * kv
    items = states * (q + output + 2 * column) + depth * (scores + powers) + kept
    copied = column if place.offchip is not None else 0
    return (4 + 2 * parts) * column + parts * output + mask + items + copied
