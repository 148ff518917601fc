"""Engine and schedulers: timelines small enough to write down, and what holds for any load.

In the timelines an iteration takes 1 s unless said otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from workloads.serving.cost import Batch, IterationCost
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES, Engine
from workloads.serving.metrics import Recorder, Slo
from workloads.serving.request import Request
from workloads.serving.schedulers import Chunked, Continuous, Scheduler, make_scheduler
from workloads.serving.traces import PS_PER_S, Trace


def trace_of(*requests: tuple[float, int, int]) -> Trace:
    """A trace of (arrival in seconds, prompt, output)."""
    arrival, prompt, output = (np.array(column) for column in zip(*requests, strict=True))
    return Trace(
        np.rint(arrival * PS_PER_S).astype(np.int64),
        prompt.astype(np.int64),
        output.astype(np.int64),
    )


class LoggedCost:
    """Seconds by a function of the batch (1 by default); keeps the batches."""

    def __init__(self, seconds: Callable[[Batch], float] = lambda batch: 1.0) -> None:
        self._seconds = seconds
        self.batches: list[Batch] = []

    def cost(self, batch: Batch) -> IterationCost:
        """Time of the batch."""
        self.batches.append(batch)
        return IterationCost(self._seconds(batch), None, 0.0)


def serve(
    trace: Trace,
    scheduler: Scheduler,
    cost: LoggedCost,
    *,
    kv_tokens: int = 1 << 20,
    max_sequences: int = DEFAULT_MAX_SEQUENCES,
    slo: Slo | None = None,
    recorder: Recorder | None = None,
) -> tuple[Engine, Recorder]:
    """Run to the end."""
    env = simpy.Environment(initial_time=0)
    recorder = recorder or Recorder(len(trace), slo)
    engine = Engine(
        env,
        trace,
        scheduler,
        cost,
        recorder,
        kv_capacity_tokens=kv_tokens,
        max_sequences=max_sequences,
    )
    env.process(engine.run())
    env.run()
    return engine, recorder


def decodes(batches: Sequence[Batch]) -> list[int]:
    """Decoding requests of each batch."""
    return [batch.decode_sequences for batch in batches]


def test_continuous_lets_whole_prompts_join_the_running_batch() -> None:
    trace = trace_of((0, 10, 3), (0.5, 20, 2))
    cost = LoggedCost()
    _, recorder = serve(trace, Continuous(), cost)
    assert cost.batches == [
        Batch(((10, 0),), 0, 0, 1),
        Batch(((20, 0),), 1, 10, 2),
        Batch((), 2, 31, 2),
    ]
    summary = recorder.summary(trace)
    assert summary["ttft_s"]["mean"] == pytest.approx((1.0 + 1.5) / 2)
    assert summary["queue_s"]["mean"] == pytest.approx((0.0 + 0.5) / 2)
    assert summary["e2e_s"]["mean"] == pytest.approx((3.0 + 2.5) / 2)
    assert summary["tbt_ms"] == {"mean": 1000.0, "p50": 1000.0, "p90": 1000.0, "p99": 1000.0}
    assert summary["throughput_tok_s"] == pytest.approx(5 / 3)
    assert summary["jain_index"] == pytest.approx(1.0)
    assert (summary["completed"], summary["iterations"]) == (2, 3)


def test_chunked_cuts_a_prompt_and_merges_the_rest_with_the_next() -> None:
    cost = LoggedCost()
    serve(trace_of((0, 10, 3), (0, 4, 2)), Chunked(8), cost)
    assert cost.batches == [
        Batch(((8, 0),), 0, 0, 0),
        Batch(((2, 8), (4, 0)), 0, 0, 2),
        Batch((), 2, 14, 2),
        Batch((), 1, 11, 1),
    ]


def test_chunked_serves_decoding_requests_from_the_budget_first() -> None:
    cost = LoggedCost()
    serve(trace_of((0, 3, 3), (0, 8, 1)), Chunked(4), cost)
    assert cost.batches == [
        Batch(((3, 0), (1, 0)), 0, 0, 1),
        Batch(((3, 1),), 1, 3, 1),
        Batch(((3, 4),), 1, 4, 1),
        Batch(((1, 7),), 0, 0, 1),
    ]


def test_the_engine_sleeps_until_the_next_arrival() -> None:
    trace = trace_of((0, 1, 1), (7.25, 1, 1))
    _, recorder = serve(trace, Continuous(), LoggedCost())
    summary = recorder.summary(trace)
    assert summary["span_s"] == 8.25
    assert summary["ttft_s"]["p99"] == 1.0
    assert summary["tbt_ms"]["mean"] is None
    assert summary["jain_index"] is None


def test_no_more_than_max_sequences_run() -> None:
    cost = LoggedCost()
    serve(trace_of(*[(0, 1, 3)] * 5), Continuous(), cost, max_sequences=2)
    assert decodes(cost.batches) == [0, 2, 2] * 2 + [0, 1, 1]


def test_the_last_admitted_is_preempted_and_recomputes_without_repeating_tokens() -> None:
    trace = trace_of((0, 16, 20), (0, 16, 20))
    cost = LoggedCost()
    engine, recorder = serve(trace, Continuous(), cost, kv_tokens=48, slo=Slo(tbt_ms=1500))
    assert cost.batches[0] == Batch(((16, 0), (16, 0)), 0, 0, 2)
    # Both need a second block and one is free: the second request gives way until the first ends.
    assert cost.batches[1] == Batch((), 1, 16, 1)
    assert cost.batches[20] == Batch(((17, 0),), 0, 0, 1)
    assert len(cost.batches) == 1 + 19 + 1 + 18
    assert recorder.preemptions == 1
    assert engine.kv.peak_tokens == 48
    summary = recorder.summary(trace)
    assert summary["throughput_tok_s"] == pytest.approx(40 / 39)
    assert summary["tbt_ms"]["mean"] == pytest.approx(1e3 * (19 + 20 + 18) / 38)
    assert summary["slo_attainment"] == 0.5


def test_admission_keeps_one_block_in_a_hundred_while_others_run() -> None:
    # 100 blocks: the first request leaves 50, the second would leave none.
    cost = LoggedCost()
    serve(trace_of((0, 800, 2), (0, 800, 2)), Continuous(), cost, kv_tokens=1600 + 15)
    assert decodes(cost.batches) == [0, 1, 0, 1]


def test_a_stall_makes_only_the_decoding_request_late() -> None:
    # The second prompt takes 5 s, during which the first request, long decoding, waits.
    cost = LoggedCost(lambda batch: 5.0 if batch.prefills and batch.decode_sequences else 1.0)
    trace = trace_of((0, 4, 6), (2.5, 4, 3))
    _, recorder = serve(trace, Continuous(), cost, slo=Slo(ttft_s=6.0, tbt_ms=1000))
    assert recorder.summary(trace)["slo_attainment"] == 0.5
    _, recorder = serve(trace, Continuous(), cost, slo=Slo(ttft_s=1.0))
    assert recorder.summary(trace)["slo_attainment"] == 0.5
    assert recorder.summary(trace)["goodput_rps"] == pytest.approx(1 / 10)


def test_a_prompt_that_can_never_fit_is_refused() -> None:
    trace = trace_of((0, 8, 1), (0, 30, 4))
    serve(trace, Continuous(), LoggedCost(), kv_tokens=48)
    with pytest.raises(
        InputError, match="request 2 .* found 30 prompt and 4 output .* 33 together"
    ):
        serve(trace, Continuous(), LoggedCost(), kv_tokens=32)


def test_an_iteration_without_duration_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot take 0 ps"):
        serve(trace_of((0, 1, 1)), Continuous(), LoggedCost(lambda batch: 0.0))


def test_unusable_schedulers_are_refused() -> None:
    with pytest.raises(InputError, match="unknown scheduler 'best'; known: chunked, continuous"):
        make_scheduler("best")
    with pytest.raises(InputError, match="found 0; allowed: 1 or more"):
        make_scheduler("chunked", 0)
    with pytest.raises(InputError, match="'continuous' has none"):
        make_scheduler("continuous", 64)


_LOADS = st.lists(
    st.tuples(st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=12
).map(lambda requests: trace_of(*sorted(requests)))
_SCHEDULERS = st.one_of(st.just(Continuous()), st.integers(1, 40).map(Chunked))


def _uneven(batch: Batch) -> float:
    return 0.01 * batch.new_tokens + 0.001 * batch.attention_pairs


@settings(max_examples=150, deadline=None)
@given(_LOADS, _SCHEDULERS, st.integers(112, 400), st.integers(1, 8))
def test_every_token_once_and_every_block_back(
    trace: Trace, scheduler: Scheduler, kv_tokens: int, max_sequences: int
) -> None:
    cost = LoggedCost(_uneven)
    engine, recorder = serve(
        trace, scheduler, cost, kv_tokens=kv_tokens, max_sequences=max_sequences
    )
    assert engine.kv.free == engine.kv.total == kv_tokens // 16
    assert recorder.summary(trace)["completed"] == len(trace)

    outputs = int(trace.output_tokens.sum())
    assert sum(batch.logit_rows for batch in cost.batches) == outputs
    stored = trace.prompt_tokens + trace.output_tokens - 1
    once = int(stored.sum())
    assert recorder.work.token_layers >= once
    if not recorder.preemptions:
        assert recorder.work.token_layers == once
        pairs = stored * (stored + 1) // 2
        assert recorder.work.pair_layers == pairs.sum()
    if isinstance(scheduler, Chunked):
        assert max(batch.new_tokens for batch in cost.batches) <= scheduler.token_budget
    assert max(len(batch.prefills) + batch.decode_sequences for batch in cost.batches) <= (
        max_sequences
    )


class WatchingRecorder(Recorder):
    """Also writes down the time of every single token."""

    def __init__(self, requests: int, slo: Slo) -> None:
        super().__init__(requests, slo)
        self.token_ps: list[list[int]] = [[] for _ in range(requests)]
        self._members: set[int] = set()

    def prefilled(self, request: Request, now_ps: int, *, decodes_on: bool) -> None:
        super().prefilled(request, now_ps, decodes_on=decodes_on)
        self.token_ps[request.index].append(now_ps)
        if decodes_on:
            self._members.add(request.index)

    def decoded(self, now_ps: int, members: int) -> None:
        super().decoded(now_ps, members)
        assert members == len(self._members)
        for index in self._members:
            self.token_ps[index].append(now_ps)

    def left(self, request: Request) -> None:
        super().left(request)
        self._members.remove(request.index)


@settings(max_examples=100, deadline=None)
@given(_LOADS, _SCHEDULERS, st.integers(112, 400), st.integers(1, 8), st.integers(200, 3000))
def test_figures_equal_those_of_every_token_written_down(
    trace: Trace, scheduler: Scheduler, kv_tokens: int, max_sequences: int, slo_ms: int
) -> None:
    recorder = WatchingRecorder(len(trace), Slo(ttft_s=3.0, tbt_ms=slo_ms))
    serve(
        trace,
        scheduler,
        LoggedCost(_uneven),
        recorder=recorder,
        kv_tokens=kv_tokens,
        max_sequences=max_sequences,
    )
    summary = recorder.summary(trace)
    assert [len(times) for times in recorder.token_ps] == trace.output_tokens.tolist()
    gaps_ms = [np.diff(times) / 1e9 for times in recorder.token_ps]
    ttft_s = np.array([times[0] for times in recorder.token_ps]) - trace.arrival_ps
    attained = [
        first <= 3e12 and bool((gaps <= slo_ms).all())
        for first, gaps in zip(ttft_s, gaps_ms, strict=True)
    ]
    assert summary["slo_attainment"] == pytest.approx(np.mean(attained))
    pooled = np.concatenate(gaps_ms)
    if len(pooled):
        assert summary["tbt_ms"]["mean"] == pytest.approx(pooled.mean())
        assert summary["tbt_ms"]["p99"] == pytest.approx(np.percentile(pooled, 99))
        assert summary["tbt_std_ms"] == pytest.approx(pooled.std(), abs=1e-6)


def test_equal_runs_are_equal() -> None:
    trace = trace_of((0, 40, 20), (1, 50, 30), (1, 9, 9))
    first, second = (
        serve(trace, Chunked(16), LoggedCost(_uneven), kv_tokens=112)[1].summary(trace)
        for _ in range(2)
    )
    assert first == second
