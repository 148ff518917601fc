"""The serving engine: one SimPy process, one event an iteration.

Rules, in the order in which an iteration applies them:

1. Requests that have arrived wait first come first served; preempted ones wait before them.
2. Every decoding request will emit a token. A request whose blocks are full needs a new one. While
   there are not enough free blocks, the request admitted last is preempted: its blocks are freed
   and it starts over from the front of the queue, recomputing what it had emitted (the rule of
   vLLM, SOSP 2023, section 4.5).
3. The scheduler plans prompt chunks. A waiting request is admitted if fewer than
   ``max_sequences`` are running and its whole prompt has free blocks, with 1 % of all blocks left
   over unless nothing runs (vLLM's watermark, against preempting what was just admitted).
4. The iteration takes the time its cost model says. Then the decoding requests have emitted a
   token; so has every completed prompt, which joins them.

Time is an integer number of picoseconds.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import simpy

from tlm.errors import InputError
from workloads.serving.cost import Batch, ServingModel
from workloads.serving.decoding import DecodingSet
from workloads.serving.kv import BlockPool, blocks_of
from workloads.serving.metrics import Recorder
from workloads.serving.request import Request
from workloads.serving.schedulers.base import Chunk, Scheduler
from workloads.serving.traces import PS_PER_S, Trace

DEFAULT_MAX_SEQUENCES = 256  # vLLM's max_num_seqs
_WATERMARK = 0.01

Progress = Callable[[int, int], None]


class Engine:
    """Serves a trace; ``run`` is the SimPy process.

    Args:
        env: simulated clock in picoseconds, starting at 0.
        trace: the requests.
        scheduler: plans the prompt chunks.
        cost: gives the time of an iteration.
        recorder: told of every token and every finished request.
        kv_capacity_tokens: size of the key-value memory.
        max_sequences: most requests admitted at a time.
        progress: called now and then with the finished and all requests.

    Raises:
        InputError: if a request can never fit the key-value memory.
    """

    def __init__(
        self,
        env: simpy.Environment,
        trace: Trace,
        scheduler: Scheduler,
        cost: ServingModel,
        recorder: Recorder,
        *,
        kv_capacity_tokens: int,
        max_sequences: int = DEFAULT_MAX_SEQUENCES,
        progress: Progress | None = None,
    ) -> None:
        self.kv = BlockPool(kv_capacity_tokens)
        self.prefilling: deque[Request] = deque()
        self._env = env
        self._scheduler = scheduler
        self._cost = cost
        self._recorder = recorder
        self._max_sequences = max_sequences
        self._progress = progress
        self._watermark = int(_WATERMARK * self.kv.total)
        self._waiting: deque[Request] = deque()
        self._decoders = DecodingSet()
        self._finished = 0
        _check_fits(trace, self.kv)
        self._arrivals = trace.rows()
        self._arrived = 0
        self._progress_step = max(1, len(trace) // 200)

    @property
    def decoding(self) -> int:
        """Requests that emit a token in this iteration."""
        return len(self._decoders)

    def run(self) -> Generator[simpy.Event, Any, None]:
        """Serve until every request is complete."""
        while self._finished < len(self._arrivals):
            self._take_arrivals()
            self._secure_blocks()
            chunks = self._scheduler.plan(self)
            if chunks or self._decoders:
                yield from self._iterate(chunks)
            else:
                next_ps, _, _ = self._arrivals[self._arrived]
                yield self._env.timeout(next_ps - self._now_ps)

    def admit(self) -> Request | None:
        """Admit the first waiting request; None if there is none or it must wait longer."""
        running = len(self._decoders) + len(self.prefilling)
        if not self._waiting or running >= self._max_sequences:
            return None
        request = self._waiting[0]
        blocks = blocks_of(request.to_prefill)
        if blocks > self.kv.free - (self._watermark if running else 0):
            return None
        self.kv.take(blocks)
        self._waiting.popleft()
        self.prefilling.append(request)
        if request.start_ps < 0:
            request.start_ps = self._now_ps
        return request

    @property
    def _now_ps(self) -> int:
        return int(self._env.now)

    def _take_arrivals(self) -> None:
        while self._arrived < len(self._arrivals):
            arrival_ps, prompt, output = self._arrivals[self._arrived]
            if arrival_ps > self._now_ps:
                return
            self._waiting.append(Request(self._arrived, arrival_ps, prompt, output))
            self._arrived += 1

    def _secure_blocks(self) -> None:
        while self._decoders.blocks_due > self.kv.free:
            self._preempt_last()
        self.kv.take(self._decoders.blocks_due)

    def _preempt_last(self) -> None:
        """Prompts under way were admitted after all that decode, so the last of them goes first."""
        if self.prefilling:
            request = self.prefilling.pop()
            blocks = blocks_of(request.to_prefill)
        else:
            request = self._decoders.last
            blocks = self._decoders.leave(request)
            self._recorder.left(request)
        self.kv.give(blocks)
        self._recorder.preemptions += 1
        request.restart()
        self._waiting.appendleft(request)

    def _iterate(self, chunks: Sequence[Chunk]) -> Generator[simpy.Event, Any, None]:
        complete = [
            chunk.request for chunk in chunks if chunk.tokens == chunk.request.left_to_prefill
        ]
        decoding = self.decoding
        batch = Batch(
            tuple((chunk.tokens, chunk.request.prefilled) for chunk in chunks),
            decoding,
            self._decoders.context_tokens,
            decoding + len(complete),
        )
        duration_ps = round(self._cost.cost(batch).seconds * PS_PER_S)
        if duration_ps < 1:
            raise ValueError(f"an iteration cannot take {duration_ps} ps")
        yield self._env.timeout(duration_ps)
        self._recorder.iteration(batch)
        self._decode()
        for request, tokens in chunks:
            request.prefilled += tokens
        for request in complete:
            self._first_token(request)

    def _decode(self) -> None:
        if not self._decoders:
            return
        self._recorder.decoded(self._now_ps, len(self._decoders))
        for request, blocks in self._decoders.advance():
            self._recorder.left(request)
            self._finish(request, blocks)

    def _first_token(self, request: Request) -> None:
        """The first token, or after a preemption the next one."""
        self.prefilling.remove(request)
        request.emitted += 1
        finished = request.emitted == request.output_tokens
        self._recorder.prefilled(request, self._now_ps, decodes_on=not finished)
        if finished:
            self._finish(request, blocks_of(request.to_prefill))
        else:
            self._decoders.join(request)

    def _finish(self, request: Request, blocks: int) -> None:
        self.kv.give(blocks)
        self._recorder.finished(request)
        self._finished += 1
        if self._progress and self._finished % self._progress_step == 0:
            self._progress(self._finished, len(self._arrivals))


def _check_fits(trace: Trace, kv: BlockPool) -> None:
    # The last token is emitted, never stored.
    stored = trace.prompt_tokens + trace.output_tokens - 1
    too_long = np.flatnonzero(stored > kv.capacity_tokens)
    if len(too_long):
        index = int(too_long[0])
        raise InputError(
            f"request {index + 1} in order of arrival: found {trace.prompt_tokens[index]} prompt "
            f"and {trace.output_tokens[index]} output tokens; allowed: {kv.capacity_tokens + 1} "
            "together, what the key-value memory holds and the last token, which is not kept"
        )
