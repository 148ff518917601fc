"""What goes wrong before the first experiment, when a mesh is asked whether it locks channels."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from calibration.routers import custom
from calibration.routers.custom import calibrate_custom
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.part import PROBING, Made, Part
from calibration.routers.stored import part_file
from calibration.routers.subject import Subject
from calibration.simulator import Simulation
from cosim.errors import SimulationError
from cosim.spec.mesh import MeshSpec, load_spec
from tests.specifications import TOY
from tlm.calibrated import stored_result
from tlm.sealed import unsealed

_TROUBLE = "[3] %Error: toy.sv:1: Assertion failed in toy: no"


class Stopping(BlackBoxMesh):
    """The toy, in which an assertion fails whatever it carries."""

    def build(self, waves: bool = False) -> Simulation:
        return Simulation(Path(), "none", (), waves)

    def _run(self, *arguments: Any) -> Any:
        raise SimulationError(_TROUBLE)


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns measure on `Stopping`."""
    monkeypatch.setattr(custom, "Subject", lambda spec: Subject(spec, mesh_type=Stopping))


@pytest.fixture
def toy(tmp_path: Path) -> MeshSpec:
    """The toy, elsewhere."""
    shutil.copytree(TOY.parent, tmp_path / "toy")
    return load_spec(tmp_path / "toy" / "toy.toml")


@pytest.mark.usefixtures("stopping")
def test_a_run_that_goes_wrong_before_the_first_experiment_is_a_finding(
    toy: MeshSpec,
) -> None:
    told: list[str] = []
    found = calibrate_custom(toy, force=True, progress=told.append)
    first, *others = found.findings
    assert (first.experiment, first.what) == ("probing", f"assertion: {_TROUBLE}")
    assert first.scene == "single flits between neighbours"
    assert (toy.folder / first.packets).is_file()
    assert [each.scene for each in others[:1]] == ["messages from tile 0,0 to 0,1 and 0,3"]
    assert {each.experiment for each in others[1:]} == {"buffering"}
    assert f"probing: {first.scene}: {first.what}" in told
    assert not [each for each in found.not_made if each.experiment == "probing"]


@pytest.mark.usefixtures("stopping")
def test_it_is_kept_by_a_campaign_that_goes_on(toy: MeshSpec) -> None:
    """What the probing found is of no use alone: the probing is then done again."""
    calibrate_custom(toy, force=True)
    subject = Subject(toy, mesh_type=Stopping)
    stored = unsealed(part_file(toy).read_text(), Part)
    assert [each.experiment for each in stored.made][:2] == [PROBING, "buffering"]
    assert Part.begin(subject, quick=False).kept(part_file(toy)) is None
    result = stored_result("buffering")
    stored.made[1] = Made(experiment="buffering", result=result)
    stored.store(part_file(toy))
    kept = Part.begin(subject, quick=False).kept(part_file(toy))
    assert kept is not None
    assert [each.experiment for each in kept.made] == [PROBING, "buffering"]
