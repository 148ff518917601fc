"""An iteration on the dies of a wafer: which die computes what, and what goes between them.

Requests are dealt out to the dies of a group, which compute attention, shared experts and dense
layers for their own; experts are dealt out to all dies of the group. Groups have a stretch of the
layers each. As many micro-batches as there are groups pass them one behind another, again and
again: while one decodes in a group, the next one does so in the group before.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heapreplace
from math import ceil
from typing import NamedTuple

from tlm.dies.schedule import DiePhase, overlapped
from workloads.machine.die_groups import DieGroups
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_links import DieLinks, Exchange, HandOver, Link
from workloads.serving.price.parts import (
    After,
    AnyPart,
    Before,
    Decode,
    Draft,
    Head,
    Layer,
    Prompt,
    rounded,
    rounded_chunk,
)

#: Parts of a micro-batch that take turns on dies and links.
_HALVES = 2
#: Cycles of a part, or of what goes over links.
Cycles = Callable[[AnyPart | Link], float]


class Phase(NamedTuple):
    """What a die computes, and what then goes over the links, for which all dies wait."""

    parts: tuple[AnyPart, ...]
    link: Link | None = None


class Block(NamedTuple):
    """Layers that are alike.

    Attributes:
        phases: Of each.
        times: How many there are.
    """

    phases: tuple[Phase, ...]
    times: int = 1


#: A micro-batch in a group.
Stage = tuple[Block, ...]


class DiePlan(NamedTuple):
    """An iteration.

    Attributes:
        runs: Stages of each micro-batch, all through the groups.
        halved: Whether each stage is of half a micro-batch, whose other half takes turns with it.
    """

    runs: tuple[tuple[Stage, ...], ...]
    halved: bool

    def cycles(self, of: Cycles) -> float:
        """Cycles from one token of a request to its next.

        Each group computes all micro-batches one behind another; no micro-batch is there again
        before it has passed all groups.
        """
        alike = {id(run): run for run in self.runs}  # told apart by what costs nothing
        known = {
            number: [self._stage_cycles(stage, of) for stage in run]
            for number, run in alike.items()
        }
        times = [known[id(run)] for run in self.runs]
        return max(sum(map(max, times)), *map(sum, times))

    def counted(self) -> Iterator[tuple[AnyPart | Link, int]]:
        """All that runs, and how often, in the order of a layer."""
        halves = _HALVES if self.halved else 1
        for run in self.runs:
            for block in (block for stage in run for block in stage):
                for phase in block.phases:
                    for each in (*phase.parts, *([phase.link] if phase.link else [])):
                        yield each, block.times * halves

    def _stage_cycles(self, stage: Stage, of: Cycles) -> float:
        if not self.halved:
            return sum(
                block.times * sum(_phase_cycles(phase, of) for phase in block.phases)
                for block in stage
            )
        phases = [
            DiePhase((round(sum(map(of, parts))),), 0 if link is None else round(of(link)))
            for block in stage
            for parts, link in block.phases * block.times
        ]
        return overlapped(phases, _HALVES).ticks


def _phase_cycles(phase: Phase, of: Cycles) -> float:
    return sum(map(of, phase.parts)) + (0.0 if phase.link is None else of(phase.link))


class _Share(NamedTuple):
    """A micro-batch.

    Attributes:
        sequences: Decoding requests of a die.
        width: New tokens of each.
        context: Their tokens in the cache.
        decoding: New tokens of them on all dies of a group.
        prompts: Prompt chunks of the die with the most, as new and cached tokens.
        prompt_tokens: New tokens of prompts on all dies.
        heads: Tokens of a die that pass the head.
    """

    sequences: int
    width: int
    context: int
    decoding: int
    prompts: tuple[tuple[int, int], ...]
    prompt_tokens: int
    heads: int

    def half(self) -> "_Share":
        """Half of it; of a prompt the second half, which sees the first."""
        prompts = ((ceil(new / 2), context + new // 2) for new, context in self.prompts)
        return self._replace(
            sequences=ceil(self.sequences / 2),
            decoding=ceil(self.decoding / 2),
            prompts=tuple(prompts),
            prompt_tokens=ceil(self.prompt_tokens / 2),
            heads=ceil(self.heads / 2),
        )


class DiePlanner:
    """Plans iterations of a model.

    Args:
        model: The model.
        groups: The dies.
        links: What its tokens ask of them.
        overlap: Whether halves of a micro-batch take turns on dies and links.
    """

    def __init__(
        self, model: Model, groups: DieGroups, links: DieLinks, *, overlap: bool = False
    ) -> None:
        self._model, self._groups, self._links = model, groups, links
        self._overlap = overlap

    @property
    def stretches(self) -> list[range]:
        """Layers of each group."""
        return stretches_of(self._model.layers, self._groups.count)

    def planned(self, batch: Batch) -> DiePlan:
        """An iteration."""
        shares = self._shares(batch)
        if self._overlap:
            shares = [share.half() for share in shares]
        filled = range(self._model.layers) if batch.prefill_layers is None else batch.prefill_layers
        alike = {share: self._run(share, filled) for share in shares}
        return DiePlan(tuple(alike[share] for share in shares), self._overlap)

    def _shares(self, batch: Batch) -> list[_Share]:
        """Micro-batches that have any work."""
        dies, most = self._groups.dies, self._groups.count
        sequences, width = batch.decode_sequences, batch.decode_width
        decoding = min(most, sequences)
        of_each = ceil(sequences / max(1, decoding))
        keys = rounded(ceil(batch.decode_context_tokens / max(1, sequences)) + width)
        dealt = dealt_prompts(batch.prefills, most, dies)
        ended = batch.logit_rows - batch.decode_tokens
        shares = []
        for number, chunks in enumerate(dealt):
            here = of_each if number < decoding else 0
            if not here and not any(chunks):
                continue
            busiest = max(chunks, key=lambda die: sum(new for new, _ in die))
            of_die = ceil(here / dies)
            shares.append(
                _Share(
                    sequences=of_die,
                    width=width,
                    context=max(1, keys - width),
                    decoding=here * width,
                    prompts=tuple(busiest),
                    prompt_tokens=sum(new for die in chunks for new, _ in die),
                    heads=of_die * width + min(len(busiest), max(0, ended)),
                )
            )
        return shares

    def _run(self, share: _Share, filled: range) -> tuple[Stage, ...]:
        """A micro-batch in all groups."""
        found: list[Stage] = []
        last = self._model.layers - 1
        for stretch in self.stretches:
            within = range(max(stretch.start, filled.start), min(stretch.stop, filled.stop))
            beside = [
                range(stretch.start, min(stretch.stop, filled.start)),
                range(max(stretch.start, filled.stop), stretch.stop),
            ]
            blocks = [*self._layers(share, within, prompts=True)]
            if share.sequences:
                for layers in beside:
                    blocks += self._layers(share, layers, prompts=False)
            if stretch.stop <= last:
                most = self._tokens(share, prompts=stretch.stop - 1 in filled)[1]
                handed = [HandOver(rounded(most))] if most else []
                blocks += [Block((Phase((), link),)) for link in handed]
            else:
                blocks += self._end(share, prompts=last in filled)
            found.append(tuple(blocks))
        return tuple(found)

    def _end(self, share: _Share, *, prompts: bool) -> list[Block]:
        """The head, and behind it the module that drafts, on what it has verified."""
        found, drafts = [], self._model.draft_layers
        if share.heads:
            found.append(Block((Phase((Head(rounded(share.heads)),)),)))
        if share.width > 1 and drafts and share.sequences:
            layer = self._layer(share, experts=self._model.experts is not None, prompts=prompts)
            of_die = rounded(self._tokens(share, prompts=prompts)[1])
            before = Phase((Draft(of_die),))
            after = Phase((Head(rounded(share.sequences)),))
            found.append(Block((before, *layer, after), drafts))
        return found

    def _layers(self, share: _Share, layers: range, *, prompts: bool) -> list[Block]:
        dense, experts, *_ = self._model.count(layers) if layers else (0, 0)
        kinds = ((False, dense), (True, experts))
        return [
            Block(self._layer(share, experts=kind, prompts=prompts), times)
            for kind, times in kinds
            if times
        ]

    def _layer(self, share: _Share, *, experts: bool, prompts: bool) -> tuple[Phase, ...]:
        everywhere, most = self._tokens(share, prompts=prompts)
        of_die = rounded(most)
        seen: list[AnyPart] = []
        if prompts:
            seen += [Prompt(*rounded_chunk(new, context), None) for new, context in share.prompts]
        if share.sequences:
            seen.append(Decode(share.sequences, share.width, share.context, None))
        if not experts:
            return (Phase((Layer(of_die, False), *seen)),)
        tokens = rounded(everywhere)
        routed = self._links.busiest(tokens)
        ways = (Exchange(back, tokens, of_die) for back in (False, True))
        there, back = ways if self._groups.dies > 1 else (None, None)
        return (
            Phase((Before(of_die), *seen), there),
            Phase((routed,), back),
            Phase((After(of_die),)),
        )

    @staticmethod
    def _tokens(share: _Share, *, prompts: bool) -> tuple[int, int]:
        """New tokens of all dies of a group, and of the one with the most."""
        of_die = share.sequences * share.width
        if not prompts:
            return share.decoding, of_die
        most = sum(new for new, _ in share.prompts)
        return share.decoding + share.prompt_tokens, of_die + most


def stretches_of(layers: int, groups: int) -> list[range]:
    """Layers of each of some groups: equally many, or one more in the first ones."""
    each, more = divmod(layers, groups)
    ends = [number * each + min(number, more) for number in range(groups + 1)]
    return [range(*pair) for pair in zip(ends[:-1], ends[1:], strict=True)]


def dealt_prompts(
    prompts: Sequence[tuple[int, int]], batches: int, dies: int
) -> list[list[list[tuple[int, int]]]]:
    """Prompt chunks by micro-batch and die: the longest first, to the die with the fewest tokens.

    Dies of different micro-batches take turns.
    """
    found: list[list[list[tuple[int, int]]]] = [[[] for _ in range(dies)] for _ in range(batches)]
    loads = [(0, die, batch) for die in range(dies) for batch in range(batches)]
    heapify(loads)
    for new, context in sorted(prompts, reverse=True):
        tokens, die, batch = loads[0]
        found[batch][die].append((new, context))
        heapreplace(loads, (tokens + new, die, batch))
    return found
