"""The parts of an iteration, and the operators of each.

A part is a layer's work on tokens alone, attention of a prompt chunk, attention of the decoding
requests, or the output head. Numbers are rounded, so that a run meets few different ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from workloads.models import Model
from workloads.models.operators import (
    Operator,
    Product,
    after_experts,
    before_experts,
    decode_attention,
    draft,
    head,
    projections,
    prompt_attention,
    routed,
)
from workloads.serving.price.experts import distinct_experts

# Rounded to the nearest, too many as often as too few: tokens, and contexts of decoding requests,
# are 1.6 % off at most, tokens of prompt chunks, and what one of them sees in the mean, 3.2 %.
BITS = 6
PROMPT_BITS = 5
_ALIKE = 16
#: Of operators of experts that do not lie in the tiles beside others that do.
_AWAY = ", not kept"


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


@dataclass(frozen=True, slots=True)
class Before:
    """A layer with experts on a die of a wafer, up to the experts, but for attention.

    Attributes:
        tokens: New tokens of the die.
    """

    tokens: int


@dataclass(frozen=True, slots=True)
class Routed:
    """The experts of a die.

    Attributes:
        needed: Those that get any tokens.
        copies: Tokens that they get.
    """

    needed: int
    copies: int


@dataclass(frozen=True, slots=True)
class After:
    """The rest of a layer with experts, when tokens of a die are back from them.

    Attributes:
        tokens: New tokens of the die.
    """

    tokens: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What comes before the layer of a module that drafts tokens.

    Attributes:
        tokens: New tokens.
    """

    tokens: int


@dataclass(frozen=True, slots=True)
class StageHandOver:
    """Tokens that the tiles of a stage of a pipeline pass on to those of the next one.

    Attributes:
        tokens: How many.
    """

    tokens: int


#: Tuples that no others are equal to: they differ in length.
Part = Layer | Prompt | Decode | Head


@dataclass(frozen=True, slots=True)
class WithExperts:
    """All but attention of a layer with experts, some of which lie in the tiles.

    Attributes:
        tokens: New tokens.
        here: Experts in the tiles that get any, with one that was loaded while tokens came to the
            gate; None: none do.
        away: Others that get any; None: none do.
        loads: Whether an expert was loaded so, be it needed or not.
    """

    tokens: int
    here: Routed | None
    away: Routed | None
    loads: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """A part whose weights lie in the tiles.

    Attributes:
        part: All but attention of a layer, what comes before or after its experts, experts, or the
            output head.
        fetched: Whether they are an expert that was loaded while tokens came to the gate.
        only: Products of a layer whose weights these are; none: all of them.
    """

    part: Layer | Head | Before | Routed | After | WithExperts
    fetched: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unneeded:
    """An expert that was loaded in the same way, and gets no tokens."""


#: With those of a die of a wafer, of a pipeline, and with what tiles keep.
AnyPart = Part | Before | Routed | After | Draft | StageHandOver | WithExperts | Kept | Unneeded


def part_operators(model: Model, part: AnyPart) -> Iterator[Operator]:
    """Operators of a part."""
    if isinstance(part, Kept):
        return part_operators(model, part.part)
    if isinstance(part, Unneeded):
        return iter(())
    if isinstance(part, Layer):
        experts = needed(model, part.tokens) if part.experts else None
        return projections(model, part.tokens, experts=experts)
    if isinstance(part, Prompt):
        return prompt_attention(model, *part)
    if isinstance(part, Decode):
        return decode_attention(model, *part[:4])
    if isinstance(part, Before):
        return before_experts(model, part.tokens)
    if isinstance(part, Routed):
        return routed(model, part.needed, part.copies)
    if isinstance(part, After):
        return after_experts(model, part.tokens)
    if isinstance(part, WithExperts):
        return _with_experts(model, part)
    if isinstance(part, Draft):
        return draft(model, part.tokens)
    if isinstance(part, StageHandOver):
        return iter(())
    return head(model, part.rows)


def _with_experts(model: Model, part: WithExperts) -> Iterator[Operator]:
    """Operators of a layer with experts, of which those that are away are told by their names."""
    yield from before_experts(model, part.tokens)
    for experts, suffix in ((part.here, ""), (part.away, _AWAY)):
        if experts is not None:
            for each in routed(model, experts.needed, experts.copies):
                yield each._replace(name=each.name + suffix)
    yield from after_experts(model, part.tokens)


def kept_products(model: Model, part: WithExperts) -> tuple[str, ...]:
    """Names of the products of a layer with experts whose weights lie in the tiles."""
    products = (each for each in part_operators(model, part) if isinstance(each, Product))
    return tuple(each.name for each in products if not each.name.endswith(_AWAY))


def needed(model: Model, tokens: int) -> int:
    """Experts of a layer that some tokens need."""
    experts = model.experts
    assert experts is not None
    return round(distinct_experts(experts.count, experts.active, tokens))


def alike(part: AnyPart) -> Sequence[AnyPart]:
    """Parts that differ from one, which is among them, in how much there is to do alone.

    A run that meets one soon meets others. Of attention of prompt chunks it meets one in four, and
    plans of several are no cheaper together: that is by itself.
    """
    if isinstance(part, Kept):
        like: Sequence[Any] = alike(part.part)
        return [replace(part, part=each) for each in like]
    if isinstance(part, Layer):
        return [part._replace(tokens=tokens) for tokens in _beside(part.tokens)]
    if isinstance(part, Head):
        return [Head(rows) for rows in _beside(part.rows)]
    if isinstance(part, Before | After):
        return [type(part)(tokens) for tokens in _beside(part.tokens)]
    if isinstance(part, Routed):
        return [Routed(part.needed, copies) for copies in _beside(part.copies)]
    if not isinstance(part, Decode) or part.window is not None:
        return [part]
    # On dies of a wafer it is what they see, with the new tokens, that is rounded.
    new = 0 if part.context == rounded(part.context) else part.width
    contexts = [seen - new for seen in _beside(part.context + new) if seen > new] or [0]
    return [part._replace(context=context) for context in contexts]


def _beside(number: int) -> list[int]:
    """Numbers that `rounded` gives, this and some next to it; of 0 none."""
    unit = _unit(number, BITS)
    first = number // unit // _ALIKE * _ALIKE
    return [each * unit for each in range(first, first + _ALIKE) if each] if number else []


@lru_cache(1 << 16)
def rounded(tokens: int, bits: int = BITS) -> int:
    """Tokens rounded to some significant bits."""
    spare = tokens.bit_length() - bits
    return tokens if spare <= 0 else (tokens + (1 << spare - 1)) >> spare << spare


def rounded_chunk(new: int, context: int) -> tuple[int, int]:
    """New tokens of a prompt chunk and those before it, with what one sees in the mean rounded.

    So chunks of different prompts are alike more often than by their contexts.
    """
    new = rounded(new, PROMPT_BITS)
    return new, rounded(context + new // 2, PROMPT_BITS) - new // 2


def _unit(number: int, bits: int) -> int:
    return 1 << max(0, number.bit_length() - bits)
