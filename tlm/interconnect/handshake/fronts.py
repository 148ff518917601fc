"""Packets at the front of a buffer: they ask for outputs, or wait for the operands they meet."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.arbiters import first_of
from tlm.interconnect.handshake.events import ask, look_at, mark, schedule
from tlm.interconnect.handshake.flits import came_at, free_place_from, freed_at, passes_from
from tlm.interconnect.handshake.places import buffer_of, given, node_of, output_of
from tlm.interconnect.handshake.records import (
    DUE,
    LONG_AGO,
    NEVER,
    OPERANDS,
    OUTPUTS,
    PORTS,
    RESULT,
    Address,
    Channel,
    FlitBuffer,
    Mesh,
    Node,
    Output,
    Packet,
    Records,
    Ring,
    Table,
    UnitChoice,
    What,
)
from tlm.interconnect.handshake.routes import partners, receiver, to_root, tree, way
from tlm.interconnect.packets import PacketKind


@compiled
def _show_front(m: Records, packets: Table, buffer: Address) -> None:
    """The packet at the front asks for its outputs, or for its partners, once its head is there."""
    node, slot = m[buffer + FlitBuffer.NODE], m[buffer + FlitBuffer.SLOT]
    packet, start = m[buffer + FlitBuffer.FRONT_PACKET], m[buffer + FlitBuffer.FRONT_FLIT]
    if slot >= OUTPUTS:  # nobody else wants the link
        output = slot - OUTPUTS
        m[buffer + FlitBuffer.NEEDED] = m[buffer + FlitBuffer.GRANTED] = 1 << output
        m[buffer + FlitBuffer.LAST_SENT] = m[buffer + FlitBuffer.SHOWN_FROM] - 1
        look_at(m, buffer)
        return
    came, kind = came_at(m, buffer, start), packets[packet, Packet.KIND]
    if m[Mesh.CHANNEL] == Channel.RECEIVER:
        to = receiver(packets, packet)
        m[buffer + FlitBuffer.RECEIVER] = -1 if packet < m[Mesh.CONTROLS] else to
    if kind >= PacketKind.SUM and slot < RESULT:
        inputs = partners(m, packets, packet, node)
        if slot >= OPERANDS or inputs & (inputs - 1):
            m[buffer + FlitBuffer.NEEDED] = inputs
            m[buffer + FlitBuffer.SHOWN_FROM] = max(
                came + given(m, Mesh.LATENCY, buffer), m[buffer + FlitBuffer.SHOWN_FROM]
            )
            consider(m, packets, node)
            return
    if kind == PacketKind.MULTICAST:
        needed = tree(m, packets, packet, node, slot)
        m[buffer + FlitBuffer.NEEDED] = needed
        for output in range(PORTS):
            if needed >> output & 1:
                m[buffer + FlitBuffer.BRANCH_SENT + output] = 0
                _stand_in_line(m, buffer, output, came)
        return
    if kind == PacketKind.UNICAST:
        output = way(m, node, packets[packet, Packet.ROW_FIRST], packets[packet, Packet.COL_FIRST])
    else:
        output = to_root(m, packets, packet, node)
    m[buffer + FlitBuffer.NEEDED] = 1 << output
    _stand_in_line(m, buffer, output, came)


@compiled
def _stand_in_line(m: Records, buffer: Address, port: int, came: int) -> None:
    latency = given(m, Mesh.LATENCY if port else Mesh.EJECTION, buffer)
    time = max(came + latency, m[buffer + FlitBuffer.SHOWN_FROM])
    output = output_of(m[buffer + FlitBuffer.NODE], port)
    ask(m, time, output, min(m[buffer + FlitBuffer.SLOT], PORTS))


@compiled
def inputs_of(m: Records, packets: Table, node: Address, port: int) -> int:
    """A bit for each input that brings an operand of the reduction at an input; 0 if none is."""
    buffer = buffer_of(m, node, m[Mesh.OPERAND_SLOT] + port)
    if m[buffer + FlitBuffer.PACKETS] == 0:
        return 0
    if m[Mesh.OPERAND_SLOT] > 0:
        return m[buffer + FlitBuffer.NEEDED]
    packet = m[buffer + FlitBuffer.FRONT_PACKET]  # what it needs may be outputs
    if packets[packet, Packet.KIND] < PacketKind.SUM:
        return 0
    inputs = partners(m, packets, packet, node)
    return inputs if inputs & (inputs - 1) else 0


@compiled
def asks_from(m: Records, packets: Table, node: Address, port: int) -> int:
    """Cycle from which an input asks for the unit; or NEVER.

    Where a reduction has to be complete, the first of its inputs asks for all.
    """
    inputs = inputs_of(m, packets, node, port)
    if inputs == 0:
        return NEVER
    if m[Mesh.UNIT_CHOICE] == UnitChoice.FIRST:
        return m[buffer_of(m, node, m[Mesh.OPERAND_SLOT] + port) + FlitBuffer.SHOWN_FROM]
    for other in range(PORTS):
        before = m[Mesh.PLACE_OF + other] < m[Mesh.PLACE_OF + port]
        if before and inputs >> other & 1:
            return NEVER
    return ready_from(m, packets, node, port)


@compiled
def ready_from(m: Records, packets: Table, node: Address, port: int) -> int:
    """Cycle from which the reduction of which an operand is at an input may start; or NEVER."""
    inputs, operands = inputs_of(m, packets, node, port), m[Mesh.OPERAND_SLOT]
    if inputs == 0:
        return NEVER
    packet = m[buffer_of(m, node, operands + port) + FlitBuffer.FRONT_PACKET]
    joint, time = packets[packet, Packet.JOINT], LONG_AGO
    for partner in range(PORTS):
        if inputs >> partner & 1:
            buffer = buffer_of(m, node, operands + partner)
            other = m[buffer + FlitBuffer.FRONT_PACKET]
            if m[buffer + FlitBuffer.PACKETS] == 0 or packets[other, Packet.JOINT] != joint:
                return NEVER
            time = max(time, m[buffer + FlitBuffer.SHOWN_FROM])
    port = to_root(m, packets, packet, node)
    if port > 0 and m[Mesh.CUT_THROUGH] != 0:
        output = output_of(node, port)
        behind = m[output + Output.BEHIND] + OPERANDS * m[Mesh.BUFFER_SIZE]
        flit = m[node + Node.STARTED + port] + packets[packet, Packet.FLITS] - m[Mesh.DEPTH] - 1
        return max(time, freed_at(m, behind, flit))
    return time


@compiled
def consider(m: Records, packets: Table, node: Address) -> None:
    """Have a reduction chosen, or started, as soon as one may."""
    if m[node + Node.UNIT] >= 0 or m[node + Node.START_AT] == DUE:
        return
    time = _next_choice(m, packets, node)
    if time == NEVER:
        return
    if time <= m[Mesh.CLOCK]:  # a result left in this very cycle
        m[node + Node.START_AT] = DUE
        m[m[Mesh.STARTING] + m[Mesh.STARTS]] = node
        m[Mesh.STARTS] += 1
    elif m[node + Node.START_AT] < 0 or time < m[node + Node.START_AT]:
        m[node + Node.START_AT] = time
        schedule(m, time, What.START, node)


@compiled
def _next_choice(m: Records, packets: Table, node: Address) -> int:
    """Cycle in which a unit that is free is next looked at; or NEVER.

    It is after the last look, which left who is first in line waiting for a partner or for room. If
    what that one waits for comes later in the same cycle, it is that cycle again.
    """
    free, looked = m[node + Node.UNIT_FREE_FROM], m[node + Node.UNIT_LOOKED]
    chosen, time = m[node + Node.UNIT_CHOSEN], NEVER
    if m[Mesh.UNIT_LATE_LOCK] != 0:
        result = buffer_of(m, node, RESULT)
        room = free_place_from(m, result)
        if room == NEVER:
            return NEVER
        free = max(free, room)
    if chosen >= 0:
        return max(ready_from(m, packets, node, chosen), free)
    asking = asking_at(m, packets, node) if looked == m[Mesh.CLOCK] else 0
    waiting = first_asking(m, node, asking)
    for port in range(PORTS):
        if m[Mesh.UNIT_LATE_LOCK] != 0:
            from_when = ready_from(m, packets, node, port)
        else:
            from_when = asks_from(m, packets, node, port)
        if max(from_when, free) > looked or port == waiting:
            time = min(time, max(from_when, free))
    return time


@compiled
def asking_at(m: Records, packets: Table, node: Address) -> int:
    """A bit for each place in line of which the input asks for the unit."""
    asking = 0
    for port in range(PORTS):
        asks = asks_from(m, packets, node, port) <= m[Mesh.CLOCK]
        asking |= asks << m[Mesh.PLACE_OF + port]
    return asking


@compiled
def first_asking(m: Records, node: Address, asking: int) -> int:
    """Input that is first in line of those that ask for the unit; or -1."""
    if asking == 0:
        return -1
    return m[Mesh.AT_PLACE + first_of(m[Mesh.UNIT_ARBITER], m[node + Node.UNIT_PREFERRED], asking)]


@compiled
def _queue(m: Records, buffer: Address) -> Address:
    """The ring of the packets behind the front one."""
    return buffer + FlitBuffer.RINGS + Ring.QUEUE * m[Mesh.RING_SIZE]


@compiled
def enter(m: Records, packets: Table, buffer: Address, packet: int, start: int) -> None:
    """A packet's head has come into a buffer as flit ``start``."""
    mask, count = m[Mesh.MASK], m[buffer + FlitBuffer.PACKETS]
    m[buffer + FlitBuffer.PACKETS] = count + 1
    if count == 0:
        m[buffer + FlitBuffer.FRONT_PACKET], m[buffer + FlitBuffer.FRONT_FLIT] = packet, start
        _show_front(m, packets, buffer)
    else:
        place = _queue(m, buffer) + 2 * ((m[buffer + FlitBuffer.FRONT] + count) & mask)
        m[place], m[place + 1] = packet, start


@compiled
def leave(m: Records, packets: Table, buffer: Address, tail: int) -> None:
    """The packet at the front has left, its tail in cycle ``tail``."""
    m[buffer + FlitBuffer.SHOWN_FROM] = tail + 1
    front = (m[buffer + FlitBuffer.FRONT] + 1) & m[Mesh.MASK]
    m[buffer + FlitBuffer.FRONT] = front
    m[buffer + FlitBuffer.PACKETS] -= 1
    if m[buffer + FlitBuffer.PACKETS] > 0:
        place = _queue(m, buffer) + 2 * front
        m[buffer + FlitBuffer.FRONT_PACKET] = m[place]
        m[buffer + FlitBuffer.FRONT_FLIT] = m[place + 1]
        _show_front(m, packets, buffer)


@compiled
def arrived(m: Records, buffer: Address) -> None:
    """Flits have come into a buffer: what may take them is looked at."""
    if m[Mesh.OPERAND_SLOT] <= m[buffer + FlitBuffer.SLOT] < RESULT:
        node = m[buffer + FlitBuffer.NODE]
        if m[node + Node.UNIT] >= 0:
            look_at(m, buffer_of(m, node, RESULT))
    if m[buffer + FlitBuffer.GRANTED]:
        look_at(m, buffer)


@compiled
def wait_for_room(m: Records, output: Address) -> int:
    """Have an output that is nobody's looked at when a flit can go; that cycle, or NEVER."""
    room = passes_from(m, output)
    if m[Mesh.CLOCK] < room < NEVER and m[output + Output.ROOM_AT] != room:
        m[output + Output.ROOM_AT] = room
        schedule(m, room, What.NOBODY, output)
    return room


@compiled
def freed(m: Records, packets: Table, buffer: Address) -> None:
    """Places of a buffer have become free: what may fill them is looked at."""
    output = m[buffer + FlitBuffer.FEEDER]
    if output == 0:
        look_at(m, buffer)
        return
    slot, node, owner = m[buffer + FlitBuffer.SLOT], node_of(m, output), m[output + Output.OWNER]
    if slot < OUTPUTS and m[Mesh.OUTPUT_DEPTH] > 0:
        arrived(m, buffer_of(m, node, OUTPUTS + m[output + Output.PORT]))
    if OPERANDS <= slot < RESULT:
        consider(m, packets, node)
    late_lock = owner < 0 and m[Mesh.LATE_LOCK] != 0
    if late_lock and m[output + Output.ASKING] and wait_for_room(m, output) == m[Mesh.CLOCK]:
        mark(m, output)
    if owner >= 0:
        requester = RESULT if owner == PORTS else owner
        look_at(m, buffer_of(m, node, requester))
