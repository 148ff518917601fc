"""The stored calibration: of this RTL, within its targets, and what the RTL shows again."""

from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS, calibrate, missed_targets
from calibration.experiment import Experiment, misses, run
from calibration.routers.contention import Contention
from calibration.routers.found import IDENTIFIED, PORTS
from calibration.routers.project import ProjectSubject
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import RESULTS_FOLDER, load_result, stored_names
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import ARBITERS, FORKS, UNIT_CHOICES


def test_every_experiment_is_stored() -> None:
    assert stored_names() == sorted(e.name for e in EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: str(experiment.name))
def test_a_stored_result_is_fresh_and_within_its_target(experiment: Experiment[Any]) -> None:
    result = load_result(experiment.name)
    assert result.changed_sources() == []
    assert result.tools == tool_versions()
    planned = [experiment.label(case) for case in experiment.check_cases(quick=False)]
    assert [point.case for point in result.check] == planned
    predicted = experiment.predict(result.parameters, experiment.check_cases(quick=True))
    assert [point.model for point in result.check[: len(predicted)]] == predicted
    errors = [abs(point.error_pct) for point in result.check]
    assert result.max_abs_error_pct == max(errors)
    assert misses(experiment, result) == []
    assert result.mean_abs_error_pct == pytest.approx(sum(errors) / len(errors))
    assert result.worst_case in planned
    tried = [each for each in result.situations if each.status != "not tried"]
    assert sum(each.fit for each in tried) == len(result.fit)
    assert sum(each.check for each in tried) == len(result.check)
    assert [each.name for each in result.situations[len(tried) :]] == list(experiment.untried)


def test_the_parameters_of_the_router() -> None:
    found = {
        f"{experiment}.{name}": parameter.value
        for experiment in IDENTIFIED
        for name, parameter in load_result(experiment).parameters.items()
    }
    ports = {f"contention.place_{port}": place for place, port in enumerate(PORTS)}
    assert found == ports | {
        "buffering.fifo_depth": 4,
        "buffering.output_depth": 0,
        "buffering.tile_depth": 0,
        "unicast.ejection_cycles": 1,
        "unicast.hop_cycles": 1,
        "unicast.link_interval_cycles": 1,
        "unicast.serialisation_cycles": 1,
        "contention.lock_grain": 1,
        "contention.y_first": 0,
        "contention.arbiter": ARBITERS.index("round-robin"),
        "contention.lock_on_transfer": 0,
        "contention.return_cycles": 1,
        "contention.turnaround_cycles": 0,
        "multicast.fork_cycles": 0,
        "multicast.gap_cycles": 1,
        "multicast.fork": FORKS.index("own-pace"),
        "multicast.cut_through": 1,
        "multicast.loopback": 1,
        "multicast.multicast_flits": 4,
        "reduction.gap_cycles": 2,
        "reduction.reduce_cycles": 1,
        "reduction.reduce_interval_cycles": 1,
        "reduction.cut_through": 1,
        "reduction.operand_limit": 5,
        "reduction.operands_share": 0,
        "reduction.place_reduction": 5,
        "reduction.unit_choice": UNIT_CHOICES.index("complete"),
        "reduction.unit_arbiter": ARBITERS.index("round-robin"),
        "reduction.unit_lock_on_transfer": 0,
        "reduction.unit_places": 1,
        "reduction.unit_return_cycles": 0,
        "reduction.reduction_flits": 4,
    }


def test_the_models_take_all_that_is_found_of_the_router() -> None:
    assert ProjectSubject().timing == rtl_timing()


@pytest.mark.rtl
@pytest.mark.parametrize(
    "names",
    [
        ("buffering", "unicast", "multicast", "tile"),
        pytest.param(tuple(stored_names()), marks=pytest.mark.slow),
    ],
    ids=["few", "all"],
)
def test_the_rtl_shows_the_stored_parameters_again(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = tuple(one for one in EXPERIMENTS if one.name in names)
    assert len(chosen) == len(names)
    monkeypatch.setattr("calibration.campaign.EXPERIMENTS", chosen)
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
def test_a_run_repeats_to_the_byte() -> None:
    experiment = Contention(ProjectSubject())
    first, second = (run(experiment, quick=True).model_dump_json() for _ in range(2))
    assert first == second
