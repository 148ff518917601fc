"""Layout of the compiled mesh's records, and the mesh after reset."""

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.records import Int32s
from tlm.interconnect.zero_load import ARBITERS, FORKS, NocTiming

#: Port by which a node is seen from its neighbour to the north, east, south, west.
_FACING = {1: 3, 2: 4, 3: 1, 4: 2}
#: Columns of a cache's line of 64 bytes.
_LINE = 16


def new_mesh(rows: int, cols: int, timing: NocTiming, *, reductions: bool) -> Int32s:
    """All records of a mesh after reset.

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: What its routers are like.
        reductions: Whether there are reduction units, and buffers for operands.
    """
    nodes = rows * cols
    depth = max(timing.output_depth, timing.tile_places)
    slots = at.SLOTS if reductions or depth > 0 else at.PORTS
    longest = max(timing.fifo_depth + depth, _unit_places(timing))
    ring = 1 << (longest - 1).bit_length()
    size = _whole_lines(at.RINGS + at.RING_COUNT * 2 * ring)
    # At most one request a branch and a release an output; a few for a tile, a unit and waits for
    # room; and reports of as many packets as are in a tile's two buffers ahead of the clock.
    events = nodes * (8 * at.PORTS + 32 + 2 * timing.fifo_depth + depth)
    lengths = {
        at.WHEEL: at.ROUND,
        at.MARKED: nodes * at.PORTS,
        at.STARTING: nodes,
        at.STACK: nodes * slots,
        at.REPORTS: 4 * nodes * at.PORTS,
        at.NODES: nodes * at.NODE_COLUMNS,
        at.OUTPUT_RECORDS: nodes * at.PORTS * at.OUTPUT_COLUMNS,
        at.BUFFER_RECORDS: nodes * slots * size,
        at.UNUSED: events * at.EVENT_COLUMNS,
    }
    whole = [_whole_lines(length) for length in lengths.values()]
    ends = at.HEADER_COLUMNS + np.cumsum(whole)
    if ends[-1] > at.NEVER:
        raise InputError(f"mesh: found {rows}x{cols}; its records are too many for this model")
    m = _aligned_zeros(int(ends[-1]))
    m[list(lengths)] = ends - whole
    m[at.EVENTS_END] = m[at.UNUSED] + lengths[at.UNUSED]
    m[at.BUFFER_COUNT], m[at.BUFFER_SIZE], m[at.RING_SIZE] = nodes * slots, size, 2 * ring
    m[at.MASK] = ring - 1
    m[at.DEPTH], m[at.OUTPUT_DEPTH] = timing.fifo_depth, timing.output_depth
    m[at.TILE_DEPTH] = timing.tile_places
    m[at.REGISTERS] = _unit_places(timing)
    m[at.Y_FIRST], m[at.CUT_THROUGH] = timing.y_first, timing.cut_through
    m[at.LOOPBACK] = timing.loopback
    m[at.FORK], m[at.ARBITER] = FORKS.index(timing.fork), ARBITERS.index(timing.arbiter)
    m[at.LATE_LOCK] = timing.lock_on_transfer
    m[at.TURNAROUND] = timing.turnaround_cycles
    m[at.LINK_INTERVAL] = timing.link_interval_cycles
    m[at.UNIT_INTERVAL] = timing.reduce_interval_cycles
    m[at.OPERAND_SLOT] = 0 if timing.operands_share else at.OPERANDS
    m[at.AT_PLACE : at.AT_PLACE + len(timing.line)] = timing.line
    m[at.PLACE_OF : at.PLACE_OF + len(timing.line)] = np.argsort(timing.line)
    _set_nodes(m, nodes, cols, slots)
    _set_outputs(m, rows, cols, slots)
    _set_buffers(m, nodes, slots, timing)
    _set_events(m)
    return m


def _unit_places(timing: NocTiming) -> int:
    """Flits of results that a reduction unit holds."""
    return -(-timing.reduce_cycles // timing.reduce_interval_cycles)


def _whole_lines(columns: int) -> int:
    """As many columns, rounded up to whole lines of a cache."""
    return -(-columns // _LINE) * _LINE


def _aligned_zeros(columns: int) -> Int32s:
    """Zeros that begin with a line of the cache."""
    room = np.zeros(columns + _LINE, dtype=np.int32)
    skip = -room.ctypes.data // room.itemsize % _LINE
    return room[skip : skip + columns]


def node_table(m: Int32s) -> Int32s:
    """The nodes' records, a view of shape (nodes, columns)."""
    return m[m[at.NODES] : m[at.OUTPUT_RECORDS]].reshape(-1, at.NODE_COLUMNS)


def output_table(m: Int32s) -> Int32s:
    """The outputs' records, a view of shape (nodes, 5, columns)."""
    records = m[m[at.OUTPUT_RECORDS] : m[at.BUFFER_RECORDS]]
    return records.reshape(-1, at.PORTS, at.OUTPUT_COLUMNS)


def buffer_table(m: Int32s) -> Int32s:
    """The buffers' records, a view of shape (nodes, slots, columns)."""
    first, size = int(m[at.BUFFER_RECORDS]), int(m[at.BUFFER_SIZE])
    end = first + size * int(m[at.BUFFER_COUNT])
    return m[first:end].reshape(len(node_table(m)), -1, size)


def _addresses(first: int, count: int, size: int) -> Int32s:
    return np.int32(first) + np.int32(size) * np.arange(count, dtype=np.int32)


def node_addresses(m: Int32s) -> Int32s:
    """The nodes' addresses, shape (nodes,)."""
    return _addresses(m[at.NODES], len(node_table(m)), at.NODE_COLUMNS)


def _set_nodes(m: Int32s, nodes: int, cols: int, slots: int) -> None:
    table, size = node_table(m), int(m[at.BUFFER_SIZE])
    table[:, at.NUMBER] = np.arange(nodes)
    table[:, at.ROW], table[:, at.COL] = np.divmod(np.arange(nodes), cols)
    table[:, at.BUFFERS] = _addresses(m[at.BUFFER_RECORDS], nodes, slots * size)
    outputs = at.PORTS * at.OUTPUT_COLUMNS
    table[:, at.NODE_OUTPUTS] = _addresses(m[at.OUTPUT_RECORDS], nodes, outputs)
    idle = [at.QUEUE_HEAD, at.QUEUE_TAIL, at.QUEUE_LAST]
    table[:, [*idle, at.UNIT, at.START_AT]] = -1
    table[:, at.UNIT_PREFERRED] = 2**at.PORTS - 1


def _set_outputs(m: Int32s, rows: int, cols: int, slots: int) -> None:
    table, nodes = output_table(m), node_table(m)
    table[..., at.OUT_NODE] = _addresses(m[at.NODES], len(nodes), at.NODE_COLUMNS)[:, None]
    table[..., at.PORT] = np.arange(at.PORTS)
    table[..., at.OWNER] = -1
    # All are first in line, and so is who stands in place 0 by the pointer of a tree.
    arbiter = m[at.ARBITER]
    table[..., at.PREFERRED] = 0 if arbiter == at.TREE else 2 ** (at.PORTS + 1) - 1
    table[..., at.LINK_LAST] = at.LONG_AGO
    row, col = nodes[:, at.ROW], nodes[:, at.COL]
    numbers = nodes[:, at.NUMBER]
    for port, step, inside in (
        (1, -cols, row > 0),
        (2, 1, col < cols - 1),
        (3, cols, row < rows - 1),
        (4, -1, col > 0),
    ):
        neighbours = nodes[numbers[inside] + step, at.BUFFERS]
        table[inside, port, at.BEHIND] = neighbours + _FACING[port] * m[at.BUFFER_SIZE]


def _set_buffers(m: Int32s, nodes: int, slots: int, timing: NocTiming) -> None:
    table, outputs = buffer_table(m), output_table(m)
    inputs, operands = slice(0, at.OPERANDS), slice(at.OPERANDS, at.RESULT)
    result, links = slice(at.RESULT, at.OUTPUTS), slice(at.OUTPUTS, at.SLOTS)
    table[..., at.NODE] = outputs[:, :1, at.OUT_NODE]
    table[..., at.SLOT] = np.arange(slots)
    # The cycle that an output's buffer costs is its own; the rest is the input's.
    buffered, tile_buffered = int(timing.output_depth > 0), int(timing.tile_places > 0)
    for where, places, link_cycles, tile_cycles in (
        (
            inputs,
            timing.fifo_depth,
            timing.hop_cycles - buffered,
            timing.ejection_cycles - tile_buffered,
        ),
        (operands, timing.fifo_depth, timing.hop_cycles - buffered, 0),
        (result, _unit_places(timing), timing.reduce_cycles, timing.reduce_cycles),
        (links, timing.output_depth, 1, 1),
        (slice(at.OUTPUTS, at.OUTPUTS + 1), timing.tile_places, 1, 1),
    ):
        table[:, where, at.PLACES] = places
        table[:, where, at.LATENCY] = link_cycles
        table[:, where, at.EJECTION] = tile_cycles
    table[..., at.RETURN] = 1
    table[:, : at.RESULT, at.RETURN] = timing.return_cycles
    # Before the first flit as many left, long ago, as there are places.
    table[..., [at.WRITE_RUNS, at.LEAVE_RUNS]] = 1
    for kind in (at.WRITES, at.LEAVES):
        table[..., at.RINGS + kind] = -table[..., at.PLACES]
        table[..., at.RINGS + kind + 1] = at.LONG_AGO
    flat = table.reshape(-1, table.shape[-1])
    feeders = _addresses(m[at.OUTPUT_RECORDS], nodes * at.PORTS, at.OUTPUT_COLUMNS)
    behind = outputs[..., at.BEHIND].reshape(-1)
    linked = behind > 0
    fed = (behind[linked] - m[at.BUFFER_RECORDS]) // m[at.BUFFER_SIZE]
    flat[fed, at.FEEDER] = feeders[linked]
    if slots > at.PORTS:
        flat[fed + at.OPERANDS, at.FEEDER] = feeders[linked]
        table[:, links, at.FEEDER] = feeders.reshape(nodes, at.PORTS)


def _set_events(m: Int32s) -> None:
    records = m[m[at.UNUSED] : m[at.EVENTS_END]].reshape(-1, at.EVENT_COLUMNS)
    following = _addresses(m[at.UNUSED], len(records) + 1, at.EVENT_COLUMNS)
    records[:, at.NEXT] = following[1:]
