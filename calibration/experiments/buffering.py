"""Depth of the routers' buffers: what the network swallows while no tile takes anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.experiments.mesh_cases import CHECK_MESH, FIT_MESH
from calibration.harness.mesh import RtlMesh, Sink
from calibration.solve import solve_exactly
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import Parameter
from tlm.interconnect.packets import Packets, TileSet

_HOLD_CYCLES = 1500
_OFFERED_FLITS = 100


@dataclass(frozen=True, slots=True)
class Path1D:
    """Single-flit packets along one row (the row says which), over ``hops`` links."""

    mesh: RtlMesh
    row: int
    hops: int


class Buffering:
    """Accepted flits = depth x (hops + 1): one buffer a router on the way."""

    name = "buffering"
    subject = "flits accepted against a blocked tile"
    sources: Sequence[Path] = NOC_SOURCES
    seed = 1
    targets = EXACT

    def fit_cases(self) -> list[Path1D]:
        """Two path lengths on the small mesh."""
        return [Path1D(FIT_MESH, 0, 1), Path1D(FIT_MESH, 1, 3)]

    def check_cases(self, *, quick: bool) -> list[Path1D]:
        """Other lengths; on the mesh the fit has not seen, every length there is."""
        small = [Path1D(FIT_MESH, 2, 2)]
        large = [Path1D(CHECK_MESH, row, row or 5) for row in range(CHECK_MESH.rows)]
        return small if quick else small + large

    def rtl(self, case: Path1D) -> RtlMesh:
        """The mesh."""
        return case.mesh

    def measure(self, cases: Sequence[Path1D]) -> list[float]:
        """Flits that went in before the tiles began to take any."""
        accepted: dict[Path1D, float] = {}
        for mesh in dict.fromkeys(case.mesh for case in cases):
            chosen = [case for case in cases if case.mesh == mesh]
            items = [
                (0, case.row * mesh.cols, TileSet.tile(case.row, case.hops), 1)
                for case in chosen
                for _ in range(_OFFERED_FLITS)
            ]
            deliveries = mesh.simulate(Packets.of(items), sink=Sink(hold_cycles=_HOLD_CYCLES))
            inside = (deliveries.head_injected < _HOLD_CYCLES).reshape(len(chosen), -1)
            accepted |= zip(chosen, map(float, inside.sum(axis=1)), strict=True)
        return [accepted[case] for case in cases]

    def identify(self, cases: Sequence[Path1D], values: Sequence[float]) -> dict[str, Parameter]:
        """The depth, the same in every buffer on the way."""
        (depth,) = solve_exactly([[case.hops + 1] for case in cases], values)
        if depth >= _OFFERED_FLITS // (max(case.hops for case in cases) + 1):
            raise LawContradictedError("the path took every flit that was offered")
        return {"fifo_depth": Parameter.exact(depth, "flits")}

    def predict(self, parameters: Parameters, cases: Sequence[Path1D]) -> list[float]:
        """By the law."""
        return [parameters["fifo_depth"].value * (case.hops + 1) for case in cases]

    def label(self, case: Path1D) -> str:
        """The path in words."""
        return f"{case.mesh.rows}x{case.mesh.cols}: row {case.row}, {case.hops} hops"
