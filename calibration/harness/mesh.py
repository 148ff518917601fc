"""Packets through the Verilated mesh: what goes in, what comes out, and when.

The stimulus goes to the replayers and the handshakes come from the recorders of
rtl/bench/mesh_bench.sv; the bench that joins them is calibration/benches/mesh_bench.py.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.harness.simulator import Simulation, build
from tlm.calibrated import REPOSITORY
from tlm.interconnect.packets import Deliveries, Packets

_RTL = REPOSITORY / "rtl"
NOC_SOURCES = tuple(
    _RTL / "noc" / name
    for name in ("fork_fifo.sv", "rr_arbiter.sv", "xy_route.sv", "router.sv", "mesh.sv")
)
_BENCH_SOURCES = tuple(
    _RTL / "bench" / name for name in ("bench.vlt", "replayer.sv", "mesh_bench.sv")
)


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


class HangError(RuntimeError):
    """Nothing moved in the mesh though flits were waiting."""


@dataclass(frozen=True, slots=True)
class RtlMesh:
    """A Verilated mesh of ``rows`` x ``cols`` routers with buffers of ``fifo_depth`` flits."""

    rows: int
    cols: int
    fifo_depth: int
    waves: bool = False

    def build(self) -> Simulation:
        """The built model, from the cache if it is there."""
        sources: list[Path] = [*_BENCH_SOURCES[:1], *NOC_SOURCES, *_BENCH_SOURCES[1:]]
        parameters = {"Rows": self.rows, "Cols": self.cols, "FifoDepth": self.fifo_depth}
        return build("mesh_bench", sources, parameters, waves=self.waves)

    def simulate(self, packets: Packets, *, sink: Sink | None = None) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Every flit is checked on the way: data, order, completeness, exactly one copy a destination.

        Raises:
            HangError: if the mesh stands still.
            SimulationError: if the scoreboard finds anything wrong.
        """
        sink = sink or Sink()
        plan = {
            "rows": self.rows,
            "cols": self.cols,
            "packets": np.stack(packets.columns(), axis=1).tolist(),
            "hold_cycles": sink.hold_cycles,
            "stall": int(sink.stall_fraction * 256),
            "stall_seed": sink.seed,
        }
        outcome = self.build().run("calibration.benches.mesh_bench", plan, seed=sink.seed)
        if outcome["hung_at_cycle"] is not None:
            raise HangError(
                f"{self.rows}x{self.cols} mesh stands still since cycle {outcome['hung_at_cycle']}"
            )
        columns = (np.array(outcome[name], dtype=np.int64) for name in Deliveries.__slots__)
        return Deliveries(*columns)
