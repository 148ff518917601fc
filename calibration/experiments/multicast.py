"""Latency of a multicast, and what cut-through costs between packets as long as the buffers."""

from collections.abc import Sequence

import numpy as np

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
from tlm.interconnect.packets import TileSet, cut

# (source, destinations, flits): to a row, down a column, to all; in one packet and in several.
_FIT = (
    (0, TileSet(range(1), range(4)), 1),
    (5, TileSet(range(4), range(1, 2)), 3),
    (10, TileSet(range(4), range(4)), 4),
    (0, TileSet(range(1), range(4)), 8),
    (3, TileSet(range(4), range(4)), 20),
    (6, TileSet(range(4), range(4)), 11),
)
_CHECKS_A_MESH = 40
_MOST_FLITS = 48


def _scene(mesh: RtlMesh, source: int, where: TileSet, flits: int) -> Scene:
    row, col = divmod(source, mesh.cols)
    hops = max(abs(r - row) + abs(c - col) for r in where.rows for c in where.cols)
    label = (
        f"{mesh.rows}x{mesh.cols}: {row},{col} to rows {span(where.rows)} columns "
        f"{span(where.cols)}, {flits} flits"
    )
    sends = tuple((0, source, where, part) for part in cut(flits, mesh.fifo_depth))
    return Scene(mesh, label, sends, hops)


class Multicast(SceneExperiment):
    """As a unicast to the farthest tile, plus a gap before each full packet but the first.

    A packet shorter than a buffer finds room as soon as its predecessor has begun to leave.
    """

    name = "multicast"
    subject = "zero-load multicast latency"

    def fit_cases(self) -> list[Scene]:
        """A row, a column, all tiles; one packet and several."""
        return [_scene(FIT_MESH, *case) for case in _FIT]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random rectangles and strided sets from sources inside and outside of them."""
        rng = np.random.default_rng(self.seed + 2)
        scenes = {}
        for mesh in (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH):
            for _ in range(_CHECKS_A_MESH):
                where = TileSet(some(mesh.rows, rng), some(mesh.cols, rng))
                source = int(rng.integers(mesh.rows * mesh.cols))
                if len(where) > 1:
                    scene = _scene(mesh, source, where, int(rng.integers(1, _MOST_FLITS + 1)))
                    scenes[scene.label] = scene
        return [scene for label, scene in scenes.items() if label not in _FITTED]

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """What a multicast takes beyond a unicast of the same way and length."""
        unicast = timing_of(load_result("unicast").parameters)
        rows = [(1, max(scene.flits // scene.mesh.fifo_depth - 1, 0)) for scene in cases]
        beyond = [
            value - unicast.unicast_cycles(scene.hops, scene.flits)
            for scene, value in zip(cases, values, strict=True)
        ]
        fork, gap = solve_exactly(rows, beyond)
        return {
            "fork_cycles": Parameter.exact(fork, "cycles"),
            "gap_cycles": Parameter.exact(gap, "cycles/packet"),
        }


_FITTED = {_scene(FIT_MESH, *case).label for case in _FIT}
