"""What a campaign runs, what it keeps, and what it stores."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from calibration import campaign
from calibration.campaign import calibrate
from calibration.experiment import run
from calibration.experiments.systolic import SystolicExperiment
from tlm.calibrated import CalibrationResult, forget, load_result

if TYPE_CHECKING:
    from conftest import FakeExperiment


@dataclass(eq=False)
class FakeMesh:
    built: list[str] = field(default_factory=list)
    name: str = "mesh"

    def build(self) -> None:
        self.built.append(self.name)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, fake: "FakeExperiment") -> list[str]:
    """A campaign of the one experiment; the names of the meshes it builds."""
    names: list[str] = []
    monkeypatch.setattr(campaign, "EXPERIMENTS", (fake,))
    monkeypatch.setattr(campaign, "FIT_MESH", FakeMesh(names, "fit"))
    monkeypatch.setattr(campaign, "CHECK_MESH", FakeMesh(names, "check"))
    return names


def stored(repository: Path) -> Path:
    return repository / "calibration" / "results" / "fake.json"


def test_a_result_that_holds_is_kept(
    fake: "FakeExperiment", built: list[str], repository: Path
) -> None:
    told: list[str] = []
    (first,) = calibrate(progress=told.append)
    assert told == ["building the Verilated meshes", "fake: measuring on RTL"]
    assert fake.measured == [[1, 2], [3, 4]]
    told.clear()
    assert calibrate(progress=told.append) == [first]
    assert told == ["fake: RTL unchanged, stored result holds"]
    assert len(fake.measured) == 2
    assert built == ["fit", "check"]
    assert [path.name for path in stored(repository).parent.iterdir()] == ["fake.json"]


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
    assert built == ["fit"]
    assert not stored(repository).exists()
    calibrate()
    calibrate(quick=True)
    assert fake.measured == [[1, 2], [3], [1, 2], [3, 4], [1, 2], [3]]


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


def test_without_a_mesh_experiment_no_mesh_is_built(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Systolic(SystolicExperiment):
        pass

    monkeypatch.setattr(campaign, "EXPERIMENTS", (Systolic(),))
    result = CalibrationResult.model_construct(name="systolic")
    monkeypatch.setattr(campaign, "run", lambda experiment, quick: result)
    monkeypatch.setattr(campaign, "build_arrays", lambda quick: built.append("arrays"))
    calibrate(quick=True)
    assert built == ["arrays"]


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
