"""Attention cut over tiles that know nothing of each other, or over short runs of them.

A **stream** is a block of rows of a head. The tiles of a run share a stream: each has some of its
keys and values, and the run adds up what they found. Runs lie along rows of the grid; where streams
are few, tiles are left out.

With a causal mask a stream ends with the last block of keys that one of its rows sees. Streams are
dealt out by length, to the tiles in turn and back: tiles with two or more have about as much to do.
No tile waits for another. The shorter ones come first: of two that take turns the first ends first,
as what takes its buffers comes next but one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from workloads.kernels.attention.core import Core, in_place, products
from workloads.kernels.attention.dealing import alike, dealt
from workloads.kernels.attention.items import masks_brought
from workloads.kernels.attention.plan import AttentionPlan, Cut, TileWork, held_blocks
from workloads.kernels.attention.shape import AttentionShape, Block, seen_blocks
from workloads.kernels.parts.channels import sharing
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
    padded: Any  # whether blocks of a stream are masked
    blocks: Any  # of keys, that a stream goes through: the mean of the tile with the most
    masks: Any  # of these, masked ones
    mask_loads: Any  # masks that a tile loads
    carried: Any  # blocks of a stream: the mean of the tiles of the channel that serves the most


class Lot(NamedTuple):
    """Tiles that work on the same blocks of rows, each of heads of its own.

    Attributes:
        tiles: The tiles.
        row_blocks: Of each stream.
    """

    tiles: TileSet
    row_blocks: tuple[int, ...]


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
    def team(self) -> tuple[int, int]:
        """See `AttentionPlan`: the tiles of a run share a block of rows."""
        return 1, self.run

    @property
    def cut(self) -> Cut:
        """How rows and keys are cut."""
        block, blocks = self.block, (self.q_blocks, self.kv_blocks)
        return Cut(block.rows, block.keys, *blocks, self.run, self.turns, self.shape.kv_length)

    @cached_property
    def counts(self) -> Counts:
        """What the cut comes to, of streams that see all keys."""
        return counts(self, self.cut)

    def counted(self, cut: Cut) -> Counts:
        """What the cut comes to, written as numbers or as arrays of one."""
        number = counts(self, cut)
        if not self.shape.causal:
            return number
        most = self.core
        return number._replace(
            blocks=self.items / most.streams,
            masks=sum(map(len, most.masks)) / most.streams,
            mask_loads=_brought(most),
            carried=self._carried / most.streams,
        )

    @property
    def _carried(self) -> float:
        """Blocks of keys of a tile: the mean of those of the channel that serves the most."""
        edge, tiles, found = self.place.offchip, self.tiles, Counter[int]()
        if edge is None or edge.at_tiles:
            return self.items
        for core in self.cores:
            for tile in core.tiles:
                found[edge.channel(tile)] += sum(core.blocks)
        return max(found.values()) / int(sharing(edge, len(tiles.rows), len(tiles.cols)).most)

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
    def items(self) -> int:
        """See `AttentionPlan`."""
        if self.shape.causal:
            return max(map(self._items, self.lots))
        return self.streams * self.kv_blocks

    @property
    def work(self) -> TileWork:
        """See `AttentionPlan`."""
        if not self.shape.causal:
            masked = self.streams if self.counts.padded else 0
            return TileWork(self.streams, self.items, masked)
        core = self.core
        return TileWork(core.streams, self.items, sum(map(len, core.masks)))

    @property
    def core(self) -> Core:
        """The work of a tile; of the one with the most."""
        if self.shape.causal:
            return max(self.cores, key=lambda core: sum(core.blocks))
        streams = self.streams
        masks = ((0,),) * streams if self.counts.padded else ()
        return self._core(self.tiles, (self.kv_blocks,) * streams, masks)

    @cached_property
    def cores(self) -> list[Core]:
        """The work of all tiles, those apart that have other blocks of keys than others."""
        if not self.shape.causal:
            return [self.core]
        found = []
        for lot in self.lots:
            blocks = tuple(self.extents[block][0] for block in lot.row_blocks)
            found.append(self._core(lot.tiles, blocks, self.masks(lot.row_blocks)))
        return found

    def _core(
        self, tiles: TileSet, blocks: tuple[int, ...], masks: tuple[tuple[int, ...], ...]
    ) -> Core:
        return Core(
            tiles=tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            blocks=blocks,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            masks=masks,
        )

    def _items(self, lot: Lot) -> int:
        return sum(self.extents[block][0] for block in lot.row_blocks)

    @cached_property
    def _dealt(self) -> NDArray[np.int64]:
        """Numbers of the streams of each tile: see `dealt`.

        They count the heads of the first block of rows, then those of the next.
        """
        return dealt(self.streams, len(self.tiles), self.shape.heads * self.q_blocks)

    @cached_property
    def lots(self) -> list[Lot]:
        """Tiles by their blocks of rows, with a causal mask."""
        blocks = np.maximum(self._dealt // self.shape.heads, -1).T.tolist()
        work = [tuple(block for block in own if block >= 0) for own in blocks]
        return [Lot(*each) for each in alike(work, self.tiles)]

    @property
    def balance(self) -> float:
        """Cycles of an item's products over the flits of its keys and values."""
        return sum(products(self.place, self.block)) / (self.flits("k") + self.flits("v"))

    @property
    def pieces(self) -> Pieces:
        """Blocks of the tiles of a run."""
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces(self.team, size, {"rows": self.streams, "keys": self.kv_blocks})

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(needed_bytes(self, self.cut, self.counts))

    @property
    def root(self) -> int:
        """Of the tiles of a run, the one that has the result."""
        return self.run // 2

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        q, k, v, output, mask, _, total = self.all_flits
        read = written = taken = 0
        if self.shape.causal:
            work = [
                (each.tiles, each.streams, sum(each.blocks), _brought(each)) for each in self.cores
            ]
        else:  # all streams are alike, and have one mask if any
            work = [(self.tiles, self.streams, self.items, int(self.counts.padded))]
        for tiles, streams, items, masks in work:
            read += len(tiles) * (streams * q + items * (k + v) + masks * mask)
            written += len(tiles) // self.run * streams * (output + total)
        runs, unit = len(self.tiles) // self.run, self.place.timing.flit_bytes
        if self.run > 1:
            how = self.method, self.run
            taken = all_reduce_messages(*how) * total + reduce_messages(*how) * (total + output)
        return Moved(read * unit, written * unit, (read + runs * self.streams * taken) * unit)

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
        if self.shape.causal:
            yield from self._causal_places()
            return
        runs, first = len(self.tiles.cols) // self.run, self.tiles.rows.start
        for number in range(self.shape.heads * self.q_blocks):
            at, stream = divmod(number, self.streams)
            row, col = divmod(at, runs)
            yield stream, (first + row, col * self.run), *divmod(number, self.q_blocks)

    def _causal_places(self) -> Iterator[tuple[int, tuple[int, int], int, int]]:
        tiles, fewer = list(self.tiles), self._dealt[0] < 0
        for (stream, at), number in np.ndenumerate(self._dealt):
            if number >= 0:
                block, head = divmod(int(number), self.shape.heads)
                yield stream - int(fewer[at]), tiles[at], head, block


def _brought(core: Core) -> int:
    """Masks that a tile loads."""
    return len(masks_brought(core.blocks, core.masks, core.alike, core.states))


def counts(problem: FlashPlan, cut: Cut) -> Counts:
    """What a cut of a problem comes to, whose own does not matter."""
    number = counts_of_all(problem, cut)
    causal = problem.shape.causal and np.ndim(cut.rows) == 2
    return _causal(problem, cut, number) if causal else number


def counts_of_all(problem: FlashPlan, cut: Cut) -> Counts:
    """The same if every stream sees all keys."""
    place, shape = problem.place, problem.shape
    runs = place.rows * place.cols // cut.run
    every = shape.heads * cut.q_blocks
    streams = ceil_div(every, runs)
    needed = ceil_div(every, streams) * cut.run
    depth = np.minimum(cut.turns, streams * cut.kv_blocks)
    padded = (cut.keys * cut.kv_blocks * cut.run > cut.length) | shape.causal
    masks = np.where(padded, 1, 0)
    return Counts(
        streams=streams,
        depth=depth,
        held=held_blocks(problem.shared, depth, streams * cut.kv_blocks),
        states=np.minimum(depth, streams),
        second=(np.minimum(depth, streams) > 1) | (cut.kv_blocks == 1),
        rows=ceil_div(needed, place.cols),
        cols=np.minimum(needed, place.cols),
        padded=padded,
        blocks=cut.kv_blocks,
        masks=masks,
        mask_loads=masks,
        carried=cut.kv_blocks,
    )


def _causal(problem: FlashPlan, cut: Cut, number: Counts) -> Counts:
    """About what cuts come to with a causal mask: streams are dealt out evenly.

    Where their number is odd, the tile with the most has one of the longest more.
    """
    shape = problem.shape
    mean = seen_blocks(shape, cut.rows, cut.keys, cut.q_blocks, cut.length).mean
    most = ceil_div(cut.length, cut.keys)
    blocks = mean + (most - mean) * (number.streams % 2) / number.streams**2
    tokens = cut.rows / shape.sharers
    masks = np.minimum(blocks, np.ceil(tokens / cut.keys) + 1)
    alike = (tokens == cut.keys) & ((cut.length - shape.q_length) % cut.keys == 0)
    return number._replace(
        blocks=blocks,
        masks=np.where(alike, 1, masks),
        mask_loads=np.where(alike, 1, masks * number.streams),
        carried=mean,
    )


def needed_bytes(problem: FlashPlan, cut: Cut, number: Counts) -> Any:
    """`FlashPlan.tile_bytes` of cuts of a problem, and of what they come to."""
    place, shape = problem.place, problem.shape
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
