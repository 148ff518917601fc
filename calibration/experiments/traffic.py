"""Loaded meshes: the model against RTL under the field's traffic patterns; nothing is fitted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.experiment import Parameters
from calibration.experiments.mesh_cases import CHECK_MESH, FIT_MESH, timing_of
from calibration.harness.mesh import NOC_SOURCES, RtlMesh
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Load:
    """A traffic pattern on a mesh."""

    mesh: RtlMesh
    pattern: str
    rate: float
    packet_flits: int
    multicast_fraction: float = 0.0


# Light, medium and beyond saturation; short and long packets; with and without multicasts.
_LOADS = (
    ("uniform", 0.1, 1, 0.0),
    ("uniform", 0.3, 5, 0.0),
    ("uniform", 0.9, 5, 0.0),
    ("transpose", 0.2, 4, 0.0),
    ("tornado", 0.3, 16, 0.0),
    ("neighbor", 0.6, 4, 0.0),
    ("hotspot", 0.15, 4, 0.0),
    ("uniform", 0.15, 4, 0.1),
)
_CYCLES = 2000


class TrafficCheck:
    """Mean packet latency."""

    name = "traffic"
    subject = "mean packet latency under load"
    sources: Sequence[Path] = NOC_SOURCES
    seed = 7

    def fit_cases(self) -> list[Load]:
        """None: the other experiments have fitted everything."""
        return []

    def check_cases(self, *, quick: bool) -> list[Load]:
        """Every load on both meshes."""
        meshes = (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH)
        return [Load(mesh, *load) for mesh in meshes for load in _LOADS]

    def measure(self, cases: Sequence[Load]) -> list[float]:
        """Mean latency on RTL."""
        return [
            float(np.mean(case.mesh.simulate(self._traffic(case).packets()).latency_cycles()))
            for case in cases
        ]

    def identify(self, cases: Sequence[Load], values: Sequence[float]) -> dict[str, Parameter]:
        """Nothing."""
        return {}

    def predict(self, parameters: Parameters, cases: Sequence[Load]) -> list[float]:
        """Mean latency on the handshake model, the same packets."""
        timing = timing_of(load_result("unicast").parameters)
        means = []
        for case in cases:
            own = replace(timing, fifo_depth=case.mesh.fifo_depth)
            mesh = HandshakeMesh(case.mesh.rows, case.mesh.cols, own)
            latency = mesh.simulate(self._traffic(case).packets()).latency_cycles()
            means.append(float(np.mean(latency)))
        return means

    def label(self, case: Load) -> str:
        """The load in words."""
        mixed = f", {case.multicast_fraction:.0%} multicast" if case.multicast_fraction else ""
        return (
            f"{case.mesh.rows}x{case.mesh.cols}: {case.pattern}, {case.rate} flits/node/cycle, "
            f"{case.packet_flits}-flit packets{mixed}"
        )

    def _traffic(self, case: Load) -> Traffic:
        return Traffic(
            rows=case.mesh.rows,
            cols=case.mesh.cols,
            pattern=case.pattern,
            rate=case.rate,
            packet_flits=case.packet_flits,
            cycles=_CYCLES,
            seed=self.seed,
            multicast_fraction=case.multicast_fraction,
            multicast_flits=case.mesh.fifo_depth,
        )
