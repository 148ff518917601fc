"""Which pairs of multicasts wait for each other for ever, where nothing protects them."""

from collections.abc import Sequence
from math import nan

import numpy as np

from calibration.experiment import Parameters
from calibration.routers.experiment import SceneExperiment
from calibration.routers.scenes import Scene, Send, Size, model
from cosim.errors import HangError
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Packets

_PAIRS_A_MESH = 15
_LONGEST_FLITS = 24
_DELIVERED, _HUNG = 1.0, 2.0


class Hang(SceneExperiment):
    """Nothing is fitted; every pair is a run of its own, as the mesh may not survive it."""

    name = "hang"
    subject = "whether pairs of multicasts are delivered (1) or hang (2)"

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random pairs of large sets, most of them long, on every size."""
        rng = np.random.default_rng(self.seed + 2)
        sizes = self.mesh.check_sizes(quick=quick)
        return [self._pair(size, rng, i) for size in sizes for i in range(_PAIRS_A_MESH)]

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """What becomes of the pairs on RTL."""
        return [self._of_rtl(case) for case in cases]

    def predict(self, parameters: Parameters, cases: Sequence[Scene]) -> list[float]:
        """What becomes of the pairs on the model."""
        return [self._of_model(case) for case in cases]

    def _of_rtl(self, case: Scene) -> float:
        packets = Packets.of(case.sends)
        try:
            self.mesh.simulate(case.size, packets)
        except HangError as error:
            # One that the model says is a figure like others.
            if self.mesh.findings is not None and self._of_model(case) == _DELIVERED:
                self.mesh.failed(case.label, case.size, packets, error)
            return _HUNG
        except self.mesh.failures as error:
            self.mesh.failed(case.label, case.size, packets, error)
            return nan
        return _DELIVERED

    def _of_model(self, case: Scene) -> float:
        packets = Packets.of(case.sends)
        try:
            model(case.size, self.mesh.timing, packets).simulate(packets)
        except DeadlockError:
            return _HUNG
        return _DELIVERED

    def _pair(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
        nodes = size[0] * size[1]
        sets = [self.mesh.random_set(size, rng) for _ in range(12)]
        sets = sorted(sets, key=len)[-2:]
        longest = min(self.mesh.multicast_flits, _LONGEST_FLITS)
        flits = [longest, int(rng.integers(1, longest + 1))]
        sources = rng.choice(nodes, 2, replace=False).tolist()
        sends: list[Send] = [
            (int(rng.integers(4)), source, where, length)
            for source, where, length in zip(sources, sets, flits, strict=True)
        ]
        sides = " and ".join(
            f"{length} flits from {source} to rows {where.rows}, columns {where.cols}"
            for source, where, length in zip(sources, sets, flits, strict=True)
        )
        return Scene(size, f"{size[0]}x{size[1]}: {number}, {sides}", tuple(sends))
