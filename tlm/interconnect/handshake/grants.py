"""Who gets an output: the laws of the arbiters."""

from tlm.compiled import compiled, lowest
from tlm.interconnect.handshake.channels import admitted
from tlm.interconnect.handshake.events import look_at
from tlm.interconnect.handshake.fronts import wait_for_room
from tlm.interconnect.handshake.places import buffer_of, node_of
from tlm.interconnect.handshake.records import (
    NEVER,
    PORTS,
    RESULT,
    Address,
    Arbiter,
    Channel,
    FlitBuffer,
    Mesh,
    Output,
    Records,
)


@compiled
def _first_in_line(m: Records, output: Address, asking: int) -> int:
    """Place in line of the request that gets an output, and who is first in line after it."""
    if m[Mesh.ARBITER] == Arbiter.ROUND_ROBIN:  # rtl/noc/rr_arbiter.sv
        line = asking & m[output + Output.PREFERRED]
        winner = lowest(line if line else asking)
        m[output + Output.PREFERRED] = 63 & ~((2 << winner) - 1)
        return winner
    if m[Mesh.ARBITER] == Arbiter.FIXED:
        return lowest(asking)
    # A tree over eight places: the upper half goes first if the pointer's bit says so.
    pointer = m[output + Output.PREFERRED]
    first, half = 0, 4
    while half:
        lower = asking >> first & ((1 << half) - 1)
        upper = asking >> (first + half) & ((1 << half) - 1)
        if upper and (not lower or pointer & half):
            first += half
        half >>= 1
    behind = asking & ~((2 << pointer) - 1)
    m[output + Output.PREFERRED] = lowest(behind if behind else asking)
    return first


@compiled
def grant(m: Records, output: Address) -> None:
    """Give an output that is free to the first request in line."""
    asking = m[output + Output.ASKING]
    if asking == 0 or m[output + Output.FREE_FROM] > m[Mesh.CLOCK]:
        return
    if m[Mesh.CHANNEL] == Channel.RECEIVER and m[output + Output.OPEN] > 0:
        asking = admitted(m, output, asking)
        if asking == 0:
            return
    if m[Mesh.LATE_LOCK] != 0 and wait_for_room(m, output) > m[Mesh.CLOCK]:
        return
    place = _first_in_line(m, output, asking)
    winner = m[Mesh.AT_PLACE + place]
    m[output + Output.ASKING] &= ~(1 << place)
    m[output + Output.OWNER] = winner
    m[output + Output.FREE_FROM] = NEVER
    slot, port = RESULT if winner == PORTS else winner, m[output + Output.PORT]
    buffer = buffer_of(m, node_of(m, output), slot)
    m[buffer + FlitBuffer.GRANTED] |= 1 << port
    needed = m[buffer + FlitBuffer.NEEDED]
    fork = needed & (needed - 1) != 0
    m[buffer + (FlitBuffer.BRANCH_LAST_SENT + port if fork else FlitBuffer.LAST_SENT)] = (
        m[Mesh.CLOCK] - 1
    )
    look_at(m, buffer)
