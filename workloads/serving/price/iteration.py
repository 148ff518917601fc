"""The stages of an iteration, the parts of a stage, and the operators of each part.

A part is a layer's work on tokens alone, attention of a prompt chunk, attention of the decoding
requests, or the output head; a stage is the same in some of the layers. Numbers are rounded, so
that a run meets few different ones.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from tlm.errors import InputError
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
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import chosen, distinct_experts

# Rounded to the nearest, too many as often as too few: tokens, and contexts of decoding requests,
# are 1.6 % off at most, tokens and contexts of prompt chunks 3.2 % where attention sees them.
BITS = 6
PROMPT_BITS = 5
_ALIKE = 16
_NONE = range(0)
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


class Keeping(NamedTuple):
    """What tiles keep of a model's weights.

    Attributes:
        layers: Layers, from the first on, without their routed experts.
        head: Whether the output head.
        experts: Experts of each layer that has any.
        hottest: Whether they are those that most tokens go to.
        fetched: Which other expert of a layer is loaded ahead: ``none``, ``hottest`` or ``random``.
        fetched_from: Tokens of the smallest batch for which it is.
        also: Products of the next layer, a dense one.
    """

    layers: int = 0
    head: bool = False
    experts: int = 0
    hottest: bool = False
    fetched: str = "none"
    fetched_from: int = 0
    also: tuple[str, ...] = ()

    def check_level(self, model: Model, first: int, level: str) -> None:
        """Hold that layers from a ``first`` one on, as they are kept, have prices of a level.

        Raises:
            InputError: if any of those that are kept has experts.
        """
        if model.count(range(first, self.layers)).experts:
            raise InputError(
                f"--level: found {level} with '{model.name}', layers with experts of which are "
                "kept in the tiles; allowed: perf, or models without experts"
            )


_NOTHING = Keeping()
_Seen = TypeVar("_Seen", Prompt, Decode)


class Passed(NamedTuple):
    """Tokens that pass some layers: all of these but attention."""

    tokens: int
    layers: range


class Attended(NamedTuple):
    """Attention of a prompt chunk in some layers."""

    new: int
    context: int
    layers: range


class Decoded(NamedTuple):
    """Attention of decoding requests in all layers, of which ``kept`` find tokens in SRAM."""

    sequences: int
    width: int
    context: int
    kept: int


class DecodingOnly(NamedTuple):
    """All of an iteration that only decodes.

    Attributes:
        sequences: Decoding requests.
        width: New tokens of each; all of them pass the head.
        context: Tokens in the cache of each, `rounded`.
        kept: Layers that find theirs in SRAM.
    """

    sequences: int
    width: int
    context: int
    kept: int


#: What an iteration is made of, whose parts are the same each time.
Stage = Passed | Attended | Decoded | Head


class _Needs(NamedTuple):
    """Experts that some layers need, each of which gets an equal share of the tokens.

    Attributes:
        here: Of a layer, those that are kept.
        away: Of a layer, others.
        hits: Layers of which one of the others was loaded ahead.
        loads: Whether any are loaded ahead.
        share: Tokens of each.
    """

    here: int
    away: int
    hits: int
    loads: bool
    share: float

    def routed(self, count: int) -> Routed | None:
        """So many of them; None: there are none."""
        return Routed(count, rounded(round(self.share * count))) if count else None


class Iterations:
    """The stages of a model's iterations, and the parts of each.

    Args:
        model: The model.
        keeping: What tiles keep of it.
        whole_layers: Whether a layer whose experts are partly kept is one part.
    """

    def __init__(
        self, model: Model, keeping: Keeping = _NOTHING, *, whole_layers: bool = False
    ) -> None:
        self._model, self._keeping, self._whole_layers = model, keeping, whole_layers
        self._everywhere = range(model.layers)

    def operators(self, batch: Batch) -> list[tuple[Operator, int]]:
        """Operators of an iteration, in the order in which a layer first meets them."""
        found: Counter[Operator] = Counter()
        for part, count in self.counted(batch):
            for operator in part_operators(self._model, part):
                found[operator] += count
        return list(found.items())

    def counted(self, batch: Batch) -> list[tuple[AnyPart, int]]:
        """Parts of an iteration, in the order of its stages, and how often each runs."""
        return [each for stage in self.stages(batch) for each in self.parts(stage)]

    def stages(self, batch: Batch) -> list[Stage]:
        """Stages of an iteration.

        Layers that compute prompts compute them beside the decoding requests; others those alone.
        Decoding requests are taken to have equal contexts. Where SRAM holds a share of their
        tokens, as many layers find theirs there.
        """
        found: list[Stage] = []
        everywhere, filled, sequences = self._everywhere, _NONE, batch.decode_sequences
        prefills, width = batch.prefills, batch.decode_width
        if prefills:
            filled = everywhere if batch.prefill_layers is None else batch.prefill_layers
            found.append(Passed(rounded(batch.new_tokens), filled))
        if sequences and filled is not everywhere and len(filled) < len(everywhere):
            for beside in (range(filled.start), range(filled.stop, everywhere.stop)):
                if beside:
                    found.append(Passed(rounded(batch.decode_tokens), beside))
        for new, context in prefills:
            found.append(Attended(rounded(new, PROMPT_BITS), rounded(context, PROMPT_BITS), filled))
        if sequences:
            tokens, there = batch.decode_context_tokens, batch.decode_sram_tokens
            kept = round(len(everywhere) * (there / tokens)) if there else 0
            found.append(Decoded(sequences, width, rounded(-(-tokens // sequences)), kept))
        if batch.logit_rows:
            found.append(Head(rounded(batch.logit_rows)))
        return found

    def decoding(self, all_of_it: DecodingOnly) -> list[Stage]:
        """The same of an iteration that only decodes."""
        tokens = rounded(all_of_it.sequences * all_of_it.width)
        return [Passed(tokens, self._everywhere), Decoded(*all_of_it), Head(tokens)]

    def parts(self, stage: Stage) -> list[tuple[AnyPart, int]]:
        """Parts of a stage, and how often each runs."""
        if isinstance(stage, Passed):
            return [*self._passed(stage)]
        if isinstance(stage, Attended):
            return [*self.seen(Prompt(stage.new, stage.context, None), stage.layers)]
        if isinstance(stage, Decoded):
            return [*self._decoded(stage)]
        return [(Kept(stage) if self._keeping.head else stage, 1)]

    def _passed(self, stage: Passed) -> Iterator[tuple[AnyPart, int]]:
        """All but attention, of layers that are kept and of others."""
        tokens, model, kept = stage.tokens, self._model, self._keeping
        first, last = stage.layers.start, stage.layers.stop
        border = min(max(first, kept.layers), last)
        dense, experts, *_ = model.count(range(first, border))
        if dense:
            yield Kept(Layer(tokens, False)), dense
        if experts and self._whole_layers:
            yield from self._with_experts(tokens, experts)
        elif experts:
            yield Kept(Before(tokens)), experts
            yield from self._experts(tokens, experts)
            yield Kept(After(tokens)), experts
        if kept.also and first <= kept.layers < last:
            yield Kept(Layer(tokens, False), only=kept.also), 1
            border += 1
        dense, experts, *_ = model.count(range(border, last))
        if dense:
            yield Layer(tokens, False), dense
        if experts:
            yield Layer(tokens, True), experts

    def _with_experts(self, tokens: int, layers: int) -> Iterator[tuple[AnyPart, int]]:
        """Some layers, whose experts are kept, loaded ahead or neither."""
        needs = self._needs(tokens, layers)
        for ahead, count in ((1, needs.hits), (0, layers - needs.hits)):
            if count:
                here, away = needs.routed(needs.here + ahead), needs.routed(needs.away - ahead)
                part = WithExperts(tokens, here, away, needs.loads)
                kept = tuple(
                    each.name
                    for each in part_operators(self._model, part)
                    if isinstance(each, Product) and not each.name.endswith(_AWAY)
                )
                yield Kept(part, only=kept), count

    def _experts(self, tokens: int, layers: int) -> Iterator[tuple[AnyPart, int]]:
        """Experts alone of some layers: kept, loaded ahead, others."""
        needs = self._needs(tokens, layers)
        misses = layers - needs.hits
        if here := needs.routed(needs.here):
            yield Kept(here), layers
        if needs.hits:
            ahead = needs.routed(1)
            assert ahead is not None
            yield Kept(ahead, fetched=True), needs.hits
        if needs.loads and misses:
            yield Unneeded(), misses
        for fewer, count in ((1, needs.hits), (0, misses)):
            if count and (away := needs.routed(needs.away - fewer)):
                yield away, count

    def _needs(self, tokens: int, layers: int) -> _Needs:
        """Experts of some layers that get any tokens."""
        model, kept = self._model, self._keeping
        assert model.experts is not None
        experts, wanted = model.experts, needed(model, tokens)
        chances = chosen(experts.count, experts.active, tokens, kept.experts, hottest=kept.hottest)
        here = min(wanted, round(chances.kept))
        ahead = kept.fetched != "none" and kept.experts < experts.count
        loads, away = ahead and tokens >= kept.fetched_from, wanted - here
        chance = chances.hottest_other if kept.fetched == "hottest" else chances.any_other
        hits = round(layers * chance) if loads and away else 0
        return _Needs(here, away, hits, loads, tokens * experts.active / wanted)

    def _decoded(self, stage: Decoded) -> list[tuple[Part, int]]:
        """Attention of decoding requests, of whose kinds each has its share of the layers kept."""
        sequences, width, context, kept = stage
        seen = self.seen(Decode(sequences, width, context, None), self._everywhere)
        if not kept:
            return [*seen]
        found: list[tuple[Part, int]] = []
        for part, count in seen:
            here = round(count * kept / len(self._everywhere))
            found += [(part, count - here)] if count > here else []
            found += [(part._replace(in_sram=True), here)] if here else []
        return found

    def seen(self, part: _Seen, layers: range) -> list[tuple[_Seen, int]]:
        """Attention in some layers, by what they see."""
        counts, window = self._model.count(layers), self._model.sliding_window
        found = [(part, counts.full)] if counts.full else []
        if window is not None and counts.windowed:
            # Tokens beyond the window make no difference.
            context = min(part.context, window.tokens)
            seen = part._replace(context=context, window=window.tokens)
            found.append((seen, counts.windowed))
        return found


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


def _unit(number: int, bits: int) -> int:
    return 1 << max(0, number.bit_length() - bits)
