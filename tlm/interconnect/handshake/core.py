"""The mesh in the order of time, cycle by cycle of the wheel.

Only grants and the starts of reductions need it: these are the events. All else follows from them,
and is known ahead of the clock (sending.py).
"""

from functools import cache

from tlm.compiled import compiled, prepare
from tlm.interconnect.handshake.events import ask_now, look_at, mark, report, schedule
from tlm.interconnect.handshake.grants import grant
from tlm.interconnect.handshake.places import buffer_of, node_at
from tlm.interconnect.handshake.records import (
    DUE,
    NEVER,
    ROUND,
    DeliveryTable,
    Mesh,
    Node,
    Output,
    Packet,
    Pending,
    Records,
    Table,
    What,
)
from tlm.interconnect.handshake.reduction import begin
from tlm.interconnect.handshake.sending import follow


@compiled
def _next_event(m: Records) -> int:
    """Cycle of the first pending event."""
    first = NEVER
    for place in range(m[Mesh.WHEEL], m[Mesh.WHEEL] + ROUND):
        event = m[place]
        while event > 0:
            first = min(first, m[event + Pending.WHEN])
            event = m[event + Pending.NEXT]
    return first


@compiled
def happen(m: Records) -> bool:
    """Take the events of this cycle from the wheel; whether there were any."""
    place = m[Mesh.WHEEL] + (m[Mesh.CLOCK] & (ROUND - 1))
    event, taken = m[place], False
    m[place] = 0
    while event > 0:
        following = m[event + Pending.NEXT]
        if m[event + Pending.WHEN] != m[Mesh.CLOCK]:  # a turn of the wheel or more ahead
            m[event + Pending.NEXT] = m[place]
            m[place] = event
            event = following
            continue
        what, whom = m[event + Pending.WHAT], m[event + Pending.WHOM]
        m[event + Pending.NEXT] = m[Mesh.UNUSED]
        m[Mesh.UNUSED] = event
        m[Mesh.PENDING] -= 1
        event, taken = following, True
        if what < What.NOBODY:
            ask_now(m, whom, what)
        elif what == What.NOBODY:
            mark(m, whom)
        elif what == What.LOOK:
            look_at(m, whom)
        elif what == What.START:
            if m[whom + Node.START_AT] == m[Mesh.CLOCK]:
                m[whom + Node.START_AT] = DUE
                m[m[Mesh.STARTING] + m[Mesh.STARTS]] = whom
                m[Mesh.STARTS] += 1
        else:
            report(m, m[Mesh.CLOCK], what, whom)
    return taken


@compiled
def settle(m: Records, packets: Table, deliveries: DeliveryTable) -> None:
    """Start, grant and move what the cycle's events allow."""
    active = True
    while active:  # again where room came in this very cycle
        begun = 0
        while begun < m[Mesh.STARTS]:
            begin(m, packets, m[m[Mesh.STARTING] + begun])
            begun += 1
        m[Mesh.STARTS] = 0
        for place in range(m[Mesh.MARKED], m[Mesh.MARKED] + m[Mesh.MARKS]):
            m[m[place] + Output.LISTED] = 0
            grant(m, m[place])
        m[Mesh.MARKS] = 0
        follow(m, packets, deliveries)
        active = m[Mesh.MARKS] > 0 or m[Mesh.STARTS] > 0


@compiled
def enqueue(m: Records, packets: Table, start: int, stop: int, owed: int) -> None:
    """Append the packets ``start`` to ``stop - 1`` to their sources' queues."""
    for packet in range(start, stop):
        node = node_at(m, packets[packet, Packet.SOURCE])
        packets[packet, Packet.NEXT_IN_QUEUE] = -1
        packets[packet, Packet.HEAD_INJECTED] = -1
        packets[packet, Packet.TAIL_INJECTED] = -1
        if m[node + Node.QUEUE_HEAD] < 0:
            m[node + Node.QUEUE_HEAD] = packet
            schedule(m, m[Mesh.CLOCK], What.LOOK, buffer_of(m, node, 0))
        else:
            packets[m[node + Node.QUEUE_TAIL], Packet.NEXT_IN_QUEUE] = packet
        m[node + Node.QUEUE_TAIL] = packet
    m[Mesh.OWED] += owed


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
    m[Mesh.REPORTED], quiet = 0, 0
    while m[Mesh.REPORTED] == 0 and m[Mesh.PENDING] > 0 and m[Mesh.CLOCK] < until:
        if quiet == ROUND:  # a whole turn without an event: the next one is far ahead
            m[Mesh.CLOCK] = min(_next_event(m), until)
            quiet = 0
            continue
        if happen(m):
            quiet = 0
            settle(m, packets, deliveries)
        else:
            quiet += 1
        m[Mesh.CLOCK] += 1
    if m[Mesh.REPORTED] == 0 and m[Mesh.PENDING] == 0 and m[Mesh.OWED] > 0:
        return -1
    return m[Mesh.REPORTED]


@cache
def ready() -> None:
    """Compile the mesh, or load what was compiled."""
    prepare(run, enqueue)
