"""Cases of traffic on a mesh: short scenes that are played one after the other on one model.

A scene starts when the mesh has long been empty; all that it sees of those before it is whose turn
it is at the arbiters, on RTL and on the model alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.experiment import EXACT, Parameters
from calibration.harness.mesh import RtlMesh
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import load_result
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import NocTiming

#: The mesh that parameters are fitted on, and the one that only checks see.
FIT_MESH = RtlMesh(rows=4, cols=4, fifo_depth=4)
CHECK_MESH = RtlMesh(rows=8, cols=8, fifo_depth=4)

_SETTLE_CYCLES = 50
_Simulate = Callable[[RtlMesh, Packets], Deliveries]


@dataclass(frozen=True, slots=True)
class Scene:
    """A few packets on a mesh.

    Attributes:
        mesh: Where.
        label: The scene in words.
        sends: (cycle after the scene's start, source node, destinations or reduction, flits), in
            queue order.
        hops: From the source to the farthest destination, or from the farthest operand to the root.
    """

    mesh: RtlMesh
    label: str
    sends: tuple[tuple[int, int, TileSet | ReductionGoal, int], ...]
    hops: int = 0

    @property
    def flits(self) -> int:
        """Flits sent in all."""
        return sum(send[3] for send in self.sends)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Cycles of one scene, from the first injection handshake to the last ejection handshake.

    ``finishes`` holds each packet's last ejection handshake, for operands that of the result, from
    the scene's start on.
    """

    cycles: int
    finishes: tuple[int, ...]


def play_rtl(scenes: Sequence[Scene]) -> list[Outcome]:
    """Play scenes on the Verilated meshes they name, a run a mesh."""
    return _play(scenes, lambda mesh, packets: mesh.simulate(packets))


def play_model(scenes: Sequence[Scene], timing: NocTiming) -> list[Outcome]:
    """Play scenes on the handshake model with a router's measured timing."""

    def simulate(mesh: RtlMesh, packets: Packets) -> Deliveries:
        own = replace(timing, fifo_depth=mesh.fifo_depth)
        return HandshakeMesh(mesh.rows, mesh.cols, own).simulate(packets)

    return _play(scenes, simulate)


def _play(scenes: Sequence[Scene], simulate: _Simulate) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}
    for mesh in dict.fromkeys(scene.mesh for scene in scenes):
        chosen = [index for index, scene in enumerate(scenes) if scene.mesh == mesh]
        outcomes |= zip(chosen, _play_on([scenes[i] for i in chosen], mesh, simulate), strict=True)
    return [outcomes[index] for index in range(len(scenes))]


def _play_on(scenes: Sequence[Scene], mesh: RtlMesh, simulate: _Simulate) -> list[Outcome]:
    items: list[tuple[int, int, TileSet | ReductionGoal, int]] = []
    first_packet, starts, start = [0], [], 0
    for scene in scenes:
        starts.append(start)
        items += [(start + after, source, to, flits) for after, source, to, flits in scene.sends]
        first_packet.append(len(items))
        # Longer than the scene can take even if its packets go one by one through one port.
        longest = max(send[0] for send in scene.sends)
        start += longest + scene.flits * 2 + 4 * (mesh.rows + mesh.cols) + _SETTLE_CYCLES
    packets = Packets.of(items)
    deliveries = simulate(mesh, packets)
    last = deliveries.last_ejected()[packets.joint]
    outcomes = []
    for index, begin in enumerate(starts):
        span = slice(first_packet[index], first_packet[index + 1])
        end = starts[index + 1] if index + 1 < len(starts) else np.inf
        assert last[span].max() < end, f"scene '{scenes[index].label}' ran into the next one"
        finishes = tuple(int(cycle) - begin for cycle in last[span])
        origin = int(deliveries.head_injected[span].min()) - begin
        outcomes.append(Outcome(max(finishes) - origin, finishes))
    return outcomes


class SceneExperiment:
    """What experiments on scenes share: figure of a scene is its cycles."""

    sources: Sequence[Path] = NOC_SOURCES
    seed = 20240229
    targets = EXACT

    def rtl(self, case: Scene) -> RtlMesh:
        """The mesh."""
        return case.mesh

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """Cycles of each scene on RTL."""
        return [self.figure(outcome) for outcome in play_rtl(cases)]

    def predict(self, parameters: Parameters, cases: Sequence[Scene]) -> list[float]:
        """Cycles of each scene on the handshake model."""
        timing = self.timing(parameters)
        return [self.figure(outcome) for outcome in play_model(cases, timing)]

    def figure(self, outcome: Outcome) -> float:
        """The figure that is compared."""
        return float(outcome.cycles)

    def timing(self, parameters: Parameters) -> NocTiming:
        """The router's timing, as far as measured by the experiments that came before."""
        return timing_of(load_result("unicast").parameters)

    def label(self, case: Scene) -> str:
        """The scene in words."""
        return case.label


def some(size: int, rng: np.random.Generator) -> range:
    """Places on a side: one, some next to each other, or every second or third."""
    first, last = sorted(int(value) for value in rng.integers(0, size, 2))
    return range(first, last + 1, int(rng.integers(1, 4)))


def span(places: range) -> str:
    """Places as a label shows them."""
    step = f":{places.step}" if places.step > 1 else ""
    return f"{places.start}:{places.stop}{step}"


def timing_of(unicast: Parameters, *, reduce_cycles: int = 0) -> NocTiming:
    """Timing for the handshake model from the unicast parameters; each mesh brings its depth."""
    return NocTiming(
        hop_cycles=round(unicast["hop_cycles"].value),
        ejection_cycles=round(unicast["ejection_cycles"].value),
        fifo_depth=FIT_MESH.fifo_depth,
        multicast_gap_cycles=0,
        flit_bytes=8,
        reduce_cycles=reduce_cycles,
    )


def mesh_timing(mesh: RtlMesh) -> NocTiming:
    """Timing of a mesh of any form: what was measured, and what its parameters add by themselves.

    Measured are routers of one stage without output buffers. Each stage more and an output buffer
    hold every flit for a cycle, on each hop and on the way out to the tile; a full multicast packet
    goes earlier by the room in an output buffer.

    Raises:
        InputError: if a measurement is missing or stale.
    """
    measured = rtl_timing()
    more_cycles = mesh.stages - 1 + int(mesh.output_depth > 0)
    return replace(
        measured,
        hop_cycles=measured.hop_cycles + more_cycles,
        ejection_cycles=measured.ejection_cycles + more_cycles,
        fifo_depth=mesh.fifo_depth,
        multicast_gap_cycles=max(
            measured.multicast_gap_cycles + more_cycles - mesh.output_depth, 0
        ),
        output_depth=mesh.output_depth,
        reduce_cycles=mesh.reduce_stages,
        y_first=mesh.y_first,
        cut_through=mesh.cut_through,
        loopback=mesh.loopback,
    )
