"""The mesh in the order of time: what is sent, granted and delivered, cycle by cycle of the wheel.

Once a packet has an output, only buffers decide when its flits move. Such times follow from each
other, and are computed as soon as all that they rest on is known, ahead of the clock. Only grants
and the starts of reductions need the order of time: these are the events.
"""

from functools import cache

from tlm.compiled import compiled, prepare
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.ahead import AHEAD, look_ahead
from tlm.interconnect.handshake.events import ask, look_at, lowest, mark, report, schedule
from tlm.interconnect.handshake.flits import (
    append,
    came_at,
    free_place_from,
    left_at,
    move,
    room_from,
)
from tlm.interconnect.handshake.fronts import arrived, enter, freed, leave, wait_for_room
from tlm.interconnect.handshake.gates import taken
from tlm.interconnect.handshake.places import buffer_of, given, node_at, node_of, output_of
from tlm.interconnect.handshake.records import Address, DeliveryTable, Records, Table
from tlm.interconnect.handshake.reduction import begin, combine, take_operands

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def _send(
    m: Records, packets: Table, deliveries: DeliveryTable, buffer: Address, port: int, fork: bool
) -> int:
    """Send flits of the front packet by a branch that holds its output, as far as times are known.

    Returns the flits that the branch has sent so far.
    """
    node, slot = m[buffer + at.NODE], m[buffer + at.SLOT]
    output = output_of(node, port)
    packet, start = m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT]
    flits, kind = packets[packet, at.FLITS], packets[packet, at.KIND]
    last_sent = buffer + (at.BRANCH_LAST_SENT + port if fork else at.LAST_SENT)
    sent = m[buffer + at.BRANCH_SENT + port] if fork else m[buffer + at.LEFT] - start
    time = m[last_sent]
    count = min(flits - sent, m[buffer + at.WRITTEN] - start - sent)
    # Into the output's buffer, over the link, or to the tile.
    target = m[output + at.BEHIND]
    if slot < at.OUTPUTS and m[at.OUTPUT_DEPTH if port else at.TILE_DEPTH] > 0:
        target = buffer_of(m, node, at.OUTPUTS + port)
    elif port > 0 and kind >= at.SUM:
        target += m[at.OPERAND_SLOT] * m[at.BUFFER_SIZE]
    if target > 0:
        whole = kind == at.MULTICAST and m[at.CUT_THROUGH] != 0
        if whole and sent == 0 and port > 0 and slot < at.OUTPUTS:
            room = room_from(m, output, flits)
            if room == at.NEVER:
                return 0
            if m[at.OUTPUT_DEPTH] > 0 and room > m[at.CLOCK]:
                # What is known later may let it go earlier.
                if m[output + at.LOOK_AT] != room:
                    m[output + at.LOOK_AT] = room
                    schedule(m, room, at.LOOK, buffer)
                return 0
            time = max(time, room - 1)
        count = min(
            count, m[target + at.LEFT] + given(m, at.PLACES, target) - m[target + at.WRITTEN]
        )
    if fork and m[at.FORK] != at.OWN_PACE:  # one flit ahead of the slowest branch
        count = min(count, m[buffer + at.LEFT] - start - sent + 1)
        if sent > 0 and count > 0:
            time = max(time, left_at(m, buffer, start + sent - 1))
    if count <= 0:
        return sent
    interval = m[at.LINK_INTERVAL]
    if interval > 1:
        if port > 0 and (slot >= at.OUTPUTS or m[at.OUTPUT_DEPTH] == 0):
            time = max(time, m[output + at.LINK_LAST] + interval - 1)
        else:
            interval = 1
    latency = given(m, at.LATENCY if port else at.EJECTION, buffer)
    if target == 0 and m[at.TILED] != 0:
        since = max(time + 1, came_at(m, buffer, start + sent) + latency)
        if not taken(m, node, buffer, sent, since):
            return sent
        count, time = 1, m[at.CLOCK] - 1
        look_at(m, buffer)  # which has the next one
    if sent == 0 and target == 0:
        m[node + at.HEAD_OUT] = max(time + 1, came_at(m, buffer, start) + latency)
    time = move(m, buffer, start + sent, latency, target, time, count, interval, fork)
    if interval > 1:
        m[output + at.LINK_LAST] = time
    m[last_sent] = time
    if fork:
        m[buffer + at.BRANCH_SENT + port] = sent + count
    if target > 0:
        if slot < at.OUTPUTS:
            apart = kind >= at.SUM and m[at.OPERAND_SLOT] > 0
            m[output + (at.RESULTS_THROUGH if apart else at.THROUGH)] += count
        if sent == 0:
            enter(m, packets, target, packet, m[target + at.WRITTEN] - count)
        arrived(m, target)
    if sent + count == flits:
        m[buffer + at.GRANTED] &= ~(1 << port)
        if slot < at.OUTPUTS:
            m[output + at.OWNER] = -1
            free_from = time + 1 + m[at.TURNAROUND]
            m[output + at.FREE_FROM] = free_from
            if m[output + at.ASKING]:
                schedule(m, free_from, at.NOBODY, output)
        if target == 0:
            _deliver(m, packets, deliveries, packet, node, time)
    return sent + count


@compiled
def _deliver(
    m: Records, packets: Table, deliveries: DeliveryTable, packet: int, node: Address, tail: int
) -> None:
    number = packets[packet, at.NEXT_DELIVERY]
    packets[packet, at.NEXT_DELIVERY] = number + 1
    m[at.OWED] -= 1
    deliveries[number, at.DELIVERED] = packet
    deliveries[number, at.AT_NODE] = m[node + at.NUMBER]
    deliveries[number, at.HEAD_EJECTED] = m[node + at.HEAD_OUT]
    deliveries[number, at.TAIL_EJECTED] = tail
    if m[at.REPORTING]:
        report(m, tail, at.EJECTED, number)


@compiled
def _inject(m: Records, packets: Table, node: Address) -> None:
    """Move flits of a tile's packets into its router, as far as times are known."""
    while m[node + at.QUEUE_HEAD] >= 0:
        packet, sent = m[node + at.QUEUE_HEAD], m[node + at.QUEUE_SENT]
        cycle, flits = packets[packet, at.CYCLE], packets[packet, at.FLITS]
        slot = m[at.OPERAND_SLOT] if packets[packet, at.KIND] >= at.SUM else 0
        buffer = buffer_of(m, node, slot)
        into = m[buffer + at.WRITTEN]
        count = min(flits - sent, m[buffer + at.LEFT] + given(m, at.PLACES, buffer) - into)
        time = max(m[node + at.QUEUE_LAST], cycle - 1)
        if m[at.TILED] != 0:
            count, time = min(count, m[node + at.PUTS_IN]), m[at.CLOCK] - 1
            m[node + at.PUTS_IN] = 0
        if count <= 0:
            return
        time = move(m, 0, 0, 0, buffer, time, count, 1, False)
        if sent == 0:
            packets[packet, at.HEAD_INJECTED] = came_at(m, buffer, into)
            enter(m, packets, buffer, packet, into)
        arrived(m, buffer)
        m[node + at.QUEUE_LAST] = time
        if sent + count < flits:
            m[node + at.QUEUE_SENT] = sent + count
            return
        m[node + at.QUEUE_SENT] = 0
        packets[packet, at.TAIL_INJECTED] = time
        m[node + at.QUEUE_HEAD] = packets[packet, at.NEXT_IN_QUEUE]
        if m[at.REPORTING]:
            report(m, time, at.INJECTED, packet)


@compiled
def _follow(m: Records, packets: Table, deliveries: DeliveryTable) -> None:
    """Compute all times that follow from what is new in the buffers listed."""
    while m[at.TOP]:
        m[at.TOP] -= 1
        place = m[at.STACK] + m[at.TOP]
        buffer = m[place]
        if m[at.TOP] >= AHEAD:
            look_ahead(m, packets, place)
        m[buffer + at.LISTED] = 0
        if m[buffer + at.FEEDER] == 0:
            if m[buffer + at.SLOT] == at.RESULT:
                combine(m, packets, m[buffer + at.NODE])
            else:
                _inject(m, packets, m[buffer + at.NODE])
        granted, needed = m[buffer + at.GRANTED], m[buffer + at.NEEDED]
        if granted == 0:
            continue
        packet, start = m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT]
        fork = needed & (needed - 1) != 0
        if fork:
            gone = packets[packet, at.FLITS]
            if m[at.FORK] == at.LOCKSTEP and not _aligned(m, packets, buffer):
                continue
            for port in range(at.PORTS):
                if granted >> port & 1:
                    _send(m, packets, deliveries, buffer, port, True)
                if needed >> port & 1:
                    gone = min(gone, m[buffer + at.BRANCH_SENT + port])
        else:
            gone = _send(m, packets, deliveries, buffer, lowest(granted), False)
        before, left = m[buffer + at.LEFT], start + gone
        if left == before:
            continue
        m[buffer + at.LEFT] = left
        if fork:
            _close_forks(m, buffer, before, left)
            if m[at.FORK] != at.OWN_PACE:
                look_at(m, buffer)
        if m[buffer + at.SLOT] == at.RESULT and m[at.REGISTERS] == 0:
            take_operands(m, packets, m[buffer + at.NODE], before, left)
        if gone == packets[packet, at.FLITS]:
            leave(m, packets, buffer, left_at(m, buffer, left - 1))
        freed(m, packets, buffer)


@compiled
def _close_forks(m: Records, buffer: Address, before: int, left: int) -> None:
    """Flits that all branches have sent leave."""
    for flit in range(before, left):
        place = buffer + at.RINGS + at.FORKS * m[at.RING_SIZE] + 2 * (flit & m[at.MASK])
        append(m, buffer, at.LEAVES, at.LEAVE_RUNS, flit, m[place])
        m[place + 1] = 0


@compiled
def _aligned(m: Records, packets: Table, buffer: Address) -> bool:
    """Have the branches of a fork send their next flit in the same cycle, if all can."""
    needed = m[buffer + at.NEEDED]
    packet, start = m[buffer + at.FRONT_PACKET], m[buffer + at.FRONT_FLIT]
    sent, latest = 0, at.LONG_AGO
    for port in range(at.PORTS):
        if needed >> port & 1:
            sent = m[buffer + at.BRANCH_SENT + port]
            time = _sends_from(m, packets, buffer, port, packet, start + sent)
            if time == at.NEVER:
                return False
            latest = max(latest, time)
    for port in range(at.PORTS):
        if needed >> port & 1:
            m[buffer + at.BRANCH_LAST_SENT + port] = latest - 1
    return True


@compiled
def _sends_from(
    m: Records, packets: Table, buffer: Address, port: int, packet: int, number: int
) -> int:
    """Cycle from which a branch alone could send a flit; NEVER: it cannot, or it is not known."""
    node = m[buffer + at.NODE]
    output = output_of(node, port)
    if m[buffer + at.GRANTED] >> port & 1 == 0 or number >= m[buffer + at.WRITTEN]:
        return at.NEVER
    latency = given(m, at.LATENCY if port else at.EJECTION, buffer)
    time = max(came_at(m, buffer, number) + latency, m[buffer + at.BRANCH_LAST_SENT + port] + 1)
    target = m[output + at.BEHIND]
    if m[at.OUTPUT_DEPTH if port else at.TILE_DEPTH] > 0:
        target = buffer_of(m, node, at.OUTPUTS + port)
    elif port > 0:
        time = max(time, m[output + at.LINK_LAST] + m[at.LINK_INTERVAL])
    if target == 0:
        return time
    if m[at.CUT_THROUGH] != 0 and m[buffer + at.BRANCH_SENT + port] == 0 and port > 0:
        time = max(time, room_from(m, output, packets[packet, at.FLITS]))
    freed = m[target + at.WRITTEN] - given(m, at.PLACES, target)
    if freed >= m[target + at.LEFT]:
        return at.NEVER
    return max(time, left_at(m, target, freed) + given(m, at.RETURN, target))


@compiled
def _first_in_line(m: Records, output: Address, asking: int) -> int:
    """Place in line of the request that gets an output, and who is first in line after it."""
    if m[at.ARBITER] == at.ROUND_ROBIN:  # rtl/noc/rr_arbiter.sv
        line = asking & m[output + at.PREFERRED]
        winner = lowest(line if line else asking)
        m[output + at.PREFERRED] = 63 & ~((2 << winner) - 1)
        return winner
    if m[at.ARBITER] == at.FIXED:
        return lowest(asking)
    # A tree over eight places: the upper half goes first if the pointer's bit says so.
    pointer = m[output + at.PREFERRED]
    first, half = 0, 4
    while half:
        lower = asking >> first & ((1 << half) - 1)
        upper = asking >> (first + half) & ((1 << half) - 1)
        if upper and (not lower or pointer & half):
            first += half
        half >>= 1
    behind = asking & ~((2 << pointer) - 1)
    m[output + at.PREFERRED] = lowest(behind if behind else asking)
    return first


@compiled
def _grant(m: Records, output: Address) -> None:
    """Give an output that is free to the first request in line."""
    asking = m[output + at.ASKING]
    if asking == 0 or m[output + at.FREE_FROM] > m[at.CLOCK]:
        return
    if m[at.LATE_LOCK] != 0:
        wait_for_room(m, output)
        if free_place_from(m, output) > m[at.CLOCK]:
            return
    place = _first_in_line(m, output, asking)
    winner = m[at.AT_PLACE + place]
    m[output + at.ASKING] = asking & ~(1 << place)
    m[output + at.OWNER] = winner
    m[output + at.FREE_FROM] = at.NEVER
    slot, port = at.RESULT if winner == at.PORTS else winner, m[output + at.PORT]
    buffer = buffer_of(m, node_of(m, output), slot)
    m[buffer + at.GRANTED] |= 1 << port
    needed = m[buffer + at.NEEDED]
    fork = needed & (needed - 1) != 0
    m[buffer + (at.BRANCH_LAST_SENT + port if fork else at.LAST_SENT)] = m[at.CLOCK] - 1
    look_at(m, buffer)


@compiled
def _next_event(m: Records) -> int:
    """Cycle of the first pending event."""
    first = at.NEVER
    for place in range(m[at.WHEEL], m[at.WHEEL] + at.ROUND):
        event = m[place]
        while event > 0:
            first = min(first, m[event + at.WHEN])
            event = m[event + at.NEXT]
    return first


@compiled
def happen(m: Records) -> bool:
    """Take the events of this cycle from the wheel; whether there were any."""
    place = m[at.WHEEL] + (m[at.CLOCK] & (at.ROUND - 1))
    event, taken = m[place], False
    m[place] = 0
    while event > 0:
        following = m[event + at.NEXT]
        if m[event + at.WHEN] != m[at.CLOCK]:  # a turn of the wheel or more ahead
            m[event + at.NEXT] = m[place]
            m[place] = event
            event = following
            continue
        what, whom = m[event + at.WHAT], m[event + at.WHOM]
        m[event + at.NEXT] = m[at.UNUSED]
        m[at.UNUSED] = event
        m[at.PENDING] -= 1
        event, taken = following, True
        if what < at.NOBODY:
            ask(m, m[at.CLOCK], whom, what)
        elif what == at.NOBODY:
            mark(m, whom)
        elif what == at.LOOK:
            look_at(m, whom)
        elif what == at.START:
            if m[whom + at.START_AT] == m[at.CLOCK]:
                m[whom + at.START_AT] = at.DUE
                m[m[at.STARTING] + m[at.STARTS]] = whom
                m[at.STARTS] += 1
        else:
            report(m, m[at.CLOCK], what, whom)
    return taken


@compiled
def settle(m: Records, packets: Table, deliveries: DeliveryTable) -> None:
    """Start, grant and move what the cycle's events allow."""
    for place in range(m[at.STARTING], m[at.STARTING] + m[at.STARTS]):
        begin(m, packets, m[place])
    m[at.STARTS] = 0
    granting = True
    while granting:  # again where room came in this very cycle
        for place in range(m[at.MARKED], m[at.MARKED] + m[at.MARKS]):
            m[m[place] + at.LISTED_OUTPUT] = 0
            _grant(m, m[place])
        m[at.MARKS] = 0
        _follow(m, packets, deliveries)
        granting = m[at.MARKS] > 0


@compiled
def enqueue(m: Records, packets: Table, start: int, stop: int, owed: int) -> None:
    """Append the packets ``start`` to ``stop - 1`` to their sources' queues."""
    for packet in range(start, stop):
        node = node_at(m, packets[packet, at.SOURCE])
        packets[packet, at.NEXT_IN_QUEUE] = -1
        packets[packet, at.HEAD_INJECTED] = -1
        packets[packet, at.TAIL_INJECTED] = -1
        if m[node + at.QUEUE_HEAD] < 0:
            m[node + at.QUEUE_HEAD] = packet
            schedule(m, m[at.CLOCK], at.LOOK, buffer_of(m, node, 0))
        else:
            packets[m[node + at.QUEUE_TAIL], at.NEXT_IN_QUEUE] = packet
        m[node + at.QUEUE_TAIL] = packet
    m[at.OWED] += owed


@compiled
def run(m: Records, packets: Table, deliveries: DeliveryTable, until: int) -> int:
    """Simulate until ``until``, the first cycle with reports, idleness or a hang.

    Args:
        m: The mesh; the cycle to simulate first is ``m[CLOCK]``.
        packets: Shape (capacity, 16).
        deliveries: Shape (capacity, 4); those of a packet are in a row.
        until: First cycle that is not simulated.

    Returns:
        Reports of the last cycle, or -1 if nothing is pending though deliveries are owed.
    """
    m[at.REPORTED], quiet = 0, 0
    while m[at.REPORTED] == 0 and m[at.PENDING] > 0 and m[at.CLOCK] < until:
        if quiet == at.ROUND:  # a whole turn without an event: the next one is far ahead
            m[at.CLOCK] = min(_next_event(m), until)
            quiet = 0
            continue
        if happen(m):
            quiet = 0
            settle(m, packets, deliveries)
        else:
            quiet += 1
        m[at.CLOCK] += 1
    if m[at.REPORTED] == 0 and m[at.PENDING] == 0 and m[at.OWED] > 0:
        return -1
    return m[at.REPORTED]


@cache
def ready() -> None:
    """Compile the mesh, or load what was compiled."""
    prepare(run, enqueue)
