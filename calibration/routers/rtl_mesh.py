"""Packets through the project's Verilated mesh in any of its forms, with all that its bench sees.

The stimulus goes to the replayers and the handshakes come from the recorders of
rtl/bench/mesh_bench.sv; the bench that joins them is calibration/benches/mesh_bench.py.
"""

import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.routers.coverage import Coverage, read_coverage
from calibration.simulator import Simulation, build
from cosim.errors import HangError, SimulationError
from cosim.spec.project import MeshParameters
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, Packets
from tlm.scratch import run_folder

_BENCH = REPOSITORY / "rtl" / "bench"
#: A failed run's wave begins this long before the failure.
WAVE_CYCLES = 2000
_NO_WAVE = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Sink:
    """How the tiles take flits.

    Attributes:
        hold_cycles: Cycles before which no tile takes anything.
        stall_fraction: How often, in [0, 1), a tile refuses a flit at random.
        seed: Seed of the refusals.
    """

    hold_cycles: int = 0
    stall_fraction: float = 0.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class RtlMesh(MeshParameters):
    """A Verilated mesh under cocotb.

    A failed run is repeated on a model with waves, and the error names the wave; not where
    ``$WAFERTLM_EXPECT_FAILURES`` is set, as it is while faults are put in.

    Attributes:
        coverage: What happens in the routers is counted (rtl/bench/router_coverage.sv).
        waves: A run leaves a wave.
    """

    coverage: bool = False
    waves: bool = False

    def __post_init__(self) -> None:
        if self.coverage and not (self.multicast and self.reduction and self.cut_through):
            raise InputError(
                "coverage: found a mesh without multicast, reduction or cut-through; "
                "allowed: one with all three"
            )

    def build(self) -> Simulation:
        """The built model, from the cache if it is there."""
        benches = ["replayer.sv", "mesh_bench.sv", *["router_coverage.sv"] * self.coverage]
        sources = [_BENCH / "bench.vlt", *NOC_SOURCES, *(_BENCH / name for name in benches)]
        nodes = self.rows * self.cols
        return build("mesh_bench", sources, self.parameters(), waves=self.waves, nodes=nodes)

    def simulate(self, packets: Packets, *, sink: Sink | None = None) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Every flit is checked on the way: data, order, completeness, exactly one copy a destination.

        Raises:
            HangError: if the mesh stands still.
            SimulationError: if the scoreboard finds anything wrong.
        """
        return self.simulate_covered(packets, sink=sink)[0]

    def simulate_covered(
        self, packets: Packets, *, sink: Sink | None = None
    ) -> tuple[Deliveries, Coverage]:
        """The same, and with ``coverage`` what happened in the routers.

        Raises:
            HangError: if the mesh stands still.
            SimulationError: if the scoreboard finds anything wrong.
        """
        sink, folder = sink or Sink(), run_folder()
        try:
            deliveries = self._run(packets, sink, folder, wave_from=0)
        except (HangError, SimulationError) as error:
            if self.waves or "WAFERTLM_EXPECT_FAILURES" in os.environ:
                raise
            wave = replace(self, waves=True)._wave_of_failure(packets, sink, str(error))
            raise type(error)(f"{error}\n{wave}") from error
        counts = read_coverage(folder) if self.coverage else {}
        if not self.waves:
            shutil.rmtree(folder)
        return deliveries, counts

    def _run(self, packets: Packets, sink: Sink, folder: Path, wave_from: int) -> Deliveries:
        """One run in a folder, which keeps its files."""
        plan = {
            "rows": self.rows,
            "cols": self.cols,
            "loopback": self.loopback,
            "packets": np.stack(packets.columns(), axis=1).tolist(),
            "hold_cycles": sink.hold_cycles,
            "stall": int(sink.stall_fraction * 256),
            "stall_seed": sink.seed,
            "wave_from": wave_from if self.waves else _NO_WAVE,
        }
        bench = "calibration.benches.mesh_bench"
        outcome = self.build().run(bench, plan, seed=sink.seed, folder=folder, bench_waves=True)
        if outcome["hung_at_cycle"] is not None:
            raise HangError(
                f"{self.rows}x{self.cols} mesh stands still since cycle {outcome['hung_at_cycle']}"
            )
        columns = (np.array(outcome[name], dtype=np.int64) for name in Deliveries.__slots__)
        return Deliveries(*columns)

    def _wave_of_failure(self, packets: Packets, sink: Sink, failure: str) -> str:
        """Repeat a run that failed and say where its wave is."""
        folder = run_folder()
        first = max(0, cycle_of(failure) - WAVE_CYCLES)
        try:
            self._run(packets, sink, folder, wave_from=first)
        except (HangError, SimulationError):
            return f"wave from cycle {first}: {folder / 'dump.vcd'}"
        return f"no failure when repeated with waves: {folder}"


#: The mesh that parameters are fitted on, and the one that only checks see: as the Verilog stands.
FIT_MESH, CHECK_MESH = (RtlMesh(side, side) for side in (4, 8))


def cycle_of(failure: str) -> int:
    """Cycle of a failure by its message; 0 if it names none."""
    if named := re.search(r"cycle (\d+)", failure):
        return int(named[1])
    # An assertion of the Verilog names its time in picoseconds; a cycle is 2 ns.
    asserted = re.search(r"\[(\d+)\] %Error", failure)
    return int(asserted[1]) // 2000 if asserted else 0
