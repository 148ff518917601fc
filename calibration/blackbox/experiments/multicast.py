"""How the network forks: at each branch's pace, flit by flit or in lockstep."""

from collections.abc import Sequence

import numpy as np

from calibration.blackbox.experiments.base import SceneExperiment, bound, common, exact, kind
from calibration.blackbox.scenes import Scene, Send, Size, forms
from tlm.calibrated import Parameter
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import FORKS

_FIT_SCENES = 30
_CHECKS_A_MESH = 30
_LONGEST_FLITS = 24


class Multicast(SceneExperiment):
    """Multicasts of one source to one set, alone or among unicasts: they never hang."""

    name = "multicast"
    subject = "copies of a multicast, alone and among unicasts"

    def fit_cases(self) -> list[Scene]:
        """Random sets; in every second scene unicasts are in the way."""
        return self._scenes([self.mesh.fit], _FIT_SCENES, self.seed)

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Others."""
        return self._scenes(self.mesh.check_sizes(quick=quick), _CHECKS_A_MESH, self.seed + 1)

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """The fork that explains all copies."""
        self.mesh.settle(loopback=self.mesh.loopback)
        candidates = forms([self.mesh.timing], fork=FORKS, cut_through=(False, True))
        found = self.choose(candidates, cases, values, "fork of multicasts")
        self.mesh.timing = found[0]
        return {
            "fork": kind(found, "fork", FORKS),
            "cut_through": common(
                found, lambda f: int(f.cut_through), "1: a branch waits for a packet's room"
            ),
            "loopback": exact(int(self.mesh.loopback), "1: the sender gets a copy"),
            "multicast_flits": bound(
                self.mesh.multicast_flits,
                self.mesh.spec.limits.multicast_flits,
                self.mesh.longest_tried_flits,
            ),
        }

    def _scenes(self, sizes: Sequence[Size], count: int, seed: int) -> list[Scene]:
        rng = np.random.default_rng(seed)
        return [self._scene(size, rng, i) for size in sizes for i in range(count)]

    def _scene(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
        rows, cols = size
        where, source = self.mesh.random_set(size, rng), int(rng.integers(rows * cols))
        longest = min(self.mesh.multicast_flits, _LONGEST_FLITS)
        # As long as can be in every third scene: such packets tell who waits for room.
        flits = int(rng.integers(1, longest + 1)) if number % 3 else longest
        start, count = int(rng.integers(6)), int(rng.integers(1, 4))
        sends: list[Send] = [(start, source, where, flits)] * count
        # Half of the unicasts go where a copy goes: one branch waits while others run ahead.
        crowded = int(rng.choice(where.nodes(cols)))
        for _ in range(int(rng.integers(4, 12)) if number % 2 else 0):
            node, end = rng.choice(rows * cols, 2, replace=False).tolist()
            end = crowded if crowded != node and rng.random() < 0.5 else end
            length = int(rng.integers(1, min(12, self.mesh.packet_flits) + 1))
            sends.append((int(rng.integers(8)), node, TileSet.tile(*divmod(end, cols)), length))
        label = (
            f"{rows}x{cols}: {number}, {count} times {flits} flits from {source} to rows "
            f"{where.rows}, columns {where.cols}, {len(sends) - count} unicasts"
        )
        return Scene(size, label, tuple(sends))
