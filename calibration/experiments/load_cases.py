"""What experiments on loaded meshes share: the same packets at both levels, nothing fitted."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from calibration.experiment import Parameters
from calibration.experiments.mesh_cases import timing_of
from calibration.harness.mesh import RtlMesh
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets


class LoadCase(Protocol):
    """Packets on ``rows`` x ``cols`` routers: a whole mesh, or its corner at row and column 0.

    No packet of a corner leaves it: the routers around it see nothing. Packets count their nodes as
    on a mesh that is the corner alone.
    """

    @property
    def mesh(self) -> RtlMesh:
        """What is built."""

    @property
    def rows(self) -> int:
        """Rows of the corner."""

    @property
    def cols(self) -> int:
        """Columns of the corner."""

    @property
    def label(self) -> str:
        """The load in words."""

    def packets(self, seed: int) -> Packets:
        """The packets."""


class LoadExperiment:
    """Mean packet latency; of a reduction's operands, until the result has come."""

    sources: Sequence[Path] = NOC_SOURCES
    seed = 7

    def fit_cases(self) -> list[LoadCase]:
        """None: the other experiments have fitted everything."""
        return []

    def rtl(self, case: LoadCase) -> RtlMesh:
        """The mesh."""
        return case.mesh

    def measure(self, cases: Sequence[LoadCase]) -> list[float]:
        """Mean latency on RTL."""
        means = []
        for case in cases:
            packets = case.packets(self.seed)
            means.append(_mean_latency(packets, case.mesh.simulate(_on(case, packets))))
        return means

    def identify(self, cases: Sequence[LoadCase], values: Sequence[float]) -> dict[str, Parameter]:
        """Nothing."""
        return {}

    def predict(self, parameters: Parameters, cases: Sequence[LoadCase]) -> list[float]:
        """Mean latency on the handshake model, the same packets."""
        reduce_cycles = load_result("reduction").integer("reduce_cycles")
        timing = timing_of(load_result("unicast").parameters, reduce_cycles=reduce_cycles)
        means = []
        for case in cases:
            own = replace(timing, fifo_depth=case.mesh.fifo_depth)
            packets = case.packets(self.seed)
            mesh = HandshakeMesh(case.rows, case.cols, own)
            means.append(_mean_latency(packets, mesh.simulate(packets)))
        return means

    def label(self, case: LoadCase) -> str:
        """The load in words."""
        return case.label


def place_of(case: LoadCase) -> str:
    """Where a load is, in words."""
    own, mesh = f"{case.rows}x{case.cols}", f"{case.mesh.rows}x{case.mesh.cols}"
    return own if own == mesh else f"{own} corner of {mesh}"


def _on(case: LoadCase, packets: Packets) -> Packets:
    """Packets with the numbers that their nodes have on the mesh."""

    def node(number: np.ndarray) -> np.ndarray:
        row, col = np.divmod(number, case.cols)
        return np.where(number < 0, number, row * case.mesh.cols + col)

    return replace(packets, source=node(packets.source), root=node(packets.root))


def _mean_latency(packets: Packets, deliveries: Deliveries) -> float:
    last = deliveries.last_ejected()[packets.joint]
    return float(np.mean(last - deliveries.head_injected))
