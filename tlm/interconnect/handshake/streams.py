"""The rest of a long message at once, where all of its way is its own.

Once a unicast holds every output of its way, only its own flits decide when they move (flits.py).
If these follow each other cycle by cycle in all buffers, the next ones do, too: each then moves a
cycle after the one before, as what it waits for is a cycle later as well. So counts grow, and the
runs in which flits come and leave go on.
"""

from tlm.compiled import compiled, lowest
from tlm.interconnect.handshake.places import behind_switch, buffer_of, given, output_of
from tlm.interconnect.handshake.records import (
    OUTPUTS,
    RUN_COLUMNS,
    Address,
    FlitBuffer,
    Mesh,
    Node,
    Output,
    Records,
    Run,
)

_TOO_LATE = 2**62


@compiled
def pass_at_once(m: Records, node: Address, packet: int, length: int) -> None:
    """Have all but the last of a message's flits pass that its tile still has, if they stream.

    Args:
        m: The mesh, whose tiles do not say when flits move.
        node: Of the tile.
        packet: The message, a unicast.
        length: Its flits.
    """
    sent = m[node + Node.QUEUE_SENT]
    passed = length - sent - 1
    if passed < m[Mesh.STREAM_FROM] or sent == 0 or not _streams(m, node, packet):
        return
    m[node + Node.QUEUE_SENT] += passed
    m[node + Node.QUEUE_LAST] += passed
    buffer = buffer_of(m, node, 0)
    while buffer > 0:
        here, port = m[buffer + FlitBuffer.NODE], lowest(m[buffer + FlitBuffer.GRANTED])
        following = _following(m, buffer, port)
        if following > 0 and m[buffer + FlitBuffer.SLOT] < OUTPUTS:
            m[output_of(here, port) + Output.THROUGH] += passed
        for column in (FlitBuffer.WRITTEN, FlitBuffer.LEFT, FlitBuffer.LAST_SENT):
            m[buffer + column] += passed
        buffer = following


@compiled
def _streams(m: Records, node: Address, packet: int) -> bool:
    """Whether the next flit in every buffer of the way moves a cycle after the one before."""
    buffer, time = buffer_of(m, node, 0), m[node + Node.QUEUE_LAST]
    while buffer > 0:
        sent = m[buffer + FlitBuffer.LEFT] - m[buffer + FlitBuffer.FRONT_FLIT]
        holds = m[buffer + FlitBuffer.PACKETS] > 0 and m[buffer + FlitBuffer.GRANTED] != 0
        if not holds or m[buffer + FlitBuffer.FRONT_PACKET] != packet or sent == 0:
            return False
        freed = m[buffer + FlitBuffer.WRITTEN] - given(m, Mesh.PLACES, buffer)
        left = _goes_on(m, buffer, Run.LEAVES, m[buffer + FlitBuffer.LEAVE_RUNS], freed)
        if left + given(m, Mesh.RETURN, buffer) > time + 1:
            return False
        time, number = m[buffer + FlitBuffer.LAST_SENT], m[buffer + FlitBuffer.LEFT]
        port = lowest(m[buffer + FlitBuffer.GRANTED])
        came = _goes_on(m, buffer, Run.WRITES, m[buffer + FlitBuffer.WRITE_RUNS], number)
        if came + given(m, Mesh.LATENCY if port else Mesh.EJECTION, buffer) > time + 1:
            return False
        buffer = _following(m, buffer, port)
    return True


@compiled
def _following(m: Records, buffer: Address, port: int) -> Address:
    """The buffer behind one, by an output; 0: the tile."""
    node = m[buffer + FlitBuffer.NODE]
    if m[buffer + FlitBuffer.SLOT] < OUTPUTS:
        return behind_switch(m, node, port)
    return m[output_of(node, port) + Output.BEHIND]


@compiled
def _goes_on(m: Records, buffer: Address, kind: int, runs: int, number: int) -> int:
    """When a flit comes or leaves by the last run, or if that goes on; else far too late."""
    last = buffer + FlitBuffer.RINGS + kind + RUN_COLUMNS * ((runs - 1) & m[Mesh.MASK])
    return m[last + 1] - m[last] + number if number >= m[last] else _TOO_LATE
