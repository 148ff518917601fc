"""Zero-load latency of a unicast: cycles a hop, of the ejection, and from flit to flit."""

from collections.abc import Sequence

import numpy as np

from calibration.blackbox.experiments.base import SceneExperiment, common, exact
from calibration.blackbox.scenes import Scene, Size, closest, forms
from calibration.experiment import LawContradictedError
from calibration.solve import solve_exactly
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
    ((0, 2), (2, 0), 6),
)
_CHECKS_A_MESH = 40
#: Latest return of a place, and longest interval on a link, that are recognised.
LONGEST_RETURN_CYCLES, _LONGEST_INTERVAL_CYCLES = 6, 8


def _scene(size: Size, source: tuple[int, int], to: tuple[int, int], flits: int) -> Scene:
    label = f"{size[0]}x{size[1]}: {source[0]},{source[1]} to {to[0]},{to[1]}, {flits} flits"
    return Scene(size, label, ((0, source[0] * size[1] + source[1], TileSet.tile(*to), flits),))


def _hops(scene: Scene) -> int:
    (_, source, to, _) = scene.sends[0]
    row, col = divmod(source, scene.size[1])
    assert isinstance(to, TileSet)
    return abs(to.rows[0] - row) + abs(to.cols[0] - col)


class Unicast(SceneExperiment):
    """Head: ejection + hops x hop; the tail comes so many intervals later.

    Where buffers are shallow and places return late, it comes later still.
    """

    name = "unicast"
    subject = "zero-load unicast latency"

    def fit_cases(self) -> list[Scene]:
        """Six transfers."""
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
        """Solve the law of single flits; from flit to flit links rest, or wait for places.

        Raises:
            LawContradictedError: if the latency is no such sum.
        """
        single = [i for i, scene in enumerate(cases) if scene.sends[0][3] == 1]
        rows = [(1, _hops(cases[i])) for i in single]
        ejection, hop = solve_exactly(rows, [values[i] for i in single])
        try:
            self.mesh.settle(hop_cycles=hop, ejection_cycles=ejection)
        except InputError as error:
            raise LawContradictedError(f"no router is so fast: {error}") from error
        known = forms(
            [self.mesh.timing],
            link_interval_cycles=range(1, 1 + _LONGEST_INTERVAL_CYCLES),
            return_cycles=range(1 + LONGEST_RETURN_CYCLES),
        )
        found, misfit = closest(known, cases, values)
        if misfit > 0:
            raise LawContradictedError(
                f"no interval from flit to flit explains every transfer; the best one is off by "
                f"{misfit:g} cycles"
            )
        self.mesh.timing = found[0]
        return {
            "ejection_cycles": exact(ejection, "cycles"),
            "hop_cycles": exact(hop, "cycles/hop"),
            "link_interval_cycles": common(found, lambda f: f.link_interval_cycles, "cycles/flit"),
        }
