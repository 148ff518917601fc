"""The parts of an iteration, and the operators of each part.

A part is a layer's work on tokens alone, attention of a prompt chunk, attention of the decoding
requests, or the output head. Its numbers are rounded, so that a run meets few different parts.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

from workloads.models import Model
from workloads.models.model import LayerCounts
from workloads.models.operators import (
    Operator,
    decode_attention,
    head,
    projections,
    prompt_attention,
)
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import distinct_experts

# Rounded to the nearest, too many as often as too few: tokens, and contexts of decoding requests,
# are 1.6 % off at most, tokens and contexts of prompt chunks 3.2 % where attention sees them.
_BITS = 6
_PROMPT_BITS = 5
_ALIKE = 8


class Layer(NamedTuple):
    """All but attention of a layer.

    Attributes:
        tokens: New tokens.
        experts: Whether it has experts.
    """

    tokens: int
    experts: bool


class Prompt(NamedTuple):
    """Attention of a prompt chunk in a layer.

    Attributes:
        new: New tokens.
        context: Tokens in the cache before.
        window: What the layer sees; None: all.
    """

    new: int
    context: int
    window: int | None


class Decode(NamedTuple):
    """Attention of decoding requests of equal contexts in a layer.

    Attributes:
        sequences: Requests.
        width: New tokens of each.
        context: Tokens in the cache of each.
        window: What the layer sees; None: all.
        in_sram: Whether these are in the tiles' SRAM, not in the memory behind it.
    """

    sequences: int
    width: int
    context: int
    window: int | None
    in_sram: bool = False


class Head(NamedTuple):
    """The output head.

    Attributes:
        rows: Tokens that pass it.
    """

    rows: int


Part = Layer | Prompt | Decode | Head
_Seen = TypeVar("_Seen", Prompt, Decode)


class Iterations:
    """The parts of a model's iterations."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._counts: dict[range, LayerCounts] = {}
        self._everywhere = range(model.layers)

    def operators(self, batch: Batch) -> list[tuple[Operator, int]]:
        """Operators of an iteration, in the order in which a layer first meets them."""
        found: Counter[Operator] = Counter()
        for part, count in self.parts(batch):
            for operator in part_operators(self._model, part):
                found[operator] += count
        return list(found.items())

    def parts(self, batch: Batch) -> list[tuple[Part, int]]:
        """Parts of an iteration, and how often each runs.

        Layers that compute prompts compute them beside the decoding requests; others those alone.
        Decoding requests are taken to have equal contexts. Where SRAM holds a share of their
        tokens, as many layers find theirs there.
        """
        found: list[tuple[Part, int]] = []
        everywhere, filled = self._everywhere, range(0)
        if batch.prefills:
            filled = everywhere if batch.prefill_layers is None else batch.prefill_layers
            found += self._layers(batch.new_tokens, filled)
        if batch.decode_sequences:
            for beside in (range(filled.start), range(filled.stop, everywhere.stop)):
                found += self._layers(batch.decode_tokens, beside) if beside else []
        for new, context in batch.prefills:
            chunk = Prompt(rounded(new, _PROMPT_BITS), rounded(context, _PROMPT_BITS), None)
            found += self._seen(chunk, filled)
        if batch.decode_sequences:
            tokens, there = batch.decode_context_tokens, batch.decode_sram_tokens
            context = rounded(-(-tokens // batch.decode_sequences))
            kept = round(len(everywhere) * (there / tokens)) if there else 0
            found += self._decoding(batch.decode_sequences, batch.decode_width, context, kept)
        return found + self._head(batch.logit_rows)

    def decoding(
        self, sequences: int, width: int, context: int, kept: int
    ) -> list[tuple[Part, int]]:
        """The same of an iteration that only decodes.

        Args:
            sequences: Decoding requests.
            width: New tokens of each; all of them pass the head.
            context: Tokens in the cache of each, `rounded`.
            kept: Layers that find theirs in SRAM.
        """
        tokens = sequences * width
        attention = self._decoding(sequences, width, context, kept)
        return [*self._layers(tokens, self._everywhere), *attention, *self._head(tokens)]

    def _layers(self, tokens: int, layers: range) -> list[tuple[Part, int]]:
        """Of some layers what is not attention."""
        dense, experts, *_ = self._count(layers)
        tokens = rounded(tokens)
        kinds = ((Layer(tokens, False), dense), (Layer(tokens, True), experts))
        return [(part, count) for part, count in kinds if count]

    def _decoding(
        self, sequences: int, width: int, context: int, kept: int
    ) -> list[tuple[Part, int]]:
        """Attention of decoding requests, of whose kinds each has its share of ``kept`` layers."""
        seen = self._seen(Decode(sequences, width, context, None), self._everywhere)
        if not kept:
            return [*seen]
        found: list[tuple[Part, int]] = []
        for part, count in seen:
            here = round(count * kept / len(self._everywhere))
            found += [(part, count - here)] if count > here else []
            found += [(part._replace(in_sram=True), here)] if here else []
        return found

    def _head(self, rows: int) -> list[tuple[Part, int]]:
        return [(Head(rounded(rows)), 1)] if rows else []

    def _seen(self, part: _Seen, layers: range) -> list[tuple[_Seen, int]]:
        """Attention in some layers, by what they see."""
        counts, window = self._count(layers), self._model.sliding_window
        found = [(part, counts.full)] if counts.full else []
        if window is not None and counts.windowed:
            # Tokens beyond the window make no difference.
            context = min(part.context, window.tokens)
            seen = part._replace(context=context, window=window.tokens)
            found.append((seen, counts.windowed))
        return found

    def _count(self, layers: range) -> LayerCounts:
        if layers not in self._counts:
            self._counts[layers] = self._model.count(layers)
        return self._counts[layers]


def part_operators(model: Model, part: Part) -> Iterator[Operator]:
    """Operators of a part."""
    if isinstance(part, Layer):
        experts = needed(model, part.tokens) if part.experts else None
        return projections(model, part.tokens, experts=experts)
    if isinstance(part, Prompt):
        return prompt_attention(model, *part)
    if isinstance(part, Decode):
        return decode_attention(model, *part[:4])
    return head(model, part.rows)


def needed(model: Model, tokens: int) -> int:
    """Experts of a layer that some tokens need."""
    experts = model.experts
    assert experts is not None
    return round(distinct_experts(experts.count, experts.active, tokens))


def alike(part: Part) -> list[Part]:
    """Parts that differ from one, which is among them, in how much there is to do alone.

    A run that meets one soon meets others.
    """
    if isinstance(part, Layer):
        return [part._replace(tokens=tokens) for tokens in _beside(part.tokens)]
    if isinstance(part, Head):
        return [Head(rows) for rows in _beside(part.rows)]
    if part.window is not None or not part.context:
        return [part]
    bits = _BITS if isinstance(part, Decode) else _PROMPT_BITS
    return [part._replace(context=context) for context in _beside(part.context, bits)]


def _beside(number: int, bits: int = _BITS) -> list[int]:
    """Numbers that `rounded` gives, this and some next to it."""
    unit = _unit(number, bits)
    first = number // unit // _ALIKE * _ALIKE
    return [each * unit for each in range(first, first + _ALIKE) if each]


@lru_cache(1 << 16)
def rounded(tokens: int, bits: int = _BITS) -> int:
    """Tokens rounded to some significant bits."""
    unit = _unit(tokens, bits)
    return (tokens + unit // 2) // unit * unit


def _unit(number: int, bits: int) -> int:
    return 1 << max(0, number.bit_length() - bits)
