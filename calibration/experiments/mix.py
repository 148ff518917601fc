"""Unicasts, multicasts and reductions that load a mesh together; nothing is fitted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.experiment import Targets
from calibration.experiments.load_cases import LoadCase, LoadExperiment, place_of
from calibration.experiments.mesh_cases import CHECK_MESH, FIT_MESH, some
from calibration.harness.mesh import RtlMesh
from tlm.interconnect.ordering import check_reductions
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet

_Item = tuple[int, int, TileSet | ReductionGoal, int]

#: Packets a node creates a cycle: light, medium and beyond saturation.
_RATES = (0.01, 0.04, 0.2)
_SHARES = ((0.7, 0.3, 0.0), (0.7, 0.0, 0.3), (0.5, 0.25, 0.25), (0.1, 0.45, 0.45))
_OBLONG = (3, 7)
_PACKETS = 800
_LONGEST_UNICAST_FLITS = 16


@dataclass(frozen=True, slots=True)
class Mix:
    """Packets of which ``shares`` are unicasts, multicasts and operands of reductions."""

    mesh: RtlMesh
    rows: int
    cols: int
    rate: float
    shares: tuple[float, float, float]

    @property
    def label(self) -> str:
        """The load in words."""
        unicasts, multicasts, operands = self.shares
        return (
            f"{place_of(self)}: {self.rate} packets/node/cycle, {unicasts:.0%} unicast, "
            f"{multicasts:.0%} multicast, {operands:.0%} reduction"
        )

    def packets(self, seed: int) -> Packets:
        """The packets."""
        rng = np.random.default_rng(seed)
        items: list[_Item] = []
        while len(items) < _PACKETS:
            cycle = int(len(items) / (self.rate * self.rows * self.cols))
            items += self._event(cycle, rng)
        packets = Packets.of(items)
        check_reductions(packets, self.cols)
        return packets

    def _event(self, cycle: int, rng: np.random.Generator) -> Iterator[_Item]:
        """A unicast, a multicast, or the operands of a row's reduction to one of its tiles.

        Reductions of different rows share no link, and those of a row come in one order.
        """
        source = int(rng.integers(self.rows * self.cols))
        bound = int(rng.integers(1, self.mesh.fifo_depth + 1))
        unicasts, multicasts, operands = self.shares
        chances = np.array([unicasts, multicasts, operands / self.cols])
        kind = rng.choice(3, p=chances / chances.sum())
        if kind == 0:
            to = TileSet.tile(int(rng.integers(self.rows)), int(rng.integers(self.cols)))
            yield cycle, source, to, int(rng.integers(1, _LONGEST_UNICAST_FLITS + 1))
        elif kind == 1:
            yield cycle, source, TileSet(some(self.rows, rng), some(self.cols, rng)), bound
        else:
            row = source // self.cols
            goal = ReductionGoal(TileSet(range(row, row + 1), range(self.cols)), source)
            for node in goal.operands.nodes(self.cols):
                yield cycle, node, goal, bound


class MixCheck(LoadExperiment):
    """Packets of all kinds."""

    name = "mix"
    subject = "mean latency of unicasts, multicasts and reductions mixed"
    targets = Targets(mean_pct=3.0, worst_pct=3.0)

    def check_cases(self, *, quick: bool) -> list[LoadCase]:
        """From light to beyond saturation; squares, and an oblong corner."""
        places = [(FIT_MESH, FIT_MESH.rows, FIT_MESH.cols)]
        if not quick:
            places += [(CHECK_MESH, CHECK_MESH.rows, CHECK_MESH.cols), (CHECK_MESH, *_OBLONG)]
        return [Mix(*at, rate, shares) for at in places for shares in _SHARES for rate in _RATES]
