"""Loaded meshes: the model against RTL under the field's traffic patterns; nothing is fitted."""

from collections.abc import Iterator
from dataclasses import dataclass

from calibration.experiment import Targets
from calibration.experiments.load_cases import LoadCase, LoadExperiment, place_of
from calibration.experiments.mesh_cases import CHECK_MESH, FIT_MESH
from calibration.harness.mesh import RtlMesh
from tlm.interconnect.packets import Packets
from tlm.interconnect.traffic import Traffic

# A pattern's rates in flits a node a cycle: near or beyond saturation, and light.
_RATES = {
    "uniform": (0.6, 0.1),
    "transpose": (0.4, 0.1),
    "tornado": (0.5, 0.1),
    "neighbor": (0.9, 0.3),
    "hotspot": (0.2, 0.05),
}
_PACKET_FLITS = (1, 4, 16)
_OBLONG = (3, 7)
_CYCLES = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """Unicasts of a traffic pattern on a corner of a mesh, or on all of it."""

    mesh: RtlMesh
    rows: int
    cols: int
    pattern: str
    rate: float
    packet_flits: int

    @property
    def label(self) -> str:
        """The load in words."""
        return (
            f"{place_of(self)}: {self.pattern}, {self.rate} flits/node/cycle, "
            f"{self.packet_flits}-flit packets"
        )

    def packets(self, seed: int) -> Packets:
        """The packets."""
        return Traffic(
            rows=self.rows,
            cols=self.cols,
            pattern=self.pattern,
            rate=self.rate,
            packet_flits=self.packet_flits,
            cycles=_CYCLES,
            seed=seed,
        ).packets()


class TrafficCheck(LoadExperiment):
    """Unicasts."""

    name = "traffic"
    subject = "mean packet latency under load"
    targets = Targets(mean_pct=1.0, worst_pct=1.0)

    def check_cases(self, *, quick: bool) -> list[LoadCase]:
        """Every pattern, length and load; squares, and an oblong corner."""
        places = [(FIT_MESH, FIT_MESH.rows, FIT_MESH.cols)]
        if quick:
            return [*_loads(*places[0], rate=0)]
        places += [(CHECK_MESH, CHECK_MESH.rows, CHECK_MESH.cols), (CHECK_MESH, *_OBLONG)]
        return [load for at in places for rate in (0, 1) for load in _loads(*at, rate=rate)]


def _loads(mesh: RtlMesh, rows: int, cols: int, *, rate: int) -> Iterator[Load]:
    for pattern, rates in _RATES.items():
        if pattern == "transpose" and rows != cols:
            continue
        for flits in _PACKET_FLITS:
            yield Load(mesh, rows, cols, pattern, rates[rate], flits)
