"""Locked channels: the interfaces that ask before data go, and outputs that messages share.

A request and an acknowledge are packets of one flit; a node has one of each on the way at most. An
output that is locked for a message is one that a packet holds. Where it is locked for a receiver,
each flit is a packet of its own, with a mark whether it is its message's first and its last.

Nothing waits for ever: an interface takes all requests and acknowledges that come, and has all data
behind each other that it sends. Those of a message hold outputs in the order of the way, and wait
only for outputs that come later in it.
"""

from tlm.compiled import compiled
from tlm.interconnect.handshake.events import report, schedule
from tlm.interconnect.handshake.flits import Going, free_place_from, move
from tlm.interconnect.handshake.fronts import arrived, enter
from tlm.interconnect.handshake.places import buffer_of, given, node_of
from tlm.interconnect.handshake.records import (
    NEVER,
    OUTPUTS,
    PORTS,
    Address,
    Channel,
    Delivery,
    DeliveryTable,
    FlitBuffer,
    Interface,
    Mesh,
    Node,
    Output,
    Packet,
    Records,
    Ring,
    Stage,
    Table,
    What,
)
from tlm.interconnect.handshake.routes import receiver
from tlm.interconnect.handshake.streams import pass_at_once

FIRST, LAST = 1, 2  # bits of a flit's mark


@compiled
def _mark_of(m: Records, buffer: Address, number: int) -> Address:
    """Where the mark of a flit stands."""
    return buffer + FlitBuffer.RINGS + Ring.MARKS * m[Mesh.RING_SIZE] + 2 * (number & m[Mesh.MASK])


@compiled
def admitted(m: Records, output: Address, asking: int) -> int:
    """Of the places in line that ask for an output those whose data it is locked for."""
    node, places = node_of(m, output), 0
    for place in range(PORTS + 1):
        if asking >> place & 1:
            buffer = buffer_of(m, node, m[Mesh.AT_PLACE + place])
            if m[buffer + FlitBuffer.RECEIVER] == m[output + Output.RECEIVER]:
                places |= 1 << place
    return places


@compiled
def pass_on(
    m: Records,
    packets: Table,
    deliveries: DeliveryTable,
    buffer: Address,
    target: Address,
    output: Address,
) -> bool:
    """The front flit of a buffer passes an output, or goes on behind it; whether a message ends."""
    mark = m[_mark_of(m, buffer, m[buffer + FlitBuffer.FRONT_FLIT])]
    packet = m[buffer + FlitBuffer.FRONT_PACKET]
    if m[buffer + FlitBuffer.SLOT] < OUTPUTS:
        if mark & FIRST:
            m[output + Output.OPEN] += 1
            m[output + Output.RECEIVER] = receiver(packets, packet)
        if mark & LAST:
            m[output + Output.OPEN] -= 1
    if target > 0:
        m[_mark_of(m, target, m[target + FlitBuffer.WRITTEN] - 1)] = mark
    elif mark != 0:
        node, number = node_of(m, output), packets[packet, Packet.NEXT_DELIVERY]
        if mark & FIRST:  # others come before its last
            deliveries[number, Delivery.HEAD_EJECTED] = m[node + Node.HEAD_OUT]
        m[node + Node.HEAD_OUT] = deliveries[number, Delivery.HEAD_EJECTED]
    return mark & LAST != 0


@compiled
def arrive(m: Records, packets: Table, packet: int, node: Address, time: int) -> None:
    """A request or an acknowledge comes out in a cycle: this one, or one to come."""
    nodes = m[Mesh.NODE_COUNT]
    if packet >= nodes:
        m[node + Interface.STAGE] = Stage.ACKNOWLEDGED
        m[node + Interface.STAGE_FROM] = time + m[Mesh.DATA_AFTER]
        schedule(m, m[node + Interface.STAGE_FROM], What.LOOK, buffer_of(m, node, 0))
        return
    answer, since = nodes + packet, time + m[Mesh.ACKNOWLEDGE_AFTER]
    packets[answer, Packet.CYCLE], packets[answer, Packet.NEXT_IN_QUEUE] = since, -1
    if m[node + Interface.ANSWER] < 0:
        m[node + Interface.ANSWER] = answer
    else:
        packets[m[node + Interface.LAST_ANSWER], Packet.NEXT_IN_QUEUE] = answer
    m[node + Interface.LAST_ANSWER] = answer
    schedule(m, since, What.LOOK, buffer_of(m, node, 0))


@compiled
def converse(m: Records, packets: Table, node: Address) -> None:
    """Have a tile's interface send what it may, as far as times are known.

    Data that may go go first, and keep the way into the router to their last; then acknowledges;
    then the tile's own request.
    """
    while True:
        if m[node + Interface.STAGE] == Stage.SENDING and not _send_data(m, packets, node):
            return
        if m[node + Interface.STAGE] == Stage.QUEUED:
            _take_head(m, packets, node)
        stage, clock = m[node + Interface.STAGE], m[Mesh.CLOCK]
        own = m[node + Interface.STAGE_FROM] <= clock
        answer = m[node + Interface.ANSWER]
        answers = answer >= 0 and packets[answer, Packet.CYCLE] <= clock
        asks, sends = own and stage == Stage.ASKING, own and stage == Stage.ACKNOWLEDGED
        if not (answers or asks or sends):
            return
        if m[node + Node.QUEUE_LAST] >= clock:  # the tail of a message, or another
            _look_again(m, node, m[node + Node.QUEUE_LAST] + 1)
            return
        if sends:
            m[node + Interface.STAGE], m[node + Node.QUEUE_LAST] = Stage.SENDING, clock - 1
            continue
        room = free_place_from(m, buffer_of(m, node, 0))
        if room > clock:
            _look_again(m, node, room)
            return
        if answers:
            m[node + Interface.ANSWER] = packets[answer, Packet.NEXT_IN_QUEUE]
            _put_in(m, packets, node, answer, 1, clock - 1, 0)
        else:
            request, message = m[node + Node.NUMBER], m[node + Node.QUEUE_HEAD]
            for column in (Packet.ROW_FIRST, Packet.COL_FIRST):
                packets[request, column] = packets[message, column]
            m[node + Interface.STAGE] = Stage.WAITING
            _put_in(m, packets, node, request, 1, clock - 1, 0)


@compiled
def _look_again(m: Records, node: Address, time: int) -> None:
    """Have an interface looked at in a cycle, if it is known."""
    if time < NEVER and m[node + Interface.LOOK_AT] != time:
        m[node + Interface.LOOK_AT] = time
        schedule(m, time, What.LOOK, buffer_of(m, node, 0))


@compiled
def _take_head(m: Records, packets: Table, node: Address) -> None:
    """The interface takes the head of the next message, which asks some cycles later."""
    packet = m[node + Node.QUEUE_HEAD]
    if packet < 0:
        return
    time = max(m[node + Interface.IDLE_FROM], packets[packet, Packet.CYCLE])
    packets[packet, Packet.HEAD_INJECTED] = time
    m[node + Interface.STAGE] = Stage.ASKING
    m[node + Interface.STAGE_FROM] = time + m[Mesh.REQUEST_AFTER]
    schedule(m, m[node + Interface.STAGE_FROM], What.LOOK, buffer_of(m, node, 0))
    if packets[packet, Packet.LENGTH] == 1:
        _end(m, packets, packet, time)


@compiled
def _end(m: Records, packets: Table, packet: int, time: int) -> None:
    """The last flit of a message comes into the interface."""
    packets[packet, Packet.TAIL_INJECTED] = time
    if m[Mesh.REPORTING]:
        report(m, time, What.INJECTED, packet)


@compiled
def _send_data(m: Records, packets: Table, node: Address) -> bool:
    """Move data of the front message into the router; whether all have gone."""
    packet, buffer = m[node + Node.QUEUE_HEAD], buffer_of(m, node, 0)
    length, time = packets[packet, Packet.LENGTH], m[node + Node.QUEUE_LAST]
    while m[node + Node.QUEUE_SENT] < length:
        if m[Mesh.CHANNEL] == Channel.OUTPUT:
            pass_at_once(m, node, packet, length)
        sent, time = m[node + Node.QUEUE_SENT], m[node + Node.QUEUE_LAST]
        waiting = m[buffer + FlitBuffer.WRITTEN] - m[buffer + FlitBuffer.LEFT]
        count = min(length - sent, given(m, Mesh.PLACES, buffer) - waiting)
        if m[Mesh.CHANNEL] == Channel.RECEIVER:
            count = min(count, 1)
        if count <= 0:
            return False
        mark = FIRST * (sent == 0) + LAST * (sent + count == length)
        time = _put_in(m, packets, node, packet, count, time, mark)
        m[node + Node.QUEUE_SENT] = sent + count
    if length > 1:
        _end(m, packets, packet, time)
    m[node + Node.QUEUE_SENT] = 0
    m[node + Node.QUEUE_HEAD] = packets[packet, Packet.NEXT_IN_QUEUE]
    m[node + Interface.STAGE], m[node + Interface.IDLE_FROM] = Stage.QUEUED, time + 1
    return True


@compiled
def _put_in(
    m: Records, packets: Table, node: Address, packet: int, count: int, time: int, mark: int
) -> int:
    """Flits come into the router after a cycle, as soon as there is room; when the last does."""
    buffer = buffer_of(m, node, 0)
    into = m[buffer + FlitBuffer.WRITTEN]
    time = move(m, Going(0, buffer, 0, count, 0, 1), time, False)
    m[node + Node.QUEUE_LAST] = time
    alone = m[Mesh.CHANNEL] == Channel.RECEIVER
    if alone:
        m[_mark_of(m, buffer, into)] = mark
    if alone or m[node + Node.QUEUE_SENT] == 0:
        enter(m, packets, buffer, packet, into)
    arrived(m, buffer)
    return time
