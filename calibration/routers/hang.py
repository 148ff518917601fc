"""Which pairs of transfers wait for each other for ever, where nothing protects them."""

from collections.abc import Sequence
from math import nan

import numpy as np

from calibration.experiment import Parameters
from calibration.routers.experiment import SceneExperiment
from calibration.routers.meetings import MEETING, meeting_pairs
from calibration.routers.scenes import Scene, Send, Size, about, model, span
from cosim.errors import HangError
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet

_MULTICASTS_A_MESH, _OTHERS_A_MESH = 15, 8
_LONGEST_FLITS, _LATEST_CYCLES = 24, 20
_DELIVERED, _HUNG = 1.0, 2.0


class Hang(SceneExperiment):
    """Nothing is fitted; every pair is a run of its own, as the mesh may not survive it."""

    name = "hang"
    subject = "whether pairs of multicasts and reductions are delivered (1) or hang (2)"

    @property
    def untried(self) -> Sequence[str]:
        """More than pairs."""
        return ("three transfers and more that wait for each other",)

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Random pairs on every size: of large sets, most of them long; of reductions; mixed.

        Reductions of a pair share no link, as all that may be on the way together.
        """
        multicasts, reductions = (np.random.default_rng(self.seed + number) for number in (2, 3))
        scenes = []
        for size in self.mesh.check_sizes(quick=quick):
            if self.mesh.multicasts:
                pairs = [self._multicasts(size, multicasts, i) for i in range(_MULTICASTS_A_MESH)]
                scenes += about("two multicasts", pairs)
            if self.mesh.reductions:
                scenes += self._of_reductions(size, reductions)
        return scenes

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """What becomes of the pairs on RTL."""
        runs = [(case.size, Packets.of(case.sends)) for case in cases]
        return [*map(self._judged, cases, self.mesh.outcomes(runs))]

    def predict(self, parameters: Parameters, cases: Sequence[Scene]) -> list[float]:
        """What becomes of the pairs on the model."""
        return [self._of_model(case) for case in cases]

    def _judged(self, case: Scene, outcome: Deliveries | Exception) -> float:
        if not isinstance(outcome, Exception):
            return _DELIVERED
        hung = isinstance(outcome, HangError)
        if not (hung or isinstance(outcome, self.mesh.failures)):
            raise outcome
        # A hang that the model says is a figure like others.
        if self.mesh.findings is not None and not (hung and self._of_model(case) == _HUNG):
            self.mesh.failed(case.label, case.size, Packets.of(case.sends), outcome)
        return _HUNG if hung else nan

    def _of_model(self, case: Scene) -> float:
        packets = Packets.of(case.sends)
        try:
            model(case.size, self.mesh.timing, packets).simulate(packets)
        except DeadlockError:
            return _HUNG
        return _DELIVERED

    def _of_reductions(self, size: Size, rng: np.random.Generator) -> list[Scene]:
        """Reductions that meet in routers, and reductions with a multicast and with a unicast."""
        scenes, kind = [], self.mesh.timed.name.lower()
        pairs = meeting_pairs(self.mesh, size, rng)
        pairs.sort(key=lambda pair: pair.routers, reverse=True)  # the most dangerous first
        for number, pair in enumerate(pairs[:_OTHERS_A_MESH]):
            sends = [send for goal in pair.goals for send in self._operands(size, goal, rng)]
            label = f"{size[0]}x{size[1]}: {number}, {kind}s of {pair}"
            scenes.append(Scene(size, label, tuple(sends), situation=MEETING))
        for number in range(2 * _OTHERS_A_MESH if self.mesh.multicasts else _OTHERS_A_MESH):
            goal = self.mesh.random_reduction(size, rng)
            source, to = rng.choice(size[0] * size[1], 2, replace=False).tolist()
            where, longest = TileSet.tile(*divmod(to, size[1])), self.mesh.packet_flits
            situation = "a reduction and a unicast"
            if number >= _OTHERS_A_MESH:
                where, longest = self.mesh.random_set(size, rng), self.mesh.multicast_flits
                situation = "a reduction and a multicast"
            flits = int(rng.integers(1, min(longest, _LONGEST_FLITS) + 1))
            other: Send = (int(rng.integers(4)), source, where, flits)
            label = (
                f"{size[0]}x{size[1]}: {number}, a {kind} of rows {span(goal.operands.rows)}, "
                f"columns {span(goal.operands.cols)} to {goal.root}, and {flits} flits from "
                f"{source} to rows {span(where.rows)}, columns {span(where.cols)}"
            )
            both = (*self._operands(size, goal, rng), other)
            scenes.append(Scene(size, label, both, situation=situation))
        return scenes

    def _operands(self, size: Size, goal: ReductionGoal, rng: np.random.Generator) -> list[Send]:
        """Of a reduction, each at a cycle of its own."""
        flits = int(rng.integers(1, min(self.mesh.reduction_flits, _LONGEST_FLITS) + 1))
        nodes = goal.operands.nodes(size[1])
        return [(int(rng.integers(_LATEST_CYCLES)), node, goal, flits) for node in nodes]

    def _multicasts(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
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
            f"{length} flits from {source} to rows {span(where.rows)}, columns {span(where.cols)}"
            for source, where, length in zip(sources, sets, flits, strict=True)
        )
        return Scene(size, f"{size[0]}x{size[1]}: {number}, {sides}", tuple(sends))
