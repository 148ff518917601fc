"""Packets at the front of a buffer: they ask for outputs, or wait for the operands they meet."""

from tlm.compiled import compiled
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.events import ask, look_at, mark, schedule
from tlm.interconnect.handshake.flits import came_at, free_place_from, left_at
from tlm.interconnect.handshake.places import buffer_of, given, node_of, output_of
from tlm.interconnect.handshake.records import Address, Records, Table
from tlm.interconnect.handshake.routes import partners, to_root, tree, way

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def _show_front(m: Records, packets: Table, buffer: Address) -> None:
    """The packet at the front asks for its outputs, or for its partners, once its head is there."""
    node, slot = m[buffer + at.NODE], m[buffer + at.SLOT]
    packet, start = m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT]
    if slot >= at.OUTPUTS:  # nobody else wants the link
        output = slot - at.OUTPUTS
        m[buffer + at.NEEDED] = m[buffer + at.GRANTED] = 1 << output
        m[buffer + at.LAST_SENT] = m[buffer + at.SHOWN_FROM] - 1
        look_at(m, buffer)
        return
    came, kind = came_at(m, buffer, start), packets[packet, at.KIND]
    if kind >= at.SUM and slot < at.RESULT:
        inputs = partners(m, packets, packet, node)
        if slot >= at.OPERANDS or inputs & (inputs - 1):
            m[buffer + at.NEEDED] = inputs
            m[buffer + at.SHOWN_FROM] = max(
                came + given(m, at.LATENCY, buffer), m[buffer + at.SHOWN_FROM]
            )
            consider(m, packets, node)
            return
    if kind == at.MULTICAST:
        needed = tree(m, packets, packet, node, slot)
        m[buffer + at.NEEDED] = needed
        for output in range(at.PORTS):
            if needed >> output & 1:
                m[buffer + at.BRANCH_SENT + output] = 0
                _stand_in_line(m, buffer, output, came)
        return
    if kind == at.UNICAST:
        output = way(m, node, packets[packet, at.ROW_FIRST], packets[packet, at.COL_FIRST])
    else:
        output = to_root(m, packets, packet, node)
    m[buffer + at.NEEDED] = 1 << output
    _stand_in_line(m, buffer, output, came)


@compiled
def _stand_in_line(m: Records, buffer: Address, port: int, came: int) -> None:
    latency = given(m, at.LATENCY if port else at.EJECTION, buffer)
    time = max(came + latency, m[buffer + at.SHOWN_FROM])
    output = output_of(m[buffer + at.NODE], port)
    ask(m, time, output, min(m[buffer + at.SLOT], at.PORTS))


@compiled
def ready_from(m: Records, packets: Table, node: Address, port: int) -> int:
    """Cycle from which the reduction whose first operand is at an input may start; or NEVER."""
    operands = m[at.OPERAND_SLOT]
    first = buffer_of(m, node, operands + port)
    if m[first + at.PACKETS] == 0:
        return at.NEVER
    packet, time = m[first + at.FRONT_PACKET], at.LONG_AGO
    inputs = m[first + at.NEEDED]
    if m[at.OPERAND_SLOT] == 0:  # what is needed may be outputs
        inputs = partners(m, packets, packet, node) if packets[packet, at.KIND] >= at.SUM else 0
        if inputs & (inputs - 1) == 0:
            return at.NEVER
    if inputs & ((1 << port) - 1):
        return at.NEVER
    for partner in range(at.PORTS):
        if inputs >> partner & 1:
            buffer = buffer_of(m, node, operands + partner)
            other = m[buffer + at.FRONT_PACKET]
            if m[buffer + at.PACKETS] == 0 or packets[other, at.JOINT] != packets[packet, at.JOINT]:
                return at.NEVER
            time = max(time, m[buffer + at.SHOWN_FROM])
    port = to_root(m, packets, packet, node)
    if port > 0 and m[at.CUT_THROUGH] != 0:
        output = output_of(node, port)
        behind = m[output + at.BEHIND] + at.OPERANDS * m[at.BUFFER_SIZE]
        flit = m[node + at.STARTED + port] + packets[packet, at.FLITS] - m[at.DEPTH] - 1
        if flit >= m[behind + at.LEFT]:
            return at.NEVER
        if flit >= 0:
            time = max(time, left_at(m, behind, flit) + given(m, at.RETURN, behind))
    return time


@compiled
def consider(m: Records, packets: Table, node: Address) -> None:
    """Have a reduction started as soon as one may."""
    if m[node + at.UNIT] >= 0 or m[node + at.START_AT] == at.DUE:
        return
    time = at.NEVER
    for port in range(at.PORTS):
        time = min(time, ready_from(m, packets, node, port))
    if time == at.NEVER:
        return
    time = max(time, m[node + at.UNIT_FREE_FROM])
    if m[node + at.START_AT] < 0 or time < m[node + at.START_AT]:
        m[node + at.START_AT] = time
        schedule(m, time, at.START, node)


@compiled
def _queue(m: Records, buffer: Address) -> Address:
    """The ring of the packets behind the front one."""
    return buffer + at.RINGS + at.QUEUE * m[at.RING_SIZE]


@compiled
def enter(m: Records, packets: Table, buffer: Address, packet: int, start: int) -> None:
    """A packet's head has come into a buffer as flit ``start``."""
    mask, count = m[at.MASK], m[buffer + at.PACKETS]
    m[buffer + at.PACKETS] = count + 1
    if count == 0:
        m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT] = packet, start
        _show_front(m, packets, buffer)
    else:
        place = _queue(m, buffer) + 2 * ((m[buffer + at.FRONT] + count) & mask)
        m[place], m[place + 1] = packet, start


@compiled
def leave(m: Records, packets: Table, buffer: Address, tail: int) -> None:
    """The packet at the front has left, its tail in cycle ``tail``."""
    m[buffer + at.SHOWN_FROM] = tail + 1
    front = (m[buffer + at.FRONT] + 1) & m[at.MASK]
    m[buffer + at.FRONT] = front
    m[buffer + at.PACKETS] -= 1
    if m[buffer + at.PACKETS] > 0:
        place = _queue(m, buffer) + 2 * front
        m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT] = m[place], m[place + 1]
        _show_front(m, packets, buffer)


@compiled
def arrived(m: Records, buffer: Address) -> None:
    """Flits have come into a buffer: what may take them is looked at."""
    if m[at.OPERAND_SLOT] <= m[buffer + at.SLOT] < at.RESULT:
        node = m[buffer + at.NODE]
        if m[node + at.UNIT] >= 0:
            look_at(m, buffer_of(m, node, at.RESULT))
    if m[buffer + at.GRANTED]:
        look_at(m, buffer)


@compiled
def wait_for_room(m: Records, output: Address) -> None:
    """Have an output that is nobody's looked at when a flit can go, if that is known."""
    room = free_place_from(m, output)
    if m[at.CLOCK] < room < at.NEVER and m[output + at.ROOM_AT] != room:
        m[output + at.ROOM_AT] = room
        schedule(m, room, at.NOBODY, output)


@compiled
def freed(m: Records, packets: Table, buffer: Address) -> None:
    """Places of a buffer have become free: what may fill them is looked at."""
    output = m[buffer + at.FEEDER]
    if output == 0:
        look_at(m, buffer)
        return
    slot, node, owner = m[buffer + at.SLOT], node_of(m, output), m[output + at.OWNER]
    if slot < at.OUTPUTS and m[at.OUTPUT_DEPTH] > 0:
        arrived(m, buffer_of(m, node, at.OUTPUTS + m[output + at.PORT]))
    if at.OPERANDS <= slot < at.RESULT:
        consider(m, packets, node)
    if owner < 0 and m[at.LATE_LOCK] != 0 and m[output + at.ASKING]:
        wait_for_room(m, output)
        if free_place_from(m, output) == m[at.CLOCK]:
            mark(m, output)
    if owner >= 0:
        requester = at.RESULT if owner == at.PORTS else owner
        look_at(m, buffer_of(m, node, requester))
