"""Unicasts, multicasts and reductions that load a mesh together; nothing is fitted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.experiment import Targets
from calibration.routers.load import LoadExperiment, place_of
from calibration.routers.scenes import Send, Size
from tlm.interconnect.ordering import check_reductions
from tlm.interconnect.packets import Packets, TileSet

#: Packets a node creates a cycle: light, medium and beyond saturation.
_RATES = (0.01, 0.04, 0.2)
#: How many of them are unicasts, multicasts and operands of reductions.
_SHARES = ((0.7, 0.3, 0.0), (0.7, 0.0, 0.3), (0.5, 0.25, 0.25), (0.1, 0.45, 0.45))
_PACKETS = 800
_LONGEST_UNICAST_FLITS = 16


@dataclass(frozen=True, slots=True)
class Mix:
    """Packets of which ``shares`` are unicasts, multicasts and operands of reductions."""

    size: Size
    corner: Size
    rate: float
    shares: tuple[float, float, float]

    @property
    def situation(self) -> str:
        """The kinds of packets."""
        kinds = ("unicasts", "multicasts", "reductions of rows")
        there = [kind for kind, share in zip(kinds, self.shares, strict=True) if share]
        return " and ".join(there) + " under load"

    @property
    def label(self) -> str:
        """The load in words."""
        unicasts, multicasts, operands = self.shares
        return (
            f"{place_of(self)}: {self.rate} packets/node/cycle, {unicasts:.0%} unicast, "
            f"{multicasts:.0%} multicast, {operands:.0%} reduction"
        )


class MixCheck(LoadExperiment):
    """Packets of all kinds that the mesh knows."""

    name = "mix"
    subject = "mean latency of unicasts, multicasts and reductions mixed"
    targets = Targets(mean_pct=3.0, worst_pct=3.0)

    @property
    def untried(self) -> Sequence[str]:
        """What might wait for ever in a crowd."""
        untried = []
        if self.mesh.multicasts and self.mesh.timing.fork == "lockstep":
            untried.append("multicasts under load: forks in lockstep may hang")
        if self.mesh.reductions and not self.mesh.crosses_reductions:
            untried.append("reductions under load: operands in others' way may hang")
        return untried

    def check_cases(self, *, quick: bool) -> list[Mix]:
        """From light to beyond saturation."""
        # A fork in lockstep holds one output while it waits for another: a crowd may hang.
        forks = self.mesh.multicasts and self.mesh.timing.fork != "lockstep"
        known = (True, forks, self.mesh.crosses_reductions)
        shares = [each for each in _SHARES if all(np.array(known) | (np.array(each) == 0))]
        shares = shares or [(1.0, 0.0, 0.0)]
        return [
            Mix(*place, rate, each)
            for place in self.places(quick=quick)
            for each in shares
            for rate in _RATES
        ]

    def packets(self, case: Mix) -> Packets:  # type: ignore[override]  # its own cases
        """The packets of a load."""
        rng = np.random.default_rng(self.seed)
        rows, cols = case.corner
        items: list[Send] = []
        while len(items) < _PACKETS:
            cycle = int(len(items) / (case.rate * rows * cols))
            items += self._event(case, cycle, rng)
        packets = Packets.of(items)
        check_reductions(packets, cols, y_first=self.mesh.timing.y_first)
        return packets

    def _event(self, case: Mix, cycle: int, rng: np.random.Generator) -> Iterator[Send]:
        """A unicast, a multicast, or the operands of a row's reduction to one of its tiles.

        Reductions of different rows share no link, and those of a row come in one order.
        """
        rows, cols = case.corner
        source = int(rng.integers(rows * cols))
        flits = int(rng.integers(1, self._longest_flits() + 1))
        unicasts, multicasts, operands = case.shares
        chances = np.array([unicasts, multicasts, operands / cols])
        kind = rng.choice(3, p=chances / chances.sum())
        if kind == 2:
            row = source // cols
            goal = self.mesh.reduce(TileSet(range(row, row + 1), range(cols)), source)
            if self.mesh.can_name(case.size, goal):
                for node in goal.operands.nodes(cols):
                    yield cycle, node, goal, flits
            return
        if kind == 0:
            to = TileSet.tile(int(rng.integers(rows)), int(rng.integers(cols)))
            longest = min(_LONGEST_UNICAST_FLITS, self.mesh.packet_flits)
            flits = int(rng.integers(1, longest + 1))
        else:
            to = self.mesh.any_set(case.size, rng, case.corner)
        if to.nodes(cols) != [source] or self.mesh.sends_to_itself:
            yield cycle, source, to, flits

    def _longest_flits(self) -> int:
        """Longest multicast and operand: without cut-through longer ones may wait for ever."""
        if not self.mesh.timing.cut_through:
            return 1
        bounds = [self.mesh.multicast_flits] if self.mesh.multicasts else []
        bounds += [self.mesh.reduction_flits] if self.mesh.crosses_reductions else []
        return min(bounds, default=1)
