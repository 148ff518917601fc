"""Zero-load latency of a unicast: cycles a hop, of the ejection, and from flit to flit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.experiment import LawContradictedError
from calibration.routers.experiment import SceneExperiment, common, exact
from calibration.routers.scenes import Scene, Size, closest, forms
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
_CHECKS_A_MESH = 60
#: What its scenes are about.
ALONE = "a unicast alone"
#: Latest return of a place, and longest interval on a link, that are recognised.
LONGEST_RETURN_CYCLES, LONGEST_INTERVAL_CYCLES = 6, 8


def _scene(size: Size, source: tuple[int, int], to: tuple[int, int], flits: int) -> Scene:
    label = f"{size[0]}x{size[1]}: {source[0]},{source[1]} to {to[0]},{to[1]}, {flits} flits"
    sends = ((0, source[0] * size[1] + source[1], TileSet.tile(*to), flits),)
    return Scene(size, label, sends, whole=True, situation=ALONE)


class Unicast(SceneExperiment):
    """cycles = ejection + hops x hop + (flits - 1) x serialisation.

    A flit follows another when the link has rested. Where buffers are shallow and places return
    late it comes later still, and the latency is no such sum of flits.
    """

    name = "unicast"
    subject = "zero-load unicast latency"

    @property
    def untried(self) -> Sequence[str]:
        """Longer packets."""
        return (f"packets of more than {self.mesh.packet_flits} flits",)

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
                source, to = rng.integers(0, size[0] * size[1], 2).tolist()
                flits = int(rng.integers(1, self.mesh.packet_flits + 1))
                scene = _scene(size, divmod(source, size[1]), divmod(to, size[1]), flits)
                if source != to or self.mesh.sends_to_itself:
                    scenes[scene.label] = scene
        fitted = {scene.label for scene in self.fit_cases()}
        return [scene for label, scene in scenes.items() if label not in fitted]

    def find(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """Solve the law of single flits; from flit to flit links rest, or wait for places.

        Raises:
            LawContradictedError: if the latency is no such sum.
        """
        single = [i for i, scene in enumerate(cases) if scene.parts == [1]]
        rows = [(1, cases[i].hops) for i in single]
        ejection, hop = solve_exactly(rows, [values[i] for i in single])
        try:
            known = replace(self.mesh.timing, hop_cycles=hop, ejection_cycles=ejection)
        except InputError as error:
            raise LawContradictedError(f"no router is so fast: {error}") from error
        found, misfit = closest(
            forms(
                [known],
                link_interval_cycles=range(1, 1 + LONGEST_INTERVAL_CYCLES),
                return_cycles=range(1 + LONGEST_RETURN_CYCLES),
            ),
            cases,
            values,
        )
        if misfit > 0:
            raise LawContradictedError(
                f"no interval from flit to flit explains every transfer; the best one is off by "
                f"{misfit:g} cycles"
            )
        late = {}
        if known.return_cycles not in [form.return_cycles for form in found]:
            late["return_cycles"] = common(found, lambda f: f.return_cycles, "cycles/flit")
        flits = [[sum(scene.parts) - 1] for scene in cases]
        heads = [known.head_cycles(scene.hops) for scene in cases]
        rests = [value - head for value, head in zip(values, heads, strict=True)]
        return {
            "ejection_cycles": exact(ejection, "cycles"),
            "hop_cycles": exact(hop, "cycles/hop"),
            "link_interval_cycles": common(found, lambda f: f.link_interval_cycles, "cycles/flit"),
            **late,
            **self.law({"serialisation_cycles": "cycles/flit"}, flits, rests),
        }
