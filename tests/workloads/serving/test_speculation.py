"""Speculative decoding: what a step emits, and what holds for any load."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import LoggedModel, serve, trace_of
from tlm.errors import InputError
from workloads.serving.engine.run import Limits, run
from workloads.serving.engine.speculation import Speculation
from workloads.serving.load.request import Request
from workloads.serving.price.cost import Batch
from workloads.serving.schedulers import Chunked, Continuous


def test_a_step_emits_the_accepted_draft_and_a_token_more() -> None:
    model = LoggedModel()
    trace = trace_of((0, 10, 8))
    _, recorder = serve(trace, Continuous(), model, speculation=Speculation(2, 1.0))
    # 1 token of the prompt, then 3 + 3 + 1; all of a step come at once.
    assert model.batches == [
        Batch(((10, 0),), 0, 0, 1, None, 3),
        Batch((), 1, 10, 3, None, 3),
        Batch((), 1, 13, 3, None, 3),
        Batch((), 1, 16, 3, None, 3),
    ]
    summary = recorder.summary()
    assert summary["output_tokens"] == 8
    assert summary["tbt_ms"]["mean"] == pytest.approx(1e3 * 3 / 7)
    assert summary["tbt_ms"]["p50"] == 0
    assert summary["tbt_ms"]["p99_9"] == pytest.approx(1000)


def test_rejected_drafts_cost_their_width_and_give_a_token_a_step() -> None:
    model = LoggedModel()
    serve(trace_of((0, 10, 4)), Continuous(), model, speculation=Speculation(1, 0.0))
    assert [batch.new_tokens for batch in model.batches] == [10, 2, 2, 2]


@pytest.mark.parametrize(("draft", "acceptance"), [(1, 0.7), (2, 0.7), (4, 0.5)])
def test_tokens_a_step_are_those_of_the_geometric_law(draft: int, acceptance: float) -> None:
    request = Request(3, 0, 10, 200_000)
    emissions = Speculation(draft, acceptance, 5).emissions(request)
    assert sum(emissions) == 200_000
    expected = (1 - acceptance ** (draft + 1)) / (1 - acceptance)
    assert np.mean(emissions) == pytest.approx(expected, rel=0.01)
    # A request that starts over keeps what was drawn for its tokens.
    request.emitted = sum(emissions[:100])
    assert Speculation(draft, acceptance, 5).emissions(request) == emissions[100:]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)), min_size=1),
    st.integers(1, 20),
    st.floats(0, 1),
    st.integers(112, 400),
    st.none() | st.integers(0, 200),
)
# Two blocks in one step, with one left.
@example([(0.0, 29, 21), (0.0, 43, 23), (1.0, 33, 1)], 16, 0.0, 112, None)
def test_every_token_once_and_every_block_back(
    requests: list[tuple[float, int, int]],
    draft: int,
    acceptance: float,
    kv_tokens: int,
    sram: int | None,
) -> None:
    trace = trace_of(*sorted(requests))
    speculation = Speculation(draft, acceptance)
    limits = Limits(kv_tokens, 8, sram)
    model = LoggedModel(lambda batch: 0.01 * batch.new_tokens, kv_sram_tokens=sram or 0)
    figures = run(trace, Chunked(32), model, limits=limits, speculation=speculation)
    assert figures["completed"] == len(trace)
    assert figures["output_tokens"] == trace.output_tokens.sum()
    engine, _ = serve(trace, Chunked(32), model, kv_tokens=kv_tokens, speculation=speculation)
    assert engine.kv.free == engine.kv.total


@pytest.mark.parametrize(
    ("draft", "acceptance", "message"),
    [
        (0, 0.5, "draft tokens: found 0; allowed: 1 to 64"),
        (65, 0.5, "draft tokens: found 65; allowed: 1 to 64"),
        (1, float("nan"), "acceptance: found nan; allowed: 0 to 1"),
        (1, 1.5, "acceptance: found 1.5; allowed: 0 to 1"),
    ],
)
def test_speculation_that_cannot_be_is_refused(draft: int, acceptance: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Speculation(draft, acceptance)
