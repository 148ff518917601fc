"""The reduction unit of a router, rtl/noc/reduce_unit.sv."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.arbiters import preferred_after
from tlm.interconnect.handshake.flits import append, came_at, free_place_from, left_at
from tlm.interconnect.handshake.fronts import (
    arrived,
    asking_at,
    consider,
    enter,
    first_asking,
    freed,
    leave,
    ready_from,
)
from tlm.interconnect.handshake.places import buffer_of, given
from tlm.interconnect.handshake.records import (
    NEVER,
    PORTS,
    RESULT,
    Address,
    FlitBuffer,
    Mesh,
    Node,
    Packet,
    Records,
    Run,
    Table,
)
from tlm.interconnect.handshake.routes import to_root


@compiled
def begin(m: Records, packets: Table, node: Address) -> None:
    """Start the first in line of the reductions that ask, or have the unit wait for it."""
    m[node + Node.START_AT] = -1
    chosen, asking = m[node + Node.UNIT_CHOSEN], asking_at(m, packets, node)
    winner = first_asking(m, node, asking) if chosen < 0 else chosen
    assert winner >= 0
    starts = ready_from(m, packets, node, winner) <= m[Mesh.CLOCK]
    if chosen < 0 and (starts or m[Mesh.UNIT_LATE_LOCK] == 0):
        m[node + Node.UNIT_PREFERRED] = preferred_after(
            m[Mesh.UNIT_ARBITER],
            m[node + Node.UNIT_PREFERRED],
            asking,
            m[Mesh.PLACE_OF + winner],
        )
    if not starts:
        m[node + Node.UNIT_LOOKED] = m[Mesh.CLOCK]
        if m[Mesh.UNIT_LATE_LOCK] == 0:
            m[node + Node.UNIT_CHOSEN] = winner
        consider(m, packets, node)
        return
    m[node + Node.UNIT_CHOSEN] = -1
    buffer = buffer_of(m, node, m[Mesh.OPERAND_SLOT] + winner)
    packet = m[buffer + FlitBuffer.FRONT_PACKET]
    m[node + Node.UNIT] = packets[packet, Packet.JOINT]
    m[node + Node.UNIT_INPUTS] = m[buffer + FlitBuffer.NEEDED]
    m[node + Node.UNIT_DONE] = 0
    m[node + Node.UNIT_LAST] = m[Mesh.CLOCK] - m[Mesh.UNIT_INTERVAL]
    m[node + Node.STARTED + to_root(m, packets, packet, node)] += packets[packet, Packet.FLITS]
    combine(m, packets, node)


@compiled
def combine(m: Records, packets: Table, node: Address) -> None:
    """Flits of the reduction in the unit go into its registers as far as times are known.

    Without registers they stay where they are until the result goes.
    """
    joint, registers, size = m[node + Node.UNIT], m[Mesh.REGISTERS], m[Mesh.BUFFER_SIZE]
    if joint < 0:
        if m[Mesh.UNIT_LATE_LOCK] != 0:  # there is room for a first result
            consider(m, packets, node)
        return
    base = buffer_of(m, node, m[Mesh.OPERAND_SLOT])
    result = buffer_of(m, node, RESULT)
    done = begun = m[node + Node.UNIT_DONE]
    while done < packets[joint, Packet.FLITS]:
        into, known = m[result + FlitBuffer.WRITTEN], True
        time = m[node + Node.UNIT_LAST] + m[Mesh.UNIT_INTERVAL]
        if registers > 0:
            room = free_place_from(m, result)
            if room == NEVER:
                break
            time = max(time, room)
        for port in range(PORTS):
            if m[node + Node.UNIT_INPUTS] >> port & 1:
                buffer = base + port * size
                flit = m[buffer + FlitBuffer.FRONT_FLIT] + done
                known = known and flit < m[buffer + FlitBuffer.WRITTEN]
                if known:
                    time = max(time, came_at(m, buffer, flit) + given(m, Mesh.LATENCY, buffer))
        if not known:
            break
        m[node + Node.UNIT_LAST] = time
        append(m, result, Run.WRITES, FlitBuffer.WRITE_RUNS, into, time)
        m[result + FlitBuffer.WRITTEN] = into + 1
        done += 1
        if done == 1:
            enter(m, packets, result, joint, into)
    if done == begun:
        return
    m[node + Node.UNIT_DONE] = done
    arrived(m, result)
    if registers > 0:
        stop = m[result + FlitBuffer.WRITTEN]
        take_operands(m, packets, node, stop - (done - begun), stop)


@compiled
def take_operands(m: Records, packets: Table, node: Address, first: int, stop: int) -> None:
    """Operands leave their buffers with the flits ``first`` to ``stop - 1`` of the results.

    They do so when these come into the registers, or without registers when these go.
    """
    size, inputs, time, left, start = m[Mesh.BUFFER_SIZE], m[node + Node.UNIT_INPUTS], 0, 0, 0
    base = buffer_of(m, node, m[Mesh.OPERAND_SLOT])
    result, registered = buffer_of(m, node, RESULT), m[Mesh.REGISTERS] > 0
    for port in range(PORTS):
        if inputs >> port & 1:
            buffer = base + port * size
            left, start = m[buffer + FlitBuffer.LEFT], m[buffer + FlitBuffer.FRONT_FLIT]
            for flit in range(first, stop):
                time = came_at(m, result, flit) if registered else left_at(m, result, flit)
                append(m, buffer, Run.LEAVES, FlitBuffer.LEAVE_RUNS, left, time)
                left += 1
            m[buffer + FlitBuffer.LEFT] = left
    ended = left - start == packets[m[node + Node.UNIT], Packet.FLITS]
    for port in range(PORTS):
        if inputs >> port & 1:
            if ended:
                leave(m, packets, base + port * size, time)
            freed(m, packets, base + port * size)
    if ended:  # all operands have left: none asks again
        m[node + Node.UNIT] = -1
        m[node + Node.UNIT_FREE_FROM] = time + m[Mesh.UNIT_INTERVAL]
        consider(m, packets, node)
