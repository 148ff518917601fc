"""Attention block by block on tiles: what FlashAttention and FlatAttention have in common.

A **stream** is a block of rows of Q (of one head, or of the query heads that share keys and values)
on its way through all blocks of keys and values. For each of them a tile

1. multiplies its block of Q with one of K^T (matrix engine): scores, in 32 bits;
2. finds the maxima of rows, those of earlier blocks included; takes them off; exponentials, their
   sums, and the exponentials in the width of operands (vector engine); corrects the sums and the
   output of earlier blocks by the exponential of how much the maxima have grown;
3. multiplies them with the block of V and adds to the output (matrix engine).

The vector unit does not divide: the result is the output and the sums of rows, whose quotient is
attention. An exponential of one is 2^16 in the sums and the largest operand in the output.

Keys that fill up a stream's last block are masked: a block that is zero, and far below any score
where a key is padding, is added to the scores before their maxima are found. Such a key's
exponential is zero.

Values of a latent cache are the first elements of the keys (DeepSeek-V2 paper, section 2.1). Where
blocks are packed, the product with V takes them from the block of keys, which is kept until then: a
tile has one more of these. The project's own tiles load values apart: words of K^T hold elements of
several keys, words of V several of one, and the array reads whole words.

The steps of consecutive blocks overlap if the depth is 2: the matrix engine has the scores of the
next one while the vector engine has this one. Two streams then take turns, if there are two.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Engine, Gemm, Operation, Token, Work
from tlm.program.arithmetic import Integers
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.passes import Factor, Passes
from workloads.kernels.vector.softmax import NEGATIVE
from workloads.machine.place import Place

_ONE_BITS = 16
"""An exponential of one is 2 to this."""
_SHARE = Factor(1, 2)
"""From an exponential to a factor of `multiply`, which has 15 bits beside its sign."""
SHARED = Factor(1, 14)
"""From what was multiplied by that."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes of attention, in the order of ``--shape``.

    Attributes:
        batch: Sequences.
        q_heads: Heads of Q, a multiple of ``kv_heads``.
        kv_heads: Heads of K and V.
        q_length: Rows of Q of a head.
        kv_length: Rows of K and V of a head.
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
        latent: V is the first columns of K.

    Raises:
        InputError: for a size below 1, heads that cannot share, or values that keys do not hold.
    """

    batch: int
    q_heads: int
    kv_heads: int
    q_length: int
    kv_length: int
    qk_depth: int
    v_depth: int
    latent: bool = False

    def __post_init__(self) -> None:
        # As numbers: `dataclasses.astuple` copies deeply, which shows in a search.
        lengths = self.q_length, self.kv_length, self.qk_depth, self.v_depth
        sizes = self.batch, self.q_heads, self.kv_heads, *lengths
        if min(sizes) < 1:
            text = ",".join(map(str, sizes))
            raise InputError(f"--shape: found {text}; allowed: sizes of 1 or more")
        if self.q_heads % self.kv_heads:
            raise InputError(
                f"--shape: found {self.q_heads} heads of Q for {self.kv_heads} of K and V; "
                "allowed: a multiple"
            )
        if self.latent and (self.kv_heads > 1 or self.v_depth > self.qk_depth):
            raise InputError(
                f"--latent: found {self.kv_heads} heads of K and V, values of {self.v_depth} "
                f"elements in keys of {self.qk_depth}; allowed: one head, values no longer than "
                "keys"
            )

    @property
    def heads(self) -> int:
        """Problems of their own: heads of K and V over the batch."""
        return self.batch * self.kv_heads

    @property
    def rows(self) -> int:
        """Rows of Q of each: those of the heads that share K and V, one after the other."""
        return self.q_length * self.q_heads // self.kv_heads

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.heads * self.rows * self.kv_length * (self.qk_depth + self.v_depth)


def filled_keys(place: Place, keys: int) -> int:
    """Keys of a block, filled up to whole words where the vector engine writes rows of words."""
    if not place.whole_lines:
        return keys
    word = max(1, 8 * place.timing.flit_bytes // place.element_bits)
    return ceil_div(keys, word) * word


def key_mask(real: Integers, block: "Block", bits: int) -> Integers:
    """What is added to scores: 0, or a quarter of the lowest number where a key is padding.

    No score of sums that do not wrap comes near it, and it leaves them room below.

    Args:
        real: Keys of each tile's last block that are no padding, shape (tiles).
        block: What a tile works on.
        bits: Width of sums.

    Returns:
        Shape (tiles, rows, keys).
    """
    padding = np.arange(block.keys) >= real[:, None]
    mask = np.where(padding, -(1 << (bits - 2)), 0)
    return np.repeat(mask[:, None], block.rows, axis=1)


def row_blocks(matrix: Integers, tiles: int, blocks: int, height: int) -> Integers:
    """Shape (blocks, tiles, height, columns): a head's rows, block by block, tile by tile."""
    padded = np.zeros((blocks * tiles * height, matrix.shape[1]), dtype=np.int64)
    padded[: len(matrix)] = matrix
    return padded.reshape(blocks, tiles, height, -1)


def offchip(name: str, buffer: Buffer, count: int) -> dict[str, Buffer]:
    """Buffers ``NAME.0``, ``NAME.1``, ... in off-chip memory."""
    return {f"{name}.{index}": replace(buffer, offchip=True) for index in range(count)}


@dataclass(frozen=True, slots=True)
class Block:
    """What a tile works on at a time.

    Attributes:
        rows: Rows of Q.
        keys: Rows of K and V.
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
    """

    rows: int
    keys: int
    qk_depth: int
    v_depth: int


@dataclass(frozen=True, slots=True)
class Item:
    """A block of keys for a stream.

    Attributes:
        stream: Number of the stream.
        block: Number of the block of K and V among the stream's.
        first: It is the stream's first.
        last: It is the stream's last.
        slot: Buffers of its scores.
        state: Buffers of the stream.
        load: Number of its keys and values among those that are brought.
        held: Buffers of these.
        brings: It is the first to use them.
        frees: It is the last.
    """

    stream: int
    block: int
    first: bool
    last: bool
    slot: int
    state: int
    load: int
    held: int
    brings: bool
    frees: bool


def items(streams: int, blocks: int, depth: int, held: int, alike: int = 1) -> list[Item]:
    """Blocks of streams in the order of work: up to ``depth`` streams take turns.

    Args:
        streams: How many there are.
        blocks: Of each.
        depth: Blocks under way at a time.
        held: Brought keys and values that have buffers.
        alike: Streams of one head, one after the other: those that take turns share what is
            brought. Streams of several heads may take turns if they are 1.
    """
    order: list[Item] = []
    states, load = min(depth, streams), 0
    for head in range(0, streams, alike if alike > 1 else streams):
        end = head + alike if alike > 1 else streams
        for first in range(head, end, states):
            turns = range(first, min(first + states, end))
            for block, stream in product(range(blocks), turns):
                brings = alike == 1 or stream == turns[0]
                load += brings and bool(order)
                item = Item(
                    stream=stream,
                    block=block,
                    first=block == 0,
                    last=block == blocks - 1,
                    slot=len(order) % depth,
                    state=stream % states,
                    load=load,
                    held=load % held,
                    brings=brings,
                    frees=alike == 1 or stream == turns[-1],
                )
                order.append(item)
    return order


class Bringing(ABC):
    """What brings blocks into tiles, and takes results out of them.

    It gives ``q.there.STATE``, ``k.there.HELD`` and ``v.there.HELD``, of values that are no keys.
    """

    @abstractmethod
    def alone(self, item: Item) -> Iterator[Operation]:
        """All that an item needs, where one is under way at a time."""

    @abstractmethod
    def begin(self, item: Item) -> Iterator[Operation]:
        """Before the first item, where two are under way."""

    @abstractmethod
    def keys(self, item: Item) -> Iterator[Operation]:
        """Before an item's scores, but the first one's: K, and at a stream's first block Q."""

    def within(self, item: Item) -> Iterator[Operation]:
        """While the tiles go on with a softmax whose maxima have come together."""
        yield from ()

    @abstractmethod
    def behind(self, before: Item | None, after: Item | None) -> Iterator[Operation]:
        """Behind a softmax: the product of the item before it with V comes before its own."""

    @abstractmethod
    def finish(self, item: Item) -> Iterator[Operation]:
        """What becomes of a stream's output, in buffer ``o.STATE`` with token ``o.there.STATE``.

        It gives ``o.STATE.left`` where that is no longer needed.
        """


@dataclass(frozen=True, slots=True)
class Core:
    """The work of attention on the tiles of a set, and what it needs.

    Attributes:
        tiles: Tiles that take part.
        place: The grid.
        block: What a tile works on at a time.
        depth: Blocks under way at a time: 1 or 2.
        streams: Number of streams.
        exponent: From scores to exponents of two.
        held: Blocks of keys, and of values, that a tile has room for.
        shared: Whether values are taken from the blocks of keys.
        padded: Whether a stream's last block has keys that are padding.
        maximum: How maxima of rows come together over tiles, in each part of the grid that has
            lines of its own; none if a tile has whole rows.
        total: The same of sums.
        alike: Streams of one head, one after the other, that share keys and values.
    """

    tiles: TileSet
    place: Place
    block: Block
    depth: int
    streams: int
    exponent: Factor
    held: int
    shared: bool
    padded: bool = False
    maximum: tuple[Reduction, ...] = ()
    total: tuple[Reduction, ...] = ()
    alike: int = 1

    @property
    def in_place(self) -> bool:
        """Whether exponentials take the room of scores, which are as wide."""
        return in_place(self.place)

    @property
    def states(self) -> int:
        """Streams under way at a time."""
        return min(self.depth, self.streams)

    @property
    def scores_cycles(self) -> int:
        """Cycles of the product of Q and K."""
        block = self.block
        return self.place.matrix.gemm_cycles(block.rows, block.qk_depth, block.keys)

    @property
    def output_cycles(self) -> int:
        """Cycles of the product with V."""
        block, matrix = self.block, self.place.after_vector or self.place.matrix
        return matrix.gemm_cycles(block.rows, block.keys, block.v_depth)

    @property
    def mask_cycles(self) -> int:
        """Cycles of the pass that masks padding in a stream's last block."""
        block = self.block
        return self.place.vector.pass_cycles(block.rows, block.keys) if self.padded else 0

    def softmax_cycles(self, *, first: bool) -> int:
        """Cycles of the passes over an item, reductions and the mask apart."""
        block, vector = self.block, self.place.vector
        column = vector.pass_cycles(block.rows, 1)
        wide = 6 * vector.pass_cycles(block.rows, block.keys)
        if first:
            return wide + 3 * column
        return wide + 9 * column + vector.pass_cycles(block.rows, block.v_depth)

    def buffers(self) -> dict[str, Buffer]:
        """Buffers of the tiles: blocks on their way, streams, and what is left of each."""
        block, place = self.block, self.place
        column = Buffer(block.rows, 1, place.sum_bits)
        sums = Buffer(block.rows, block.keys, place.sum_bits)
        buffers = dict.fromkeys(("top", "sum", "negative", "share"), column)
        if self.padded:
            buffers |= {"mask.0": sums} | offchip("mask.own", sums, 1)
        for index in range(self.held):
            keys = Buffer(block.qk_depth, block.keys, place.element_bits)
            values = replace(keys, rows=block.keys, columns=block.v_depth)
            if self.shared:
                values = replace(keys, rows=block.v_depth, within=f"k.{index}")
            buffers |= {f"k.{index}": keys, f"v.{index}": values}
        for index in range(self.depth):
            powers = replace(sums, bits=place.element_bits)
            powers = replace(sums, within=f"s.{index}") if self.in_place else powers
            buffers |= {f"s.{index}": sums, f"p.{index}": powers}
        for index in range(self.states):
            buffers |= {
                f"q.{index}": Buffer(block.rows, block.qk_depth, place.element_bits),
                f"o.{index}": Buffer(block.rows, block.v_depth, place.sum_bits),
                f"maximum.{index}": column,
                f"total.{index}": column,
            }
        buffers |= offchip("total.out", column, self.streams)
        buffers |= offchip("o.out", buffers["o.0"], self.streams)
        for reduction in (*self.maximum[:1], *self.total[:1]):
            buffers |= reduction.buffers(column)
        return buffers

    def tokens(self) -> dict[str, Token]:
        """Tokens of the steps.

        Values that are taken from the keys are there when the scores are, and need none.
        The mask, if there is one, is brought once, and gives ``mask.there.0``.
        """
        tokens = {"top.there": Token(), "sum.there": Token()}
        if self.padded:
            tokens |= {"mask.there.0": Token(), "mask.free.0": Token(initial=1)}
        for name in ("k",) if self.shared else ("k", "v"):
            tokens |= {f"{name}.there.{index}": Token() for index in range(self.held)}
            tokens |= {f"{name}.free.{index}": Token(initial=1) for index in range(self.held)}
        for index in range(self.depth):
            tokens |= {f"{name}.there.{index}": Token() for name in ("q", "s", "p", "o")}
            tokens |= {f"{name}.free.{index}": Token(initial=1) for name in ("q", "s", "p")}
            tokens |= {f"o.kept.{index}": Token(), f"o.{index}.left": Token(initial=1)}
        for reduction in (*self.maximum[:1], *self.total[:1]):
            tokens |= reduction.tokens()
        return tokens

    def items(self, blocks: int) -> list[Item]:
        """Blocks of keys of all streams, each of which has so many, in the order of work."""
        return items(self.streams, blocks, self.depth, self.held, self.alike)

    def operations(self, bringing: Bringing, blocks: int) -> Iterator[Operation]:
        """All streams, each of which has so many blocks of keys."""
        order = self.items(blocks)
        passes = Passes(self.tiles, self.place, self.buffers(), "softmax")
        if self.depth == 1:
            for item in order:
                yield from bringing.alone(item)
                yield self._scores(item)
                yield from self._softmax(item, passes)
                yield self._output(item)
                if item.last:
                    yield from bringing.finish(item)
            return
        yield from bringing.begin(order[0])
        yield self._scores(order[0])
        for before, item, after in zip([None, *order], order, [*order[1:], None], strict=False):
            if after is not None:
                yield from bringing.keys(after)
                yield self._scores(after)
            yield from self._softmax(item, passes, bringing)
            yield from bringing.behind(before, after)
            if before is not None and before.last:
                yield from bringing.finish(before)
            yield self._output(item)
        yield from bringing.finish(order[-1])

    def _scores(self, item: Item) -> Work:
        slot, held = item.slot, item.held
        return Work(
            Engine.MATRIX,
            self.tiles,
            self.scores_cycles,
            takes=(
                *((f"k.there.{held}",) if item.brings else ()),
                f"s.free.{slot}",
                *((f"q.there.{item.state}",) if item.first else ()),
            ),
            gives=(
                *self._used(item),
                f"s.there.{slot}",
                *((f"q.free.{item.state}",) if item.last else ()),
            ),
            task=Gemm(f"q.{item.state}", f"k.{held}", f"s.{slot}"),
            label="scores",
        )

    def _used(self, item: Item) -> tuple[str, ...]:
        """Tokens that say that an item's scores have used its keys."""
        return (f"k.free.{item.held}",) if item.frees and not self.shared else ()

    def _softmax(
        self, item: Item, passes: Passes, bringing: Bringing | None = None
    ) -> Iterator[Operation]:
        slot, state = item.slot, item.state
        s, maximum = f"s.{slot}", f"maximum.{state}"
        give = ("top.there",) if self.maximum else ()
        take: tuple[str, ...] = (f"s.there.{slot}",)
        if self.padded and item.last:
            mask = ("mask.there.0",)
            yield passes("add", s, s, "mask.0", takes=(*take, *mask), gives=mask)
            take = ()
        if item.first:
            yield passes("row-maximum", s, "top", takes=take, gives=give)
        else:
            yield passes("row-maximum", s, "top", takes=take)
            yield passes("maximum", "top", "top", maximum, gives=give)
        for reduction in self.maximum:
            yield from reduction.all_reduce()
        if bringing is not None:
            yield from bringing.within(item)
        yield passes("scale", "top", "negative", factor=NEGATIVE, takes=give)
        if not item.first:
            yield from growth(passes, maximum, self.exponent)
        yield passes("scale", "top", maximum)
        yield passes("add", s, s, "negative")
        yield passes("scale", s, s, factor=self.exponent)
        yield passes("exp", s, s)
        give = ("sum.there",) if self.total else ()
        yield passes("row-sum", s, "sum", gives=give)
        for reduction in self.total:
            yield from reduction.all_reduce()
        yield from self._correct(item, passes, give)
        one = Factor(2 ** (self.place.element_bits - 1) - 1, _ONE_BITS)
        yield passes(
            "quantize",
            s,
            f"p.{slot}",
            factor=one,
            takes=() if self.in_place else (f"p.free.{slot}",),
            gives=(f"p.there.{slot}", *(() if self.in_place else (f"s.free.{slot}",))),
        )

    def _correct(self, item: Item, passes: Passes, take: tuple[str, ...]) -> Iterator[Operation]:
        """Sums and output of earlier blocks by the growth of the maxima."""
        total, output = f"total.{item.state}", f"o.{item.state}"
        if item.first:
            yield passes("scale", "sum", total, takes=take)
            return
        kept = f"o.kept.{item.state}"
        yield passes("multiply", total, total, "share", SHARED, takes=take)
        yield passes("add", total, total, "sum")
        yield passes("multiply", output, output, "share", SHARED, takes=(kept,))

    def _output(self, item: Item) -> Work:
        slot, held, state = item.slot, item.held, item.state
        task = Gemm(
            f"p.{slot}",
            f"v.{held}",
            f"o.{state}",
            accumulate=not item.first,
            turned=self.shared,
        )
        return Work(
            Engine.MATRIX,
            self.tiles,
            self.output_cycles,
            takes=(
                f"p.there.{slot}",
                *((f"v.there.{held}",) if item.brings and not self.shared else ()),
                *((f"o.{state}.left",) if item.first else ()),
            ),
            gives=(
                f"s.free.{slot}" if self.in_place else f"p.free.{slot}",
                *((f"{'k' if self.shared else 'v'}.free.{held}",) if item.frees else ()),
                f"o.there.{state}" if item.last else f"o.kept.{state}",
            ),
            task=task,
            label="output",
        )


def in_place(place: Place) -> bool:
    """Whether exponentials are as wide as scores, and blocks packed: then they take their room."""
    return place.sum_bits == place.element_bits and not place.whole_lines


def growth(passes: Passes, maximum: str, exponent: Factor) -> Iterator[Operation]:
    """``share``: by what sums and outputs shrink as their maxima have grown to ``-negative``.

    Args:
        passes: On their tiles.
        maximum: Buffer of the maxima that they have.
        exponent: From scores to exponents of two.
    """
    yield passes("add", maximum, "share", "negative")
    yield passes("scale", "share", "share", factor=exponent)
    yield passes("exp", "share", "share")
    yield passes("scale", "share", "share", factor=_SHARE)
