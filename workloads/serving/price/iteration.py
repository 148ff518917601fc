"""The stages of an iteration, and the parts of each; a stage is the same in some of the layers."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from workloads.models import Model
from workloads.models.operators import Operator
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import chosen
from workloads.serving.price.parts import (
    After,
    AnyPart,
    Before,
    Decode,
    Head,
    Kept,
    Layer,
    Part,
    Prompt,
    Routed,
    Unneeded,
    WithExperts,
    kept_products,
    needed,
    part_operators,
    rounded,
    rounded_chunk,
)

_NONE = range(0)


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
            found.append(Attended(*rounded_chunk(new, context), filled))
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
                yield Kept(part, only=kept_products(self._model, part)), count

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
