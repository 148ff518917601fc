"""What a campaign runs, what it keeps, and what it stores."""

import json
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from calibration import campaign
from calibration.campaign import EXPERIMENTS, calibrate, missed_targets, models
from calibration.experiment import Targets, run
from tlm.calibrated import forget, load_result
from tlm.comparisons import load_chips, load_levels, load_tiles

if TYPE_CHECKING:
    from conftest import FakeExperiment


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, fake: "FakeExperiment") -> list[str]:
    """A campaign of the one experiment; the names of the models it builds."""
    monkeypatch.setattr(campaign, "EXPERIMENTS", (fake,))
    return fake.built


def stored(repository: Path) -> Path:
    return repository / "calibration" / "results" / "fake.json"


def test_a_result_that_holds_is_kept(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    told: list[str] = []
    (first,) = calibrate(progress=told.append)
    assert told == ["building the Verilated models", "fake: measuring on RTL"]
    assert fake.measured == [[1, 2], [3, 4]]
    told.clear()
    assert calibrate(progress=told.append) == [first]
    assert told == ["fake: RTL and model unchanged, stored result holds"]
    assert len(fake.measured) == 2
    assert built == ["small", "large"]
    assert [path.name for path in stored(repository).parent.iterdir()] == ["fake.json"]


def test_another_model_is_measured_again(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    calibrate()
    fake.offset_of_model = 1.0
    (result,) = calibrate()
    assert len(fake.measured) == 4
    assert result == load_result("fake")
    assert result.check[1].model == result.check[1].rtl + 1


def test_force_measures_again_to_the_same_bytes(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    calibrate()
    before = stored(repository).read_bytes()
    calibrate(force=True)
    assert len(fake.measured) == 4
    assert stored(repository).read_bytes() == before


def test_quick_measures_less_and_stores_nothing(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    (result,) = calibrate(quick=True)
    assert [point.case for point in result.check] == ["case 3"]
    assert built == ["small"]
    assert not stored(repository).exists()
    calibrate()
    calibrate(quick=True)
    assert fake.measured == [[1, 2], [3], [1, 2], [3, 4], [1, 2], [3]]


def test_a_result_says_what_was_tried_and_what_was_not(
    fake: "FakeExperiment", built: list[str]
) -> None:
    fake.checked = [3, 5, 8]
    fake.offset_of_model = 4.0  # but of 3: 5 is off by 40 %, 8 by 25 %
    (result,) = calibrate()
    assert [each.model_dump() for each in result.situations] == [
        {"name": name, "fit": fit, "check": check, "max_abs_error_pct": worst, "status": status}
        for name, fit, check, worst, status in (
            ("odd numbers", 1, 2, 40.0, "not represented"),
            ("even numbers", 1, 1, 25.0, "not represented"),
            ("numbers below one", 0, 0, None, "not tried"),
        )
    ]
    fake.offset_of_model, fake.checked = 0.0, [3, 5]
    (result,) = calibrate(force=True)
    assert [each.status for each in result.situations] == [
        "identified and checked",
        "identified",
        "not tried",
    ]


def test_a_situation_without_checks_is_identified_only_if_the_fit_is_explained(
    fake: "FakeExperiment", built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.checked = [3, 5]
    for wrong, status in ((2.0, "identified"), (1.0, "not represented"), (nan, "not represented")):
        monkeypatch.setattr(
            fake,
            "predict",
            lambda parameters, cases, wrong=wrong: [
                wrong * c if c % 2 == 0 else 2.0 * c for c in cases
            ],
        )
        (result,) = calibrate(force=True)
        assert [(each.fit, each.check, each.status) for each in result.situations] == [
            (1, 2, "identified and checked"),
            (1, 0, status),
            (0, 0, "not tried"),
        ]


def test_a_case_without_a_figure_of_the_model_is_not_represented(
    fake: "FakeExperiment", built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.checked = [3, 5, 8]
    monkeypatch.setattr(
        fake, "predict", lambda parameters, cases: [nan if c == 5 else 2.0 * c for c in cases]
    )
    (result,) = calibrate()
    assert [point.case for point in result.check] == ["case 3", "case 8"]
    assert [(each.check, each.max_abs_error_pct, each.status) for each in result.situations] == [
        (2, 0.0, "not represented"),
        (1, 0.0, "identified and checked"),
        (0, None, "not tried"),
    ]


def test_a_situation_whose_cases_all_go_wrong_is_told(
    fake: "FakeExperiment", built: list[str]
) -> None:
    measure, fake.checked = fake.measure, [3, 4, 8]
    fake.measure = lambda cases: [
        nan if case % 2 == 0 else figure for case, figure in zip(cases, measure(cases), strict=True)
    ]
    (result,) = calibrate()
    assert [(each.name, each.fit, each.check, each.status) for each in result.situations] == [
        ("odd numbers", 1, 1, "identified and checked"),
        ("even numbers", 0, 0, "went wrong on RTL"),
        ("numbers below one", 0, 0, "not tried"),
    ]


@pytest.mark.parametrize("what", ["source", "tools", "check cases", "file"])
def test_what_has_changed_is_measured_again(
    what: str,
    fake: "FakeExperiment",
    built: list[str],
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calibrate()
    if what == "source":
        fake.source.write_text("7")
    elif what == "tools":
        newer = {"verilator": "99", "cocotb": "99"}
        monkeypatch.setattr(campaign, "tool_versions", lambda: newer)
    elif what == "check cases":
        fake.checked = [3, 5]
    else:
        stored(repository).write_text("{")
    forget()  # a new process
    calibrate()
    assert len(fake.measured) == 4
    if what == "source":
        assert load_result("fake").integer("offset") == 7


def test_a_campaign_builds_few_models_and_a_quick_one_fewer() -> None:
    quick, full = (models(EXPERIMENTS, quick=quick) for quick in (True, False))
    assert len(full) == len(set(full)) <= 6
    assert set(quick) < set(full)


def test_a_campaign_that_was_stopped_goes_on_where_it_was(
    fake: "FakeExperiment", built: list[str], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = type(fake)(fake.source, "second")
    monkeypatch.setattr(campaign, "EXPERIMENTS", (fake, second))

    def stop(cases: object) -> list[float]:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(second, "measure", stop)
        with pytest.raises(KeyboardInterrupt):
            calibrate()
    assert [path.name for path in stored(repository).parent.iterdir()] == ["fake.json"]
    forget()  # a new process
    calibrate()
    assert (len(fake.measured), len(second.measured)) == (2, 2)


def test_workers_do_not_change_a_byte(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    calibrate(workers=1)
    one = stored(repository).read_bytes()
    calibrate(workers=2, force=True)
    assert stored(repository).read_bytes() == one
    assert sorted(built) == ["large", "large", "small", "small"]


def test_a_missed_target_is_named_with_its_worst_case(
    fake: "FakeExperiment", built: list[str]
) -> None:
    assert list(missed_targets([run(fake, quick=False)])) == []
    fake.source.write_text("2")
    fake.offset_of_model = 1  # 25 % and 10 % off
    results = [run(fake, quick=False)]
    assert list(missed_targets(results)) == [
        "fake: mean error 17.5 %, allowed 0 %",
        "fake: case 3: error 25 %, allowed 0 %",
    ]
    fake.targets = Targets(mean_pct=20, worst_pct=24.9)
    assert list(missed_targets(results)) == ["fake: case 3: error 25 %, allowed 24.9 %"]
    fake.targets = Targets(mean_pct=17.5, worst_pct=25)
    assert list(missed_targets(results)) == []


def test_a_missed_target_is_status_1_of_the_command(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [load_result(experiment.name) for experiment in EXPERIMENTS]
    points = load_levels().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_levels", lambda **given: points)
    tiles = load_tiles().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_tiles", lambda **given: tiles)
    chips = load_chips().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_chips", lambda **given: chips)
    monkeypatch.setattr(
        "wafertlm.api.calibration_run.campaign.calibrate", lambda **options: results
    )
    assert wafertlm("calibrate").status == 0
    off = {"max_abs_error_pct": 1.5, "worst_case": "case 7"}
    (number,) = (at for at, result in enumerate(results) if result.name == "unicast")
    results[number] = results[number].model_copy(update=off)
    ran = wafertlm("calibrate", "--json")
    assert ran.status == 1
    assert ran.stderr.endswith("check failed: unicast: case 7: error 1.5 %, allowed 0 %\n")
    assert json.loads(ran.stdout)["misses"] == ["unicast: case 7: error 1.5 %, allowed 0 %"]


def test_errors_are_those_of_the_check_points(fake: "FakeExperiment") -> None:
    fake.source.write_text("2")
    fake.offset_of_model = 1
    result = run(fake, quick=False)
    assert [(p.case, p.rtl, p.model) for p in result.check] == [
        ("case 3", 8, 6),
        ("case 4", 10, 11),
    ]
    assert result.check[0].error_pct == -25
    assert result.mean_abs_error_pct == 17.5
    assert result.max_abs_error_pct == 25
    assert result.worst_case == "case 3"
    assert [(p.case, p.rtl) for p in result.fit] == [("case 1", 4), ("case 2", 6)]
    assert result.seed == 5
    assert list(result.sources) == ["rtl/fake.sv"]


def test_a_fitted_case_is_no_check(fake: "FakeExperiment") -> None:
    fake.checked = [2, 3]
    with pytest.raises(AssertionError, match="a check case was fitted"):
        run(fake, quick=False)
