"""Experts that a batch needs: against the published coverage, against sampling, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workloads.serving.price.experts import (
    POPULARITY_SIGMA,
    device_of,
    distinct_experts,
    expected_loads,
    inclusion,
)

# Table 1 of the layered-prefill paper; sigma was fitted to it.
_COVERAGE_PCT = {1: 6.25, 2: 11.7, 4: 21.3, 8: 29.0, 16: 44.5, 32: 54.7, 64: 69.4, 128: 86.3}
_COVERAGE_PCT |= {256: 93.4, 512: 98.0}


def test_coverage_is_within_4_points_of_the_published_one() -> None:
    errors = [
        100 * distinct_experts(128, 8, tokens) / 128 - published
        for tokens, published in _COVERAGE_PCT.items()
    ]
    assert max(map(abs, errors)) < 4
    assert np.sqrt(np.mean(np.square(errors))) < 2


@pytest.mark.parametrize(("count", "active", "bound"), [(128, 8, 0.006), (32, 4, 0.012)])
def test_inclusion_is_that_of_gumbel_top_k(count: int, active: int, bound: float) -> None:
    ranks = (np.arange(count, 0, -1) - 0.5) / count
    log_popularity = POPULARITY_SIGMA * stats.norm.ppf(ranks)
    noise = np.random.default_rng(0).gumbel(size=(50_000, count))
    top = np.argpartition(-(log_popularity + noise), active, axis=1)[:, :active]
    sampled = np.bincount(top.ravel(), minlength=count) / len(noise)
    assert np.abs(sampled - inclusion(count, active)).max() < bound


@given(st.integers(1, 512), st.integers(1, 20_000), st.data())
def test_needed_experts_grow_with_tokens_up_to_all(
    count: int, tokens: int, data: st.DataObject
) -> None:
    active = data.draw(st.integers(1, count))
    needed = distinct_experts(count, active, tokens)
    assert active - 1e-6 <= needed <= count + 1e-9
    assert needed <= distinct_experts(count, active, tokens + 1) + 1e-9
    assert distinct_experts(count, active, 1) == pytest.approx(active)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_experts_are_dealt_out_evenly(devices: int) -> None:
    device = device_of(128, devices)
    assert np.bincount(device).tolist() == [128 // devices] * devices
    _, tokens = expected_loads(128, 8, 1000)
    assert tokens.sum() == pytest.approx(8000)
    assert np.bincount(device, tokens).max() < 1.6 * 8000 / devices
