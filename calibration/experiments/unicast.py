"""Zero-load latency of a unicast: cycles a hop, cycles of the ejection, cycles a flit."""

from collections.abc import Sequence

import numpy as np

from calibration.experiment import Parameters
from calibration.experiments.mesh_cases import (
    CHECK_MESH,
    FIT_MESH,
    Scene,
    SceneExperiment,
    timing_of,
)
from calibration.harness.mesh import RtlMesh
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming

_FIT = ((0, 1, 1), (0, 15, 1), (5, 10, 3), (12, 3, 16), (6, 6, 2))
_CHECKS_A_MESH = 60
_MOST_FLITS = 64


def _scene(mesh: RtlMesh, source: int, destination: int, flits: int) -> Scene:
    (r0, c0), (r1, c1) = divmod(source, mesh.cols), divmod(destination, mesh.cols)
    label = f"{mesh.rows}x{mesh.cols}: {r0},{c0} to {r1},{c1}, {flits} flits"
    sends = ((0, source, TileSet.tile(r1, c1), flits),)
    return Scene(mesh, label, sends, hops=abs(r0 - r1) + abs(c0 - c1))


class Unicast(SceneExperiment):
    """cycles = ejection + hops x hop + (flits - 1) x serialisation."""

    name = "unicast"
    subject = "zero-load unicast latency"

    def fit_cases(self) -> list[Scene]:
        """Five transfers on the small mesh."""
        return [_scene(FIT_MESH, *case) for case in _FIT]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random pairs and lengths, on the small mesh and on one the fit has not seen."""
        rng = np.random.default_rng(self.seed)
        scenes = {}
        for mesh in (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH):
            for _ in range(_CHECKS_A_MESH):
                pair = rng.integers(0, mesh.rows * mesh.cols, 2)
                flits = int(rng.integers(1, _MOST_FLITS + 1))
                scene = _scene(mesh, int(pair[0]), int(pair[1]), flits)
                scenes[scene.label] = scene
        return [scene for label, scene in scenes.items() if label not in _FITTED]

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """Solve the law for its three constants.

        Raises:
            LawContradictedError: if the latency is no such sum, or a flit takes more than a cycle.
        """
        rows = [(1, scene.hops, scene.flits - 1) for scene in cases]
        ejection, hop, serialisation = solve_exactly(rows, values)
        return {
            "ejection_cycles": Parameter.exact(ejection, "cycles"),
            "hop_cycles": Parameter.exact(hop, "cycles/hop"),
            "serialisation_cycles": Parameter.exact(serialisation, "cycles/flit"),
        }

    def timing(self, parameters: Parameters) -> NocTiming:
        """The constants found here."""
        return timing_of(parameters)


_FITTED = {_scene(FIT_MESH, *case).label for case in _FIT}
