"""What a serving run is judged by.

The recorder is told of tokens as they are emitted and keeps a few numbers an iteration and a
request; the summary is made of them at the end.
"""

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.serving.cost import Batch, Work
from workloads.serving.request import Request
from workloads.serving.traces import PS_PER_S, Trace

Values = NDArray[np.float64]


class Slo(NamedTuple):
    """Service-level objectives of a request; None where there is none."""

    ttft_s: float | None = None
    tbt_ms: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is anything to attain."""
        return self.ttft_s is not None or self.tbt_ms is not None


class Recorder:
    """Collects one run of ``requests`` requests.

    Members of the decoding set share every interval but their first, so an interval is kept once
    with the number of requests it belongs to.
    """

    def __init__(self, requests: int, slo: Slo | None = None, layers: int = 1) -> None:
        self.slo = slo or Slo()
        self._layers = layers
        self.preemptions = 0
        self.iterations = 0
        self._work = [0, 0, 0]
        self._tbt_limit_ps = None if self.slo.tbt_ms is None else self.slo.tbt_ms * PS_PER_S / 1e3
        self._last_decode_ps = 0
        self._steps = 0
        self._last_late_step = -1
        self._fresh: dict[int, Request] = {}
        self._intervals_ps = array("q")
        self._interval_counts = array("q")
        self._start_ps = np.full(requests, -1, dtype=np.int64)
        self._first_ps = np.full(requests, -1, dtype=np.int64)
        self._last_ps = np.full(requests, -1, dtype=np.int64)
        self._emitted = np.zeros(requests, dtype=np.int64)
        self._late = np.zeros(requests, dtype=np.bool_)

    @property
    def work(self) -> Work:
        """Totals over all iterations."""
        return Work(*self._work)

    def iteration(self, batch: Batch) -> None:
        """An iteration has ended."""
        self.iterations += 1
        self._work[0] += batch.new_tokens * self._layers
        self._work[1] += batch.attention_pairs * self._layers
        self._work[2] += batch.logit_rows

    def decoded(self, now_ps: int, members: int) -> None:
        """Every member of the decoding set has emitted a token."""
        established = members - len(self._fresh)
        if established and self._interval(now_ps - self._last_decode_ps, established):
            self._last_late_step = self._steps
        for request in self._fresh.values():
            request.late_token |= self._interval(now_ps - request.last_token_ps, 1)
        self._fresh.clear()
        self._last_decode_ps = now_ps
        self._steps += 1

    def prefilled(self, request: Request, now_ps: int, *, decodes_on: bool) -> None:
        """A completed prompt has emitted a token; with ``decodes_on`` it joins the decoding set."""
        if request.first_token_ps < 0:
            request.first_token_ps = now_ps
        else:
            request.late_token |= self._interval(now_ps - request.last_token_ps, 1)
        request.last_token_ps = now_ps
        if decodes_on:
            self._fresh[request.index] = request

    def left(self, request: Request) -> None:
        """A member has left the decoding set, finished or preempted."""
        if self._fresh.pop(request.index, None) is not None:
            return
        request.last_token_ps = self._last_decode_ps
        # Step ``joined_step`` was its first, with an interval of its own.
        request.late_token |= self._last_late_step > request.joined_step

    def finished(self, request: Request) -> None:
        """A request has emitted its last token."""
        self._start_ps[request.index] = request.start_ps
        self._first_ps[request.index] = request.first_token_ps
        self._last_ps[request.index] = request.last_token_ps
        self._emitted[request.index] = request.emitted
        self._late[request.index] = request.late_token

    def summary(self, trace: Trace) -> dict[str, Any]:
        """Figures of a run in which every request has finished.

        ``ttft_s`` and ``e2e_s`` count from arrival to first and last token, ``queue_s`` to the
        start of the first iteration with a part of the prompt. ``tbt_ms`` pools the intervals
        between tokens of all requests. A request attains the objectives if its first token and all
        its intervals do; goodput is the requests that do so per second from the first arrival to
        the last completion. ``jain_index`` is over the decode rates of the requests with two
        tokens or more (layered-prefill paper, section 5.12).
        """
        arrival = trace.arrival_ps
        span_s = float(self._last_ps.max() - arrival[0]) / PS_PER_S
        ttft_s = (self._first_ps - arrival) / PS_PER_S
        tbt_ms = np.array(self._intervals_ps, dtype=np.float64) / (PS_PER_S / 1e3)
        counts = np.array(self._interval_counts, dtype=np.int64)
        attained = self._attained(ttft_s)
        return {
            "ttft_s": summarise(ttft_s),
            "tbt_ms": summarise(tbt_ms, counts),
            "e2e_s": summarise((self._last_ps - arrival) / PS_PER_S),
            "queue_s": summarise((self._start_ps - arrival) / PS_PER_S),
            "throughput_tok_s": float(self._emitted.sum()) / span_s,
            "requests": len(trace),
            "completed": int((self._emitted == trace.output_tokens).sum()),
            "iterations": self.iterations,
            "slo_attainment": float(attained.mean()) if self.slo.is_set else None,
            "goodput_rps": float(attained.sum()) / span_s if self.slo.is_set else None,
            "tbt_std_ms": _std(tbt_ms, counts),
            "jain_index": self._jain_index(),
            "span_s": span_s,
        }

    def request_rows(self, trace: Trace) -> Iterator[dict[str, float | int | None]]:
        """A row per request, in order of arrival; no interval where there is a single token."""
        decode_ps = self._last_ps - self._first_ps
        for index in range(len(trace)):
            intervals = int(self._emitted[index]) - 1
            arrival_ps = int(trace.arrival_ps[index])
            yield {
                "arrival_s": arrival_ps / PS_PER_S,
                "prompt_tokens": int(trace.prompt_tokens[index]),
                "output_tokens": intervals + 1,
                "ttft_s": (int(self._first_ps[index]) - arrival_ps) / PS_PER_S,
                "e2e_s": (int(self._last_ps[index]) - arrival_ps) / PS_PER_S,
                "mean_tbt_ms": int(decode_ps[index]) / intervals / (PS_PER_S / 1e3)
                if intervals
                else None,
            }

    def _interval(self, interval_ps: int, count: int) -> bool:
        """Keep an interval; tells whether it is longer than the objective."""
        self._intervals_ps.append(interval_ps)
        self._interval_counts.append(count)
        return self._tbt_limit_ps is not None and interval_ps > self._tbt_limit_ps

    def _attained(self, ttft_s: Values) -> NDArray[np.bool_]:
        on_time = ~self._late
        return on_time if self.slo.ttft_s is None else on_time & (ttft_s <= self.slo.ttft_s)

    def _jain_index(self) -> float | None:
        several = self._emitted > 1
        if not several.any():
            return None
        rates = (self._emitted[several] - 1) / (self._last_ps - self._first_ps)[several]
        return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


def summarise(values: Values, counts: NDArray[np.int64] | None = None) -> dict[str, float | None]:
    """Mean and percentiles (as ``numpy.percentile`` takes them), value i occurring counts[i] times.

    All are None without values.
    """
    if not len(values):
        return {"mean": None, "p50": None, "p90": None, "p99": None}
    counts = np.ones(len(values), dtype=np.int64) if counts is None else counts
    order = np.argsort(values, kind="stable")
    ranked, upto = values[order], np.cumsum(counts[order])
    result: dict[str, float | None] = {"mean": float(np.average(values, weights=counts))}
    for percent in (50, 90, 99):
        place = (int(upto[-1]) - 1) * percent / 100
        low, high = ranked[np.searchsorted(upto, [int(place), np.ceil(place)], side="right")]
        result[f"p{percent}"] = float(low + (high - low) * (place - int(place)))
    return result


def _std(values: Values, counts: NDArray[np.int64]) -> float | None:
    if not len(values):
        return None
    mean = np.average(values, weights=counts)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
