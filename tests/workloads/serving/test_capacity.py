"""The highest rate at which objectives are attained."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from workloads.serving.load.capacity import Capacity, Trial, find_rate


@given(st.floats(0.01, 1000), st.floats(0.01, 1000), st.floats(0.05, 1))
def test_the_rate_is_found_to_one_per_cent(limit: float, start: float, least: float) -> None:
    found = find_rate(lambda rate: least if rate <= limit else least / 2, start, least)
    assert found.rate is not None
    assert found.rate <= limit <= found.rate * 1.0100001
    assert found.rate in [trial.rate for trial in found.trials if trial.attainment >= least]


def test_what_is_tried_is_kept() -> None:
    found = find_rate(lambda rate: 1.0 if rate < 5 else 0.5, 4.0)
    assert found.trials[:3] == [Trial(4.0, 1.0), Trial(8.0, 0.5), Trial(32**0.5, 0.5)]


def test_no_rate_and_any_rate() -> None:
    assert find_rate(lambda rate: 0.0).rate is None
    assert find_rate(lambda rate: 1.0).rate == 2.0**20


def test_rates_at_which_the_load_cannot_be_run_are_not_tried() -> None:
    found = find_rate(lambda rate: 0.0, 4.0, lowest=0.9)
    assert found == Capacity(None, [Trial(4.0, 0.0), Trial(2.0, 0.0), Trial(1.0, 0.0)])


@pytest.mark.parametrize(("start", "least"), [(0.0, 0.9), (float("nan"), 0.9), (1.0, 0.0), (1, 2)])
def test_figures_out_of_range_are_refused(start: float, least: float) -> None:
    with pytest.raises(InputError, match="allowed"):
        find_rate(lambda rate: 1.0, start, least)


def test_a_capacity_is_plain() -> None:
    assert Capacity(None, [])._asdict() == {"rate": None, "trials": []}
