"""An iteration on a pipeline of tensor-parallel groups.

Requests are cut into as many micro-batches as there are groups, or into more of a given size, which
pass all of them, one behind another. So a token of a decoding request passes all stages before its
next one begins, while other micro-batches are in the other stages
(`workloads.serving.price.die_plan.DiePlan`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from tlm.compute.base import ceil_div
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_plan import (
    Block,
    DiePlan,
    Phase,
    Stage,
    dealt_prompts,
    stretches_of,
)
from workloads.serving.price.iteration import Attended, Iterations, Keeping, Passed
from workloads.serving.price.parts import (
    AnyPart,
    Decode,
    Head,
    StageHandOver,
    rounded,
    rounded_chunk,
)


class _MicroBatch(NamedTuple):
    """A share of the requests.

    Attributes:
        prompts: Prompt chunks, as new and cached tokens.
        sequences: Decoding requests.
        width: New tokens of each.
        context: Their tokens in the cache.
        ended: Prompts that give a token.
        kept: Layers of the model, of which each stage has its share, that find those in SRAM.
    """

    prompts: tuple[tuple[int, int], ...]
    sequences: int
    width: int
    context: int
    ended: int
    kept: int = 0

    def tokens(self, *, prompts: bool) -> int:
        """New tokens."""
        new = sum(new for new, _ in self.prompts) if prompts else 0
        return new + self.sequences * self.width


class GroupPlanner:
    """Plans iterations of a model on a pipeline of some stages.

    Args:
        model: The model.
        stages: How many.
        micro_batch: Most decoding requests of a micro-batch; None: as many as there are.
        keepings: What the tiles of each stage keep; none: nothing.
    """

    def __init__(
        self,
        model: Model,
        stages: int,
        micro_batch: int | None,
        keepings: Sequence[Keeping],
    ) -> None:
        self._model, self._micro_batch = model, micro_batch
        self.stretches = stretches_of(model.layers, stages)
        kept = keepings or [Keeping()] * stages
        self._parts = [Iterations(model, each, whole_layers=True) for each in kept]

    def planned(self, batch: Batch) -> DiePlan:
        """An iteration."""
        filled = range(self._model.layers) if batch.prefill_layers is None else batch.prefill_layers
        shares = self._shares(batch)
        runs = {each: self._run(each, filled) for each in {*shares}}
        return DiePlan(tuple(runs[each] for each in shares), halved=False)

    def _shares(self, batch: Batch) -> list[_MicroBatch]:
        """Micro-batches that have any work."""
        stages, sequences, width = len(self.stretches), batch.decode_sequences, batch.decode_width
        decoding = min(stages, sequences)
        if self._micro_batch is not None:
            decoding = max(decoding, ceil_div(sequences, self._micro_batch))
        each, more = divmod(sequences, max(1, decoding))
        seen = rounded(ceil_div(batch.decode_context_tokens, max(1, sequences)) + width)
        ended = batch.logit_rows - batch.decode_tokens
        in_sram = batch.decode_sram_tokens / max(1, batch.decode_context_tokens)
        kept = round(self._model.layers * in_sram)
        found = []
        for number, (chunks,) in enumerate(dealt_prompts(batch.prefills, max(stages, decoding), 1)):
            here = each + (number < more) if number < decoding else 0
            if here or chunks:
                gave = min(len(chunks), ended)
                ended -= gave
                context = max(1, seen - width) if here else 0
                found.append(_MicroBatch(tuple(chunks), here, width, context, gave, kept))
        return found

    def _run(self, share: _MicroBatch, filled: range) -> tuple[Stage, ...]:
        """A micro-batch in all stages."""
        last = self._model.layers - 1
        stages = []
        for stretch, own in zip(self.stretches, self._parts, strict=True):
            within = range(max(stretch.start, filled.start), min(stretch.stop, filled.stop))
            parts = self._layers(own, share, within, prompts=bool(share.prompts)) if within else []
            if share.sequences:
                for start, stop in (
                    (stretch.start, min(stretch.stop, filled.start)),
                    (max(stretch.start, filled.stop), stretch.stop),
                ):
                    if start < stop:
                        parts += self._layers(own, share, range(start, stop), prompts=False)
            blocks = [Block((Phase((part,)),), times) for part, times in parts]
            passed = share.tokens(prompts=stretch.stop - 1 in filled)
            if stretch.stop <= last and passed:
                blocks.append(Block((Phase((StageHandOver(rounded(passed)),)),)))
            rows = share.sequences * share.width + share.ended
            if stretch.stop > last and rows:
                blocks += [Block((Phase((part,)),)) for part, _ in own.parts(Head(rounded(rows)))]
            stages.append(tuple(blocks))
        return tuple(stages)

    def _layers(
        self, parts: Iterations, share: _MicroBatch, layers: range, *, prompts: bool
    ) -> list[tuple[AnyPart, int]]:
        """Parts of some layers, and how often each runs."""
        tokens = share.tokens(prompts=prompts)
        if not tokens:
            return []
        found = parts.parts(Passed(rounded(tokens), layers))
        for new, context in share.prompts if prompts else ():
            found += parts.parts(Attended(*rounded_chunk(new, context), layers))
        if share.sequences:
            decode = Decode(share.sequences, share.width, share.context, None)
            kept = share.kept / self._model.layers
            for part, count in parts.seen(decode, layers):
                here = round(count * kept)
                found += [(part, count - here)] if count > here else []
                found += [(part._replace(in_sram=True), here)] if here else []
        return found
