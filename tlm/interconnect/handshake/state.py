"""Layout of the compiled mesh's records, and the mesh after reset."""

import math
from functools import lru_cache

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.handshake.arbiters import at_reset
from tlm.interconnect.handshake.records import (
    EVENT_COLUMNS,
    HEADER_COLUMNS,
    LINE,
    LONG_AGO,
    NEVER,
    OPERANDS,
    OUTPUT_COLUMNS,
    OUTPUTS,
    PORTS,
    RESULT,
    RING_COUNT,
    ROUND,
    SLOTS,
    FlitBuffer,
    Int32s,
    Interface,
    Mesh,
    Node,
    Output,
    Packet,
    Pending,
    Run,
)
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.zero_load import ARBITERS, CHANNELS, FORKS, UNIT_CHOICES, NocTiming

#: Port by which a node is seen from its neighbour in a direction.
_FACING = (MeshPort.LOCAL, MeshPort.SOUTH, MeshPort.WEST, MeshPort.NORTH, MeshPort.EAST)

_SMALL = 2**8
"""Nodes of meshes that are copied: kernels of an iteration run on few of them, each many times."""


def new_mesh(rows: int, cols: int, timing: NocTiming, *, reductions: bool) -> Int32s:
    """All records of a mesh after reset.

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: What its routers are like.
        reductions: Whether there are reduction units, and buffers for operands.
    """
    if rows * cols > _SMALL:
        return _reset(rows, cols, timing, reductions)
    kept = _kept_reset(rows, cols, timing, reductions)
    m = aligned_zeros(kept.shape)
    m[:] = kept
    return m


def _reset(rows: int, cols: int, timing: NocTiming, reductions: bool) -> Int32s:
    """`new_mesh`, made anew."""
    nodes = rows * cols
    depth = max(timing.output_depth, timing.tile_places)
    slots = SLOTS if reductions or depth > 0 else PORTS
    longest = max(timing.fifo_depth + depth, timing.result_places)
    ring = 1 << (longest - 1).bit_length()
    size = _whole_lines(FlitBuffer.RINGS + RING_COUNT * 2 * ring)
    # At most one request a branch and a release an output; a few for a tile, a unit and waits for
    # room; and reports of as many packets as are in a tile's two buffers ahead of the clock.
    events = nodes * (8 * PORTS + 32 + 2 * timing.fifo_depth + depth)
    lengths = {
        Mesh.WHEEL: ROUND,
        Mesh.MARKED: nodes * PORTS,
        Mesh.STARTING: nodes,
        Mesh.STACK: nodes * slots,
        Mesh.REPORTS: 4 * nodes * PORTS,
        Mesh.NODES: nodes * (Node.BUFFERS + slots * size),
        Mesh.UNUSED: events * EVENT_COLUMNS,
    }
    whole = [_whole_lines(length) for length in lengths.values()]
    ends = HEADER_COLUMNS + np.cumsum(whole)
    if ends[-1] > NEVER:
        raise InputError(f"mesh: found {rows}x{cols}; its records are too many for this model")
    m = aligned_zeros((int(ends[-1]),))
    m[list(lengths)] = ends - whole
    m[Mesh.EVENTS_END] = m[Mesh.UNUSED] + lengths[Mesh.UNUSED]
    m[Mesh.NODE_COUNT], m[Mesh.NODE_SIZE] = nodes, Node.BUFFERS + slots * size
    m[Mesh.BUFFER_SIZE], m[Mesh.RING_SIZE] = size, 2 * ring
    m[Mesh.MASK] = ring - 1
    m[Mesh.DEPTH], m[Mesh.OUTPUT_DEPTH] = timing.fifo_depth, timing.output_depth
    m[Mesh.TILE_DEPTH] = timing.tile_places
    m[Mesh.REGISTERS] = timing.result_places
    m[Mesh.Y_FIRST], m[Mesh.CUT_THROUGH] = timing.y_first, timing.cut_through
    m[Mesh.LOOPBACK] = timing.loopback
    m[Mesh.FORK], m[Mesh.ARBITER] = FORKS.index(timing.fork), ARBITERS.index(timing.arbiter)
    m[Mesh.LATE_LOCK] = timing.lock_on_transfer
    m[Mesh.TURNAROUND] = timing.turnaround_cycles
    m[Mesh.LINK_INTERVAL] = timing.link_interval_cycles
    # A shorter rest is in a buffer as soon. Where links idle between flits there are no runs.
    m[Mesh.STREAM_FROM] = timing.fifo_depth if timing.link_interval_cycles == 1 else NEVER
    m[Mesh.UNIT_INTERVAL] = timing.reduce_interval_cycles
    m[Mesh.UNIT_CHOICE] = UNIT_CHOICES.index(timing.unit_choice)
    m[Mesh.UNIT_ARBITER] = ARBITERS.index(timing.unit_arbiter)
    m[Mesh.UNIT_LATE_LOCK] = timing.unit_lock_on_transfer
    m[Mesh.CHANNEL] = CHANNELS.index(timing.channel)
    m[Mesh.CONTROLS] = 2 * nodes * timing.locks
    m[Mesh.REQUEST_AFTER] = timing.request_cycles
    m[Mesh.ACKNOWLEDGE_AFTER] = timing.acknowledge_cycles
    m[Mesh.DATA_AFTER] = timing.data_cycles
    m[Mesh.OPERAND_SLOT] = 0 if timing.operands_share else OPERANDS
    m[Mesh.AT_PLACE : Mesh.AT_PLACE + len(timing.line)] = timing.line
    m[Mesh.PLACE_OF : Mesh.PLACE_OF + len(timing.line)] = np.argsort(timing.line)
    _set_nodes(m, cols)
    _set_outputs(m, rows, cols)
    _set_slots(m, timing)
    _set_buffers(m)
    _set_events(m)
    return m


_kept_reset = lru_cache(16)(_reset)


def _whole_lines(columns: int) -> int:
    """As many columns, rounded up to whole lines of a cache."""
    return -(-columns // LINE) * LINE


def aligned_zeros(shape: tuple[int, ...]) -> Int32s:
    """Zeros that begin with a line of the cache."""
    columns = math.prod(shape)
    room = np.zeros(columns + LINE, dtype=np.int32)
    address: int = room.__array_interface__["data"][0]
    skip = -address // room.itemsize % LINE
    return room[skip : skip + columns].reshape(shape)


def set_controls(table: Int32s, cols: int) -> None:
    """Set the requests that nodes send and the acknowledges that they get, shape (2 nodes, 16)."""
    nodes = len(table) // 2
    table[:, Packet.FLITS] = 1
    ends = table[nodes:]
    ends[:, Packet.ROW_FIRST], ends[:, Packet.COL_FIRST] = np.divmod(np.arange(nodes), cols)


def node_table(m: Int32s) -> Int32s:
    """The nodes' records with all that belongs to them, a view of shape (nodes, columns)."""
    first, count, size = map(m.item, (Mesh.NODES, Mesh.NODE_COUNT, Mesh.NODE_SIZE))
    return m[first : first + count * size].reshape(count, size)


def output_column(m: Int32s, column: int) -> Int32s:
    """A column of all outputs, a view of shape (nodes, 5)."""
    first = Node.FIRST_OUTPUT + column
    return node_table(m)[:, first : first + PORTS * OUTPUT_COLUMNS : OUTPUT_COLUMNS]


def buffer_table(m: Int32s) -> Int32s:
    """The buffers' records, a view of shape (nodes, slots, columns)."""
    return node_table(m)[:, Node.BUFFERS :].reshape(m[Mesh.NODE_COUNT], -1, m[Mesh.BUFFER_SIZE])


def node_addresses(m: Int32s) -> Int32s:
    """The nodes' addresses, shape (nodes,)."""
    first, count, size = map(m.item, (Mesh.NODES, Mesh.NODE_COUNT, Mesh.NODE_SIZE))
    return np.arange(first, first + count * size, size, dtype=np.int32)


def _set_nodes(m: Int32s, cols: int) -> None:
    table = node_table(m)
    table[:, Node.NUMBER] = np.arange(len(table))
    table[:, Node.ROW], table[:, Node.COL] = np.divmod(np.arange(len(table)), cols)
    idle = [Node.QUEUE_HEAD, Node.QUEUE_TAIL, Node.QUEUE_LAST]
    table[:, [*idle, Node.UNIT, Node.UNIT_CHOSEN, Node.UNIT_LOOKED, Node.START_AT]] = -1
    table[:, Node.UNIT_PREFERRED] = at_reset(m[Mesh.UNIT_ARBITER])
    if m[Mesh.CHANNEL]:
        table[:, Interface.ANSWER] = -1


def _set_outputs(m: Int32s, rows: int, cols: int) -> None:
    output_column(m, Output.PORT)[:] = np.arange(PORTS)
    output_column(m, Output.OWNER)[:] = -1
    output_column(m, Output.PREFERRED)[:] = at_reset(m[Mesh.ARBITER])
    output_column(m, Output.LINK_LAST)[:] = LONG_AGO
    row, col = node_table(m)[:, [Node.ROW, Node.COL]].T
    nodes, behind = node_addresses(m), output_column(m, Output.BEHIND)
    for port, step, inside in (
        (1, -cols, row > 0),
        (2, 1, col < cols - 1),
        (3, cols, row < rows - 1),
        (4, -1, col > 0),
    ):
        neighbours = nodes[inside] + step * m[Mesh.NODE_SIZE]
        behind[inside, port] = neighbours + Node.BUFFERS + _FACING[port] * m[Mesh.BUFFER_SIZE]


def _set_slots(m: Int32s, timing: NocTiming) -> None:
    # The cycle that an output's buffer costs is its own; the rest is the input's.
    hop = timing.hop_cycles - int(timing.output_depth > 0)
    ejection = timing.ejection_cycles - int(timing.tile_places > 0)
    unit, places, returns = timing.reduce_cycles, timing.fifo_depth, timing.return_cycles
    kinds = {
        range(OPERANDS): (places, hop, ejection, returns),
        range(OPERANDS, RESULT): (places, hop, 0, returns),
        range(RESULT, OUTPUTS): (timing.result_places, unit, unit, timing.unit_return_cycles),
        range(OUTPUTS, OUTPUTS + 1): (timing.tile_places, 1, 1, 1),
        range(OUTPUTS + 1, SLOTS): (timing.output_depth, 1, 1, 1),
    }
    for slots, values in kinds.items():
        for column, value in zip(
            (Mesh.PLACES, Mesh.LATENCY, Mesh.EJECTION, Mesh.RETURN), values, strict=True
        ):
            m[column + np.array(slots)] = value


def _set_buffers(m: Int32s) -> None:
    table, nodes = buffer_table(m), node_addresses(m)
    slots = table.shape[1]
    table[..., FlitBuffer.NODE] = nodes[:, None]
    table[..., FlitBuffer.SLOT] = np.arange(slots)
    # Before the first flit as many left, long ago, as there are places.
    table[..., [FlitBuffer.WRITE_RUNS, FlitBuffer.LEAVE_RUNS]] = 1
    for kind in (Run.WRITES, Run.LEAVES):
        table[..., FlitBuffer.RINGS + kind] = -m[Mesh.PLACES : Mesh.PLACES + slots]
        table[..., FlitBuffer.RINGS + kind + 1] = LONG_AGO
    ports = np.arange(PORTS, dtype=np.int32)
    outputs = nodes[:, None] + np.int32(Node.FIRST_OUTPUT) + np.int32(OUTPUT_COLUMNS) * ports
    behind = output_column(m, Output.BEHIND)
    linked = behind > 0
    m[behind[linked] + FlitBuffer.FEEDER] = outputs[linked]
    if slots > PORTS:
        operands = behind[linked] + OPERANDS * m[Mesh.BUFFER_SIZE]
        m[operands + FlitBuffer.FEEDER] = outputs[linked]
        table[:, OUTPUTS:, FlitBuffer.FEEDER] = outputs


def _set_events(m: Int32s) -> None:
    first, end = m[[Mesh.UNUSED, Mesh.EVENTS_END]].tolist()
    records = m[first:end].reshape(-1, EVENT_COLUMNS)
    step = EVENT_COLUMNS
    records[:, Pending.NEXT] = np.arange(first + step, end + step, step, dtype=np.int32)
