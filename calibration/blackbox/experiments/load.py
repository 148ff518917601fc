"""Loaded meshes: the model against RTL under the field's traffic patterns; nothing is fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.blackbox.mesh import BlackBoxMesh
from calibration.blackbox.scenes import Send, Size, model
from calibration.blackbox.subject import Subject
from calibration.experiment import Parameters, Targets
from tlm.calibrated import Parameter
from tlm.interconnect.packets import Packets
from tlm.interconnect.traffic import Traffic

# Light, medium and beyond saturation; short and long packets.
_LOADS = (
    ("uniform", 0.1, 1),
    ("uniform", 0.25, 4),
    ("uniform", 0.9, 4),
    ("transpose", 0.2, 4),
    ("tornado", 0.2, 16),
    ("neighbor", 0.5, 4),
    ("hotspot", 0.1, 4),
)
_CYCLES = 1500
_MULTICASTS = 60


@dataclass(frozen=True, slots=True)
class Load:
    """A pattern on a mesh; with ``multicasts``, unicasts and now and then a multicast."""

    size: Size
    pattern: str
    rate: float
    packet_flits: int
    multicasts: bool = False


class LoadCheck:
    """Mean packet latency."""

    name = "load"
    subject = "mean packet latency under load"
    seed = 7
    targets = Targets(mean_pct=1.0, worst_pct=3.0)

    def __init__(self, subject: Subject) -> None:
        self.mesh = subject
        self.sources: Sequence[Path] = subject.sources()

    def rtl(self, case: Load) -> BlackBoxMesh:
        """The mesh of a load."""
        return self.mesh.mesh(case.size)

    def fit_cases(self) -> list[Load]:
        """None: the other experiments have fitted everything."""
        return []

    def check_cases(self, *, quick: bool) -> list[Load]:
        """Every load on every size; where there are multicasts, some of them among unicasts."""
        longest = self.mesh.packet_flits
        loads = [
            Load(size, pattern, rate, min(flits, longest))
            for size in self.mesh.check_sizes(quick=quick)
            for pattern, rate, flits in _LOADS
            if pattern != "transpose" or size[0] == size[1]
        ]
        if self.mesh.multicasts:
            loads += [
                Load(size, "uniform", 0.15, min(4, longest), multicasts=True)
                for size in self.mesh.check_sizes(quick=quick)
            ]
        return loads

    def measure(self, cases: Sequence[Load]) -> list[float]:
        """Mean latency on RTL."""
        return [
            float(np.mean(self.mesh.simulate(case.size, self._packets(case)).latency_cycles()))
            for case in cases
        ]

    def identify(self, cases: Sequence[Load], values: Sequence[float]) -> dict[str, Parameter]:
        """Nothing."""
        return {}

    def predict(self, parameters: Parameters, cases: Sequence[Load]) -> list[float]:
        """Mean latency on the handshake model, the same packets."""
        means = []
        for case in cases:
            packets = self._packets(case)
            deliveries = model(case.size, self.mesh.timing, packets).simulate(packets)
            means.append(float(np.mean(deliveries.latency_cycles())))
        return means

    def label(self, case: Load) -> str:
        """The load in words."""
        mixed = f", {_MULTICASTS} multicasts" if case.multicasts else ""
        return (
            f"{case.size[0]}x{case.size[1]}: {case.pattern}, {case.rate} flits/node/cycle, "
            f"{case.packet_flits}-flit packets{mixed}"
        )

    def _packets(self, case: Load) -> Packets:
        rows, cols = case.size
        traffic = Traffic(
            rows=rows,
            cols=cols,
            pattern=case.pattern,
            rate=case.rate,
            packet_flits=case.packet_flits,
            cycles=_CYCLES,
            seed=self.seed,
        ).packets()
        if not case.multicasts:
            return traffic
        # Without cut-through only those of a flit cannot wait for each other for ever.
        rng = np.random.default_rng(self.seed)
        items: list[Send] = [
            (int(cycle), int(source), traffic.tiles(number), int(flits))
            for number, (cycle, source, flits) in enumerate(
                zip(traffic.cycle, traffic.source, traffic.flits, strict=True)
            )
        ]
        whole = self.mesh.timing.cut_through
        flits = min(case.packet_flits, self.mesh.multicast_flits) if whole else 1
        for number in range(_MULTICASTS):
            where = self.mesh.random_set(case.size, rng)
            cycle = number * _CYCLES // _MULTICASTS
            items.append((cycle, int(rng.integers(rows * cols)), where, flits))
        return Packets.of(sorted(items, key=lambda item: item[0]))
