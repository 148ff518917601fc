"""The reduction unit of a router, rtl/noc/reduce_unit.sv."""

from tlm.compiled import compiled
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.events import lowest
from tlm.interconnect.handshake.flits import append, came_at, left_at
from tlm.interconnect.handshake.fronts import (
    arrived,
    consider,
    enter,
    freed,
    leave,
    ready_from,
)
from tlm.interconnect.handshake.places import buffer_of, given
from tlm.interconnect.handshake.records import Address, Records, Table
from tlm.interconnect.handshake.routes import to_root

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def begin(m: Records, packets: Table, node: Address) -> None:
    """Start the first in line of the reductions that may."""
    m[node + at.START_AT] = -1
    candidates = 0
    for port in range(at.PORTS):
        candidates |= (ready_from(m, packets, node, port) <= m[at.CLOCK]) << port
    assert candidates > 0
    line = candidates & m[node + at.UNIT_PREFERRED]
    winner = lowest(line if line else candidates)
    m[node + at.UNIT_PREFERRED] = 31 & ~((2 << winner) - 1)
    buffer = buffer_of(m, node, m[at.OPERAND_SLOT] + winner)
    packet = m[buffer + at.FRONT_PACKET]
    m[node + at.UNIT] = packets[packet, at.JOINT]
    m[node + at.UNIT_INPUTS] = m[buffer + at.NEEDED]
    m[node + at.UNIT_DONE] = 0
    m[node + at.UNIT_LAST] = m[at.CLOCK] - m[at.UNIT_INTERVAL]
    m[node + at.STARTED + to_root(m, packets, packet, node)] += packets[packet, at.FLITS]
    combine(m, packets, node)


@compiled
def combine(m: Records, packets: Table, node: Address) -> None:
    """Flits of the reduction in the unit go into its registers as far as times are known.

    Without registers they stay where they are until the result goes.
    """
    joint, registers, size = m[node + at.UNIT], m[at.REGISTERS], m[at.BUFFER_SIZE]
    if joint < 0:
        return
    base = buffer_of(m, node, m[at.OPERAND_SLOT])
    result = buffer_of(m, node, at.RESULT)
    done = begun = m[node + at.UNIT_DONE]
    while done < packets[joint, at.FLITS]:
        into, known = m[result + at.WRITTEN], True
        time = m[node + at.UNIT_LAST] + m[at.UNIT_INTERVAL]
        if registers > 0:  # a full line of registers moves on in the cycle in which one leaves
            if m[result + at.LEFT] + registers <= into:
                break
            time = max(time, left_at(m, result, into - registers))
        for port in range(at.PORTS):
            if m[node + at.UNIT_INPUTS] >> port & 1:
                buffer = base + port * size
                flit = m[buffer + at.FRONT_FLIT] + done
                known = known and flit < m[buffer + at.WRITTEN]
                if known:
                    time = max(time, came_at(m, buffer, flit) + given(m, at.LATENCY, buffer))
        if not known:
            break
        m[node + at.UNIT_LAST] = time
        append(m, result, at.WRITES, at.WRITE_RUNS, into, time)
        m[result + at.WRITTEN] = into + 1
        done += 1
        if done == 1:
            enter(m, packets, result, joint, into)
    if done == begun:
        return
    m[node + at.UNIT_DONE] = done
    arrived(m, result)
    if registers > 0:
        stop = m[result + at.WRITTEN]
        take_operands(m, packets, node, stop - (done - begun), stop)


@compiled
def take_operands(m: Records, packets: Table, node: Address, first: int, stop: int) -> None:
    """Operands leave their buffers with the flits ``first`` to ``stop - 1`` of the results.

    They do so when these come into the registers, or without registers when these go.
    """
    size, inputs, time, left, start = m[at.BUFFER_SIZE], m[node + at.UNIT_INPUTS], 0, 0, 0
    base = buffer_of(m, node, m[at.OPERAND_SLOT])
    result = buffer_of(m, node, at.RESULT)
    for port in range(at.PORTS):
        if inputs >> port & 1:
            buffer = base + port * size
            left, start = m[buffer + at.LEFT], m[buffer + at.FRONT_FLIT]
            for flit in range(first, stop):
                time = came_at(m, result, flit) if m[at.REGISTERS] > 0 else left_at(m, result, flit)
                append(m, buffer, at.LEAVES, at.LEAVE_RUNS, left, time)
                left += 1
            m[buffer + at.LEFT] = left
    ended = left - start == packets[m[node + at.UNIT], at.FLITS]
    if ended:
        m[node + at.UNIT] = -1
        m[node + at.UNIT_FREE_FROM] = time + m[at.UNIT_INTERVAL]
    for port in range(at.PORTS):
        if inputs >> port & 1:
            if ended:
                leave(m, packets, base + port * size, time)
            freed(m, packets, base + port * size)
    if ended:
        consider(m, packets, node)
