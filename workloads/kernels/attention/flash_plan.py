"""Attention cut over tiles that know nothing of each other, or over short runs of them.

A **stream** is a block of rows of a head. The tiles of a run share a stream: each has some of its
keys and values, and the run adds up what they found. Runs lie along rows of the grid; where streams
are few, tiles are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from workloads.kernels.attention.core import AttentionShape, Block, Core, in_place
from workloads.kernels.attention.plan import AttentionPlan, Cut, held
from workloads.kernels.parts.collectives import (
    Reduction,
    all_reduce_messages,
    reduce_messages,
)
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.passes import Factor
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.place import Place


class Counts(NamedTuple):
    """What a cut comes to: numbers or arrays, as it is."""

    streams: Any  # of a tile, one after the other
    depth: Any  # blocks under way at a time
    held: Any  # blocks of keys, and of values, that a tile has room for
    states: Any  # streams under way at a time
    second: Any  # whether the second item is of another stream
    rows: Any  # of the tiles in use
    cols: Any
    padded: Any  # whether a stream's last blocks have keys that are padding


@dataclass(frozen=True)  # without slots: what it comes to is kept
class FlashPlan(AttentionPlan):
    """FlashAttention on tiles, or on runs of them.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut.
        kv_blocks: Blocks of keys of a tile, the last of a stream filled up.
        turns: Blocks that a tile has under way: 1 or 2.
        exponent: From scores to exponents of two.
        run: Tiles that share a stream; block b of the i-th one is the (b run + i)-th of the keys.
        method: How what they found comes together (`workloads.kernels.parts.collectives`).
    """

    place: Place
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int
    turns: int
    exponent: Factor
    run: int = 1
    method: str = "network"

    @property
    def cut(self) -> Cut:
        """How rows and keys are cut."""
        block, blocks = self.block, (self.q_blocks, self.kv_blocks)
        return Cut(block.rows, block.keys, *blocks, self.run, self.turns, self.shape.kv_length)

    @cached_property
    def counts(self) -> Counts:
        """What the cut comes to."""
        return counts(self, self.cut)

    @property
    def streams(self) -> int:
        """Streams of a tile, one after the other."""
        return int(self.counts.streams)

    @property
    def tiles(self) -> TileSet:
        """Tiles that have streams: the last rows of the grid, or a part of the last one."""
        last = self.place.rows
        first = last - int(self.counts.rows)
        return TileSet(range(first, last), range(int(self.counts.cols)))

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return int(self.counts.depth)

    @property
    def core(self) -> Core:
        """The work of a tile."""
        return Core(
            tiles=self.tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            streams=self.streams,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            padded=bool(self.counts.padded),
        )

    @property
    def balance(self) -> float:
        """Cycles of an item's products over the flits of its keys and values."""
        products = self.core.scores_cycles + self.core.output_cycles
        return products / (self.flits("k") + self.flits("v"))

    @property
    def pieces(self) -> Pieces:
        """The tiles of a run share a block of rows."""
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces((1, self.run), size, {"rows": self.streams, "keys": self.kv_blocks})

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(needed_bytes(self, self.cut))

    @property
    def root(self) -> int:
        """Of the tiles of a run, the one that has the result."""
        return self.run // 2

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        loaded = self.flits("q") + self.kv_blocks * (self.flits("k") + self.flits("v"))
        loaded = self.streams * loaded + (self.flits("mask") if self.counts.padded else 0)
        stored = self.streams * (self.flits("o") + self.flits("total"))
        taken, tiles, unit = 0, len(self.tiles), self.place.timing.flit_bytes
        runs = tiles // self.run
        if self.run > 1:
            maximum, total, output = self._reductions(0, 0)
            taken = all_reduce_messages(maximum) * maximum.flits
            taken += reduce_messages(total) * total.flits + reduce_messages(output) * output.flits
        read = tiles * loaded
        return Moved(read * unit, runs * stored * unit, (read + runs * self.streams * taken) * unit)

    def reductions(self, state: int) -> tuple[list[Reduction], list[Reduction], list[Reduction]]:
        """How maxima ``top``, sums ``total.to`` and the output of a state come together."""
        each = [
            self._reductions(state, first) for first in range(0, len(self.tiles.cols), self.run)
        ]
        top, sums, outputs = zip(*each, strict=True)
        return list(top), list(sums), list(outputs)

    def _reductions(self, state: int, first: int) -> tuple[Reduction, Reduction, Reduction]:
        """The same in the runs that begin in a column."""
        rows, output = self.tiles.rows, f"o.{state}"
        line = Lines("row", range(rows.start, rows.stop), self.run, first)
        column = self.place.vector.pass_cycles(self.block.rows, 1)
        wide = self.place.vector.pass_cycles(self.block.rows, self.block.v_depth)
        how, total, whole = (line, self.root, self.method), self.flits("total"), self.flits("o")
        summed, there = "total.to", "total.to.there"
        return (
            Reduction(*how, "top", "top", "top.there", total, column, operation="maximum"),
            Reduction(*how, summed, summed, there, total, column),
            Reduction(*how, output, output, f"{output}.scaled", whole, wide),
        )

    def places(self) -> Iterator[tuple[int, tuple[int, int], int, int]]:
        """Of every stream its number in its tiles, the first tile, its head, its block of rows."""
        runs, first = len(self.tiles.cols) // self.run, self.tiles.rows.start
        for number in range(self.shape.heads * self.q_blocks):
            at, stream = divmod(number, self.streams)
            row, col = divmod(at, runs)
            yield stream, (first + row, col * self.run), *divmod(number, self.q_blocks)


def counts(problem: FlashPlan, cut: Cut) -> Counts:
    """What a cut of a problem comes to, whose own does not matter."""
    place, shape = problem.place, problem.shape
    runs = place.rows * place.cols // cut.run
    every = shape.heads * cut.q_blocks
    streams = ceil_div(every, runs)
    needed = ceil_div(every, streams) * cut.run
    depth = np.minimum(cut.turns, streams * cut.kv_blocks)
    return Counts(
        streams=streams,
        depth=depth,
        held=held(problem, depth, streams * cut.kv_blocks),
        states=np.minimum(depth, streams),
        second=(np.minimum(depth, streams) > 1) | (cut.kv_blocks == 1),
        rows=ceil_div(needed, place.cols),
        cols=np.minimum(needed, place.cols),
        padded=cut.keys * cut.kv_blocks * cut.run > cut.length,
    )


def needed_bytes(problem: FlashPlan, cut: Cut) -> Any:
    """`FlashPlan.tile_bytes` of cuts of a problem."""
    place, shape, number = problem.place, problem.shape, counts(problem, cut)
    sums, elements = place.sum_bits, place.element_bits

    def size(rows: Any, columns: Any, bits: int) -> Any:
        return ceil_div(rows * columns * bits, 8)

    column, output = size(cut.rows, 1, sums), size(cut.rows, shape.v_depth, sums)
    scores = size(cut.rows, cut.keys, sums)
    needed = 4 * column + np.where(number.padded, scores, 0)
    blocks = size(shape.qk_depth, cut.keys, elements)
    if not problem.shared:
        blocks = blocks + size(cut.keys, shape.v_depth, elements)
    each = scores + (0 if in_place(place) else size(cut.rows, cut.keys, elements))
    state = size(cut.rows, shape.qk_depth, elements) + output + 2 * column
    # What comes together: the sum, or two parts that come.
    parts = np.where(cut.run > 1, 1 if problem.method == "network" else 2, 0)
    state = state + parts * output
    staged = (cut.run > 1) | (place.offchip is not None)
    needed = needed + 2 * parts * column + np.where(staged, column, 0)
    return needed + number.held * blocks + number.depth * each + number.states * state
