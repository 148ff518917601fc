"""The mesh at the approximately-timed level: every handshake of the RTL, without its signals."""

from struct import Struct

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.handshake.core import enqueue, ready, run
from tlm.interconnect.handshake.deadlock import explain
from tlm.interconnect.handshake.records import (
    DELIVERY_COLUMNS,
    LATEST,
    NEVER,
    PACKET_COLUMNS,
    PORTS,
    Channel,
    Delivery,
    Int32s,
    Mesh,
    Output,
    Packet,
    What,
)
from tlm.interconnect.handshake.routes import partners
from tlm.interconnect.handshake.state import (
    aligned_zeros,
    new_mesh,
    node_addresses,
    output_column,
    set_controls,
)
from tlm.interconnect.packets import (
    Deliveries,
    Int64s,
    Meetings,
    PacketKind,
    Packets,
    ReductionGoal,
    TileSet,
)
from tlm.interconnect.zero_load import NocTiming

# Names of an enumeration are looked up slowly: these are asked for with every packet.
_CLOCK, _PENDING, _REPORTING, _REPORTS = map(
    int, (Mesh.CLOCK, Mesh.PENDING, Mesh.REPORTING, Mesh.REPORTS)
)
_UNICAST, _NEXT_DELIVERY = int(PacketKind.UNICAST), int(Packet.NEXT_DELIVERY)
_SOURCE, _PACKET, _NODE = int(Packet.SOURCE), int(Delivery.PACKET), int(Delivery.NODE)
_EJECTED, _INJECTED = EventKind.EJECTED, EventKind.INJECTED
_WHAT_INJECTED = int(What.INJECTED)
_PACKET_ROW = Struct(f"{len(Packets.__slots__)}i")  # written faster than through NumPy
_PACKET_BYTES = 4 * PACKET_COLUMNS
_BLOCK = 2048  # packets that are put into the table at once: their records stay in the cache


class HandshakeMesh:
    """A compiled mesh of the project's routers (rtl/noc/mesh.sv), with all its contention.

    Fed packet by packet and advanced in time it serves a co-simulation (`Interconnect`);
    `simulate` runs a whole list of packets at once.

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: What the routers are like.
        reductions: Whether there are reduction units. Without, and without output buffers, a mesh
            takes a third of the memory.

    Raises:
        InputError: for a mesh without a router, or one that is too large.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming, *, reductions: bool = True) -> None:
        if rows < 1 or cols < 1:
            raise InputError(f"mesh: found {rows}x{cols}; allowed: 1x1 or more")
        ready()
        self._rows = rows
        self._cols = cols
        self._timing = timing
        self._reductions = reductions
        self._mesh = new_mesh(rows, cols, timing, reductions=reductions)
        self._first = int(self._mesh[Mesh.CONTROLS])  # row of the caller's packet 0
        self._packets = aligned_zeros((self._first + 64, PACKET_COLUMNS))
        if self._first:
            set_controls(self._packets[: self._first], cols)
        self._deliveries = aligned_zeros((64, DELIVERY_COLUMNS))
        self._count = 0
        self._expected = 0
        self._operands_lacking = 0
        self._meetings = Meetings()
        # A packet's flits are those that take its channels.
        self._plain = not timing.locks and self._mesh[Mesh.CHANNEL] != Channel.RECEIVER

    @property
    def _clock(self) -> int:
        """Cycle to simulate next."""
        return self._mesh.item(_CLOCK)

    @property
    def idle(self) -> bool:
        """Nothing moves: no packet is on its way, or those that are wait for operands."""
        return self._mesh.item(_PENDING) == 0

    @property
    def waited_cycles(self) -> Int32s:
        """Cycles that packets have stood in line for each output; shape (rows, columns, 5).

        Outputs are in the order of `MeshPort`. It counts once nothing is on its way.
        """
        waited = output_column(self._mesh, Output.WAITED)
        return waited.reshape(self._rows, self._cols, PORTS)

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        """Queue a packet at a node's interface; returns its number (see `Interconnect`).

        Raises:
            InputError: for a packet that does not fit the mesh, or comes too late.
        """
        first = self._count
        self._mesh[_REPORTING] = 1
        if not self._queue_unicast(cycle, source, goal, flits):
            item = (cycle, source, goal, flits)
            self._queue(Packets.of([item], first=first, meetings=self._meetings))
        return first

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `Interconnect`).

        Operands may wait for others that are not injected yet.

        Raises:
            DeadlockError: if the packets on their way wait for each other for ever.
        """
        found = self._run(until_cycle)
        if found < 0:
            if self._operands_lacking == 0:
                raise explain(self._mesh, self._packets)
            return []
        first, cycle = self._mesh.item(_REPORTS), self._clock - 1
        reports = self._mesh[first : first + 2 * found].tolist()
        events = [
            self._event(kind, what, cycle)
            for kind, what in zip(reports[::2], reports[1::2], strict=True)
        ]
        if found > 1:
            events.sort(key=lambda event: (event.kind is _EJECTED, event.packet, event.node))
        return events

    def _run(self, until_cycle: int) -> int:
        return int(run(self._mesh, self._packets, self._deliveries, until_cycle))

    def _event(self, kind: int, what: int, cycle: int) -> Event:
        """What a report says."""
        if kind == _WHAT_INJECTED:
            source = self._packets.item(what, _SOURCE)
            return Event(_INJECTED, what - self._first, source, cycle)
        packet, node = self._deliveries.item(what, _PACKET), self._deliveries.item(what, _NODE)
        return Event(_EJECTED, packet - self._first, node, cycle)

    def check(self, packets: Packets) -> None:
        """Hold that the mesh can carry packets, which it then has.

        Raises:
            InputError: naming the first that it cannot.
        """
        self._queue(packets)

    def simulate(self, packets: Packets) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Raises:
            InputError: for packets that do not fit the mesh, or a mesh that has been used.
            DeadlockError: if packets wait for each other, or for lacking operands, for ever.
        """
        if self._count:
            raise InputError("mesh: has been used; simulate takes a new one")
        self._queue(packets)
        if self._run(NEVER) < 0:
            raise explain(self._mesh, self._packets)
        sent = self._packets[self._first : self._first + self._count]
        came = self._deliveries[: self._expected]
        multicast = packets.kind == PacketKind.MULTICAST
        if multicast.any():  # its deliveries are in a row, in order of time
            ends = sent[:, Packet.NEXT_DELIVERY]
            several = np.flatnonzero(np.repeat(multicast, np.diff(ends, prepend=0)))
            rows = came[several]
            came[several] = rows[np.lexsort((rows[:, Delivery.NODE], rows[:, Delivery.PACKET]))]
        if self._first:
            came = came - np.array([self._first, 0, 0, 0], dtype=np.int32)
        injected = sent[:, [Packet.HEAD_INJECTED, Packet.TAIL_INJECTED]]
        columns = (*injected.T, *came.T)
        return Deliveries(*(column.astype(np.int64) for column in columns))

    def _queue_unicast(
        self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int
    ) -> bool:
        """Queue a packet to one tile as `_queue` would: most are such, and come one by one.

        Returns:
            Whether it is one, and all is well with it; else nothing has changed.
        """
        if not self._plain or isinstance(goal, ReductionGoal) or len(goal) != 1:
            return False
        (row,), (col,), number = goal.rows, goal.cols, self._count
        inside = 0 <= row < self._rows and 0 <= col < self._cols
        inside = inside and 0 <= source < self._rows * self._cols
        inside = inside and goal.rows.step > 0 and goal.cols.step > 0
        if not (inside and self._clock <= cycle < LATEST and 0 < flits < LATEST):
            return False
        place = self._first + number
        self._packets = _grown(self._packets, place + 1)
        self._deliveries = _grown(self._deliveries, self._expected + 1)
        rows, cols = (row, row, goal.rows.step), (col, col, goal.cols.step)
        packet = (cycle, source, flits, _UNICAST, *rows, *cols, -1, number)
        _PACKET_ROW.pack_into(self._packets.data, place * _PACKET_BYTES, *packet)
        self._packets[place, _NEXT_DELIVERY] = self._expected
        self._expected += 1
        enqueue(self._mesh, self._packets, place, place + 1, 1)
        self._count = number + 1
        return True

    def _queue(self, packets: Packets) -> None:
        if packets.reduces.any() and not self._reductions:
            raise InputError("packets: found a reduction; this mesh was made without reductions")
        if self._timing.locks and (packets.kind != PacketKind.UNICAST).any():
            kind = PacketKind(int(packets.kind[packets.kind != PacketKind.UNICAST][0])).name
            raise InputError(
                f"packets: found a {kind.lower()}; allowed with locked channels: unicasts"
            )
        packets.check_on(self._rows, self._cols)
        start, stop = self._count, self._count + len(packets)
        first, last = packets.cycle.min(initial=LATEST), packets.cycle.max(initial=0)
        if first < self._clock or last >= LATEST:
            raise InputError(
                f"packets: found cycles {first} to {last}; allowed: {self._clock} to {LATEST - 1}"
            )
        longest = packets.flits.max(initial=0)
        if longest >= LATEST:
            raise InputError(f"packets: found {longest} flits; allowed: up to {LATEST - 1}")
        deliveries = packets.destination_counts(start)
        if not self._timing.loopback:
            to_itself = (packets.kind == PacketKind.MULTICAST) & packets.from_own_tiles(self._cols)
            deliveries = deliveries - to_itself
        reduces = packets.reduces
        opened = reduces & (packets.joint == start + np.arange(len(packets)))
        following = self._expected + np.cumsum(deliveries)
        self._expected += int(deliveries.sum())
        self._packets = _grown(self._packets, self._first + stop)
        self._deliveries = _grown(self._deliveries, self._expected)
        columns = packets.columns()
        for begin in range(0, len(packets), _BLOCK):
            some = slice(begin, begin + _BLOCK)
            table = self._packets[self._first :][start:stop][some]
            for column, values in enumerate(columns):
                table[:, column] = values[some]
            table[:, Packet.NEXT_DELIVERY] = following[some] - deliveries[some]
            if self._timing.locks:
                table[:, Packet.LENGTH] = table[:, Packet.FLITS]
            if self._mesh[Mesh.CHANNEL] == Channel.RECEIVER:
                table[:, Packet.FLITS] = 1
        if reduces.any():
            self._check_operands(start, stop)
            self._check_meetings(start + np.flatnonzero(opened))
            self._operands_lacking += int(packets.tile_counts()[opened].sum() - reduces.sum())
        first, last = self._first + start, self._first + stop
        enqueue(self._mesh, self._packets, first, last, int(deliveries.sum()))
        self._count = stop

    def _check_operands(self, start: int, stop: int) -> None:
        """Hold that operands are as long as the first one of their reduction, and of its kind."""
        new = self._packets[start:stop]
        first = self._packets[new[:, Packet.JOINT]]
        alike = [Packet.FLITS, Packet.KIND]
        other = (new[:, alike] != first[:, alike]).any(axis=1)
        if other.any():
            at_fault = int(np.nonzero(other)[0][0])
            raise InputError(
                f"packet {start + at_fault}: found {new[at_fault, Packet.FLITS]} flits and kind "
                f"{PacketKind(new[at_fault, Packet.KIND]).name}; allowed: those of the reduction's "
                f"first operand, packet {new[at_fault, Packet.JOINT]}"
            )

    def check_meeting(self, goal: TileSet | ReductionGoal) -> None:
        """Hold that no router has to combine more operands of a transfer than it can.

        Raises:
            InputError: if one has to.
        """
        if isinstance(goal, ReductionGoal) and self._timing.operand_limit < PORTS:
            self._hold_limit(self.most_meeting(goal))

    def most_meeting(self, goal: ReductionGoal) -> int:
        """Most operands of a reduction that one router combines."""
        first = goal.operands.nodes(self._cols)[0]
        row = np.array(Packets.of([(0, first, goal, 1)]).columns()).T
        packet = np.zeros((1, PACKET_COLUMNS), dtype=np.int32)
        packet[:, : row.shape[1]] = row
        return self._most_meeting(packet, 0)

    def _most_meeting(self, packets: Int32s, packet: int) -> int:
        nodes = node_addresses(self._mesh).tolist()
        inputs = (partners(self._mesh, packets, packet, node) for node in nodes)
        return max(int(bits).bit_count() for bits in inputs)

    def _check_meetings(self, first_operands: Int64s) -> None:
        """Hold that no router has to combine more operands of a reduction than it can."""
        for packet in first_operands.tolist() if self._timing.operand_limit < PORTS else []:
            self._hold_limit(self._most_meeting(self._packets, packet), f"packet {packet}: ")

    def _hold_limit(self, most: int, whose: str = "") -> None:
        limit = self._timing.operand_limit
        if most > limit:
            raise InputError(
                f"{whose}found a reduction of which {most} operands meet in a router; "
                f"allowed: {limit}"
            )


def _grown(table: Int32s, rows: int) -> Int32s:
    """A table of at least so many rows; at least doubled, so that growing row by row is linear."""
    if rows <= len(table):
        return table
    grown = aligned_zeros((max(rows, 2 * len(table)), table.shape[1]))
    grown[: len(table)] = table
    return grown
