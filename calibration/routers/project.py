"""The first subject of the experiments: the project's mesh, through its specification."""

from contextlib import suppress

from calibration.experiment import LawContradictedError, Parameters
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH
from calibration.routers.subject import Subject
from cosim.spec.project import project_spec
from tlm.calibrated import load_result
from tlm.errors import InputError


class ProjectSubject(Subject):
    """The project's mesh: what an experiment has stored, the next ones know.

    What the model cannot be like is no finding here, but an error.
    """

    sends_to_itself = True
    channel = "none"

    def __init__(self, mesh_type: type[BlackBoxMesh] = BlackBoxMesh) -> None:
        sizes = [(mesh.rows, mesh.cols) for mesh in (FIT_MESH, CHECK_MESH)]
        super().__init__(project_spec(FIT_MESH, sizes), mesh_type=mesh_type)

    def parameters(self, experiment: str) -> Parameters:
        """What an experiment has just found, or has stored."""
        if experiment not in self.found:
            with suppress(InputError):
                return load_result(experiment).parameters
        return super().parameters(experiment)

    def note(self, line: str) -> None:
        """Refuse.

        Raises:
            LawContradictedError: always.
        """
        raise LawContradictedError(line)

    def follows_no_law(self, error: LawContradictedError) -> None:
        """Refuse.

        Raises:
            LawContradictedError: always.
        """
        raise error
