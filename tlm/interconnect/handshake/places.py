"""How the records of a tile are found from each other."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.records import (
    OUTPUT_COLUMNS,
    OUTPUTS,
    Address,
    FlitBuffer,
    Mesh,
    Node,
    Output,
    Records,
)


@compiled
def node_at(m: Records, number: int) -> Address:
    """The node of a number."""
    return m[Mesh.NODES] + number * m[Mesh.NODE_SIZE]


@compiled
def node_of(m: Records, output: Address) -> Address:
    """The node of an output."""
    return output - Node.FIRST_OUTPUT - OUTPUT_COLUMNS * m[output + Output.PORT]


@compiled
def output_of(node: Address, port: int) -> Address:
    """A node's output."""
    return node + Node.FIRST_OUTPUT + OUTPUT_COLUMNS * port


@compiled
def buffer_of(m: Records, node: Address, slot: int) -> Address:
    """A node's buffer."""
    return node + Node.BUFFERS + slot * m[Mesh.BUFFER_SIZE]


@compiled
def behind_switch(m: Records, node: Address, port: int) -> Address:
    """The buffer that comes next by an output: its own, or one behind the link; 0: the tile."""
    if m[Mesh.OUTPUT_DEPTH if port else Mesh.TILE_DEPTH] > 0:
        return buffer_of(m, node, OUTPUTS + port)
    return m[output_of(node, port) + Output.BEHIND]


@compiled
def given(m: Records, column: int, buffer: Address) -> int:
    """PLACES, LATENCY, EJECTION or RETURN of a buffer."""
    return m[column + m[buffer + FlitBuffer.SLOT]]
