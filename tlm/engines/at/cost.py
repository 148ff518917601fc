"""What a run of the approximately-timed engine costs, counted before it begins."""

from typing import NamedTuple

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.offchip.edge import Edge
from tlm.offchip.streamed import are_streamed
from tlm.program import Program
from tlm.program.operations import Load, OffChip, Operation, Relay, Unicasts

#: Steps and packets a CPU-second, as measured over kernels on 8x8 to 32x32 tiles: 14,000 to 53,000,
#: on one core of a server of 2022.
RATE_PER_S = 20_000
#: Bursts of a load of which a model of DRAM at a tile answers as many in the time of a step.
BURSTS = 100
#: Most of a run: about a quarter of an hour.
BOUND = 20_000_000


class Cost(NamedTuple):
    """What programs make the engine do.

    Attributes:
        steps: Operations, tile by tile.
        packets: Packets of the tiles, each operand of a reduction one, and of off-chip memory.
    """

    steps: int = 0
    packets: int = 0

    @classmethod
    def of(
        cls, program: Program, packet_flits: int, edge: Edge | None, *, dram: bool = False
    ) -> "Cost":
        """Of a program.

        Args:
            program: What would run.
            packet_flits: Longest packet of a multicast or a reduction.
            edge: Channels of off-chip memory; None: its time does not count.
            dram: Those at tiles are a model of DRAM.
        """
        steps = packets = 0
        streamed = edge is not None and not dram and are_streamed(program, edge)
        for operation in program.built():
            steps += len(operation.near)
            if streamed and isinstance(operation, OffChip):
                packets += 2 * len(operation.near)  # a request, and all that comes
            elif dram and isinstance(operation, Load):
                assert edge is not None
                bursts = edge.units(operation.flits) * edge.unit_bytes // edge.burst_bytes
                packets += (2 + ceil_div(bursts, BURSTS)) * len(operation.near)
            else:
                packets += _packets(operation, packet_flits, edge)
        return cls(steps, packets)

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]  # not as tuples
        return Cost(self.steps + other.steps, self.packets + other.packets)

    def __str__(self) -> str:
        seconds = max(1, round(self._all / RATE_PER_S))
        return f"{self._all:,} steps and packets, about {seconds:,} CPU-s"

    @property
    def _all(self) -> int:
        return self.steps + self.packets

    def check(self, instead: str) -> None:
        """Hold that it is not above the bound.

        Args:
            instead: What goes.

        Raises:
            InputError: if it is.
        """
        if self._all > BOUND:
            raise InputError(f"--level: at takes {self}; allowed: {BOUND:,}; take {instead}")


def _packets(operation: Operation, packet_flits: int, edge: Edge | None) -> int:
    if isinstance(operation, OffChip):
        each = 0 if edge is None else 1 + edge.units(operation.flits)
        return each * len(operation.near)
    count = 0
    for move in operation.moves():
        if isinstance(move, Unicasts):
            each = operation.flits if isinstance(operation, Relay) else 1
            count += each * len(move.rows) * len(move.cols)
        else:
            senders = len(move.segment) if move.inwards else 1
            count += ceil_div(operation.flits, packet_flits) * senders * len(move.lines)
    return count
