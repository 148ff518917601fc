"""Where packets go: the routes of rtl/noc, from a router's place and a packet's header."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.places import node_at
from tlm.interconnect.handshake.records import Address, Mesh, Node, Packet, Records, Table


@compiled
def way(m: Records, node: Address, row: int, col: int) -> int:
    """Output towards a tile, dimension by dimension."""
    # No branch but the first, as a processor could not foresee which way a packet goes.
    sideways = 2 * (col > m[node + Node.COL]) + 4 * (col < m[node + Node.COL])
    lengthwise = 3 * (row > m[node + Node.ROW]) + (row < m[node + Node.ROW])
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
    vertical, horizontal = port == 1 or port == 3, port == 2 or port == 4
    if m[Mesh.Y_FIRST] == 0:
        may_row, may_col, here = not vertical, vertical or here_col, here_row
    else:
        may_row, may_col, here = horizontal or here_row, not horizontal, here_col
    outputs = 0
    if may_col:
        outputs |= (port != 1 and top < row) << 1 | (port != 3 and bottom > row) << 3
    if may_row:
        outputs |= (port != 2 and right > col) << 2 | (port != 4 and left < col) << 4
    may_eject = may_col if m[Mesh.Y_FIRST] == 0 else may_row
    if here and may_eject and (port != 0 or m[Mesh.LOOPBACK] != 0):
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
    inputs |= (along_col and root_row >= row and top < row) << 1
    inputs |= (along_row and root_col <= col and right > col) << 2
    inputs |= (along_col and root_row <= row and bottom > row) << 3
    inputs |= (along_row and root_col >= col and left < col) << 4
    return inputs


@compiled
def to_root(m: Records, packets: Table, packet: int, node: Address) -> int:
    """Output by which a reduction leaves a router."""
    root = node_at(m, packets[packet, Packet.ROOT])
    return way(m, node, m[root + Node.ROW], m[root + Node.COL])
