"""Why a mesh stands still: which packets wait for each other, and where."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.places import buffer_of, given, node_of, output_of
from tlm.interconnect.handshake.records import Int32s
from tlm.interconnect.handshake.routes import partners
from tlm.interconnect.handshake.state import node_addresses
from tlm.interconnect.packets import Kind

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
    waiting = sorted({state.packet(buffer) for buffer in fronts})
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # In the library's list each follows what it waits for, and the last is the first.
        cycle = [state.describe(buffer) for buffer in reversed(error.args[1][1:])]
    too_long = [number for number in waiting if state.is_too_long(number)]
    return DeadlockError(int(m[at.CLOCK]), waiting, cycle, too_long)


class _Standstill:
    """A mesh in which nothing is pending; buffers are named by their addresses."""

    def __init__(self, m: Int32s, packets: Int32s) -> None:
        self._m = m
        self._packets = packets

    def fronts(self) -> Iterator[int]:
        """Buffers that hold a packet."""
        m = self._m
        size = int(m[at.BUFFER_SIZE])
        for node in node_addresses(m).tolist():
            end = node + int(m[at.NODE_SIZE])
            for buffer in range(node + at.BUFFERS, end, size):
                if m[buffer + at.PACKETS] > 0:
                    yield buffer

    def packet(self, buffer: int) -> int:
        """Number of the packet at the front."""
        return int(self._m[buffer + at.FRONT_PACKET])

    def is_too_long(self, packet: int) -> bool:
        """Whether a packet that needs room for all of it is longer than a buffer."""
        whole = self._m[at.CUT_THROUGH] != 0 and self._packets[packet, at.KIND] != Kind.UNICAST
        places = self._m[at.DEPTH] + self._m[at.OUTPUT_DEPTH]
        return bool(whole and self._packets[packet, at.FLITS] > places)

    def describe(self, buffer: int) -> str:
        """The packet at the front, and where it is."""
        node, slot = self._m[buffer + at.NODE], int(self._m[buffer + at.SLOT])
        if slot == at.RESULT:
            where = "from the reduction unit"
        elif slot >= at.OUTPUTS:
            where = f"on its way to {_PORTS[slot - at.OUTPUTS]}"
        else:
            where = f"from {_PORTS[slot % at.OPERANDS]}"
        tile = f"{self._m[node + at.ROW]},{self._m[node + at.COL]}"
        return f"packet {self.packet(buffer)} at tile {tile} {where}"

    def waits_for(self, buffer: int) -> Iterator[int]:
        """Buffers whose front packets have to go on first."""
        m = self._m
        inputs = self._inputs(buffer)
        if inputs:
            yield from self._partners(buffer, inputs)
            return
        flits = int(self._packets[self.packet(buffer), at.FLITS])
        gone = int(m[buffer + at.LEFT] - m[buffer + at.FRONT_FLIT])
        for port in range(at.PORTS):
            bit = 1 << port
            if not m[buffer + at.NEEDED] & bit or self._sent(buffer, port) == flits:
                continue
            if m[at.FORK] != at.OWN_PACE and self._sent(buffer, port) > gone:
                continue  # it waits for the other branches
            output = int(output_of(m[buffer + at.NODE], port))
            if not m[buffer + at.GRANTED] & bit:
                if m[output + at.OWNER] >= 0:
                    yield self._requester(output)
            elif self._sent_all_that_came(buffer, port):
                yield from self._feeder(buffer)
            else:
                yield self._target(buffer, output)

    def _inputs(self, buffer: int) -> int:
        """A bit for each input that brings a partner of the operand at the front; 0 if none is."""
        m, slot, packet = self._m, int(self._m[buffer + at.SLOT]), self.packet(buffer)
        if slot >= at.RESULT or self._packets[packet, at.KIND] < Kind.SUM:
            return 0
        inputs = int(partners(m, self._packets, packet, m[buffer + at.NODE]))
        return inputs if slot >= at.OPERANDS or inputs & (inputs - 1) else 0

    def _sent(self, buffer: int, port: int) -> int:
        """Flits that a branch of the front packet has sent."""
        m, needed = self._m, int(self._m[buffer + at.NEEDED])
        if needed & (needed - 1):
            return int(m[buffer + at.BRANCH_SENT + port])
        return int(m[buffer + at.LEFT] - m[buffer + at.FRONT_FLIT])

    def _slot(self, node: int, slot: int) -> int:
        return int(buffer_of(self._m, node, slot))

    def _node(self, output: int) -> int:
        return int(node_of(self._m, output))

    def _requester(self, output: int) -> int:
        owner = int(self._m[output + at.OWNER])
        return self._slot(self._node(output), at.RESULT if owner == at.PORTS else owner)

    def _sent_all_that_came(self, buffer: int, port: int) -> bool:
        start = int(self._m[buffer + at.FRONT_FLIT])
        return bool(start + self._sent(buffer, port) == self._m[buffer + at.WRITTEN])

    def _feeder(self, buffer: int) -> Iterator[int]:
        """The buffer that holds the rest of a packet, if it may send it."""
        m, output = self._m, int(self._m[buffer + at.FEEDER])
        full = m[buffer + at.WRITTEN] - m[buffer + at.LEFT] == given(m, at.PLACES, buffer)
        if output == 0 or full:
            return
        if m[at.OUTPUT_DEPTH] > 0 and m[buffer + at.SLOT] < at.OUTPUTS:
            yield self._slot(self._node(output), at.OUTPUTS + int(m[output + at.PORT]))
        elif m[output + at.OWNER] >= 0:
            yield self._requester(output)

    def _target(self, buffer: int, output: int) -> int:
        """The buffer in which there is no room."""
        m = self._m
        reduces = self._packets[self.packet(buffer), at.KIND] >= Kind.SUM
        apart = int(m[at.OPERAND_SLOT]) if reduces else 0
        behind = int(m[output + at.BEHIND]) + apart * int(m[at.BUFFER_SIZE])
        depth = m[at.OUTPUT_DEPTH if m[output + at.PORT] else at.TILE_DEPTH]
        if m[buffer + at.SLOT] < at.OUTPUTS and depth > 0:
            held = self._slot(self._node(output), at.OUTPUTS + int(m[output + at.PORT]))
            return held if m[held + at.PACKETS] > 0 else behind
        return behind

    def _partners(self, buffer: int, inputs: int) -> Iterator[int]:
        """What keeps the other operands of a reduction away, or else its way out."""
        m, node = self._m, int(self._m[buffer + at.NODE])
        own = self.packet(buffer)
        for port in range(at.PORTS):
            if inputs >> port & 1:
                yield from self._absence(node, port, own)
        result = self._slot(node, at.RESULT)
        if m[node + at.UNIT] >= 0 and m[result + at.PACKETS] > 0:
            yield result

    def _absence(self, node: int, port: int, packet: int) -> Iterator[int]:
        """Buffers whose front packets keep a reduction's operand from an input."""
        m, joint = self._m, self._packets[packet, at.JOINT]
        buffer = self._slot(node, int(m[at.OPERAND_SLOT]) + port)
        if m[buffer + at.PACKETS] > 0:
            if self._packets[self.packet(buffer), at.JOINT] != joint:
                yield buffer
            return
        if port == 0:  # behind what the tile cannot put in
            for slot in (0, int(m[at.OPERAND_SLOT])):
                if m[self._slot(node, slot) + at.PACKETS] > 0:
                    yield self._slot(node, slot)
            return
        output = int(m[buffer + at.FEEDER])
        before = self._node(output)
        held = self._slot(before, at.OUTPUTS + int(m[output + at.PORT]))
        if m[at.OUTPUT_DEPTH] > 0 and m[held + at.PACKETS] > 0:
            yield held
        if m[output + at.OWNER] >= 0:
            yield self._requester(output)
        result = self._slot(before, at.RESULT)
        if m[result + at.PACKETS] > 0:
            yield result
        inputs = partners(m, self._packets, packet, before)
        for other in range(at.PORTS):
            if inputs >> other & 1:
                there = self._slot(before, int(m[at.OPERAND_SLOT]) + other)
                if m[there + at.PACKETS] > 0:
                    yield there
                else:
                    yield from self._absence(before, other, packet)
