"""Percentiles of counted values are those of the values written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.serving.metrics import summarise
from workloads.serving.run import mean_of

_COUNTED = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 9)), min_size=1, max_size=30)


@given(_COUNTED)
def test_counted_values_equal_repeated_ones(counted: list[tuple[int, int]]) -> None:
    values, counts = (np.array(column) for column in zip(*counted, strict=True))
    written_out = np.repeat(values, counts)
    summary = summarise(values.astype(np.float64), counts)
    assert summary["mean"] == pytest.approx(written_out.mean())
    for percent in (50, 90, 99):
        assert summary[f"p{percent}"] == pytest.approx(np.percentile(written_out, percent))


def test_mean_and_interval_over_seeds() -> None:
    runs = [
        {"ttft_s": {"mean": value}, "iterations": 7, "goodput_rps": None}
        for value in (1.0, 2.0, 3.0)
    ]
    mean = mean_of(runs)
    assert mean["ttft_s"] == {"mean": 2.0}
    assert mean["goodput_rps"] is None
    # Student's t of 2 degrees of freedom, 4.303, times 1 / sqrt(3).
    assert mean["ci95"]["ttft_s.mean"] == pytest.approx([2 - 2.484, 2 + 2.484], abs=1e-3)
    assert mean["iterations"] == 7
    assert list(mean["ci95"]) == ["ttft_s.mean"]
    assert mean_of(runs[:1])["ci95"] is None
