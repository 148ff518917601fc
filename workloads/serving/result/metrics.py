"""What a serving run is judged by.

The recorder is told of tokens as they are emitted and keeps a few numbers an iteration; what a
request leaves behind is its row. So memory does not grow with the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor, inf
from typing import Any, NamedTuple

import numpy as np

from workloads.serving.load.request import Request
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.cost import Int64s
from workloads.serving.result.sample import Sample
from workloads.serving.result.timeline import Timeline

_PS_PER_MS = PS_PER_S / 1e3
_OVERLOAD = 0.05
#: Requests that are judged at a time, which is faster than one by one.
_TO_JUDGE = 1 << 9

Row = dict[str, float | int | None]
RowSink = Callable[[int, Row], None]


class Slo(NamedTuple):
    """Service-level objectives of a request; None where there is none."""

    ttft_s: float | None = None
    tbt_ms: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is anything to attain."""
        return self.ttft_s is not None or self.tbt_ms is not None


@dataclass(slots=True)
class _DecodingSet:
    """Requests that decode together.

    Attributes:
        last_ps: When they emitted tokens last.
        steps: How often they did.
        last_late_step: In which step they last did so too late.
        fresh: Those that have not done so yet.
    """

    last_ps: int = 0
    steps: int = 0
    last_late_step: int = -1
    fresh: dict[int, Request] = field(default_factory=dict)


class Ended(NamedTuple):
    """What is judged of a request that has emitted its last token; of many, arrays."""

    arrival_ps: Any
    prompt_tokens: Any
    emitted: Any
    start_ps: Any
    first_token_ps: Any
    last_ps: Any
    late: Any

    @classmethod
    def of(cls, request: Any) -> "Ended":
        """That of a request, or of columns of requests."""
        return cls(
            request.arrival_ps, request.prompt_tokens, request.emitted, request.start_ps,
            request.first_token_ps, request.last_token_ps, request.late_token,
        )  # fmt: skip


class Recorder:
    """Collects one run.

    Members of the decoding set share every interval but their first, so an interval is kept once
    with the number of requests it belongs to.

    Args:
        slo: What requests should attain.
        last_arrival_ps: When the last request arrives.

    Attributes:
        row: Called with the number and the row (see ``request_row``) of each finished request.
    """

    def __init__(self, slo: Slo | None = None, last_arrival_ps: int = 0) -> None:
        self.slo = slo or Slo()
        self._last_arrival_ps = last_arrival_ps
        self._left_waiting = 0
        self.preemptions = 0
        self.finished = 0
        self.row: RowSink | None = None
        self._tbt_limit_ps = inf if self.slo.tbt_ms is None else self.slo.tbt_ms * _PS_PER_MS
        self._sets: dict[int, _DecodingSet] = {}
        self._ttft, self._tbt, self._e2e, self._queue = Sample(), Sample(), Sample(), Sample()
        self._last_ps = 0
        self._prompt_tokens = 0
        self._output_tokens = 0
        self._attained = [0, 0, 0]
        self._rates = [0.0, 0.0, 0]
        self._ended: list[Ended] = []
        self._timeline = Timeline()

    def __getstate__(self) -> dict[str, Any]:
        """All but who is told."""
        return {**vars(self), "row": None}

    def prompted(self, now_ps: int, tokens: int) -> None:
        """Prompt tokens have passed all layers."""
        self._timeline.prompt(now_ps, tokens)

    def first_token(self, request: Request, now_ps: int) -> None:
        """A completed prompt has emitted a token: its first, or after a preemption the next."""
        if request.first_token_ps < 0:
            request.first_token_ps = now_ps
        else:
            request.late_token |= self._interval(now_ps - request.last_token_ps)
        request.last_token_ps = now_ps
        self._timeline.output(now_ps, 1)

    def joined(self, request: Request, replica: int) -> None:
        """A request has joined a decoding set: that of a replica, if there are several."""
        self._set(replica).fresh[request.index] = request

    def decoded(self, now_ps: int, members: int, tokens: int, replica: int) -> None:
        """Every member of the decoding set has emitted a token or more, ``tokens`` in all."""
        own = self._set(replica)
        fresh = own.fresh
        if established := members - len(fresh):
            interval_ps = now_ps - own.last_ps
            self._tbt.add(interval_ps, established)
            if interval_ps > self._tbt_limit_ps:
                own.last_late_step = own.steps
        if fresh:
            for request in fresh.values():
                request.late_token |= self._interval(now_ps - request.last_token_ps)
            fresh.clear()
        if tokens > members:  # those that come together have no time between them
            self._tbt.add(0, tokens - members)
        own.last_ps = now_ps
        own.steps += 1
        self._timeline.output(now_ps, tokens)

    def decoded_all(
        self,
        begin_ps: int,
        intervals_ps: Sequence[int],
        times: Sequence[int],
        members: int,
        replica: int,
    ) -> None:
        """Every member has emitted a token after each interval, as many ``times`` one by one."""
        now_ps = begin_ps + intervals_ps[0]
        self.decoded(now_ps, members, members, replica)
        own, left = self._set(replica), [times[0] - 1, *times[1:]]
        for interval_ps, count in zip(intervals_ps, left, strict=True):
            if not count:
                continue
            self._tbt.add(interval_ps, members, count)
            self._timeline.outputs(now_ps, interval_ps, count, members)
            now_ps += interval_ps * count
            own.steps += count
            if interval_ps > self._tbt_limit_ps:
                own.last_late_step = own.steps - 1
        own.last_ps = now_ps

    @property
    def late_ps(self) -> int:
        """Whole picoseconds between tokens beyond which the latter is late."""
        return 2**62 if self._tbt_limit_ps == inf else floor(self._tbt_limit_ps)

    def logged(self, intervals: Int64s, prompts: Int64s, outputs: Int64s) -> None:
        """What `Sample.extend` and `Timeline.logged` take, of many iterations at once."""
        self._tbt.extend(intervals)
        self._timeline.logged(prompts, outputs)

    def left(self, request: Request, replica: int = 0) -> None:
        """A member has left the decoding set, finished or preempted."""
        own = self._set(replica)
        if own.fresh.pop(request.index, None) is not None:
            return
        request.last_token_ps = own.last_ps
        # Step ``joined_step`` was its first, with an interval of its own.
        request.late_token |= own.last_late_step > request.joined_step

    def done(self, request: Request) -> None:
        """A request has emitted its last token."""
        self.finished += 1
        self._ended.append(Ended.of(request))
        if len(self._ended) > _TO_JUDGE:
            self._judge(self._taken())
        if self.row is not None:
            self.row(request.index, request_row(request))

    def all_done(self, ended: Int64s) -> None:
        """The same of many requests, of which nobody is told: shape (requests, fields of `Ended`).

        They are in the order in which they ended.
        """
        self._judge(self._taken())
        self.finished += len(ended)
        self._judge(ended)

    def _taken(self) -> Int64s:
        """Those that are still to be judged, which are no more."""
        rows = np.array(self._ended, dtype=np.int64).reshape(-1, len(Ended._fields))
        self._ended.clear()
        return rows

    def _judge(self, rows: Int64s) -> None:
        """Count requests that have ended, as `all_done` has them."""
        ended = Ended(*rows.T)
        ttft_ps, e2e_ps = ended.first_token_ps - ended.arrival_ps, ended.last_ps - ended.arrival_ps
        queue_ps, once = ended.start_ps - ended.arrival_ps, np.ones_like(ttft_ps)
        for sample, values in ((self._ttft, ttft_ps), (self._e2e, e2e_ps), (self._queue, queue_ps)):
            sample.extend(np.stack([values, once, once], axis=1))
        self._left_waiting += int((ended.start_ps > self._last_arrival_ps).sum())
        self._last_ps = max(self._last_ps, int(ended.last_ps.max(initial=0)))
        self._prompt_tokens += int(ended.prompt_tokens.sum())
        self._output_tokens += int(ended.emitted.sum())
        limit_s = inf if self.slo.ttft_s is None else self.slo.ttft_s
        in_time, steady = ttft_ps / PS_PER_S <= limit_s, ended.late == 0
        for place, attained in enumerate((in_time, steady, in_time & steady)):
            self._attained[place] += int(attained.sum())
        decode_ps = ended.last_ps - ended.first_token_ps
        some = decode_ps > 0
        rates = (ended.emitted[some] - 1) / decode_ps[some] * PS_PER_S
        # One after the other, so that it makes no difference how many come at a time.
        for place, figures in enumerate((rates, rates * rates)):
            self._rates[place] = float(np.cumsum([self._rates[place], *figures.tolist()])[-1])
        self._rates[2] += len(rates)

    def summary(self) -> dict[str, Any]:
        """Figures of a run in which every request has finished, counted from the first arrival.

        ``ttft_s`` and ``e2e_s`` count from arrival to first and last token, ``queue_s`` to the
        start of the first iteration with a part of the prompt. ``tbt_ms`` pools the intervals
        between tokens of all requests. A request attains the objectives if its first token and all
        its intervals do; goodput is the requests that do so per second from the first arrival to
        the last completion. ``jain_index`` is over the decode rates of the requests with two
        tokens or more (layered-prefill paper, section 5.12). ``overloaded`` tells whether more than
        one request in twenty had yet to start when the last arrived; None if all came at once.
        """
        self._judge(self._taken())
        span_s = self._last_ps / PS_PER_S
        ttft, tbt, both = (attained / self.finished for attained in self._attained)
        parts = {
            "ttft": None if self.slo.ttft_s is None else ttft,
            "tbt": None if self.slo.tbt_ms is None else tbt,
        }
        return {
            "ttft_s": self._ttft.summary(PS_PER_S),
            "tbt_ms": self._tbt.summary(_PS_PER_MS),
            "e2e_s": self._e2e.summary(PS_PER_S),
            "queue_s": self._queue.summary(PS_PER_S),
            "throughput_tok_s": self._output_tokens / span_s,
            "requests": self.finished,
            "completed": self.finished,
            "prompt_tokens": self._prompt_tokens,
            "output_tokens": self._output_tokens,
            "slo_attainment": both if self.slo.is_set else None,
            "slo_attainment_by_part": parts,
            "goodput_rps": self._attained[2] / span_s if self.slo.is_set else None,
            "tbt_std_ms": self._tbt.deviation(_PS_PER_MS),
            "jain_index": self._jain_index(),
            "overloaded": self._overloaded() if self._last_arrival_ps else None,
            "span_s": span_s,
            "timeline": self._timeline.summary(),
        }

    def _set(self, replica: int) -> _DecodingSet:
        return self._sets.get(replica) or self._sets.setdefault(replica, _DecodingSet())

    def _interval(self, interval_ps: int) -> bool:
        """Keep an interval; tells whether it is longer than the objective."""
        self._tbt.add(interval_ps, 1)
        return interval_ps > self._tbt_limit_ps

    def _overloaded(self) -> bool:
        return self._left_waiting > self.finished * _OVERLOAD

    def _jain_index(self) -> float | None:
        total, squares, requests = self._rates
        return total**2 / (requests * squares) if requests else None


def request_row(request: Request) -> Row:
    """A finished request; no interval where there is a single token."""
    intervals = request.emitted - 1
    decode_ps = request.last_token_ps - request.first_token_ps
    return {
        "arrival_s": request.arrival_ps / PS_PER_S,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.emitted,
        "queue_s": (request.start_ps - request.arrival_ps) / PS_PER_S,
        "ttft_s": (request.first_token_ps - request.arrival_ps) / PS_PER_S,
        "e2e_s": (request.last_token_ps - request.arrival_ps) / PS_PER_S,
        "mean_tbt_ms": decode_ps / intervals / _PS_PER_MS if intervals else None,
    }
