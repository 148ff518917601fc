"""Contention at an output: who goes first, in what grain, and what a change of packet costs."""

from collections.abc import Sequence

import numpy as np

from calibration.experiments.mesh_cases import CHECK_MESH, FIT_MESH, Outcome, Scene, SceneExperiment
from calibration.harness.mesh import RtlMesh
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.packets import TileSet

# On the small mesh tile 1,1 has a neighbour on every side.
_CENTRE, _AROUND = TileSet.tile(1, 1), (1, 4, 6, 9)
_CHECKS_A_MESH = 25


def _converge(sources: int, flits: int) -> Scene:
    label = f"4x4: {sources} neighbours to 1,1, {flits} flits each"
    sends = tuple((0, node, _CENTRE, flits) for node in _AROUND[:sources])
    return Scene(FIT_MESH, label, sends, hops=1)


class Contention(SceneExperiment):
    """k packets of F flits through one output take k F + (k - 1) turnaround cycles of it."""

    name = "contention"
    subject = "mean finish of packets that meet at an output"

    def fit_cases(self) -> list[Scene]:
        """Two to four packets that ask for one output in the same cycle."""
        return [_converge(2, 3), _converge(3, 5), _converge(4, 2)]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random sources, lengths and starts, all to one tile, which lies anywhere."""
        rng = np.random.default_rng(self.seed + 1)
        meshes = (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH)
        return [_crowd(mesh, rng, i) for mesh in meshes for i in range(_CHECKS_A_MESH)]

    def figure(self, outcome: Outcome) -> float:
        """Mean over the packets of their last ejection, from the scene's start."""
        return float(np.mean(outcome.finishes))

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """The turnaround, from packets that never let the output rest: they end one by one.

        Flits of packets that take turns would end together, which no turnaround explains.
        """
        unicast = load_result("unicast")
        head = unicast.integer("ejection_cycles") + unicast.integer("hop_cycles")
        rows, rests = [], []
        for scene, mean_finish in zip(cases, values, strict=True):
            changes, flits = len(scene.sends) - 1, scene.sends[0][3]
            rows.append([changes])
            rests.append(2 * (mean_finish - (head + flits - 1)) - changes * flits)
        (turnaround,) = solve_exactly(rows, rests)
        return {"turnaround_cycles": Parameter.exact(turnaround, "cycles/packet")}


def _crowd(mesh: RtlMesh, rng: np.random.Generator, number: int) -> Scene:
    nodes = mesh.rows * mesh.cols
    target = int(rng.integers(nodes))
    sends = tuple(
        (int(rng.integers(0, 12)), int(node), TileSet.tile(*divmod(target, mesh.cols)), flits)
        for node in rng.choice(nodes, size=int(rng.integers(2, 7)), replace=False)
        for flits in [int(rng.integers(1, 20))]
    )
    row, col = divmod(target, mesh.cols)
    label = f"{mesh.rows}x{mesh.cols}: crowd {number}, {len(sends)} packets to {row},{col}"
    return Scene(mesh, label, sends)
