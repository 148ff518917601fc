"""What a packet-hop needs is fetched from memory while others are computed.

The records of a large mesh do not fit into the caches. What a hop touches hangs together by
addresses, so a processor would wait for one line after the other. Of a mesh that fits, hardly
ever so many buffers are listed.
"""

from tlm.compiled import compiled, lowest
from tlm.interconnect.handshake.places import output_of
from tlm.interconnect.handshake.records import (
    LINE,
    PACKET_COLUMNS,
    Address,
    FlitBuffer,
    Output,
    Records,
    Table,
)
from tlm.unchecked import fetch

#: Buffers that are computed while the records of one come, and then those that it leads to.
AHEAD = 16


@compiled
def look_ahead(m: Records, packets: Table, place: Address) -> None:
    """Fetch for the buffers that stand behind a place of the stack; AHEAD of them at least."""
    _fetch_buffer(m, m[place - AHEAD])
    buffer = m[place - AHEAD // 2]
    granted = m[buffer + FlitBuffer.GRANTED]
    if granted:
        output = output_of(m[buffer + FlitBuffer.NODE], lowest(granted))
        _fetch_buffer(m, m[output + Output.BEHIND])
        fetch(m, m[buffer + FlitBuffer.FEEDER])
        fetch(packets, m[buffer + FlitBuffer.FRONT_PACKET] * PACKET_COLUMNS)


@compiled
def _fetch_buffer(m: Records, buffer: Address) -> None:
    fetch(m, buffer)
    fetch(m, buffer + FlitBuffer.RINGS)
    fetch(m, buffer + FlitBuffer.RINGS + LINE)
