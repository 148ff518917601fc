"""Who gets an output."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.arbiters import first_of, preferred_after
from tlm.interconnect.handshake.channels import admitted
from tlm.interconnect.handshake.events import look_at
from tlm.interconnect.handshake.fronts import wait_for_room
from tlm.interconnect.handshake.places import buffer_of, node_of
from tlm.interconnect.handshake.records import (
    NEVER,
    PORTS,
    RESULT,
    Address,
    Channel,
    FlitBuffer,
    Mesh,
    Output,
    Records,
)


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
    arbiter, preferred = m[Mesh.ARBITER], m[output + Output.PREFERRED]
    place = first_of(arbiter, preferred, asking)
    m[output + Output.PREFERRED] = preferred_after(arbiter, preferred, asking, place)
    winner = m[Mesh.AT_PLACE + place]
    m[output + Output.ASKING] &= ~(1 << place)
    m[output + Output.WAITED] += m[Mesh.CLOCK]
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
