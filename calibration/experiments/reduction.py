"""Latency of a reduction in the network: what a router adds where operands meet."""

from collections.abc import Sequence

import numpy as np

from calibration.experiment import Parameters
from calibration.experiments.mesh_cases import (
    CHECK_MESH,
    FIT_MESH,
    Scene,
    SceneExperiment,
    some,
    span,
    timing_of,
)
from calibration.harness.mesh import RtlMesh
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.packets import ReductionGoal, TileSet, cut
from tlm.interconnect.zero_load import NocTiming

# (tiles, root, flits): a row, a column, all, to roots at the end, in the middle and outside. Rests
# are of a flit or two: longer ones wait too, but for less than a full packet.
_FIT = (
    (TileSet(range(1), range(4)), 0, 1),
    (TileSet(range(4), range(1, 2)), 5, 4),
    (TileSet(range(4), range(4)), 10, 4),
    (TileSet(range(1), range(4)), 3, 8),
    (TileSet(range(2), range(2)), 15, 16),
    (TileSet(range(4), range(4)), 6, 10),
)
_CHECKS_A_MESH = 30
_MOST_FLITS = 40


def _scene(mesh: RtlMesh, where: TileSet, root: int, flits: int) -> Scene:
    row, col = divmod(root, mesh.cols)
    hops = max(abs(r - row) + abs(c - col) for r in where.rows for c in where.cols)
    label = (
        f"{mesh.rows}x{mesh.cols}: rows {span(where.rows)} columns {span(where.cols)} to "
        f"{row},{col}, {flits} flits"
    )
    goal = ReductionGoal(where, root)
    sends = tuple(
        (0, node, goal, part)
        for node in where.nodes(mesh.cols)
        for part in cut(flits, mesh.fifo_depth)
    )
    return Scene(mesh, label, sends, hops)


class Reduction(SceneExperiment):
    """As a unicast from the farthest tile, and more in each router, the root's among them.

    All operands are offered together. A full packet waits until the buffer behind is seen empty.
    """

    name = "reduction"
    subject = "zero-load reduction latency"

    def fit_cases(self) -> list[Scene]:
        """A row, a column, rectangles; one packet and several."""
        return [_scene(FIT_MESH, *case) for case in _FIT]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random rectangles and strided sets, to roots inside and outside of them."""
        rng = np.random.default_rng(self.seed + 3)
        scenes = {}
        for mesh in (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH):
            for _ in range(_CHECKS_A_MESH):
                where = TileSet(some(mesh.rows, rng), some(mesh.cols, rng))
                root = int(rng.integers(mesh.rows * mesh.cols))
                scene = _scene(mesh, where, root, int(rng.integers(1, _MOST_FLITS + 1)))
                scenes[scene.label] = scene
        return [scene for label, scene in scenes.items() if label not in _FITTED]

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """What a reduction takes beyond a unicast of the same way and length."""
        unicast = timing_of(load_result("unicast").parameters)
        rows, beyond = [], []
        for scene, value in zip(cases, values, strict=True):
            flits = sum(send[3] for send in scene.sends if send[1] == scene.sends[0][1])
            rows.append((scene.hops + 1, max(flits // scene.mesh.fifo_depth - 1, 0)))
            beyond.append(value - unicast.unicast_cycles(scene.hops, flits))
        reduce, gap = solve_exactly(rows, beyond)
        return {
            "reduce_cycles": Parameter.exact(reduce, "cycles/router"),
            "gap_cycles": Parameter.exact(gap, "cycles/packet"),
        }

    def timing(self, parameters: Parameters) -> NocTiming:
        """With the reduction unit as measured."""
        return timing_of(
            load_result("unicast").parameters,
            reduce_cycles=round(parameters["reduce_cycles"].value),
        )


_FITTED = {_scene(FIT_MESH, *case).label for case in _FIT}
