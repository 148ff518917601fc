"""Where packets go: the routes of rtl/noc, from a router's place and a packet's header."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.places import node_at
from tlm.interconnect.handshake.records import Address, Mesh, Node, Packet, Records, Table
from tlm.interconnect.lines import MeshPort


@compiled
def way(m: Records, node: Address, row: int, col: int) -> int:
    """Output towards a tile, dimension by dimension."""
    own_row, own_col = m[node + Node.ROW], m[node + Node.COL]
    # No branch but the first, as a processor could not foresee which way a packet goes.
    sideways = MeshPort.EAST * (col > own_col) + MeshPort.WEST * (col < own_col)
    lengthwise = MeshPort.SOUTH * (row > own_row) + MeshPort.NORTH * (row < own_row)
    if m[Mesh.Y_FIRST] != 0:
        return lengthwise if lengthwise else sideways
    return sideways if sideways else lengthwise


@compiled
def _in_lines(m: Records, packets: Table, packet: int, node: Address) -> tuple[bool, bool]:
    """Whether a router is in one of the rows of a packet's tiles, and in one of the columns."""
    row, col = m[node + Node.ROW], m[node + Node.COL]
    top, bottom = packets[packet, Packet.ROW_FIRST], packets[packet, Packet.ROW_LAST]
    left, right = packets[packet, Packet.COL_FIRST], packets[packet, Packet.COL_LAST]
    return (
        top <= row <= bottom and (row - top) % packets[packet, Packet.ROW_STEP] == 0,
        left <= col <= right and (col - left) % packets[packet, Packet.COL_STEP] == 0,
    )


@compiled
def tree(m: Records, packets: Table, packet: int, node: Address, port: int) -> int:
    """Outputs by which a multicast leaves a router, a bit each: rtl/noc/tree_route.sv."""
    row, col = m[node + Node.ROW], m[node + Node.COL]
    top, bottom = packets[packet, Packet.ROW_FIRST], packets[packet, Packet.ROW_LAST]
    left, right = packets[packet, Packet.COL_FIRST], packets[packet, Packet.COL_LAST]
    here_row, here_col = _in_lines(m, packets, packet, node)
    vertical = port == MeshPort.NORTH or port == MeshPort.SOUTH
    horizontal = port == MeshPort.EAST or port == MeshPort.WEST
    if m[Mesh.Y_FIRST] == 0:
        may_row, may_col, here = not vertical, vertical or here_col, here_row
    else:
        may_row, may_col, here = horizontal or here_row, not horizontal, here_col
    outputs = 0
    if may_col:
        outputs |= (port != MeshPort.NORTH and top < row) << MeshPort.NORTH
        outputs |= (port != MeshPort.SOUTH and bottom > row) << MeshPort.SOUTH
    if may_row:
        outputs |= (port != MeshPort.EAST and right > col) << MeshPort.EAST
        outputs |= (port != MeshPort.WEST and left < col) << MeshPort.WEST
    may_eject = may_col if m[Mesh.Y_FIRST] == 0 else may_row
    if here and may_eject and (port != MeshPort.LOCAL or m[Mesh.LOOPBACK] != 0):
        outputs |= 1
    return outputs


@compiled
def partners(m: Records, packets: Table, packet: int, node: Address) -> int:
    """Inputs that bring operands of a reduction to a router: rtl/noc/reduce_route.sv."""
    row, col = m[node + Node.ROW], m[node + Node.COL]
    root = node_at(m, packets[packet, Packet.ROOT])
    root_row, root_col = m[root + Node.ROW], m[root + Node.COL]
    top, bottom = packets[packet, Packet.ROW_FIRST], packets[packet, Packet.ROW_LAST]
    left, right = packets[packet, Packet.COL_FIRST], packets[packet, Packet.COL_LAST]
    here_row, here_col = _in_lines(m, packets, packet, node)
    along_row, along_col = here_row, root_col == col
    if m[Mesh.Y_FIRST] != 0:
        along_row, along_col = root_row == row, here_col
    inputs = int(here_row and here_col)
    inputs |= (along_col and root_row >= row and top < row) << MeshPort.NORTH
    inputs |= (along_row and root_col <= col and right > col) << MeshPort.EAST
    inputs |= (along_col and root_row <= row and bottom > row) << MeshPort.SOUTH
    inputs |= (along_row and root_col >= col and left < col) << MeshPort.WEST
    return inputs


@compiled
def to_root(m: Records, packets: Table, packet: int, node: Address) -> int:
    """Output by which a reduction leaves a router."""
    root = node_at(m, packets[packet, Packet.ROOT])
    return way(m, node, m[root + Node.ROW], m[root + Node.COL])


@compiled
def receiver(packets: Table, packet: int) -> int:
    """Row and column of the tile to which a unicast goes, as one number."""
    return packets[packet, Packet.ROW_FIRST] << 16 | packets[packet, Packet.COL_FIRST]
