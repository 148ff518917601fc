"""The stored calibration: of this RTL, within its targets, and what the RTL shows again."""

from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS, calibrate, missed_targets
from calibration.experiment import Experiment, misses, run
from calibration.experiments.contention import Contention
from calibration.experiments.multicast import Multicast
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import RESULTS_FOLDER, load_result, stored_names


def test_every_experiment_is_stored() -> None:
    assert stored_names() == sorted(e.name for e in EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: str(experiment.name))
def test_a_stored_result_is_fresh_and_within_its_target(experiment: Experiment[Any]) -> None:
    result = load_result(experiment.name)
    assert result.changed_sources() == []
    assert result.tools == tool_versions()
    planned = [experiment.label(case) for case in experiment.check_cases(quick=False)]
    assert [point.case for point in result.check] == planned
    errors = [abs(point.error_pct) for point in result.check]
    assert result.max_abs_error_pct == max(errors)
    assert misses(experiment, result) == []
    assert result.mean_abs_error_pct == pytest.approx(sum(errors) / len(errors))
    assert result.worst_case in planned


def test_the_parameters_of_the_router() -> None:
    found = {
        name: parameter.value
        for experiment in ("unicast", "buffering", "contention", "multicast")
        for name, parameter in load_result(experiment).parameters.items()
    }
    assert found == {
        "ejection_cycles": 1,
        "hop_cycles": 1,
        "serialisation_cycles": 1,
        "fifo_depth": 4,
        "turnaround_cycles": 0,
        "fork_cycles": 0,
        "gap_cycles": 1,
    }
    reduction = load_result("reduction").parameters
    assert {name: parameter.value for name, parameter in reduction.items()} == {
        "reduce_cycles": 1,
        "gap_cycles": 2,
    }


@pytest.mark.rtl
def test_the_rtl_shows_the_stored_parameters_again() -> None:
    before = {path: path.read_bytes() for path in RESULTS_FOLDER.iterdir()}
    results = []
    for result in calibrate(quick=True):
        stored = load_result(result.name)
        assert result.parameters == stored.parameters
        assert result.fit == stored.fit
        assert result.rtl_hash == stored.rtl_hash
        assert result.check == stored.check[: len(result.check)]
        results.append(result)
    assert list(missed_targets(results)) == []
    assert {path: path.read_bytes() for path in RESULTS_FOLDER.iterdir()} == before


@pytest.mark.rtl
@pytest.mark.parametrize("experiment", [Contention(), Multicast()], ids=lambda e: str(e.name))
def test_a_run_repeats_to_the_byte(experiment: Experiment[Any]) -> None:
    first, second = (run(experiment, quick=True).model_dump_json() for _ in range(2))
    assert first == second
