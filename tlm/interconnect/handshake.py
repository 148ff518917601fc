"""The mesh at the approximately-timed level: every handshake of the RTL, without its signals."""

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.interconnect import handshake_core as core
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import Deliveries, Packets, TileSet
from tlm.interconnect.zero_load import NocTiming

_FIELDS = len(Packets.__slots__)


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
        self._state = core.new_state(rows * cols, timing.fifo_depth)
        self._stages = np.array([timing.ejection_cycles] + [timing.hop_cycles] * 4, dtype=np.int64)
        self._open_delivery = np.zeros(rows * cols, dtype=np.int64)
        self._injected = np.zeros(rows * cols, dtype=np.int64)
        self._packets = 0
        self._expected = 0
        self._store = _new_store(64, 64)

    @property
    def idle(self) -> bool:
        """No packet is queued or on its way."""
        return int(self._state.clock[1]) == 0

    def inject(self, cycle: int, source: int, destinations: TileSet, flits: int) -> int:
        """Queue a packet at a node's interface; returns its number (see `Interconnect`)."""
        first = self._packets
        self._queue(Packets.of([(cycle, source, destinations, flits)]))
        return first

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `Interconnect`).

        Raises:
            DeadlockError: if the packets on their way wait for each other for ever.
        """
        state, store = self._state, self._store
        before = int(state.clock[2])
        tails = self._run(until_cycle, stop_at_event=True)
        cycle = int(state.clock[0]) - 1
        injected = [
            Event(EventKind.INJECTED, int(packet), int(store.source[packet]), cycle)
            for packet in self._injected[:tails]
        ]
        ejected = [
            Event(EventKind.EJECTED, int(store.event_packet[i]), int(store.event_node[i]), cycle)
            for i in range(before, int(state.clock[2]))
        ]
        return injected + ejected

    def simulate(self, packets: Packets) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Raises:
            DeadlockError: if packets wait for each other for ever.
        """
        self._queue(packets)
        self._run(int(core.NEVER), stop_at_event=False)
        store, found = self._store, int(self._state.clock[2])
        order = np.lexsort((store.event_node[:found], store.event_packet[:found]))
        return Deliveries(
            store.head_injected[: self._packets].copy(),
            store.tail_injected[: self._packets].copy(),
            store.event_packet[:found][order],
            store.event_node[:found][order],
            store.event_head[:found][order],
            store.event_tail[:found][order],
        )

    def _run(self, until: int, *, stop_at_event: bool) -> int:
        tails = core.run(
            self._state, self._store, self._cols, self._stages, until, stop_at_event,
            self._open_delivery, self._injected,
        )  # fmt: skip
        if tails < 0:
            raise DeadlockError(
                f"no flit can move after cycle {int(self._state.clock[0])}; "
                f"waiting packets: {self._waiting()}"
            )
        return int(tails)

    def _waiting(self) -> list[int]:
        """Numbers of the packets at the front of a buffer."""
        state = self._state
        held = np.nonzero(state.fill)[0]
        return sorted({int(state.buffer_packet[b, state.front[b]]) for b in held})

    def _queue(self, packets: Packets) -> None:
        if packets.reduces.any():
            raise InputError(
                "this level knows no reduction in the network; it knows unicasts and multicasts"
            )
        self._grow(len(packets), int(packets.destination_counts().sum()))
        start = self._packets
        stop = start + len(packets)
        for column, values in zip(self._store[:_FIELDS], packets.columns(), strict=True):
            column[start:stop] = values
        core.enqueue(self._state, self._store, start, stop)
        self._packets = stop

    def _grow(self, packets: int, deliveries: int) -> None:
        """Make room, at least doubling, so that feeding packet by packet stays linear."""
        self._expected += deliveries
        old = self._store
        packet_room, event_room = len(old.cycle), len(old.event_packet)
        if self._packets + packets <= packet_room and self._expected <= event_room:
            return
        while packet_room < self._packets + packets:
            packet_room *= 2
        while event_room < self._expected:
            event_room *= 2
        self._store = _new_store(packet_room, event_room)
        for new, values in zip(self._store, old, strict=True):
            new[: len(values)] = values


def _new_store(packets: int, deliveries: int) -> core.PacketStore:
    def empty(size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    return core.PacketStore(
        *(empty(packets) for _ in range(_FIELDS + 3)), *(empty(deliveries) for _ in range(4))
    )
