"""Layout of the compiled mesh's records, and the mesh after reset."""

import math

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.records import Int32s
from tlm.interconnect.zero_load import ARBITERS, FORKS, NocTiming

#: Port by which a node is seen from its neighbour to the north, east, south, west.
_FACING = {1: 3, 2: 4, 3: 1, 4: 2}


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
        at.NODES: nodes * (at.BUFFERS + slots * size),
        at.UNUSED: events * at.EVENT_COLUMNS,
    }
    whole = [_whole_lines(length) for length in lengths.values()]
    ends = at.HEADER_COLUMNS + np.cumsum(whole)
    if ends[-1] > at.NEVER:
        raise InputError(f"mesh: found {rows}x{cols}; its records are too many for this model")
    m = aligned_zeros((int(ends[-1]),))
    m[list(lengths)] = ends - whole
    m[at.EVENTS_END] = m[at.UNUSED] + lengths[at.UNUSED]
    m[at.NODE_COUNT], m[at.NODE_SIZE] = nodes, at.BUFFERS + slots * size
    m[at.BUFFER_SIZE], m[at.RING_SIZE] = size, 2 * ring
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
    _set_nodes(m, cols)
    _set_outputs(m, rows, cols)
    _set_slots(m, timing)
    _set_buffers(m)
    _set_events(m)
    return m


def _unit_places(timing: NocTiming) -> int:
    """Flits of results that a reduction unit holds."""
    return -(-timing.reduce_cycles // timing.reduce_interval_cycles)


def _whole_lines(columns: int) -> int:
    """As many columns, rounded up to whole lines of a cache."""
    return -(-columns // at.LINE) * at.LINE


def aligned_zeros(shape: tuple[int, ...]) -> Int32s:
    """Zeros that begin with a line of the cache."""
    columns = math.prod(shape)
    room = np.zeros(columns + at.LINE, dtype=np.int32)
    skip = -room.ctypes.data // room.itemsize % at.LINE
    return room[skip : skip + columns].reshape(shape)


def node_table(m: Int32s) -> Int32s:
    """The nodes' records with all that belongs to them, a view of shape (nodes, columns)."""
    first, count, size = m[[at.NODES, at.NODE_COUNT, at.NODE_SIZE]].tolist()
    return m[first : first + count * size].reshape(count, size)


def output_column(m: Int32s, column: int) -> Int32s:
    """A column of all outputs, a view of shape (nodes, 5)."""
    first = at.NODE_OUTPUTS + column
    return node_table(m)[:, first : first + at.PORTS * at.OUTPUT_COLUMNS : at.OUTPUT_COLUMNS]


def buffer_table(m: Int32s) -> Int32s:
    """The buffers' records, a view of shape (nodes, slots, columns)."""
    return node_table(m)[:, at.BUFFERS :].reshape(m[at.NODE_COUNT], -1, m[at.BUFFER_SIZE])


def node_addresses(m: Int32s) -> Int32s:
    """The nodes' addresses, shape (nodes,)."""
    first, count, size = m[[at.NODES, at.NODE_COUNT, at.NODE_SIZE]].tolist()
    return np.arange(first, first + count * size, size, dtype=np.int32)


def _set_nodes(m: Int32s, cols: int) -> None:
    table = node_table(m)
    table[:, at.NUMBER] = np.arange(len(table))
    table[:, at.ROW], table[:, at.COL] = np.divmod(np.arange(len(table)), cols)
    idle = [at.QUEUE_HEAD, at.QUEUE_TAIL, at.QUEUE_LAST]
    table[:, [*idle, at.UNIT, at.START_AT]] = -1
    table[:, at.UNIT_PREFERRED] = 2**at.PORTS - 1


def _set_outputs(m: Int32s, rows: int, cols: int) -> None:
    output_column(m, at.PORT)[:] = np.arange(at.PORTS)
    output_column(m, at.OWNER)[:] = -1
    # All are first in line, and so is who stands in place 0 by the pointer of a tree.
    first = 0 if m[at.ARBITER] == at.TREE else 2 ** (at.PORTS + 1) - 1
    output_column(m, at.PREFERRED)[:] = first
    output_column(m, at.LINK_LAST)[:] = at.LONG_AGO
    row, col = node_table(m)[:, [at.ROW, at.COL]].T
    nodes, behind = node_addresses(m), output_column(m, at.BEHIND)
    for port, step, inside in (
        (1, -cols, row > 0),
        (2, 1, col < cols - 1),
        (3, cols, row < rows - 1),
        (4, -1, col > 0),
    ):
        neighbours = nodes[inside] + step * m[at.NODE_SIZE]
        behind[inside, port] = neighbours + at.BUFFERS + _FACING[port] * m[at.BUFFER_SIZE]


def _set_slots(m: Int32s, timing: NocTiming) -> None:
    # The cycle that an output's buffer costs is its own; the rest is the input's.
    hop = timing.hop_cycles - int(timing.output_depth > 0)
    ejection = timing.ejection_cycles - int(timing.tile_places > 0)
    unit, places, returns = timing.reduce_cycles, timing.fifo_depth, timing.return_cycles
    kinds = {
        range(at.OPERANDS): (places, hop, ejection, returns),
        range(at.OPERANDS, at.RESULT): (places, hop, 0, returns),
        range(at.RESULT, at.OUTPUTS): (_unit_places(timing), unit, unit, 1),
        range(at.OUTPUTS, at.OUTPUTS + 1): (timing.tile_places, 1, 1, 1),
        range(at.OUTPUTS + 1, at.SLOTS): (timing.output_depth, 1, 1, 1),
    }
    for slots, values in kinds.items():
        for column, value in zip(
            (at.PLACES, at.LATENCY, at.EJECTION, at.RETURN), values, strict=True
        ):
            m[column + np.array(slots)] = value


def _set_buffers(m: Int32s) -> None:
    table, nodes = buffer_table(m), node_addresses(m)
    slots = table.shape[1]
    table[..., at.NODE] = nodes[:, None]
    table[..., at.SLOT] = np.arange(slots)
    # Before the first flit as many left, long ago, as there are places.
    table[..., [at.WRITE_RUNS, at.LEAVE_RUNS]] = 1
    for kind in (at.WRITES, at.LEAVES):
        table[..., at.RINGS + kind] = -m[at.PLACES : at.PLACES + slots]
        table[..., at.RINGS + kind + 1] = at.LONG_AGO
    ports = np.arange(at.PORTS, dtype=np.int32)
    outputs = nodes[:, None] + np.int32(at.NODE_OUTPUTS) + np.int32(at.OUTPUT_COLUMNS) * ports
    behind = output_column(m, at.BEHIND)
    linked = behind > 0
    m[behind[linked] + at.FEEDER] = outputs[linked]
    if slots > at.PORTS:
        operands = behind[linked] + at.OPERANDS * m[at.BUFFER_SIZE]
        m[operands + at.FEEDER] = outputs[linked]
        table[:, at.OUTPUTS :, at.FEEDER] = outputs


def _set_events(m: Int32s) -> None:
    first, end = m[[at.UNUSED, at.EVENTS_END]].tolist()
    records = m[first:end].reshape(-1, at.EVENT_COLUMNS)
    step = at.EVENT_COLUMNS
    records[:, at.NEXT] = np.arange(first + step, end + step, step, dtype=np.int32)
