"""The law of relays at level lt: the members of a line add up a stream, one word a cycle each.

The first word leaves a tile when it begins, or ``hold`` cycles after the first word has come from
the tile farther out, if that is later. The others follow, one a cycle. What waits at the ejection
port comes as much later, all of it. The root has added the last word ``flits - 1`` cycles after it
could have sent the first one on.
"""

import numpy as np

from tlm.compiled import compiled
from tlm.engines.lt.laws import Fields, Laws
from tlm.engines.lt.line import begin_across, begin_along, line_of, row_of
from tlm.engines.lt.port import leave, through_port, through_ports
from tlm.engines.lt.queue import give, take, tokens_at
from tlm.engines.lt.state import (
    EMPTY,
    Columns,
    GridArrays,
    Spare,
    TileSlot,
    Times,
    columns_of,
    read,
    write_back,
)
from tlm.engines.lt.step import StepRecord
from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.program.operations import Engine


def relay_fields(
    laws: Laws, segment: range, root: int, flits: int, stage_cycles: int
) -> tuple[Fields, int]:
    """Fields of a relay to a place of a line; more cycles than it can take."""
    hops = np.abs(np.array(segment) - root)
    farthest = int(hops.max())
    word = arrival_cycles(laws.timing, segment.step, 1)
    fields = {
        "credit": laws.credits(hops),
        "latency": laws.pools.put_delays([word]),
        "hold": stage_cycles,
    }
    longest = len(segment) * (word + stage_cycles + 2 * flits)
    return fields, longest + credit_cycles(laws.timing, farthest)


@compiled
def row_relay(step: StepRecord, grid: GridArrays, i: int) -> int:
    """Relay along the ``i``-th row to its root; the fault."""
    line, size = line_of(step, grid, i), step.size
    row, columns, places = line.row, line.columns, line.columns.indices
    free, missing = begin_along(step, grid, line)
    word, own = grid.delays[line.latency], 0
    while places[own] < line.root:
        free[own + 1] = _next(step, row, places[own + 1], free[own] + word, free[own + 1])
        own += 1
    for j in range(size - 1, own, -1):
        free[j - 1] = _next(step, row, places[j - 1], free[j] + word, free[j - 1])
    for j in range(size):
        free[j] += step.flits - (1 if j == own else 0)
    over = give(row, tokens_at(grid, step.gives), columns, free)
    come = grid.scratch[Spare.COME][:1]
    come[0] = free[own]
    leave(row, columns, free, step.launch)
    full = give(row, tokens_at(grid, step.arrivals), line.at, come)
    return missing or over or full


@compiled
def _next(step: StepRecord, row: Times, column: int, come: int, begins: int) -> int:
    """When the first word can leave a tile to which the first one could come at some time."""
    last = np.int32(come + step.flits - 1)
    written, row[TileSlot.BUSY, column], row[TileSlot.PORT, column] = through_port(
        last, row[TileSlot.BUSY, column], row[TileSlot.PORT, column], step.flits
    )
    first = written - step.flits + 1 + step.hold
    return int(max(begins, first))


@compiled
def column_relay(step: StepRecord, grid: GridArrays, begin: int, end: int) -> int:
    """Relay along some columns to their roots, which lie in one row; the fault."""
    size, root = end - begin, grid.state[step.root]
    columns = columns_of(grid, step.columns, step.first, begin, end)
    known, fault = take(grid.scratch, root, tokens_at(grid, step.slots), columns, Spare.SLOTS)
    latest = grid.scratch[Spare.LATEST][:size]
    own = (step.root - step.row_first) // step.row_step
    for side in range(2):  # from above to the root, then from below to the row before it
        latest[:] = EMPTY
        for n in range(own + 1 if side == 0 else step.rows - 1 - own):
            i = n if side == 0 else step.rows - 1 - n
            wrong = _pass_on(step, grid, i, columns, known, latest, side == 0 and n == own)
            fault = fault or wrong
    wrong = _end_at_root(step, grid, columns, latest)
    return fault or wrong


@compiled
def _pass_on(
    step: StepRecord,
    grid: GridArrays,
    i: int,
    columns: Columns,
    known: Times,
    latest: Times,
    at_root: bool,
) -> int:
    """A row begins, as soon as it may; ``latest``: when first words leave it. The fault."""
    row = row_of(step, grid, i)
    free, fault = begin_across(step, grid, i, columns, known)
    _receive(step, grid, row, columns, latest)
    for j in range(len(free)):
        latest[j] = max(latest[j], free[j])
        free[j] = latest[j] if at_root else np.int32(latest[j] + step.flits)
    if at_root:  # it ends when both sides have
        write_back(row[Engine.TRANSFER], columns, free)
        return fault
    over = give(row, tokens_at(grid, step.gives), columns, free)
    leave(row, columns, free, step.launch)
    return fault or over


@compiled
def _receive(
    step: StepRecord, grid: GridArrays, row: Times, columns: Columns, latest: Times
) -> None:
    """Words come that left at ``latest``; then when the first can leave again."""
    size, word = len(latest), grid.delays[step.latency]
    if size == 0 or latest[0] == EMPTY:
        return
    come, times = grid.scratch[Spare.COME][:size], grid.scratch[Spare.TIMES][:size]
    for j in range(size):
        come[j] = latest[j] + word + step.flits - 1
    through_ports(grid.scratch, row, columns, come, step.flits, times)
    for j in range(size):
        latest[j] = times[j] - step.flits + 1 + step.hold


@compiled
def _end_at_root(step: StepRecord, grid: GridArrays, columns: Columns, latest: Times) -> int:
    """The roots have added the last words of both sides; the fault."""
    root = grid.state[step.root]
    _receive(step, grid, root, columns, latest)
    free = read(root[Engine.TRANSFER], columns, grid.scratch[Spare.FREE])
    for j in range(len(free)):
        free[j] = np.int32(max(free[j], latest[j]) + step.flits - 1)
    over = give(root, tokens_at(grid, step.gives), columns, free)
    full = give(root, tokens_at(grid, step.arrivals), columns, free)
    leave(root, columns, free, step.launch)
    return over or full
