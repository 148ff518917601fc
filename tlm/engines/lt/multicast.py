"""The law of multicasts at level lt that meet no other: from roots along their rows or columns.

A multicast starts when all its places are free. Its packets wait for empty buffers, the root's own
copy for fewer.
"""

import numpy as np

from tlm.compiled import compiled
from tlm.engines.lt.laws import Fields, Laws
from tlm.engines.lt.line import line_of, row_of
from tlm.engines.lt.port import held_until, leave, through_port, through_ports
from tlm.engines.lt.queue import give, take, tokens_at
from tlm.engines.lt.state import Columns, GridArrays, Spare, TileSlot, columns_of, read
from tlm.engines.lt.step import StepRecord
from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles
from tlm.program.operations import Engine


def multicast_fields(laws: Laws, segment: range, root: int, flits: int) -> tuple[Fields, int]:
    """Fields of a multicast from a place of a line; more cycles than it can take."""
    timing, forks = laws.timing, len(segment) > 1
    hops = np.abs(np.array(segment) - root)

    def arrival(hop: int) -> int:
        return arrival_cycles(timing, hop, flits, multicast=forks)

    fields = {
        **laws.delays(hops, arrival),
        **laws.buffers(hops, flits),
        "hold": hold_cycles(timing, flits, multicast=forks),
        "occupied": arrival(1) - arrival_cycles(timing, 1, 1) + 1,
        "own_occupied": arrival(0) - arrival_cycles(timing, 0, 1) + 1,
    }
    return fields, laws.longest_cycles(int(hops.max()), flits)


@compiled
def row_multicast(step: StepRecord, grid: GridArrays, i: int) -> int:
    """Multicast from the root along the ``i``-th row; the fault."""
    line, size = line_of(step, grid, i), step.size
    row, columns, root = line.row, line.columns, line.root
    takes, slots = tokens_at(grid, step.takes), tokens_at(grid, step.slots)
    units, missing = take(grid.scratch, row, takes, line.at, Spare.UNITS)
    start = max(row[Engine.TRANSFER, root], np.int32(units[0] + step.launch))
    known, unfree = take(grid.scratch, row, slots, columns, Spare.SLOTS)
    for j in range(size):
        start = max(start, np.int32(known[j] + line.credit[j]))
    come, times = grid.scratch[Spare.COME][:size], grid.scratch[Spare.TIMES][:size]
    for j in range(size):
        come[j] = start + grid.delays[line.latency + j]
    since, until = row[TileSlot.BUSY, root], row[TileSlot.PORT, root]
    wait = through_ports(grid.scratch, row, columns, come, step.occupied, times)
    own = _among(columns, root)
    if own >= 0:  # its copy has fewer waits
        times[own], row[TileSlot.BUSY, root], row[TileSlot.PORT, root] = through_port(
            come[own], since, until, step.own_occupied
        )
    free = read(row[Engine.TRANSFER], line.at, grid.scratch[Spare.FREE])
    free[0] = start + step.hold
    for j in range(size if wait > 0 else 0):
        buffers = abs(columns.indices[j] - root) + 1
        free[0] = max(free[0], held_until(times[j], come[j], buffers, step.most, step.room))
    full = give(row, tokens_at(grid, step.arrivals), columns, times)
    over = give(row, tokens_at(grid, step.gives), line.at, free)
    leave(row, line.at, free, step.launch)
    return missing or unfree or over or full


@compiled
def _among(columns: Columns, column: int) -> int:
    """Place of one among evenly spaced columns; -1: it is none of them."""
    indices = columns.indices
    stride = indices[1] - indices[0] if len(indices) > 1 else 1
    place, rest = divmod(column - indices[0], stride)
    return place if rest == 0 and 0 <= place < len(indices) else -1


@compiled
def column_multicast(step: StepRecord, grid: GridArrays, begin: int, end: int) -> int:
    """Multicast from the root along each of some columns; the fault."""
    size, root = end - begin, grid.state[step.root]
    columns = columns_of(grid, step.columns, step.first, begin, end)
    start, come = grid.scratch[Spare.STARTS][:size], grid.scratch[Spare.COME][:size]
    times, free = grid.scratch[Spare.TIMES][:size], grid.scratch[Spare.FREE]
    takes, slots = tokens_at(grid, step.takes), tokens_at(grid, step.slots)
    units, fault = take(grid.scratch, root, takes, columns, Spare.UNITS)
    engine = read(root[Engine.TRANSFER], columns, free)
    for j in range(size):
        start[j] = max(engine[j], np.int32(units[j] + step.launch))
    for i in range(step.rows if len(slots) else 0):
        row, delay = row_of(step, grid, i), grid.delays[step.credit + i]
        known, unfree = take(grid.scratch, row, slots, columns, Spare.SLOTS)
        for j in range(size):
            start[j] = max(start[j], np.int32(known[j] + delay))
        fault = fault or unfree
    for j in range(size):
        engine[j] = start[j] + step.hold
    arrivals = tokens_at(grid, step.arrivals)
    for i in range(step.rows):
        number = step.row_first + i * step.row_step
        row, delay = grid.state[number], grid.delays[step.latency + i]
        for j in range(size):
            come[j] = start[j] + delay
        occupied = step.own_occupied if number == step.root else step.occupied
        wait = through_ports(grid.scratch, row, columns, come, occupied, times)
        buffers = abs(number - step.root) + 1
        for j in range(size if wait > 0 and buffers <= step.most else 0):
            held = held_until(times[j], come[j], buffers, step.most, step.room)
            engine[j] = max(engine[j], held)
        full = give(row, arrivals, columns, times)
        fault = fault or full
    over = give(root, tokens_at(grid, step.gives), columns, engine)
    leave(root, columns, engine, step.launch)
    return fault or over
