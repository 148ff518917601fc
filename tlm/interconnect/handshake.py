"""The mesh at the approximately-timed level: every handshake of the RTL, without its signals."""

import numpy as np

from tlm.errors import InputError
from tlm.interconnect import handshake_core as core
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import Deliveries, Int64s, Packets, TileSet
from tlm.interconnect.zero_load import NocTiming


class DeadlockError(RuntimeError):
    """Packets that wait for each other for ever."""


class HandshakeMesh:
    """A compiled mesh of the project's routers (rtl/noc/mesh.sv), with all its contention.

    Fed packet by packet and advanced in time it serves a co-simulation (`Interconnect`);
    `simulate` runs a whole list of packets at once.

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: Measured constants of the router.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming) -> None:
        self._cols = cols
        self._mesh = core.new_mesh(rows * cols, timing.fifo_depth)
        self._stages = np.array([timing.ejection_cycles] + [timing.hop_cycles] * 4, dtype=np.int64)
        self._packets = 0
        self._expected = 0

    @property
    def idle(self) -> bool:
        """No packet is queued or on its way."""
        return int(self._mesh.now[core.PENDING]) == 0

    def inject(self, cycle: int, source: int, destinations: TileSet, flits: int) -> int:
        """Queue a packet at a node's interface; returns its number (see `Interconnect`)."""
        first = self._packets
        self._mesh.now[core.REPORTING] = 1
        self._queue(Packets.of([(cycle, source, destinations, flits)]))
        return first

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `Interconnect`).

        Raises:
            DeadlockError: if the packets on their way wait for each other for ever.
        """
        found = self._run(until_cycle)
        mesh, cycle = self._mesh, int(self._mesh.now[core.CLOCK]) - 1
        events = []
        for kind, what in mesh.reports[:found].tolist():
            if kind == core.INJECTED:
                source = int(mesh.packets[what, core.SOURCE])
                events.append(Event(EventKind.INJECTED, what, source, cycle))
            else:
                packet, node = mesh.deliveries[what, : core.HEAD_EJECTED].tolist()
                events.append(Event(EventKind.EJECTED, packet, node, cycle))
        return sorted(events, key=lambda e: (e.kind is EventKind.EJECTED, e.packet, e.node))

    def simulate(self, packets: Packets) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Raises:
            DeadlockError: if packets wait for each other for ever.
        """
        self._queue(packets)
        self._run(int(core.NEVER))
        sent = self._mesh.packets[: self._packets]
        came = self._mesh.deliveries[: int(self._mesh.now[core.DELIVERIES])]
        came = came[np.lexsort((came[:, core.AT_NODE], came[:, core.DELIVERED]))]
        injected = (sent[:, column].copy() for column in (core.HEAD_INJECTED, core.TAIL_INJECTED))
        return Deliveries(*injected, *(column.copy() for column in came.T))

    def _run(self, until: int) -> int:
        reports = core.run(self._mesh, self._cols, self._stages, until)
        if reports < 0:
            raise DeadlockError(
                f"no flit can move after cycle {int(self._mesh.now[core.CLOCK])}; "
                f"waiting packets: {self._waiting()}"
            )
        return int(reports)

    def _waiting(self) -> list[int]:
        """Numbers of the packets at the front of a buffer."""
        buffers = self._mesh.buffers
        held = np.nonzero(buffers[:, core.PACKETS])[0]
        return sorted(set(self._mesh.ring_packet[held, buffers[held, core.FIRST]].tolist()))

    def _queue(self, packets: Packets) -> None:
        if packets.reduces.any():
            raise InputError(
                "this level knows no reduction in the network; it knows unicasts and multicasts"
            )
        deliveries = int(packets.destination_counts().sum())
        start, stop = self._packets, self._packets + len(packets)
        self._expected += deliveries
        self._mesh = self._mesh._replace(
            packets=_grown(self._mesh.packets, stop),
            deliveries=_grown(self._mesh.deliveries, self._expected),
        )
        for column, values in enumerate(packets.columns()):
            self._mesh.packets[start:stop, column] = values
        core.enqueue(self._mesh, start, stop, deliveries)
        self._packets = stop


def _grown(table: Int64s, rows: int) -> Int64s:
    """A table of at least so many rows; at least doubled, so that growing row by row is linear."""
    if rows <= len(table):
        return table
    grown = np.zeros((max(rows, 2 * len(table)), table.shape[1]), dtype=np.int64)
    grown[: len(table)] = table
    return grown
