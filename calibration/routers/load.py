"""What experiments on loaded meshes share: the same packets at both levels, nothing fitted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Protocol

import numpy as np

from calibration.experiment import Parameters
from calibration.routers.experiment import RouterExperiment
from calibration.routers.scenes import Size
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets

_OBLONG = (3, 7)


class LoadCase(Protocol):
    """Packets on a mesh, or on its corner at row and column 0.

    No packet of a corner leaves it: the routers around it see nothing. Packets count their nodes as
    on a mesh that is the corner alone.
    """

    @property
    def size(self) -> Size:
        """What is built."""

    @property
    def corner(self) -> Size:
        """What is loaded."""

    @property
    def label(self) -> str:
        """The load in words."""


class LoadExperiment(RouterExperiment, ABC):
    """Mean packet latency; of a reduction's operands, until the result has come."""

    seed = 7

    @abstractmethod
    def packets(self, case: LoadCase) -> Packets:
        """The packets of a load."""

    def places(self, *, quick: bool) -> list[tuple[Size, Size]]:
        """Meshes and what is loaded of them: all, and an oblong corner where there is room."""
        sizes = self.mesh.check_sizes(quick=quick)
        roomy = [size for size in sizes if size[0] > _OBLONG[0] and size[1] > _OBLONG[1]]
        return [*((size, size) for size in sizes), *((size, _OBLONG) for size in roomy)]

    def measure(self, cases: Sequence[LoadCase]) -> list[float]:
        """Mean latency on RTL; NaN of a load that goes wrong."""
        loads = [self.packets(case) for case in cases]
        runs = [(case.size, _on(case, load)) for case, load in zip(cases, loads, strict=True)]
        found = self.mesh.delivered([case.label for case in cases], runs)
        return [
            nan if deliveries is None else _mean_latency(load, deliveries)
            for load, deliveries in zip(loads, found, strict=True)
        ]

    def predict(self, parameters: Parameters, cases: Sequence[LoadCase]) -> list[float]:
        """Mean latency on the handshake model, the same packets; NaN if they wait for ever."""
        means = []
        for case in cases:
            packets = self.packets(case)
            try:
                deliveries = HandshakeMesh(*case.corner, self.mesh.timing).simulate(packets)
            except DeadlockError as error:
                self.mesh.note(f"{case.label}: the model does not deliver it: {error}")
                means.append(nan)
                continue
            means.append(_mean_latency(packets, deliveries))
        return means


def place_of(case: LoadCase) -> str:
    """Where a load is, in words."""
    corner, mesh = ("x".join(map(str, size)) for size in (case.corner, case.size))
    return corner if corner == mesh else f"{corner} corner of {mesh}"


def _on(case: LoadCase, packets: Packets) -> Packets:
    """Packets with the numbers that their nodes have on the mesh."""

    def node(number: np.ndarray) -> np.ndarray:
        row, col = np.divmod(number, case.corner[1])
        return np.where(number < 0, number, row * case.size[1] + col)

    return replace(packets, source=node(packets.source), root=node(packets.root))


def _mean_latency(packets: Packets, deliveries: Deliveries) -> float:
    last = deliveries.last_ejected()[packets.joint]
    return float(np.mean(last - deliveries.head_injected))
