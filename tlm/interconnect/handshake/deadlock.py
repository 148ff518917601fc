"""Why a mesh stands still: which packets wait for each other, and where."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tlm.interconnect.handshake.fronts import asking_at, first_asking
from tlm.interconnect.handshake.places import behind_switch, buffer_of, given, node_of, output_of
from tlm.interconnect.handshake.records import (
    OPERANDS,
    OUTPUTS,
    PORTS,
    RESULT,
    FlitBuffer,
    Fork,
    Int32s,
    Mesh,
    Node,
    Output,
    Packet,
)
from tlm.interconnect.handshake.routes import partners, to_root
from tlm.interconnect.handshake.state import node_addresses
from tlm.interconnect.packets import PacketKind

_PORTS = ("the tile", "the north", "the east", "the south", "the west")


class DeadlockError(RuntimeError):
    """Packets that cannot go on, ever.

    Attributes:
        waiting: Numbers of the packets at the front of a buffer.
        cycle: Descriptions of packets each of which waits for the next one, and the last one for
            the first; empty if something else holds them up.
        too_long: Numbers of packets that find no room in an empty buffer.
    """

    def __init__(
        self, clock: int, waiting: list[int], cycle: list[str], too_long: list[int]
    ) -> None:
        super().__init__(clock, waiting, cycle, too_long)
        self.waiting = waiting
        self.cycle = cycle
        self.too_long = too_long
        self._clock = clock

    def __str__(self) -> str:
        """What waits for what, in words."""
        found = f"no flit can move after cycle {self._clock}; waiting packets: {self.waiting}"
        if self.cycle:
            return f"{found}; {' waits for '.join([*self.cycle, 'the first one'])}"
        if self.too_long:
            return f"{found}; longer than a buffer: {self.too_long}"
        return f"{found}, for operands that have not come"


def explain(m: Int32s, packets: Int32s) -> DeadlockError:
    """What a mesh waits for in which nothing is pending, though deliveries are owed."""
    state = _Standstill(m, packets)
    fronts = list(state.fronts())
    graph = {buffer: set(state.waits_for(buffer)) for buffer in fronts}
    waiting = sorted({state.number(buffer) for buffer in fronts})
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # In the library's list each follows what it waits for, and the last is the first.
        cycle = [state.describe(buffer) for buffer in reversed(error.args[1][1:])]
    too_long = sorted({state.number(buffer) for buffer in fronts if state.is_too_long(buffer)})
    return DeadlockError(int(m[Mesh.CLOCK]), waiting, cycle, too_long)


class _Standstill:
    """A mesh in which nothing is pending; buffers are named by their addresses."""

    def __init__(self, m: Int32s, packets: Int32s) -> None:
        self._m = m
        self._packets = packets

    def fronts(self) -> Iterator[int]:
        """Buffers that hold a packet."""
        m = self._m
        size = int(m[Mesh.BUFFER_SIZE])
        for node in node_addresses(m).tolist():
            end = node + int(m[Mesh.NODE_SIZE])
            for buffer in range(node + Node.BUFFERS, end, size):
                if m[buffer + FlitBuffer.PACKETS] > 0:
                    yield buffer

    def packet(self, buffer: int) -> int:
        """The packet at the front."""
        return int(self._m[buffer + FlitBuffer.FRONT_PACKET])

    def number(self, buffer: int) -> int:
        """Its number to the caller; of a request or an acknowledge that of the message."""
        m, packet, controls = self._m, self.packet(buffer), int(self._m[Mesh.CONTROLS])
        if packet < controls:
            sender = node_addresses(m)[packet % m[Mesh.NODE_COUNT]]
            packet = int(m[sender + Node.QUEUE_HEAD])
        return packet - controls

    def is_too_long(self, buffer: int) -> bool:
        """Whether the packet at the front needs room for all of it and is longer than a buffer."""
        packet = self.packet(buffer)
        m, kind = self._m, self._packets[packet, Packet.KIND]
        whole = m[Mesh.CUT_THROUGH] != 0 and kind != PacketKind.UNICAST
        places = m[Mesh.DEPTH] + m[Mesh.OUTPUT_DEPTH]
        return bool(whole and self._packets[packet, Packet.FLITS] > places)

    def describe(self, buffer: int) -> str:
        """The packet at the front, and where it is."""
        node, slot = self._m[buffer + FlitBuffer.NODE], int(self._m[buffer + FlitBuffer.SLOT])
        if slot == RESULT:
            where = "from the reduction unit"
        elif slot >= OUTPUTS:
            where = f"on its way to {_PORTS[slot - OUTPUTS]}"
        else:
            where = f"from {_PORTS[slot % OPERANDS]}"
        tile = f"{self._m[node + Node.ROW]},{self._m[node + Node.COL]}"
        return f"packet {self.number(buffer)} at tile {tile} {where}"

    def waits_for(self, buffer: int) -> Iterator[int]:
        """Buffers whose front packets have to go on first."""
        m = self._m
        inputs = self._inputs(buffer)
        if inputs:
            yield from self._partners(buffer, inputs)
            return
        flits = int(self._packets[self.packet(buffer), Packet.FLITS])
        gone = int(m[buffer + FlitBuffer.LEFT] - m[buffer + FlitBuffer.FRONT_FLIT])
        for port in range(PORTS):
            bit = 1 << port
            if not m[buffer + FlitBuffer.NEEDED] & bit or self._sent(buffer, port) == flits:
                continue
            if m[Mesh.FORK] != Fork.OWN_PACE and self._sent(buffer, port) > gone:
                continue  # it waits for the other branches
            output = int(output_of(m[buffer + FlitBuffer.NODE], port))
            if not m[buffer + FlitBuffer.GRANTED] & bit:
                if m[output + Output.OWNER] >= 0:
                    yield self._requester(output)
            elif self._sent_all_that_came(buffer, port):
                yield from self._feeder(buffer)
            else:
                yield self._target(buffer, output)

    def _inputs(self, buffer: int) -> int:
        """A bit for each input that brings a partner of the operand at the front; 0 if none is."""
        m, slot, packet = self._m, int(self._m[buffer + FlitBuffer.SLOT]), self.packet(buffer)
        if slot >= RESULT or self._packets[packet, Packet.KIND] < PacketKind.SUM:
            return 0
        inputs = int(partners(m, self._packets, packet, m[buffer + FlitBuffer.NODE]))
        return inputs if slot >= OPERANDS or inputs & (inputs - 1) else 0

    def _sent(self, buffer: int, port: int) -> int:
        """Flits that a branch of the front packet has sent."""
        m, needed = self._m, int(self._m[buffer + FlitBuffer.NEEDED])
        if needed & (needed - 1):
            return int(m[buffer + FlitBuffer.BRANCH_SENT + port])
        return int(m[buffer + FlitBuffer.LEFT] - m[buffer + FlitBuffer.FRONT_FLIT])

    def _requester(self, output: int) -> int:
        m = self._m
        owner = int(m[output + Output.OWNER])
        return buffer_of(m, node_of(m, output), RESULT if owner == PORTS else owner)

    def _sent_all_that_came(self, buffer: int, port: int) -> bool:
        start = int(self._m[buffer + FlitBuffer.FRONT_FLIT])
        return bool(start + self._sent(buffer, port) == self._m[buffer + FlitBuffer.WRITTEN])

    def _feeder(self, buffer: int) -> Iterator[int]:
        """The buffer that holds the rest of a packet, if it may send it."""
        m, output = self._m, int(self._m[buffer + FlitBuffer.FEEDER])
        full = m[buffer + FlitBuffer.WRITTEN] - m[buffer + FlitBuffer.LEFT] == given(
            m, Mesh.PLACES, buffer
        )
        if output == 0 or full:
            return
        if m[Mesh.OUTPUT_DEPTH] > 0 and m[buffer + FlitBuffer.SLOT] < OUTPUTS:
            yield behind_switch(m, node_of(m, output), int(m[output + Output.PORT]))
        elif m[output + Output.OWNER] >= 0:
            yield self._requester(output)

    def _target(self, buffer: int, output: int) -> int:
        """The buffer in which there is no room."""
        m = self._m
        if m[buffer + FlitBuffer.SLOT] < OUTPUTS:
            held = behind_switch(m, node_of(m, output), int(m[output + Output.PORT]))
            if held != m[output + Output.BEHIND] and m[held + FlitBuffer.PACKETS] > 0:
                return held
        reduces = self._packets[self.packet(buffer), Packet.KIND] >= PacketKind.SUM
        apart = int(m[Mesh.OPERAND_SLOT]) if reduces else 0
        return int(m[output + Output.BEHIND] + apart * m[Mesh.BUFFER_SIZE])

    def _partners(self, buffer: int, inputs: int) -> Iterator[int]:
        """What keeps the other operands of a reduction away, or else its way out."""
        m, node = self._m, int(self._m[buffer + FlitBuffer.NODE])
        own = self.packet(buffer)
        for port in range(PORTS):
            if inputs >> port & 1:
                yield from self._absence(node, port, own)
        result = buffer_of(m, node, RESULT)
        if m[node + Node.UNIT] >= 0 and m[result + FlitBuffer.PACKETS] > 0:
            yield result
        yield from self._kept_unit(node, own)
        yield from self._kept_room(node, own)

    def _kept_unit(self, node: int, packet: int) -> Iterator[int]:
        """The operand of another reduction for which a free unit is kept."""
        m = self._m
        first = int(first_asking(m, node, int(asking_at(m, self._packets, node))))
        if m[node + Node.UNIT] >= 0 or first < 0:
            return
        chosen = int(m[node + Node.UNIT_CHOSEN])
        held = buffer_of(m, node, int(m[Mesh.OPERAND_SLOT]) + (first if chosen < 0 else chosen))
        joint = self._packets[packet, Packet.JOINT]
        if self._packets[self.packet(held), Packet.JOINT] != joint:
            yield held

    def _kept_room(self, node: int, packet: int) -> Iterator[int]:
        """The operand behind the output of a result that waits for room for all of itself."""
        m, port = self._m, int(to_root(self._m, self._packets, packet, node))
        if m[node + Node.UNIT] >= 0 or port == 0 or m[Mesh.CUT_THROUGH] == 0:
            return
        behind = int(m[output_of(node, port) + Output.BEHIND] + OPERANDS * m[Mesh.BUFFER_SIZE])
        sent = m[node + Node.STARTED + port] + self._packets[packet, Packet.FLITS]
        if sent - m[Mesh.DEPTH] > m[behind + FlitBuffer.LEFT]:
            yield behind

    def _absence(self, node: int, port: int, packet: int) -> Iterator[int]:
        """Buffers whose front packets keep a reduction's operand from an input."""
        m, joint = self._m, self._packets[packet, Packet.JOINT]
        buffer = buffer_of(m, node, int(m[Mesh.OPERAND_SLOT]) + port)
        if m[buffer + FlitBuffer.PACKETS] > 0:
            if self._packets[self.packet(buffer), Packet.JOINT] != joint:
                yield buffer
            return
        if port == 0:  # behind what the tile cannot put in
            for slot in (0, int(m[Mesh.OPERAND_SLOT])):
                if m[buffer_of(m, node, slot) + FlitBuffer.PACKETS] > 0:
                    yield buffer_of(m, node, slot)
            return
        output = int(m[buffer + FlitBuffer.FEEDER])
        before = node_of(m, output)
        held = buffer_of(m, before, OUTPUTS + int(m[output + Output.PORT]))
        if m[Mesh.OUTPUT_DEPTH] > 0 and m[held + FlitBuffer.PACKETS] > 0:
            yield held
        if m[output + Output.OWNER] >= 0:
            yield self._requester(output)
        result = buffer_of(m, before, RESULT)
        if m[result + FlitBuffer.PACKETS] > 0:
            yield result
        inputs = partners(m, self._packets, packet, before)
        for other in range(PORTS):
            if inputs >> other & 1:
                there = buffer_of(m, before, int(m[Mesh.OPERAND_SLOT]) + other)
                if m[there + FlitBuffer.PACKETS] > 0:
                    yield there
                else:
                    yield from self._absence(before, other, packet)
