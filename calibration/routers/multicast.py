"""How the network forks: at each branch's pace, flit by flit or in lockstep."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.routers.experiment import (
    SceneExperiment,
    beyond_unicast,
    bound,
    common,
    exact,
    kind,
)
from calibration.routers.scenes import Scene, Send, Size, about, forms, span
from tlm.calibrated import Parameter
from tlm.interconnect.packets import TileSet, cut
from tlm.interconnect.zero_load import FORKS

_FIT_ALONE, _FIT_SCENES = 6, 30
_CHECKS_ALONE, _CHECKS_A_MESH = 40, 30
_ALONE, _IN_TURN = "a multicast alone", "multicasts of one tile after each other"
_AMONG = "a multicast among unicasts"
_SHORT_FLITS, _LONGEST_FLITS, _MOST_FLITS = 4, 24, 48


class Multicast(SceneExperiment):
    """Multicasts of one source to one set, alone or among unicasts: they never hang.

    One that is alone takes as long as a unicast to the farthest tile. With cut-through there is a
    gap before each full packet but the first: a shorter one finds room as soon as its predecessor
    has begun to leave.
    """

    name = "multicast"
    subject = "copies of a multicast, alone and among unicasts"

    @property
    def untried(self) -> Sequence[str]:
        """Packets that a limit leaves out."""
        return self.mesh.outgrown("multicast_flits")

    def fit_cases(self) -> list[Scene]:
        """Random sets; alone in one packet and in several, and with unicasts in every second."""
        size, rng = self.mesh.fit, np.random.default_rng(self.seed + 4)
        full = min(self.mesh.multicast_flits, _LONGEST_FLITS)
        alone = [
            self._alone(size, self.mesh.random_set(size, rng), self._any_node(size, rng), flits)
            for flits in (1, min(3, full), full, 2 * full, 5 * full, 3 * full)
        ]
        rng = np.random.default_rng(self.seed)
        scenes = [self._scene(size, rng, number) for number in range(_FIT_SCENES)]
        return about(_ALONE, alone) + scenes

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Others, from sources inside and outside of the sets."""
        alone, among = (np.random.default_rng(self.seed + number) for number in (2, 1))
        scenes = []
        for size in self.mesh.check_sizes(quick=quick):
            for _ in range(_CHECKS_ALONE):
                where, source = self.mesh.any_set(size, alone), self._any_node(size, alone)
                if len(where) > 1:
                    flits = int(alone.integers(1, _MOST_FLITS + 1))
                    scenes += about(_ALONE, [self._alone(size, where, source, flits)])
            scenes += [self._scene(size, among, number) for number in range(_CHECKS_A_MESH)]
        if (longest := self.mesh.multicast_flits) > _MOST_FLITS:
            size = self.mesh.fit
            where, source = self.mesh.random_set(size, alone), self._any_node(size, alone)
            scenes += about(_ALONE, [self._alone(size, where, source, longest)])
        fitted = {scene.label for scene in self.fit_cases()}
        others = {scene.label: scene for scene in scenes}
        return [scene for label, scene in others.items() if label not in fitted]

    def find(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """The fork that explains all copies, and the closed form of those that are alone."""
        # Not what was known before: here it is measured.
        loopback = self.mesh.tried_loopback
        known = replace(self.mesh.timing, loopback=loopback)
        candidates = forms([known], fork=FORKS, cut_through=(False, True))
        found = self.choose(candidates, cases, values, "fork of multicasts")
        alone = cases[:_FIT_ALONE]
        rows = [[1, max(sum(scene.parts) // self.mesh.multicast_flits - 1, 0)] for scene in alone]
        units = {"fork_cycles": "cycles", "gap_cycles": "cycles/packet"}
        if not found[0].cut_through:  # a packet follows the one before it at once
            rows, units = [row[:1] for row in rows], {"fork_cycles": "cycles"}
        return {
            **self.law(units, rows, beyond_unicast(alone, values[:_FIT_ALONE], found[0])),
            "fork": kind(found, "fork", FORKS),
            "cut_through": common(
                found, lambda f: int(f.cut_through), "1: a branch waits for a packet's room"
            ),
            "loopback": exact(int(loopback), "1: the sender gets a copy"),
            "multicast_flits": bound(
                self.mesh.multicast_flits,
                self.mesh.spec.limits.multicast_flits,
                self.mesh.limited_by.get("multicast_flits"),
            ),
        }

    def _any_node(self, size: Size, rng: np.random.Generator) -> int:
        return int(rng.integers(size[0] * size[1]))

    def _alone(self, size: Size, where: TileSet, source: int, flits: int) -> Scene:
        row, col = divmod(source, size[1])
        label = (
            f"{size[0]}x{size[1]}: {row},{col} to rows {span(where.rows)} columns "
            f"{span(where.cols)}, {flits} flits"
        )
        parts = cut(flits, self.mesh.multicast_flits)
        return Scene(size, label, tuple((0, source, where, part) for part in parts), whole=True)

    def _scene(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
        rows, cols = size
        where, source = self.mesh.random_set(size, rng), int(rng.integers(rows * cols))
        longest = min(self.mesh.multicast_flits, _LONGEST_FLITS)
        # As long as can be in every third scene: such packets tell who waits for room. Among
        # unicasts short ones, whose last flit tells how far a branch runs ahead of one that waits.
        most = min(longest, _SHORT_FLITS) if number % 2 else longest
        flits = int(rng.integers(1, most + 1)) if number % 3 else longest
        start, count = int(rng.integers(6)), int(rng.integers(1, 4))
        sends: list[Send] = [(start, source, where, flits)] * count
        # Half of the unicasts go where a copy goes: one branch waits while others run ahead.
        crowded = int(rng.choice(where.nodes(cols)))
        for _ in range(int(rng.integers(8, 24)) if number % 2 else 0):
            node, end = rng.choice(rows * cols, 2, replace=False).tolist()
            end = crowded if crowded != node and rng.random() < 0.5 else end
            length = int(rng.integers(1, min(12, self.mesh.packet_flits) + 1))
            sends.append((int(rng.integers(8)), node, TileSet.tile(*divmod(end, cols)), length))
        label = (
            f"{rows}x{cols}: {number}, {count} times {flits} flits from {source} to rows "
            f"{span(where.rows)}, columns {span(where.cols)}, {len(sends) - count} unicasts"
        )
        return Scene(size, label, tuple(sends), situation=_AMONG if number % 2 else _IN_TURN)
