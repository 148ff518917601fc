"""Branches of a multicast that wait for each other, flit by flit or in lockstep."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.flits import append, came_at, passes_from, room_from
from tlm.interconnect.handshake.places import given, output_of
from tlm.interconnect.handshake.records import (
    LONG_AGO,
    NEVER,
    PORTS,
    Address,
    FlitBuffer,
    Mesh,
    Packet,
    Records,
    Ring,
    Run,
    Table,
)


@compiled
def close_forks(m: Records, buffer: Address, before: int, left: int) -> None:
    """Flits that all branches have sent leave."""
    for flit in range(before, left):
        place = (
            buffer + FlitBuffer.RINGS + Ring.FORKS * m[Mesh.RING_SIZE] + 2 * (flit & m[Mesh.MASK])
        )
        append(m, buffer, Run.LEAVES, FlitBuffer.LEAVE_RUNS, flit, m[place])
        m[place + 1] = 0


@compiled
def aligned(m: Records, packets: Table, buffer: Address) -> bool:
    """Have the branches of a fork send their next flit in the same cycle, if all can."""
    needed = m[buffer + FlitBuffer.NEEDED]
    packet, start = m[buffer + FlitBuffer.FRONT_PACKET], m[buffer + FlitBuffer.FRONT_FLIT]
    sent, latest = 0, LONG_AGO
    for port in range(PORTS):
        if needed >> port & 1:
            sent = m[buffer + FlitBuffer.BRANCH_SENT + port]
            time = _sends_from(m, packets, buffer, port, packet, start + sent)
            if time == NEVER:
                return False
            latest = max(latest, time)
    for port in range(PORTS):
        if needed >> port & 1:
            m[buffer + FlitBuffer.BRANCH_LAST_SENT + port] = latest - 1
    return True


@compiled
def _sends_from(
    m: Records, packets: Table, buffer: Address, port: int, packet: int, number: int
) -> int:
    """Cycle from which a branch alone could send a flit; NEVER: it cannot, or it is not known."""
    output = output_of(m[buffer + FlitBuffer.NODE], port)
    if m[buffer + FlitBuffer.GRANTED] >> port & 1 == 0 or number >= m[buffer + FlitBuffer.WRITTEN]:
        return NEVER
    latency = given(m, Mesh.LATENCY if port else Mesh.EJECTION, buffer)
    time = max(
        came_at(m, buffer, number) + latency, m[buffer + FlitBuffer.BRANCH_LAST_SENT + port] + 1
    )
    if m[Mesh.CUT_THROUGH] != 0 and m[buffer + FlitBuffer.BRANCH_SENT + port] == 0 and port > 0:
        time = max(time, room_from(m, output, packets[packet, Packet.FLITS]))
    return max(time, passes_from(m, output))
