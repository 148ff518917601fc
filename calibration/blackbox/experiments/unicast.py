"""Zero-load latency of a unicast: cycles a hop, of the ejection, and from flit to flit."""

from collections.abc import Sequence

import numpy as np

from calibration.blackbox.experiments.base import SceneExperiment, exact
from calibration.blackbox.scenes import Scene, Size
from calibration.experiment import LawContradictedError
from calibration.experiments.mesh_cases import solve_exactly
from tlm.calibrated import Parameter
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet

# Source, destination, flits.
_FIT = (
    ((0, 0), (0, 1), 1),
    ((0, 0), (0, 3), 1),
    ((1, 0), (2, 3), 3),
    ((2, 3), (0, 0), 9),
    ((2, 1), (1, 1), 5),
)
_CHECKS_A_MESH = 40


def _scene(size: Size, source: tuple[int, int], to: tuple[int, int], flits: int) -> Scene:
    label = f"{size[0]}x{size[1]}: {source[0]},{source[1]} to {to[0]},{to[1]}, {flits} flits"
    return Scene(size, label, ((0, source[0] * size[1] + source[1], TileSet.tile(*to), flits),))


def _hops(scene: Scene) -> int:
    (_, source, to, _) = scene.sends[0]
    row, col = divmod(source, scene.size[1])
    assert isinstance(to, TileSet)
    return abs(to.rows[0] - row) + abs(to.cols[0] - col)


class Unicast(SceneExperiment):
    """Tail: ejection + hops x hop + (flits - 1) x interval."""

    name = "unicast"
    subject = "zero-load unicast latency"

    def fit_cases(self) -> list[Scene]:
        """Five transfers."""
        longest = self.mesh.packet_flits
        return [_scene(self.mesh.fit, a, b, min(flits, longest)) for a, b, flits in _FIT]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random pairs and lengths, on every size."""
        rng = np.random.default_rng(self.seed)
        scenes = {}
        for size in self.mesh.check_sizes(quick=quick):
            for _ in range(_CHECKS_A_MESH):
                source, to = rng.choice(size[0] * size[1], 2, replace=False).tolist()
                flits = int(rng.integers(1, self.mesh.packet_flits + 1))
                scene = _scene(size, divmod(source, size[1]), divmod(to, size[1]), flits)
                scenes[scene.label] = scene
        fitted = {scene.label for scene in self.fit_cases()}
        return [scene for label, scene in scenes.items() if label not in fitted]

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """Solve the law for its three constants.

        Raises:
            LawContradictedError: if the latency is no such sum.
        """
        # The figure is the mean of head and tail.
        rows = [(2, 2 * _hops(scene), scene.sends[0][3] - 1) for scene in cases]
        ejection, hop, interval = solve_exactly(rows, [2 * value for value in values])
        try:
            self.mesh.settle(
                hop_cycles=hop, ejection_cycles=ejection, link_interval_cycles=max(interval, 1)
            )
        except InputError as error:
            raise LawContradictedError(f"no router is so fast: {error}") from error
        return {
            "ejection_cycles": exact(ejection, "cycles"),
            "hop_cycles": exact(hop, "cycles/hop"),
            "link_interval_cycles": exact(interval, "cycles/flit"),
        }
