"""Engine and schedulers: timelines small enough to write down, and what holds for any load.

In the timelines an iteration takes 1 s unless said otherwise.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import LoggedModel, Rows, serve, trace_of
from tlm.errors import InputError
from workloads.models import SlidingWindow
from workloads.serving.engine.run import Limits, Watch, run
from workloads.serving.load.request import Request
from workloads.serving.load.traces import Trace
from workloads.serving.price.cost import Batch
from workloads.serving.result.metrics import Recorder, Row, Slo
from workloads.serving.schedulers import (
    Chunk,
    Chunked,
    Continuous,
    Layered,
    PdFusion,
    Plan,
    Queue,
    Scheduler,
    Static,
)


def decodes(batches: Sequence[Batch]) -> list[int]:
    """Decoding requests of each batch."""
    return [batch.decode_sequences for batch in batches]


def test_continuous_lets_whole_prompts_join_the_running_batch() -> None:
    trace = trace_of((0, 10, 3), (0.5, 20, 2))
    model = LoggedModel()
    _, recorder = serve(trace, Continuous(), model)
    assert model.batches == [
        Batch(((10, 0),), 0, 0, 1),
        Batch(((20, 0),), 1, 10, 2),
        Batch((), 2, 31, 2),
    ]
    summary = recorder.summary()
    assert summary["ttft_s"]["mean"] == pytest.approx((1.0 + 1.5) / 2)
    assert summary["queue_s"]["mean"] == pytest.approx((0.0 + 0.5) / 2)
    assert summary["e2e_s"]["mean"] == pytest.approx((3.0 + 2.5) / 2)
    assert set(summary["tbt_ms"].values()) == {1000.0}
    assert summary["throughput_tok_s"] == pytest.approx(5 / 3)
    assert summary["jain_index"] == pytest.approx(1.0)
    assert summary["completed"] == 2
    rates = [sum(summary["timeline"][part]) for part in ("prompt_tok_s", "output_tok_s")]
    assert [rate * summary["timeline"]["bin_s"] for rate in rates] == pytest.approx([30, 5])


def test_chunked_cuts_a_prompt_and_merges_the_rest_with_the_next() -> None:
    model = LoggedModel()
    serve(trace_of((0, 10, 3), (0, 4, 2)), Chunked(8), model)
    assert model.batches == [
        Batch(((8, 0),), 0, 0, 0),
        Batch(((2, 8), (4, 0)), 0, 0, 2),
        Batch((), 2, 14, 2),
        Batch((), 1, 11, 1),
    ]


def test_chunked_serves_decoding_requests_from_the_budget_first() -> None:
    model = LoggedModel()
    serve(trace_of((0, 3, 3), (0, 8, 1)), Chunked(4), model)
    assert model.batches == [
        Batch(((3, 0), (1, 0)), 0, 0, 1),
        Batch(((3, 1),), 1, 3, 1),
        Batch(((3, 4),), 1, 4, 1),
        Batch(((1, 7),), 0, 0, 1),
    ]


def test_the_engine_sleeps_until_the_next_arrival() -> None:
    trace = trace_of((0, 1, 1), (7.25, 1, 1))
    _, recorder = serve(trace, Continuous(), LoggedModel())
    summary = recorder.summary()
    assert summary["span_s"] == 8.25
    assert summary["ttft_s"]["p99"] == 1.0
    assert summary["tbt_ms"]["mean"] is None
    assert summary["jain_index"] is None


def test_no_more_than_max_sequences_run() -> None:
    model = LoggedModel()
    serve(trace_of(*[(0, 1, 3)] * 5), Continuous(), model, max_sequences=2)
    assert decodes(model.batches) == [0, 2, 2] * 2 + [0, 1, 1]


def test_the_last_admitted_is_preempted_and_recomputes_without_repeating_tokens() -> None:
    trace = trace_of((0, 16, 20), (0, 16, 20))
    model = LoggedModel()
    engine, recorder = serve(trace, Continuous(), model, kv_tokens=48, slo=Slo(tbt_ms=1500))
    assert model.batches[0] == Batch(((16, 0), (16, 0)), 0, 0, 2)
    # Both need a second block and one is free: the second request gives way until the first ends.
    assert model.batches[1] == Batch((), 1, 16, 1)
    assert model.batches[20] == Batch(((17, 0),), 0, 0, 1)
    assert len(model.batches) == 1 + 19 + 1 + 18
    assert recorder.preemptions == 1
    assert engine.kv.peak_tokens == 48
    summary = recorder.summary()
    assert summary["throughput_tok_s"] == pytest.approx(40 / 39)
    assert summary["tbt_ms"]["mean"] == pytest.approx(1e3 * (19 + 20 + 18) / 38)
    assert summary["slo_attainment"] == 0.5


def test_admission_keeps_one_block_in_a_hundred_while_others_run() -> None:
    # 100 blocks: the first request leaves 50, the second would leave none.
    model = LoggedModel()
    serve(trace_of((0, 800, 2), (0, 800, 2)), Continuous(), model, kv_tokens=1600 + 15)
    assert decodes(model.batches) == [0, 1, 0, 1]


def test_a_stall_makes_only_the_decoding_request_late() -> None:
    # The second prompt takes 5 s, during which the first request, long decoding, waits.
    model = LoggedModel(lambda batch: 5.0 if batch.prefills and batch.decode_sequences else 1.0)
    trace = trace_of((0, 4, 6), (2.5, 4, 3))
    _, recorder = serve(trace, Continuous(), model, slo=Slo(ttft_s=6.0, tbt_ms=1000))
    assert recorder.summary()["slo_attainment"] == 0.5
    _, recorder = serve(trace, Continuous(), model, slo=Slo(ttft_s=1.0))
    assert recorder.summary()["slo_attainment"] == 0.5
    assert recorder.summary()["goodput_rps"] == pytest.approx(1 / 10)


def test_a_prompt_that_can_never_fit_is_refused() -> None:
    trace = trace_of((0, 8, 1), (0, 30, 4))
    run(trace, Continuous(), LoggedModel(), limits=Limits(48))
    with pytest.raises(
        InputError, match="request 2 .* found 30 prompt and 4 output .* 33 together"
    ):
        run(trace, Continuous(), LoggedModel(), limits=Limits(32))


def test_a_policy_that_never_admits_is_an_error() -> None:
    class Never(Continuous):
        def plan(self, queue: Queue) -> Plan:
            return Plan()

    with pytest.raises(InputError) as caught:
        run(trace_of((0, 8, 1), (3, 30, 4)), Never(), LoggedModel())
    assert str(caught.value) == (
        "2 requests are never served: the scheduler admits none, though nothing runs; a plan calls "
        "queue.admit()"
    )


def test_a_policy_that_forgets_a_cut_prompt_is_told_so() -> None:
    class Forgets(Continuous):
        def plan(self, queue: Queue) -> Plan:
            request = queue.admit()
            return Plan() if request is None else Plan([Chunk(request, 8)])

    with pytest.raises(InputError) as caught:
        run(trace_of((0, 8, 1), (3, 30, 4)), Forgets(), LoggedModel())
    assert str(caught.value) == (
        "1 request is never served: the scheduler forgets cut prompts, such as that of request 2, "
        "of which 22 of 30 tokens are left to compute; a plan goes on with those of "
        "queue.prefilling"
    )


def test_an_iteration_without_duration_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot take 0 ps"):
        serve(trace_of((0, 1, 1)), Continuous(), LoggedModel(lambda batch: 0.0))


@pytest.mark.parametrize("outputs", [1, 20])
def test_time_has_an_end(outputs: int) -> None:
    with pytest.raises(InputError, match="simulated time: the run would take more than 104 days"):
        run(trace_of((0, 5, outputs)), Continuous(), LoggedModel(lambda batch: 1e7 / outputs))


_LOADS = st.lists(
    st.tuples(st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=12
).map(lambda requests: trace_of(*sorted(requests)))
_SCHEDULERS = st.one_of(
    st.builds(Continuous),
    st.builds(Static),
    st.builds(Chunked, st.integers(1, 40)),
    st.builds(Layered, st.none() | st.integers(1, 6), st.integers(1, 60)),
    st.builds(PdFusion, st.integers(1, 20), st.integers(4, 9), st.integers(1, 4)),
)
_LAYERS = 5
_WINDOWS = st.none() | st.builds(
    lambda tokens, period: SlidingWindow(tokens=tokens, period=period),
    st.integers(1, 50),
    st.integers(1, 6),
)


def _uneven(batch: Batch) -> float:
    return 0.01 * batch.new_tokens + 0.001 * (batch.prefill_pairs + batch.decode_pairs)


@settings(max_examples=250, deadline=None)
@given(_LOADS, _SCHEDULERS, st.integers(112, 400), st.integers(1, 8), _WINDOWS)
def test_every_token_once_and_every_block_back(
    trace: Trace,
    scheduler: Scheduler,
    kv_tokens: int,
    max_sequences: int,
    window: SlidingWindow | None,
) -> None:
    model = LoggedModel(_uneven, _LAYERS, window)
    engine, recorder = serve(
        trace, scheduler, model, kv_tokens=kv_tokens, max_sequences=max_sequences
    )
    assert engine.kv.free == engine.kv.total == kv_tokens // 16
    assert recorder.summary()["completed"] == len(trace)

    outputs = int(trace.output_tokens.sum())
    assert sum(batch.logit_rows for batch in model.batches) == outputs
    stored = trace.prompt_tokens + trace.output_tokens - 1
    once = int(stored.sum())
    work = engine.usage.counted().work
    works = [batch.work(_LAYERS, window) for batch in model.batches]
    assert work == tuple(map(sum, zip(*works, strict=True)))
    assert work.token_layers >= once * _LAYERS
    if not recorder.preemptions:
        assert work.token_layers == once * _LAYERS
        pairs = stored * (stored + 1) // 2
        assert window or work.pair_layers == pairs.sum() * _LAYERS
    if isinstance(scheduler, Chunked):
        assert max(batch.new_tokens for batch in model.batches) <= scheduler.token_budget
    assert max(len(batch.prefills) + batch.decode_sequences for batch in model.batches) <= (
        max_sequences
    )


@settings(max_examples=250, deadline=None)
@given(
    _LOADS,
    _SCHEDULERS,
    st.integers(112, 400),
    st.integers(1, 8),
    st.none() | st.integers(0, 200),
    st.sampled_from([_uneven, lambda batch: 1.0, lambda batch: 0.003]),
    st.integers(200, 3000),
    _WINDOWS,
)
def test_alike_iterations_in_one_stretch_leave_the_same_figures(
    trace: Trace,
    scheduler: Scheduler,
    kv_tokens: int,
    max_sequences: int,
    sram_tokens: int | None,
    seconds: Callable[[Batch], float],
    slo_ms: int,
    window: SlidingWindow | None,
) -> None:
    rows: list[list[tuple[int, Row]]] = [[], []]
    jumped, stepped = (
        run(
            trace,
            deepcopy(scheduler),
            LoggedModel(seconds, _LAYERS, window, sram_tokens or 0),
            limits=Limits(kv_tokens, max_sequences, sram_tokens, jump),
            slo=Slo(2.0, slo_ms),
            watch=Watch(rows=Rows(to)),
        )
        for jump, to in zip((True, False), rows, strict=True)
    )
    assert jumped == stepped
    assert rows[0] == rows[1]


class WatchingRecorder(Recorder):
    """Also writes down the time of every single token."""

    def __init__(self, requests: int, slo: Slo) -> None:
        super().__init__(slo)
        self.token_ps: list[list[int]] = [[] for _ in range(requests)]
        self._members: set[int] = set()

    def first_token(self, request: Request, now_ps: int) -> None:
        super().first_token(request, now_ps)
        self.token_ps[request.index].append(now_ps)

    def joined(self, request: Request, replica: int) -> None:
        super().joined(request, replica)
        self._members.add(request.index)

    def decoded(self, now_ps: int, members: int, tokens: int, replica: int) -> None:
        super().decoded(now_ps, members, tokens, replica)
        assert members == tokens == len(self._members)
        for index in self._members:
            self.token_ps[index].append(now_ps)

    def left(self, request: Request, replica: int = 0) -> None:
        super().left(request, replica)
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
        LoggedModel(_uneven),
        recorder=recorder,
        kv_tokens=kv_tokens,
        max_sequences=max_sequences,
    )
    summary = recorder.summary()
    assert [len(times) for times in recorder.token_ps] == trace.output_tokens.tolist()
    gaps_ms = [np.diff(times) / 1e9 for times in recorder.token_ps]
    assert all((gaps > 0).all() for gaps in gaps_ms)  # time never runs back
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
        run(trace, Chunked(16), LoggedModel(_uneven), limits=Limits(112)) for _ in range(2)
    )
    assert first == second
