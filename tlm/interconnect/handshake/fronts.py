"""Packets at the front of a buffer: they ask for outputs, or wait for the operands they meet."""

from tlm.compiled import Address, address, compiled
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.events import ask, look_at, mark, schedule
from tlm.interconnect.handshake.flits import came_at, free_place_from, left_at
from tlm.interconnect.handshake.records import Records, Table
from tlm.interconnect.handshake.routes import partners, to_root, tree, way

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def front(m: Records, buffer: Address) -> int:
    """Ring place of the packet at the front."""
    return buffer + at.RINGS + at.QUEUE * m[at.RING_SIZE] + 2 * m[buffer + at.FRONT]


@compiled
def _show_front(m: Records, packets: Table, buffer: Address) -> None:
    """The packet at the front asks for its outputs, or for its partners, once its head is there."""
    node, slot = m[buffer + at.NODE], m[buffer + at.SLOT]
    place = front(m, buffer)
    packet, start = m[place], m[place + 1]
    if slot >= at.OUTPUTS:  # nobody else wants the link
        output = slot - at.OUTPUTS
        m[buffer + at.NEEDED] = m[buffer + at.GRANTED] = 1 << output
        m[buffer + at.SENT + output] = 0
        m[buffer + at.LAST_SENT + output] = m[buffer + at.SHOWN_FROM] - 1
        look_at(m, buffer)
        return
    came, kind = came_at(m, buffer, start), packets[packet, at.KIND]
    if kind >= at.SUM and slot < at.RESULT:
        inputs = partners(m, packets, packet, node)
        if slot >= at.OPERANDS or inputs & (inputs - 1):
            m[buffer + at.NEEDED] = inputs
            m[buffer + at.SHOWN_FROM] = max(
                came + m[buffer + at.LATENCY], m[buffer + at.SHOWN_FROM]
            )
            consider(m, packets, node)
            return
    if kind == at.MULTICAST:
        needed = tree(m, packets, packet, node, slot)
        m[buffer + at.NEEDED] = needed
        for output in range(at.PORTS):
            if needed >> output & 1:
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
    m[buffer + at.SENT + port] = 0
    latency = m[buffer + at.LATENCY] if port else m[buffer + at.EJECTION]
    time = max(came + latency, m[buffer + at.SHOWN_FROM])
    output = address(m[m[buffer + at.NODE] + at.NODE_OUTPUTS] + port * at.OUTPUT_COLUMNS)
    ask(m, time, output, min(m[buffer + at.SLOT], at.PORTS))


@compiled
def ready_from(m: Records, packets: Table, node: Address, port: int) -> int:
    """Cycle from which the reduction whose first operand is at an input may start; or NEVER."""
    size = m[at.BUFFER_SIZE]
    base = address(m[node + at.BUFFERS] + m[at.OPERAND_SLOT] * size)
    first = base + port * size
    if m[first + at.PACKETS] == 0:
        return at.NEVER
    packet, time = m[front(m, first)], at.LONG_AGO
    inputs = m[first + at.NEEDED]
    if m[at.OPERAND_SLOT] == 0:  # what is needed may be outputs
        inputs = partners(m, packets, packet, node) if packets[packet, at.KIND] >= at.SUM else 0
        if inputs & (inputs - 1) == 0:
            return at.NEVER
    if inputs & ((1 << port) - 1):
        return at.NEVER
    for partner in range(at.PORTS):
        if inputs >> partner & 1:
            buffer = base + partner * size
            other = m[front(m, buffer)]
            if m[buffer + at.PACKETS] == 0 or packets[other, at.JOINT] != packets[packet, at.JOINT]:
                return at.NEVER
            time = max(time, m[buffer + at.SHOWN_FROM])
    port = to_root(m, packets, packet, node)
    if port > 0 and m[at.CUT_THROUGH] != 0:
        output = address(m[node + at.NODE_OUTPUTS] + port * at.OUTPUT_COLUMNS)
        behind = address(m[output + at.BEHIND] + at.OPERANDS * size)
        flit = m[node + at.STARTED + port] + packets[packet, at.FLITS] - m[at.DEPTH] - 1
        if flit >= m[behind + at.LEFT]:
            return at.NEVER
        if flit >= 0:
            time = max(time, left_at(m, behind, flit) + m[behind + at.RETURN])
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
def enter(m: Records, packets: Table, buffer: Address, packet: int, start: int) -> None:
    """A packet's head has come into a buffer as flit ``start``."""
    mask, count = m[at.MASK], m[buffer + at.PACKETS]
    place = (
        buffer + at.RINGS + at.QUEUE * m[at.RING_SIZE] + 2 * ((m[buffer + at.FRONT] + count) & mask)
    )
    m[place], m[place + 1] = packet, start
    m[buffer + at.PACKETS] = count + 1
    if count == 0:
        _show_front(m, packets, buffer)


@compiled
def leave(m: Records, packets: Table, buffer: Address, tail: int) -> None:
    """The packet at the front has left, its tail in cycle ``tail``."""
    m[buffer + at.SHOWN_FROM] = tail + 1
    m[buffer + at.FRONT] = (m[buffer + at.FRONT] + 1) & m[at.MASK]
    m[buffer + at.PACKETS] -= 1
    if m[buffer + at.PACKETS] > 0:
        _show_front(m, packets, buffer)


@compiled
def arrived(m: Records, buffer: Address) -> None:
    """Flits have come into a buffer: what may take them is looked at."""
    if m[at.OPERAND_SLOT] <= m[buffer + at.SLOT] < at.RESULT:
        node = address(m[buffer + at.NODE])
        if m[node + at.UNIT] >= 0:
            look_at(m, m[node + at.BUFFERS] + at.RESULT * m[at.BUFFER_SIZE])
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
    output = address(m[buffer + at.FEEDER])
    if output == 0:
        look_at(m, buffer)
        return
    slot, node, owner = m[buffer + at.SLOT], m[output + at.OUT_NODE], m[output + at.OWNER]
    if slot < at.OUTPUTS and m[at.OUTPUT_DEPTH] > 0:
        arrived(m, m[node + at.BUFFERS] + (at.OUTPUTS + m[output + at.PORT]) * m[at.BUFFER_SIZE])
    if at.OPERANDS <= slot < at.RESULT:
        consider(m, packets, node)
    if owner < 0 and m[at.LATE_LOCK] != 0 and m[output + at.ASKING]:
        wait_for_room(m, output)
        if free_place_from(m, output) == m[at.CLOCK]:
            mark(m, output)
    if owner >= 0:
        requester = at.RESULT if owner == at.PORTS else owner
        look_at(m, m[node + at.BUFFERS] + requester * m[at.BUFFER_SIZE])
