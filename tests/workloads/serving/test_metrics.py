"""Percentiles of counted values are those of the values written out; means over seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.serving.result.sample import PERCENTS, Sample
from workloads.serving.result.seeds import mean_of
from workloads.serving.result.timeline import Timeline

_COUNTED = st.lists(st.tuples(st.integers(0, 1 << 45), st.integers(1, 9)), min_size=1, max_size=30)


@given(_COUNTED, st.sampled_from([4, 1000]))
def test_counted_values_equal_repeated_ones(counted: list[tuple[int, int]], exact: int) -> None:
    sample = Sample(exact)
    for value, count in counted:
        sample.add(value, count)
    in_a_row = Sample(exact)
    for value, count in counted:
        in_a_row.add(value, 1, count)
    values, counts = (np.array(column) for column in zip(*counted, strict=True))
    written_out = np.repeat(values, counts).astype(np.float64)
    # Past so many, values count in bins of 1/4096 of themselves.
    slack = 1e-9 if len(counted) <= exact else 2e-4
    summary = sample.summary(2.0)
    if len(written_out) <= exact or len(counted) > exact:
        assert in_a_row.summary(2.0) == summary
    assert len(sample) == len(in_a_row) == len(written_out)
    assert summary["mean"] == pytest.approx(written_out.mean() / 2)
    for percent in PERCENTS:
        found = summary[f"p{percent}".replace(".", "_")]
        expected = np.percentile(written_out, percent) / 2
        assert found == pytest.approx(expected, rel=slack, abs=1e-6)
    spread = written_out.std() / 2
    assert sample.deviation(2.0) == pytest.approx(spread, abs=slack * written_out.max() + 1e-3)


def test_a_sum_may_pass_64_bits() -> None:
    sample = Sample()
    sample.add((1 << 60) + 1, 1000, 1000)
    sample.add(1)
    assert sample.summary(1.0)["mean"] == (10**6 * ((1 << 60) + 1) + 1) / (10**6 + 1)


def test_no_values_have_no_figures() -> None:
    assert set(Sample().summary(1.0).values()) == {None}
    assert Sample().deviation(1.0) is None


@given(st.lists(st.tuples(st.integers(0, 10**14), st.integers(1, 9)), min_size=1, max_size=40))
def test_the_timeline_keeps_every_token_where_it_was(tokens: list[tuple[int, int]]) -> None:
    timeline = Timeline()
    for time_ps, count in tokens:
        timeline.output(time_ps, count)
        timeline.outputs(0, time_ps, 1, count)
        timeline.prompt(time_ps, count)
    summary = timeline.summary()
    bin_s = summary["bin_s"]
    expected = np.bincount(
        [time_ps // round(bin_s * 1e12) for time_ps, _ in tokens], [count for _, count in tokens]
    )
    assert len(expected) <= 256
    assert np.array(summary["prompt_tok_s"]) * bin_s == pytest.approx(expected)
    assert np.array(summary["output_tok_s"]) * bin_s == pytest.approx(2 * expected)


@given(st.integers(0, 10**13), st.integers(1, 10**11), st.integers(1, 2000))
def test_the_timeline_takes_alike_iterations_together(now: int, every: int, times: int) -> None:
    together, apart = Timeline(), Timeline()
    together.outputs(now, every, times, 3)
    for step in range(1, times + 1):
        apart.output(now + step * every, 3)
    assert together.summary() == apart.summary()


def test_mean_and_interval_over_seeds() -> None:
    runs = [
        {
            "ttft_s": {"mean": value},
            "iterations": 7,
            "goodput_rps": None,
            "kv": {"a": {"b": value}},
        }
        for value in (1.0, 2.0, 3.0)
    ]
    mean = mean_of(runs)
    assert mean["ttft_s"] == {"mean": 2.0}
    assert mean["goodput_rps"] is None
    # Student's t of 2 degrees of freedom, 4.303, times 1 / sqrt(3).
    assert mean["ci95"]["ttft_s.mean"] == pytest.approx([2 - 2.484, 2 + 2.484], abs=1e-3)
    assert mean["iterations"] == 7
    assert list(mean["ci95"]) == ["ttft_s.mean", "kv.a.b"]
    assert mean_of(runs[:1])["ci95"] is None
