"""Runs of the same packets and requests at two levels: on the Verilated RTL and on the models."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from calibration.memory.cases import MEMORIES, requests_of
from calibration.memory.channel import RtlMemory
from calibration.memory.model import bursts_of, memory_model, requests_per_cycle
from calibration.routers.rtl_mesh import RtlMesh
from cosim.spec.project import mesh_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import (
    REDUCTIONS,
    Deliveries,
    Int64s,
    Packets,
    ReductionGoal,
    TileSet,
    cut,
)
from tlm.interconnect.traffic import (
    RATE_STEPS,
    Traffic,
    TrafficFigures,
    figures,
    highest_rate,
)
from verification.scenes import Item, Scene
from verification.stress import name_of

#: Load fractions of saturation below which every packet is expected to be exact, and above.
LOW_FRACTIONS = (0.3, 0.45)
HIGH_FRACTIONS = (0.7, 0.9, 1.0, 1.2)

_LONGEST_FLITS = 64
_MEMORY_REQUESTS = 1500
_MIX_PACKETS = 1500


@dataclass(frozen=True, slots=True)
class Point:
    """What a case showed.

    Attributes:
        case: The case in words.
        events: Packets or requests.
        unequal: Those of which any handshake is in another cycle at the two levels.
        errors_pct: |model - RTL| / RTL in per cent, of each figure.
        value: A figure of the RTL worth telling; empty without.
    """

    case: str
    events: int
    unequal: int
    errors_pct: dict[str, float]
    value: str = ""


class Case(Protocol):
    """Something to run at both levels."""

    @property
    def table(self) -> str:
        """The table that it belongs to."""

    @property
    def row(self) -> str:
        """Its row there."""

    @property
    def rtl(self) -> RtlMesh | RtlMemory:
        """What has to be built for it."""

    def measure(self) -> Point:
        """Run both levels."""


def network_model(mesh: RtlMesh) -> HandshakeMesh:
    """The model of a Verilated mesh."""
    return HandshakeMesh(mesh.rows, mesh.cols, mesh_timing(mesh))


def errors_pct(rtl: dict[str, float], model: dict[str, float]) -> dict[str, float]:
    """|model - RTL| / RTL of each figure, in per cent."""
    return {name: 100.0 * abs(model[name] - value) / value for name, value in rtl.items()}


def unequal_packets(rtl: Deliveries, model: Deliveries) -> int:
    """Packets of which any handshake at a tile, head or tail, differs."""
    places = ("packet", "node")
    if not all(np.array_equal(getattr(rtl, name), getattr(model, name)) for name in places):
        return len(rtl.head_injected)
    differs = rtl.head_injected != model.head_injected
    differs |= rtl.tail_injected != model.tail_injected
    copies = rtl.head_ejected != model.head_ejected
    copies |= rtl.tail_ejected != model.tail_ejected
    differs[rtl.packet[copies]] = True
    return int(differs.sum())


def _delivery_figures(packets: Packets, seen: Deliveries) -> dict[str, float]:
    """Figures over what is delivered; of a reduction that is the packet of its joint number."""
    last = seen.last_ejected()
    latency = (last - seen.head_injected)[last >= 0]
    flits = packets.flits[seen.packet].sum()
    return {
        "mean latency": float(latency.mean()),
        "p99 latency": float(np.percentile(latency, 99)),
        "throughput": float(flits / (last.max() + 1)),
    }


@dataclass(frozen=True, slots=True)
class Alone:
    """Packets and reductions of all kinds and lengths that have the mesh for themselves."""

    rtl: RtlMesh
    transfers: int
    seed: int
    table: str = "alone"

    @property
    def row(self) -> str:
        """The mesh."""
        return name_of(self.rtl)

    def measure(self) -> Point:
        """Run both levels."""
        packets, starts = self.draw()
        rtl, model = self.rtl.simulate(packets), network_model(self.rtl).simulate(packets)
        # What a start separates has ended before it.
        turn = np.searchsorted(starts, packets.cycle[rtl.packet], side="right")
        ends = np.append(starts, np.inf)[turn]
        assert (rtl.tail_ejected < ends).all(), "packets met that should be apart"
        found = errors_pct(_delivery_figures(packets, rtl), _delivery_figures(packets, model))
        return Point(f"seed {self.seed}", len(packets), unequal_packets(rtl, model), found)

    def draw(self) -> tuple[Packets, Int64s]:
        """The packets, and the cycle at which each transfer starts."""
        mesh, rng = self.rtl, np.random.default_rng(self.seed)
        items: list[Item] = []
        starts = []
        start = 0
        for turn in range(self.transfers):
            flits = round(2 ** rng.uniform(0, np.log2(_LONGEST_FLITS)))
            items += self._transfer(turn, start, flits, rng)
            starts.append(start)
            # A packet of a multicast may wait until the buffer behind is empty.
            start += (flits + mesh.rows + mesh.cols) * 4 * (1 + mesh.stages) + 50
        return Packets.of(items), np.array(starts, dtype=np.int64)

    def _transfer(
        self, turn: int, start: int, flits: int, rng: np.random.Generator
    ) -> Iterator[Item]:
        mesh = self.rtl
        source, root = rng.integers(mesh.rows * mesh.cols, size=2).tolist()
        where = TileSet(_span(mesh.rows, rng), _span(mesh.cols, rng))
        if turn % 4 == 0 or len(where) == 1:
            yield start, source, TileSet.tile(*divmod(root, mesh.cols)), flits
        elif turn % 4 == 1:
            for part in cut(flits, mesh.fifo_depth):
                yield start, source, where, part
        else:
            goal = ReductionGoal(where, root, REDUCTIONS[int(turn % 4 == 3)])
            for part in cut(flits, mesh.fifo_depth):
                for node in where.nodes(mesh.cols):
                    yield start, node, goal, part


def _span(size: int, rng: np.random.Generator) -> range:
    first, last = sorted(rng.integers(0, size, 2).tolist())
    return range(first, last + 1, int(rng.integers(1, 4)))


@dataclass(frozen=True, slots=True)
class Stream:
    """Unicast traffic of a pattern on a mesh, at any rate."""

    mesh: RtlMesh
    pattern: str
    flits: int

    @property
    def label(self) -> str:
        """The length of its packets."""
        return f"{self.flits} flit{'s' * (self.flits > 1)} a packet"

    def traffic(self, rate: float, seed: int, cycles: int) -> Traffic:
        """The traffic at a rate."""
        mesh = self.mesh
        return Traffic(mesh.rows, mesh.cols, self.pattern, rate, self.flits, cycles, seed)

    def long_traffic(self, rate: float, seed: int) -> Traffic:
        """Traffic so long that what is on its way at both ends is little beside the rest."""
        return self.traffic(rate, seed, max(4000, 400 * self.flits))

    def figures(self, traffic: Traffic, packets: Packets, seen: Deliveries) -> TrafficFigures:
        """What the field reports of it."""
        nodes = self.mesh.rows * self.mesh.cols
        return figures(packets, seen, nodes, traffic.warm_up_cycles, traffic.cycles)

    def on_rtl(self, rate: float, seed: int) -> TrafficFigures:
        """Figures of long traffic on the Verilated mesh."""
        traffic = self.long_traffic(rate, seed)
        packets = traffic.packets()
        return self.figures(traffic, packets, self.mesh.simulate(packets))

    def on_model(self, rate: float, seed: int) -> TrafficFigures:
        """Figures of long traffic on the model."""
        traffic = self.long_traffic(rate, seed)
        packets = traffic.packets()
        return self.figures(traffic, packets, network_model(self.mesh).simulate(packets))


@cache
def model_saturation_rate(stream: Stream, seed: int) -> float:
    """Rate at which the model saturates."""
    return highest_rate(lambda rate: stream.on_model(rate, seed).saturated)


@dataclass(frozen=True, slots=True)
class Load:
    """Unicast traffic at a fraction of the rate at which the model saturates."""

    stream: Stream
    fraction: float
    seed: int

    @property
    def table(self) -> str:
        """Below half of saturation, or above."""
        return "low" if self.fraction < 0.5 else "high"

    @property
    def rtl(self) -> RtlMesh:
        """The mesh."""
        return self.stream.mesh

    @property
    def row(self) -> str:
        """Mesh and pattern."""
        return f"{name_of(self.rtl)}, {self.stream.pattern}"

    def measure(self) -> Point:
        """Run both levels."""
        stream = self.stream
        rate = min(1.0, self.fraction * model_saturation_rate(stream, self.seed))
        # Not the packets by which the saturation was found.
        cycles = 8000 if stream.mesh.rows * stream.mesh.cols <= 16 else 2500
        traffic = stream.traffic(rate, self.seed + 1 + round(100 * self.fraction), cycles)
        packets = traffic.packets()
        rtl, model = stream.mesh.simulate(packets), network_model(stream.mesh).simulate(packets)
        found = [
            {
                "mean latency": seen.latency_cycles["mean"],
                "p99 latency": seen.latency_cycles["p99"],
                "throughput": seen.accepted,
            }
            for seen in (stream.figures(traffic, packets, run) for run in (rtl, model))
        ]
        case = f"{stream.label}, {self.fraction:g} of saturation"
        return Point(case, len(packets), unequal_packets(rtl, model), errors_pct(*found))


@dataclass(frozen=True, slots=True)
class Saturation:
    """The highest accepted load that is at least 0.98 of the offered one."""

    stream: Stream
    seed: int
    table: str = "saturation"

    @property
    def rtl(self) -> RtlMesh:
        """The mesh."""
        return self.stream.mesh

    @property
    def row(self) -> str:
        """Mesh and pattern."""
        return f"{name_of(self.rtl)}, {self.stream.pattern}"

    def measure(self) -> Point:
        """Look on RTL on both sides of where the model saturates, and if it is not there, search.

        ``unequal`` is 1 where RTL saturates at another rate.
        """
        stream, seed = self.stream, self.seed
        expected = model_saturation_rate(stream, seed)
        seen = stream.on_rtl(expected, seed)
        above = expected + 1 / RATE_STEPS
        agrees = not seen.saturated and (above > 1 or stream.on_rtl(above, seed).saturated)
        if not agrees:
            found = highest_rate(lambda rate: stream.on_rtl(rate, seed).saturated)
            seen = stream.on_rtl(found, seed)
        model = stream.on_model(expected, seed)
        return Point(
            case=stream.label,
            events=1,
            unequal=int(not agrees),
            errors_pct=errors_pct({"throughput": seen.accepted}, {"throughput": model.accepted}),
            value=f"{seen.accepted:.3f}",
        )


@dataclass(frozen=True, slots=True)
class Mix:
    """Unicasts, multicasts and reductions together, with bursts and overlaps on purpose."""

    rtl: RtlMesh
    family: str
    rate: float
    seed: int
    table: str = "mix"

    @property
    def row(self) -> str:
        """The mesh."""
        return name_of(self.rtl)

    def measure(self) -> Point:
        """Run both levels."""
        packets = Scene(self.rtl, _MIX_PACKETS, self.rate, self.family, self.seed).draw()
        rtl, model = self.rtl.simulate(packets), network_model(self.rtl).simulate(packets)
        found = errors_pct(_delivery_figures(packets, rtl), _delivery_figures(packets, model))
        case = f"{self.family}, {self.rate:g} packets a node a cycle"
        return Point(case, len(packets), unequal_packets(rtl, model), found)


@dataclass(frozen=True, slots=True)
class Memory:
    """A pattern of requests at a channel, as fast as they are taken or few at a time."""

    name: str
    pattern: str
    outstanding: int | None
    seed: int
    table: str = "memory"

    @property
    def rtl(self) -> RtlMemory:
        """The channel."""
        return MEMORIES[self.name]

    @property
    def row(self) -> str:
        """Channel and pattern."""
        return f"{self.name}, {self.pattern}"

    def measure(self) -> Point:
        """Run both levels."""
        asked = requests_of(self.pattern, self.rtl, _MEMORY_REQUESTS, self.seed)
        rtl = self.rtl.simulate(asked, outstanding=self.outstanding)
        model = memory_model(self.rtl).simulate(bursts_of(asked), self.outstanding)
        pairs = (
            (rtl.offered, model.begin_req),
            (rtl.taken, model.end_req),
            (rtl.appeared, model.begin_resp),
            (rtl.answered, model.end_resp),
        )
        differs = np.any([one != other for one, other in pairs], axis=0)
        found = errors_pct(
            _memory_figures(rtl.taken, rtl.answered),
            _memory_figures(model.end_req, model.end_resp),
        )
        loop = "open loop" if self.outstanding is None else f"{self.outstanding} outstanding"
        return Point(f"{loop}, seed {self.seed}", len(asked), int(differs.sum()), found)


def _memory_figures(taken: Int64s, answered: Int64s) -> dict[str, float]:
    return {
        "bandwidth": requests_per_cycle(answered),
        "mean latency": float((answered - taken).mean()),
    }
