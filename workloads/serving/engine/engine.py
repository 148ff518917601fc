"""The serving engine: a step of the clock for each iteration or stretch of iterations.

Rules, in the order in which an iteration applies them:

1. Requests that have arrived wait first come first served; preempted ones wait before them.
2. Every decoding request will emit a token. A request whose blocks are full needs a new one. While
   there are not enough free blocks, the request admitted last is preempted: its blocks are freed
   and it starts over from the front of the queue, recomputing what it had emitted (the rule of
   vLLM, SOSP 2023, section 4.5). A scheduler may keep prompts under way from it.
3. The scheduler plans prompt chunks. A waiting request is admitted if fewer than ``max_sequences``
   a rank are running and its whole prompt has free blocks, with 1 % of all blocks left over unless
   nothing runs (vLLM's watermark, against preempting what was just admitted).
4. The iteration takes the time its model says. Then the decoding requests have emitted a token; so
   has every completed prompt, which joins them.

Iterations that only decode are alike until a request arrives, finishes or is preempted: they are
taken in one stretch, which leaves the same figures as one by one.

Time is an integer number of picoseconds. What an engine is in the middle of stands in its fields:
a copy of them goes on from there.
"""

from collections import deque
from collections.abc import Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from workloads.machine.kv_levels import blocks_of
from workloads.serving.engine.decoding import DecodingSet
from workloads.serving.engine.kv import KvCache
from workloads.serving.engine.speculation import Speculation, SpeculativeSet
from workloads.serving.engine.waiting import Waiting
from workloads.serving.load.request import Request
from workloads.serving.load.traces import PS_PER_S, Trace, within_time
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    IterationCost,
    ServingModel,
    in_sram,
)
from workloads.serving.result.metrics import Recorder
from workloads.serving.result.usage import Usage
from workloads.serving.schedulers.base import Plan, Scheduler

DEFAULT_MAX_SEQUENCES = 256  # vLLM's max_num_seqs
LONGEST_STRETCH = 4096
# Fields that stay those of an engine when it goes on from the state of another.
_AROUND = {"due", "_clock", "_model", "_prefill", "decode"}


class Iteration(NamedTuple):
    """An iteration under way."""

    plan: Plan
    complete: Sequence[Request]
    batch: Batch
    cost: IterationCost
    begin_ps: int
    end_ps: int


class Stretch(NamedTuple):
    """Iterations that only decode, under way one after the other, in runs of alike ones."""

    batch: Batch
    costs: DecodeCosts
    begin_ps: int
    end_ps: int
    durations_ps: Sequence[int]
    times: Sequence[int]


class Engine:
    """Serves what waits on a model.

    Args:
        waiting: The requests.
        scheduler: Plans the iterations.
        model: Prices them.
        recorder: Told of every token and every finished request.
        kv: The key-value memory.
        max_sequences: Most requests admitted at a time to each of the model's ranks.
        speculation: Drafts for the decoding requests; None: a token a step.
        jump: Whether to take alike iterations in one stretch.
        replica: Its number among engines whose requests are counted together.
    """

    due: tuple[int, int] | None = None  # by the clock

    def __init__(
        self,
        waiting: Waiting,
        scheduler: Scheduler,
        model: ServingModel,
        recorder: Recorder,
        *,
        kv: KvCache,
        max_sequences: int = DEFAULT_MAX_SEQUENCES,
        speculation: Speculation | None = None,
        jump: bool = True,
        replica: int = 0,
    ) -> None:
        self.kv = kv
        self.prefilling: deque[Request] = deque()
        self.waiting = waiting
        self.usage = Usage(model.layers, model.sliding_window)
        self.layers, self.ranks = model.layers, model.ranks
        self._scheduler = scheduler
        self._model = model
        self._recorder = recorder
        self._max_sequences = max_sequences * model.ranks
        self._jump = jump
        self._replica = replica
        self._decoders = DecodingSet() if speculation is None else SpeculativeSet(speculation)
        self._under_way: Iteration | Stretch | None = None
        self._now_ps = 0
        self._last_duration_ps = 1

    @property
    def decoding(self) -> int:
        """Requests that emit a token, or more, in this iteration."""
        return self._decoders.sequences

    @property
    def decode_tokens(self) -> int:
        """Tokens that the iteration computes for them, drafts included."""
        return self._decoders.sequences * self._decoders.width

    def step(self, now_ps: int) -> int | None:
        """End what is over at a time, and begin what comes next.

        Returns:
            When that ends, or the next request comes; None: never.
        """
        self._now_ps = now_ps
        done = self._under_way
        if done is not None:
            if done.end_ps > now_ps:  # woken in the middle
                return done.end_ps
            self._complete(done)
        self._under_way = begun = self._begin()
        return self._arrival_ps() if begun is None else begun.end_ps

    def state(self) -> dict[str, Any]:
        """Its fields, but for what it is built around."""
        return {name: field for name, field in vars(self).items() if name not in _AROUND}

    def resume(self, state: dict[str, Any], trace: Trace) -> None:
        """Go on from the fields of another, which served the same trace with the same model."""
        vars(self).update(state)
        self.waiting.resume(trace)

    def admit(self) -> Request | None:
        """Admit the first waiting request; None if there is none or it must wait longer."""
        running = self._decoders.sequences + len(self.prefilling)
        if running >= self._max_sequences:
            return None
        request = self.waiting.first(self._now_ps)
        if request is None or not self.kv.admit(request, self._decoders, spare=running > 0):
            return None
        self.waiting.take(request)
        self.prefilling.append(request)
        if request.start_ps < 0:
            request.start_ps = self._now_ps
        return request

    def _begin(self) -> Iteration | Stretch | None:
        """Plan what comes next; None if there is nothing to do."""
        decoders = self._decoders
        self._secure_blocks()
        plan = self._scheduler.plan(self)
        if plan.chunks:
            return self._begin_iteration(plan)
        if not (decoders.sequences and plan.decode):
            return None
        steps, next_ps = self._steps_ahead()
        if steps == 1:
            return self._begin_iteration(plan)
        stretch = self._begin_stretch(steps)
        return stretch if next_ps is None else until(stretch, next_ps)

    def _secure_blocks(self) -> None:
        """Preempt until the decoding requests have the blocks of their next step."""
        while not self.kv.steps(self._decoders, 1):
            self._preempt_last()

    def _begin_iteration(self, plan: Plan) -> Iteration:
        decoders, now, width = self._decoders, self._now_ps, self._decoders.width
        layers = plan.layers
        passed = layers is None or layers.stop == self.layers
        prefills: list[tuple[int, int]] = []
        complete: list[Request] = []
        for request, tokens in plan.chunks:
            before = request.prefilled
            prefills.append((tokens, before))
            if passed and before + tokens == request.to_prefill:
                complete.append(request)
        decoding = context = sram_tokens = 0
        if plan.decode and (decoding := decoders.sequences):
            self.kv.grow(decoders, 1)
            context = decoders.context_tokens
            sram_tokens = in_sram(context, self.kv.spilled_of(decoders))
        rows = decoding * width + len(complete)
        batch = Batch(tuple(prefills), decoding, context, rows, layers, width, sram_tokens)
        cost = self._model.cost(batch)
        duration_ps = round(cost.seconds * PS_PER_S)
        if duration_ps < 1:
            raise ValueError(f"an iteration cannot take {duration_ps} ps")
        return Iteration(plan, complete, batch, cost, now, within_time(now + duration_ps))

    def _steps_ahead(self) -> tuple[int, int | None]:
        """How many steps can be taken in one stretch, and when to cut it."""
        if not self._jump:
            return 1, None
        next_ps = self._arrival_ps()
        steps = min(self._decoders.steps_to_finish(), LONGEST_STRETCH)
        if next_ps is not None:
            steps = min(steps, (next_ps - self._now_ps) // self._last_duration_ps + 2)
        return self.kv.steps(self._decoders, steps), next_ps

    def _begin_stretch(self, steps: int) -> Stretch:
        decoders, now = self._decoders, self._now_ps
        sequences, width = decoders.sequences, decoders.width
        first, grown = decoders.context_tokens, sequences * width
        context = np.arange(first, first + steps * grown, grown)
        spilled = self.kv.spilled_of(decoders)  # who spills takes that step alone
        costs = self._model.decode_costs(sequences, context, width, spilled)
        durations = [round(seconds * PS_PER_S) for seconds in costs.seconds]
        if min(durations) < 1:
            raise ValueError(f"an iteration cannot take {min(durations)} ps")
        self._last_duration_ps = durations[-1]
        batch = Batch((), sequences, first, grown, None, width)
        end_ps = within_time(now + sum(map(mul, durations, costs.times)))
        return Stretch(batch, costs, now, end_ps, durations, costs.times)

    def _arrival_ps(self) -> int | None:
        """When somebody else will be next in line to be admitted; None if nobody will."""
        return self.waiting.next_ps(self._now_ps)

    def _complete(self, done: Iteration | Stretch) -> None:
        """What was under way is over."""
        if isinstance(done, Stretch):
            batch, costs, begin_ps, end_ps, durations, times = done
            steps, members = sum(times), batch.decode_sequences
            self.usage.stretch(batch, costs, times, end_ps - begin_ps)
            self.kv.grow(self._decoders, steps)
            self._recorder.decoded_all(begin_ps, durations, times, members, self._replica)
            self._advance(steps)
            return
        self.usage.iteration(done.batch, done.cost, done.end_ps - done.begin_ps)
        if members := done.batch.decode_sequences:
            tokens = self._decoders.tokens_due
            self._recorder.decoded(self._now_ps, members, tokens, self._replica)
            self._advance(1)
        layers = done.plan.layers
        if layers is None or layers.stop == self.layers:
            self._prefilled(done)

    def _advance(self, steps: int) -> None:
        for request, blocks in self._decoders.advance(steps):
            self._recorder.left(request, self._replica)
            self._finish(request, blocks)

    def _prefilled(self, done: Iteration) -> None:
        prompt = 0
        for request, tokens in done.plan.chunks:
            request.prefilled += tokens
            prompt += tokens
        if prompt:
            self._recorder.prompted(self._now_ps, prompt)
        for request in done.complete:
            self._emit(request)

    def _emit(self, request: Request) -> None:
        """The first token, or after a preemption the next one."""
        self.prefilling.remove(request)
        request.emitted += 1
        self._recorder.first_token(request, self._now_ps)
        if request.emitted == request.output_tokens:
            self._finish(request, blocks_of(request.to_prefill))
        else:
            self._decode_on(request)

    def _decode_on(self, request: Request) -> None:
        self._decoders.join(request)
        self._recorder.joined(request, self._replica)

    def _preempt_last(self) -> None:
        """Prompts under way were admitted after all that decode, so the last of them goes first."""
        if self.prefilling and not self._scheduler.keeps_prompts:
            request = self.prefilling.pop()
            blocks = blocks_of(request.to_prefill)
        else:
            request = self._decoders.last
            blocks = self._decoders.leave(request)
            self._recorder.left(request, self._replica)
        self.kv.release(request, blocks)
        self._recorder.preemptions += 1
        request.restart()
        self._give_back(request)

    def _give_back(self, request: Request) -> None:
        self.waiting.put_first(request, self._now_ps)

    def _finish(self, request: Request, blocks: int) -> None:
        self.kv.release(request, blocks)
        self._recorder.done(request)


def until(stretch: Stretch, time_ps: int) -> Stretch:
    """The stretch up to the first iteration that ends at a time after its beginning, or later."""
    batch, costs, begin_ps, end_ps, durations, times = stretch
    if end_ps <= time_ps:
        return stretch
    taken, end_ps = [], begin_ps
    for duration_ps, there in zip(durations, times, strict=True):
        taken.append(min(there, -(-(time_ps - end_ps) // duration_ps)))
        end_ps += taken[-1] * duration_ps
        if end_ps >= time_ps:
            break
    return Stretch(batch, costs, begin_ps, end_ps, durations[: len(taken)], taken)
