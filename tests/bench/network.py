"""Speed of the network's model: alone, against the Verilated mesh, and over the mesh's size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim.errors import SimulationError
from tests.bench.measure import Row, cpu_seconds, ratios
from tests.bench.traffic import FLITS, neighbours_and_rows, packet_hops, uniform
from tests.bench.verilated import DrivenMesh
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets
from tlm.interconnect.zero_load import NocTiming

DEPTH = 8
SIDE = 8
_SEED = 1
_MODEL_RUNS = 5  # for each of the driver, which takes far longer
_PACKETS_PER_S = 1e6
_GAINS = {5: 8.0, 64: 80.0}  # flits of a packet: least gain over the Verilated mesh
_COST_RATIO = 4.0
Note = Callable[[], object]


def timing() -> NocTiming:
    """The project's routers with the buffers of the benchmark."""
    return replace(rtl_timing(), fifo_depth=DEPTH)


def simulate_seconds(
    side: int, packets: Packets, *, reductions: bool = True
) -> tuple[float, Deliveries]:
    """CPU seconds of one run on a fresh mesh, which is not in them, and what it delivered."""
    mesh = HandshakeMesh(side, side, timing(), reductions=reductions)
    found: list[Deliveries] = []
    seconds = cpu_seconds(lambda: found.append(mesh.simulate(packets)))
    return seconds, found[0]


def warm_up(reductions: bool = True) -> None:
    """Compile, or load what was compiled."""
    simulate_seconds(2, uniform(2, 2, 20, FLITS, _SEED), reductions=reductions)


def rate_rows(packets: int, runs: int, done: Note) -> list[Row]:
    """Packets and packet-hops a CPU second under uniform traffic."""
    traffic = uniform(SIDE, SIDE, packets, FLITS, _SEED)
    hops = int(packet_hops(traffic, SIDE).sum())
    warm_up()
    seconds = []
    for _ in range(runs):
        seconds.append(simulate_seconds(SIDE, traffic)[0])
        done()
    work = f"{SIDE}x{SIDE} mesh, uniform 0.15, {FLITS}-flit packets, depth {DEPTH}"
    return [
        Row(work, "packets/CPU-s", tuple(len(traffic) / s for s in seconds), _PACKETS_PER_S),
        Row(work, "packet-hops/CPU-s", tuple(hops / s for s in seconds)),
    ]


def race_rows(side: int, rtl_cycles: int, runs: int, done: Note) -> list[Row]:
    """The model against the Verilated mesh, in turns; both must do the same.

    Raises:
        SimulationError: if they do not deliver alike, or last ejections differ.
    """
    driven = DrivenMesh(side, side, DEPTH)
    driven.build()
    warm_up()
    rows = []
    for flits, target in _GAINS.items():
        packets = uniform(side, side, round(rtl_cycles * 0.15 * side**2 / flits), flits, _SEED)
        rtl_s, model_s = [], []
        for _ in range(runs):
            model = [simulate_seconds(side, packets) for _ in range(_MODEL_RUNS)]
            deliveries = model[0][1]
            last = int(deliveries.tail_ejected.max())
            race = driven.run(packets, last + 1000)
            mine = (len(deliveries.packet), last)
            if mine != (race.deliveries, race.last_ejection_cycle):
                raise SimulationError(
                    f"{flits}-flit packets: the model made {mine[0]} deliveries by cycle {last}, "
                    f"the Verilated mesh {race.deliveries} by {race.last_ejection_cycle}"
                )
            model_s.append(float(np.median([seconds for seconds, _ in model])))
            rtl_s.append(race.cpu_s)
            done()
        work = f"{side}x{side} mesh against its Verilog, uniform 0.15, {flits}-flit packets"
        alike = f"{len(packets)} deliveries, last ejection in cycle {last}"
        rows += [
            Row(work + ": model", "packets/CPU-s", tuple(len(packets) / s for s in model_s)),
            Row(work + ": Verilog", "packets/CPU-s", tuple(len(packets) / s for s in rtl_s)),
            Row(work + ": Verilog", "cycles/CPU-s", tuple(last / s for s in rtl_s)),
            Row(work + ": gain", "x the Verilog", ratios(rtl_s, model_s), target, alike),
        ]
    return rows


@dataclass(frozen=True, slots=True)
class Point:
    """Cost of a packet-hop on a mesh of ``side`` x ``side``; a figure a run."""

    side: int
    packets: int
    packet_hops: int
    cost_ns: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """The point as JSON holds it."""
        return {
            "mesh": f"{self.side}x{self.side}",
            "packets": self.packets,
            "packet_hops": self.packet_hops,
            "cost_ns_per_packet_hop": float(np.median(self.cost_ns)),
            "runs": list(self.cost_ns),
        }


def scaling(
    sides: Sequence[int], hops: int, runs: int, done: Note
) -> tuple[list[Point], list[Row]]:
    """Cost of a packet-hop over the mesh's size, all sizes in turns; the last one against 8x8.

    Args:
        sides: Sizes; 8 and a larger one among them for the row of the table.
        hops: Packet-hops of a run, about; a run on a large mesh has more.
        runs: Runs of each size.
        done: Called after each.
    """
    warm_up(reductions=False)
    costs: dict[int, list[float]] = {side: [] for side in sides}
    sizes: dict[int, tuple[int, int]] = {}
    for _ in range(runs):
        for side in sides:
            traffic = neighbours_and_rows(side, side, _cycles(side, hops), _SEED)
            total = int(packet_hops(traffic, side).sum())
            sizes[side] = (len(traffic), total)
            seconds, _unused = simulate_seconds(side, traffic, reductions=False)
            costs[side].append(1e9 * seconds / total)
            done()
    points = [Point(side, *sizes[side], tuple(costs[side])) for side in sides]
    largest = max(sides)
    if SIDE not in sides or largest == SIDE:
        return points, []
    work = f"{largest}x{largest} mesh, neighbours and row multicasts: cost of a packet-hop"
    return points, [
        Row(work, "of 8x8", ratios(costs[largest], costs[SIDE]), _COST_RATIO),
    ]


def _cycles(side: int, hops: int) -> int:
    """Cycles in which about so many packet-hops are made; at least two ways across the mesh."""
    a_cycle = side * side * 0.15 / FLITS * 3
    return max(2 * side, round(hops / a_cycle))
