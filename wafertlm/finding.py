"""A scene that went wrong on a custom mesh, run again from its file."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from calibration.routers.findings import StoredScene, in_words, load_scene, recording
from calibration.routers.mesh import BlackBoxMesh
from cosim.errors import HangError, SimulationError
from cosim.spec.mesh import MeshSpec, load_spec
from wafertlm.stopwatch import Building


@dataclass(frozen=True, slots=True)
class Again:
    """What came out.

    Attributes:
        experiment: Whose scene it is.
        scene: The scene in words.
        found: What went wrong when it was found.
        now: What goes wrong now; None: all is delivered as it should be.
        first_cycle: Cycle of the run in which the scene begins.
    """

    experiment: str
    scene: str
    found: str
    now: str | None
    first_cycle: int


def run_again(
    spec_file: str, scene_file: Path, wave: Path | None, building: Building = nullcontext
) -> Again:
    """Run the scene of a finding again.

    Args:
        spec_file: The specification of the mesh.
        scene_file: The finding's packets.
        wave: Where a wave of the run goes, from the scene's first cycle on; None: none.
        building: Entered while the model is compiled.

    Raises:
        InputError: if a file cannot be read.
        SimulationError: if the model cannot be built.
    """
    spec, scene = load_spec(Path(spec_file)), load_scene(scene_file)
    harness = BlackBoxMesh if wave is None else recording(BlackBoxMesh, wave, scene.first_cycle)
    with building():
        harness(spec, *scene.size).build()
    now = _goes_wrong(scene, harness, spec)
    return Again(scene.experiment, scene.scene, scene.what, now, scene.first_cycle)


def _goes_wrong(scene: StoredScene, harness: type[BlackBoxMesh], spec: MeshSpec) -> str | None:
    """What goes wrong in a scene; None, if nothing does."""
    try:
        scene.run(harness, spec)
    except (HangError, SimulationError) as error:
        return in_words(error)
    return None
