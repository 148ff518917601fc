"""What follows from what is known: flits go into the mesh, through it and out.

Once a packet has an output, only buffers decide when its flits move. Such times follow from each
other, and are computed as soon as all that they rest on is known, ahead of the clock.
"""

from tlm.compiled import compiled, lowest, merged
from tlm.interconnect.handshake.ahead import AHEAD, look_ahead
from tlm.interconnect.handshake.channels import arrive, converse, pass_on
from tlm.interconnect.handshake.events import look_at, report, schedule
from tlm.interconnect.handshake.flits import Going, came_at, left_at, move, room_from
from tlm.interconnect.handshake.forks import aligned, close_forks
from tlm.interconnect.handshake.fronts import arrived, enter, freed, leave
from tlm.interconnect.handshake.gates import taken
from tlm.interconnect.handshake.places import buffer_of, given, output_of
from tlm.interconnect.handshake.records import (
    NEVER,
    OUTPUTS,
    PORTS,
    RESULT,
    Address,
    Channel,
    Delivery,
    DeliveryTable,
    FlitBuffer,
    Fork,
    Mesh,
    Node,
    Output,
    Packet,
    Records,
    Table,
    What,
)
from tlm.interconnect.handshake.reduction import combine, take_operands
from tlm.interconnect.handshake.streams import pass_at_once
from tlm.interconnect.packets import PacketKind


@merged
def _send(
    m: Records, packets: Table, deliveries: DeliveryTable, buffer: Address, port: int, fork: bool
) -> int:
    """Send flits of the front packet by a branch that holds its output, as far as times are known.

    Returns the flits that the branch has sent so far.
    """
    node, slot = m[buffer + FlitBuffer.NODE], m[buffer + FlitBuffer.SLOT]
    output = output_of(node, port)
    packet, start = m[buffer + FlitBuffer.FRONT_PACKET], m[buffer + FlitBuffer.FRONT_FLIT]
    flits, kind = packets[packet, Packet.FLITS], packets[packet, Packet.KIND]
    last_sent = buffer + (FlitBuffer.BRANCH_LAST_SENT + port if fork else FlitBuffer.LAST_SENT)
    sent = (
        m[buffer + FlitBuffer.BRANCH_SENT + port] if fork else m[buffer + FlitBuffer.LEFT] - start
    )
    time = m[last_sent]
    count = min(flits - sent, m[buffer + FlitBuffer.WRITTEN] - start - sent)
    # Into the output's buffer, over the link, or to the tile.
    target = m[output + Output.BEHIND]
    if slot < OUTPUTS and m[Mesh.OUTPUT_DEPTH if port else Mesh.TILE_DEPTH] > 0:
        target = buffer_of(m, node, OUTPUTS + port)
    elif port > 0 and kind >= PacketKind.SUM:
        target += m[Mesh.OPERAND_SLOT] * m[Mesh.BUFFER_SIZE]
    if target > 0:
        whole = kind == PacketKind.MULTICAST and m[Mesh.CUT_THROUGH] != 0
        if whole and sent == 0 and port > 0 and slot < OUTPUTS:
            room = room_from(m, output, flits)
            if room == NEVER:
                return 0
            if m[Mesh.OUTPUT_DEPTH] > 0 and room > m[Mesh.CLOCK]:
                # What is known later may let it go earlier.
                if m[output + Output.LOOK_AT] != room:
                    m[output + Output.LOOK_AT] = room
                    schedule(m, room, What.LOOK, buffer)
                return 0
            time = max(time, room - 1)
        waiting = m[target + FlitBuffer.WRITTEN] - m[target + FlitBuffer.LEFT]
        count = min(count, given(m, Mesh.PLACES, target) - waiting)
    if fork and m[Mesh.FORK] != Fork.OWN_PACE:  # one flit ahead of the slowest branch
        count = min(count, m[buffer + FlitBuffer.LEFT] - start - sent + 1)
        if sent > 0 and count > 0:
            time = max(time, left_at(m, buffer, start + sent - 1))
    if count <= 0:
        return sent
    interval = m[Mesh.LINK_INTERVAL]
    if interval > 1:
        if port > 0 and (slot >= OUTPUTS or m[Mesh.OUTPUT_DEPTH] == 0):
            time = max(time, m[output + Output.LINK_LAST] + interval - 1)
        else:
            interval = 1
    latency = given(m, Mesh.LATENCY if port else Mesh.EJECTION, buffer)
    if target == 0 and m[Mesh.TILED] != 0:
        since = max(time + 1, came_at(m, buffer, start + sent) + latency)
        if not taken(m, node, buffer, sent, since):
            return sent
        count, time = 1, m[Mesh.CLOCK] - 1
        look_at(m, buffer)  # which has the next one
    if sent == 0 and target == 0:
        m[node + Node.HEAD_OUT] = max(time + 1, came_at(m, buffer, start) + latency)
    time = move(m, Going(buffer, target, start + sent, count, latency, interval), time, fork)
    if interval > 1:
        m[output + Output.LINK_LAST] = time
    m[last_sent] = time
    if fork:
        m[buffer + FlitBuffer.BRANCH_SENT + port] = sent + count
    if target > 0:
        if slot < OUTPUTS:
            apart = kind >= PacketKind.SUM and m[Mesh.OPERAND_SLOT] > 0
            m[output + (Output.RESULTS_THROUGH if apart else Output.THROUGH)] += count
        if sent == 0:
            enter(m, packets, target, packet, m[target + FlitBuffer.WRITTEN] - count)
        arrived(m, target)
    ends = True
    if m[Mesh.CHANNEL] == Channel.RECEIVER:
        ends = pass_on(m, packets, deliveries, buffer, target, output)
    if sent + count == flits:
        m[buffer + FlitBuffer.GRANTED] &= ~(1 << port)
        if slot < OUTPUTS:
            m[output + Output.OWNER] = -1
            free_from = time + 1 + m[Mesh.TURNAROUND]
            m[output + Output.FREE_FROM] = free_from
            if m[output + Output.ASKING]:
                schedule(m, free_from, What.NOBODY, output)
        if target > 0:
            return sent + count
        if packet < m[Mesh.CONTROLS]:
            arrive(m, packets, packet, node, time)
        elif ends:
            _deliver(m, packets, deliveries, packet, node, time)
    return sent + count


@compiled
def _deliver(
    m: Records, packets: Table, deliveries: DeliveryTable, packet: int, node: Address, tail: int
) -> None:
    number = packets[packet, Packet.NEXT_DELIVERY]
    packets[packet, Packet.NEXT_DELIVERY] = number + 1
    m[Mesh.OWED] -= 1
    deliveries[number, Delivery.PACKET] = packet
    deliveries[number, Delivery.NODE] = m[node + Node.NUMBER]
    deliveries[number, Delivery.HEAD_EJECTED] = m[node + Node.HEAD_OUT]
    deliveries[number, Delivery.TAIL_EJECTED] = tail
    if m[Mesh.REPORTING]:
        report(m, tail, What.EJECTED, number)


@compiled
def _inject(m: Records, packets: Table, node: Address) -> None:
    """Move flits of a tile's packets into its router, as far as times are known."""
    while m[node + Node.QUEUE_HEAD] >= 0:
        packet = m[node + Node.QUEUE_HEAD]
        cycle, flits = packets[packet, Packet.CYCLE], packets[packet, Packet.FLITS]
        slot = m[Mesh.OPERAND_SLOT] if packets[packet, Packet.KIND] >= PacketKind.SUM else 0
        if m[Mesh.TILED] == 0 and packets[packet, Packet.KIND] == PacketKind.UNICAST:
            pass_at_once(m, node, packet, flits)
        buffer, sent = buffer_of(m, node, slot), m[node + Node.QUEUE_SENT]
        into = m[buffer + FlitBuffer.WRITTEN]
        count = min(
            flits - sent, m[buffer + FlitBuffer.LEFT] + given(m, Mesh.PLACES, buffer) - into
        )
        time = max(m[node + Node.QUEUE_LAST], cycle - 1)
        if m[Mesh.TILED] != 0:
            count, time = min(count, m[node + Node.PUTS_IN]), m[Mesh.CLOCK] - 1
            m[node + Node.PUTS_IN] = 0
        if count <= 0:
            return
        time = move(m, Going(0, buffer, 0, count, 0, 1), time, False)
        if sent == 0:
            packets[packet, Packet.HEAD_INJECTED] = came_at(m, buffer, into)
            enter(m, packets, buffer, packet, into)
        arrived(m, buffer)
        m[node + Node.QUEUE_LAST] = time
        if sent + count < flits:
            m[node + Node.QUEUE_SENT] = sent + count
            return
        m[node + Node.QUEUE_SENT] = 0
        packets[packet, Packet.TAIL_INJECTED] = time
        m[node + Node.QUEUE_HEAD] = packets[packet, Packet.NEXT_IN_QUEUE]
        if m[Mesh.REPORTING]:
            report(m, time, What.INJECTED, packet)


@compiled
def follow(m: Records, packets: Table, deliveries: DeliveryTable) -> None:
    """Compute all times that follow from what is new in the buffers listed."""
    while m[Mesh.TOP]:
        m[Mesh.TOP] -= 1
        place = m[Mesh.STACK] + m[Mesh.TOP]
        buffer = m[place]
        if m[Mesh.TOP] >= AHEAD:
            look_ahead(m, packets, place)
        m[buffer + FlitBuffer.LISTED] = 0
        if m[buffer + FlitBuffer.FEEDER] == 0:
            if m[buffer + FlitBuffer.SLOT] == RESULT:
                combine(m, packets, m[buffer + FlitBuffer.NODE])
            elif m[Mesh.CHANNEL] != Channel.NONE:
                converse(m, packets, m[buffer + FlitBuffer.NODE])
            else:
                _inject(m, packets, m[buffer + FlitBuffer.NODE])
        granted, needed = m[buffer + FlitBuffer.GRANTED], m[buffer + FlitBuffer.NEEDED]
        if granted == 0:
            continue
        packet, start = m[buffer + FlitBuffer.FRONT_PACKET], m[buffer + FlitBuffer.FRONT_FLIT]
        fork = needed & (needed - 1) != 0
        if fork:
            gone = packets[packet, Packet.FLITS]
            if m[Mesh.FORK] == Fork.LOCKSTEP and not aligned(m, packets, buffer):
                continue
            for port in range(PORTS):
                if granted >> port & 1:
                    _send(m, packets, deliveries, buffer, port, True)
                if needed >> port & 1:
                    gone = min(gone, m[buffer + FlitBuffer.BRANCH_SENT + port])
        else:
            gone = _send(m, packets, deliveries, buffer, lowest(granted), False)
        before, left = m[buffer + FlitBuffer.LEFT], start + gone
        if left == before:
            continue
        m[buffer + FlitBuffer.LEFT] = left
        if fork:
            close_forks(m, buffer, before, left)
            if m[Mesh.FORK] != Fork.OWN_PACE:
                look_at(m, buffer)
        if m[buffer + FlitBuffer.SLOT] == RESULT and m[Mesh.REGISTERS] == 0:
            take_operands(m, packets, m[buffer + FlitBuffer.NODE], before, left)
        if gone == packets[packet, Packet.FLITS]:
            tail = left_at(m, buffer, left - 1) if fork else m[buffer + FlitBuffer.LAST_SENT]
            leave(m, packets, buffer, tail)
        freed(m, packets, buffer)
