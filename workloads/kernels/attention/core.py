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
exponential is zero. A causal mask is the same in blocks that some rows see in part. Such masks are
loaded, as the vector unit neither compares nor counts: made of its passes, one would take six over
scores for one of adding it. One that the last masked block had, too, is there already. Of tiles
that share a block each needs a part of the mask; most of these parts are the same everywhere, and
then a column is added instead, which says whether the tile's keys count.

Values of a latent cache are the first elements of the keys (DeepSeek-V2 paper, section 2.1). Where
blocks are packed, the product with V takes them from the block of keys, which is kept until then: a
tile has one more of these. The project's own tiles load values apart: words of K^T hold elements of
several keys, words of V several of one, and the array reads whole words.

The steps of consecutive blocks overlap if the depth is 2: the matrix engine has the scores of the
next one while the vector engine has this one. Two streams then take turns, if they may and there
are two.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Engine, Gemm, Operation, Token, Work
from workloads.kernels.attention.groups import PartlySeen
from workloads.kernels.attention.items import Item, items
from workloads.kernels.attention.shape import Block, offchip
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
        blocks: Blocks of keys of each stream.
        exponent: From scores to exponents of two.
        held: Blocks of keys, and of values, that a tile has room for.
        shared: Whether values are taken from the blocks of keys.
        masks: Of each stream the numbers of the masks of its last blocks; empty: none has any.
        maximum: How maxima of rows come together over tiles, in each part of the grid that has
            lines of its own; none if a tile has whole rows.
        total: The same of sums.
        alike: Streams of one head, one after the other, that share keys and values.
        turns: Streams that may take turns.
        parts: Of each mask the tiles that see some of their keys alone; None: that is true of all.
            Others see all of them or none, as a column ``unseen`` says.
    """

    tiles: TileSet
    place: Place
    block: Block
    depth: int
    blocks: tuple[int, ...]
    exponent: Factor
    held: int
    shared: bool
    masks: tuple[tuple[int, ...], ...] = ()
    maximum: tuple[Reduction, ...] = ()
    total: tuple[Reduction, ...] = ()
    alike: int = 1
    turns: int = 2
    parts: PartlySeen | None = None

    @property
    def streams(self) -> int:
        """Number of streams."""
        return len(self.blocks)

    @property
    def padded(self) -> bool:
        """Whether blocks are masked."""
        return bool(self.masks)

    @property
    def mask_names(self) -> tuple[str, ...]:
        """What is brought for a mask."""
        return ("unseen",) * bool(self.parts) + ("mask",) * self.padded

    @property
    def in_place(self) -> bool:
        """Whether exponentials take the room of scores, which are as wide."""
        return in_place(self.place)

    @property
    def states(self) -> int:
        """Streams under way at a time."""
        return min(self.depth, self.turns, self.streams)

    @property
    def scores_cycles(self) -> int:
        """Cycles of the product of Q and K."""
        return products(self.place, self.block)[0]

    @property
    def output_cycles(self) -> int:
        """Cycles of the product with V."""
        return products(self.place, self.block)[1]

    def buffers(self) -> dict[str, Buffer]:
        """Buffers of the tiles: blocks on their way, streams, and what is left of each."""
        block, place = self.block, self.place
        column = Buffer(block.rows, 1, place.sum_bits)
        sums = Buffer(block.rows, block.keys, place.sum_bits)
        buffers = dict.fromkeys(("top", "sum", "negative", "share"), column)
        if self.padded:
            count = 1 + max(max(each, default=0) for each in self.masks)
            buffers |= {"mask.0": sums} | offchip("mask.own", sums, count)
        if self.parts:
            buffers |= {"unseen.0": column} | offchip("unseen.own", column, len(self.parts.places))
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
        for name in self.mask_names:
            tokens |= {f"{name}.there.0": Token(), f"{name}.free.0": Token(initial=1)}
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

    def items(self) -> list[Item]:
        """Blocks of keys of all streams in the order of work."""
        masks = self.masks or None
        return items(self.blocks, self.depth, self.held, self.alike, masks, states=self.states)

    def steps(self, bringing: Bringing) -> Iterator[Iterator[Operation]]:
        """Operations of all items, and of the last one's end, one after the other."""
        order = self.items()
        passes = Passes(self.tiles, self.place, self.buffers(), "softmax")
        for before, item, after in zip([None, *order], order, [*order[1:], None], strict=False):
            if self.depth == 1:
                yield self._alone(before, item, passes, bringing)
            else:
                yield self._overlapped(before, item, after, passes, bringing)
        yield bringing.finish(order[-1])

    def _alone(
        self, before: Item | None, item: Item, passes: Passes, bringing: Bringing
    ) -> Iterator[Operation]:
        """An item behind the one before."""
        if before is not None and before.last:
            yield from bringing.finish(before)
        yield from bringing.alone(item)
        yield self._scores(item)
        yield from self._softmax(item, passes)
        yield self._output(item)

    def _overlapped(
        self, before: Item | None, item: Item, after: Item | None, passes: Passes,
        bringing: Bringing,
    ) -> Iterator[Operation]:  # fmt: skip
        """An item whose softmax is beside the scores of the next."""
        if before is None:
            yield from bringing.begin(item)
            yield self._scores(item)
        if after is not None:
            yield from bringing.keys(after)
            yield self._scores(after)
        # A stream alone leaves its buffers before the next one takes them.
        ends = before is not None and before.last
        if before is not None and ends and before.state == item.state:
            yield from bringing.finish(before)
        yield from self._softmax(item, passes, bringing)
        yield from bringing.behind(before, after)
        if before is not None and ends and before.state != item.state:
            yield from bringing.finish(before)
        yield self._output(item)

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
        if item.mask is not None:
            yield from self._mask(item, passes, take)
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

    def _mask(self, item: Item, passes: Passes, take: tuple[str, ...]) -> Iterator[Operation]:
        """What is added to scores of keys that do not count."""
        s, state = f"s.{item.slot}", "free" if item.drops else "there"
        for name in self.mask_names:
            there, gives = f"{name}.there.0", (f"{name}.{state}.0",)
            parts: Iterable[TileSet] = (self.tiles,)
            if name == "mask" and self.parts and item.mask is not None:
                parts = self.parts.of(item.mask)
            for tiles in parts:
                on = replace(passes, tiles=tiles)
                yield on("add", s, s, f"{name}.0", takes=(*take, there), gives=gives)
            take = ()

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


def products(place: Place, block: Block) -> tuple[int, int]:
    """Cycles of the products of an item: of Q and K, and with V."""
    scores = place.matrix.gemm_cycles(block.rows, block.qk_depth, block.keys)
    after = place.after_vector or place.matrix
    return scores, after.gemm_cycles(block.rows, block.keys, block.v_depth)


def softmax_cycles(place: Place, block: Block, *, first: bool) -> int:
    """Cycles of the passes over an item, reductions and the mask apart."""
    column = place.vector.pass_cycles(block.rows, 1)
    wide = 6 * place.vector.pass_cycles(block.rows, block.keys)
    if first:
        return wide + 3 * column
    return wide + 9 * column + place.vector.pass_cycles(block.rows, block.v_depth)


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
