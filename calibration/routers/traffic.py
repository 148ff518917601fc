"""Loaded meshes: the model against RTL under the field's traffic patterns; nothing is fitted."""

from collections.abc import Iterator
from dataclasses import dataclass

from calibration.experiment import Targets
from calibration.routers.load import LoadExperiment, place_of
from calibration.routers.scenes import Size
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
_CYCLES = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """Unicasts of a traffic pattern on a corner of a mesh, or on all of it."""

    size: Size
    corner: Size
    pattern: str
    rate: float
    packet_flits: int

    @property
    def situation(self) -> str:
        """The pattern."""
        return f"{self.pattern} traffic"

    @property
    def label(self) -> str:
        """The load in words."""
        return (
            f"{place_of(self)}: {self.pattern}, {self.rate} flits/node/cycle, "
            f"{self.packet_flits}-flit packets"
        )


class TrafficCheck(LoadExperiment):
    """Unicasts."""

    name = "traffic"
    subject = "mean packet latency under load"
    targets = Targets(mean_pct=1.0, worst_pct=1.0)

    def check_cases(self, *, quick: bool) -> list[Load]:
        """Every pattern, length and load; the quick ones are heavy."""
        places = self.places(quick=quick)
        rates = (0,) if quick else (0, 1)
        loads = (load for place in places for rate in rates for load in self._loads(place, rate))
        return list(dict.fromkeys(loads))

    def packets(self, case: Load) -> Packets:  # type: ignore[override]  # its own cases
        """The packets of a load."""
        return Traffic(
            rows=case.corner[0],
            cols=case.corner[1],
            pattern=case.pattern,
            rate=case.rate,
            packet_flits=case.packet_flits,
            cycles=_CYCLES,
            seed=self.seed,
        ).packets()

    def _loads(self, place: tuple[Size, Size], rate: int) -> Iterator[Load]:
        _, (rows, cols) = place
        for pattern, rates in _RATES.items():
            if pattern == "transpose" and rows != cols:
                continue
            for flits in _PACKET_FLITS:
                yield Load(*place, pattern, rates[rate], min(flits, self.mesh.packet_flits))
