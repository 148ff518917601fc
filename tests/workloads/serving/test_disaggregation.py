"""Prefill and decoding in pools of their own: timelines, and what holds for any load."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import LoggedModel, Rows, trace_of
from tlm.errors import InputError
from workloads.serving.engine.run import Limits, Pools, Watch, run_disaggregated
from workloads.serving.load.traces import Trace
from workloads.serving.price.cost import Batch
from workloads.serving.result.metrics import Row, Slo
from workloads.serving.schedulers import Chunked, Continuous, Layered, Scheduler


def disaggregated(
    trace: Trace,
    *,
    scheduler: Scheduler | None = None,
    seconds: Callable[[Batch], float] = lambda batch: 1.0,
    layers: int = 1,
    bytes_per_s: float = 80.0,
    latency_s: float = 0.0,
    limits: Limits | None = None,
) -> tuple[dict[str, Any], list[Batch], list[Batch], list[Row]]:
    """Figures, batches of each pool and rows; a token's keys and values are 8 bytes."""
    sram = (limits and limits.kv_sram_tokens) or 0
    prefill, decode = (LoggedModel(seconds, layers, kv_sram_tokens=sram) for _ in range(2))
    rows: list[tuple[int, Row]] = []
    figures = run_disaggregated(
        trace,
        scheduler or Continuous(),
        Pools(prefill, decode, 0.5, 0.5, 8, bytes_per_s, latency_s),
        limits=limits or Limits(jump=False),
        slo=Slo(2.0, 1500.0),
        watch=Watch(rows=Rows(rows)),
    )
    return (
        figures,
        prefill.batches,
        decode.batches,
        [row for _, row in sorted(rows, key=lambda entry: entry[0])],
    )


def test_keys_and_values_cross_the_link_before_the_second_token() -> None:
    # 10 tokens a second over the link, half a second late.
    figures, prefill, decode, rows = disaggregated(
        trace_of((0, 10, 3), (0, 20, 2), (0.5, 4, 1)), scheduler=Chunked(10), latency_s=0.5
    )
    assert prefill == [
        Batch(((10, 0),), 0, 0, 1),
        Batch(((10, 0),), 0, 0, 0),
        Batch(((10, 10),), 0, 0, 1),
        Batch(((4, 0),), 0, 0, 1),
    ]
    assert decode == [Batch((), 1, 10, 1), Batch((), 1, 11, 1), Batch((), 1, 20, 1)]
    # The first is taken over at 1 s and there at 2.5 s; the second is ready at 3 s, taken over when
    # an iteration ends at 3.5 s, and there at 6 s.
    assert [row["ttft_s"] for row in rows] == pytest.approx([1, 3, 3.5])
    assert [row["e2e_s"] for row in rows] == pytest.approx([4.5, 7, 3.5])
    assert figures["tbt_ms"]["mean"] == pytest.approx(1e3 * (2.5 + 1 + 4) / 3)
    assert figures["pools"]["link"]["carried_bytes"] == 240
    assert figures["pools"]["link"]["busy_fraction"] == pytest.approx(3 / 7)
    assert figures["pools"]["prefill"]["iterations"] == 4
    assert figures["iterations"] == 7
    assert figures["energy_j"] == pytest.approx(0.3 * (34 + 3) + 2 * 10 * 7)


def test_the_prefill_pool_keeps_a_prompt_until_it_has_crossed() -> None:
    # 4 blocks in each pool; the second prompt needs 3 and waits for the first one's 2.
    _, prefill, _, rows = disaggregated(
        trace_of((0, 32, 2), (0, 48, 1)), limits=Limits(64), bytes_per_s=8 * 32
    )
    assert [batch.prefills for batch in prefill] == [((32, 0),), ((48, 0),)]
    assert [row["ttft_s"] for row in rows] == pytest.approx([1, 3])


def test_the_decode_pool_takes_over_only_what_it_has_room_for() -> None:
    # The first holds 2 of 4 blocks until it ends at 16 s; the second needs 3.
    _, _, decode, rows = disaggregated(
        trace_of((0, 17, 16), (0, 40, 2)), limits=Limits(64, jump=False), bytes_per_s=8e6
    )
    assert [batch.decode_sequences for batch in decode] == [1] * 16
    assert [row["ttft_s"] for row in rows] == pytest.approx([1, 2], abs=1e-3)
    assert [row["e2e_s"] for row in rows] == pytest.approx([16, 17], abs=1e-3)


def test_what_the_decode_pool_preempts_is_computed_again_in_the_prefill_pool() -> None:
    figures, prefill, _, rows = disaggregated(
        trace_of((0, 16, 20), (0, 16, 20)), limits=Limits(48), bytes_per_s=8 * 16e6
    )
    assert figures["kv"]["preemptions"] == 1
    assert [batch.prefills for batch in prefill] == [((16, 0), (16, 0)), ((17, 0),)]
    assert [row["output_tokens"] for row in rows] == [20, 20]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ({"bytes_per_s": 0.0}, "link bandwidth: found 0.0 bytes/s; allowed: 1 or more"),
        ({"bytes_per_s": float("nan")}, "link bandwidth: found nan bytes/s"),
        ({"latency_s": 1e7}, "link latency: found 10000000.0 s; allowed: 0 to 8,640,000"),
        ({"bytes_per_s": 1e-300}, "link bandwidth: found 1e-300 bytes/s; allowed: 1 or more"),
        ({"latency_s": -1.0}, "link latency: found -1.0 s; allowed: 0 to 8,640,000"),
    ],
)
def test_a_link_that_cannot_be_is_refused(link: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        disaggregated(trace_of((0, 1, 2)), **link)


def _uneven(batch: Batch) -> float:
    return 0.01 * batch.new_tokens + 0.001 * (batch.prefill_pairs + batch.decode_pairs)


_LOADS = st.lists(
    st.tuples(st.integers(0, 20) | st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)),
    min_size=1,
    max_size=12,
).map(lambda requests: trace_of(*sorted(requests)))


@settings(max_examples=300, deadline=None)
@given(
    _LOADS,
    st.one_of(
        st.builds(Continuous),
        st.builds(Chunked, st.integers(1, 40)),
        st.builds(Layered, st.none() | st.integers(1, 6), st.integers(1, 60)),
    ),
    st.integers(112, 400),
    st.integers(1, 8),
    st.none() | st.integers(0, 200),
    st.sampled_from([_uneven, lambda batch: 1.0, lambda batch: 0.003]),
    st.sampled_from([8.0, 80.0, 1e3, 1e9]),
    st.sampled_from([0.0, 1.0, 0.3]),
)
def test_every_token_once_and_stretches_leave_the_same_figures(
    trace: Trace,
    scheduler: Scheduler,
    kv_tokens: int,
    max_sequences: int,
    sram_tokens: int | None,
    seconds: Callable[[Batch], float],
    bytes_per_s: float,
    latency_s: float,
) -> None:
    (jumped, _, _, jumped_rows), (stepped, prefill, decode, rows) = (
        disaggregated(
            trace,
            scheduler=deepcopy(scheduler),
            seconds=seconds,
            layers=5,
            bytes_per_s=bytes_per_s,
            latency_s=latency_s,
            limits=Limits(kv_tokens, max_sequences, sram_tokens, jump),
        )
        for jump in (True, False)
    )
    assert jumped == stepped
    assert jumped_rows == rows
    assert [row["output_tokens"] for row in rows] == trace.output_tokens.tolist()
    logits = sum(batch.logit_rows for batch in prefill + decode)
    assert logits == trace.output_tokens.sum()
    assert not any(batch.prefills for batch in decode)
    assert not any(batch.decode_sequences for batch in prefill)
    crossing = trace.prompt_tokens[trace.output_tokens > 1].sum() * 8
    carried = stepped["pools"]["link"]["carried_bytes"]
    assert carried == crossing if not stepped["kv"]["preemptions"] else carried >= crossing
    assert all(np.diff([row["arrival_s"] for row in rows]) >= 0)
