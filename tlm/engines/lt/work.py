"""The law of work at level lt: an engine of each tile is occupied for some cycles."""

import numpy as np

from tlm.compiled import compiled
from tlm.engines.lt.queue import give, take, tokens_at
from tlm.engines.lt.state import Columns, Grid, Slot, Spare, Times, columns_of, read, write_back
from tlm.engines.lt.step import Step


@compiled
def work(step: Step, grid: Grid, i: int, begin: int, end: int) -> int:
    """Occupy an engine of tiles of the ``i``-th row; the fault."""
    number = step.row_first + i * step.row_step
    row, columns = grid.state[number], columns_of(grid, step.columns, step.first, begin, end)
    takes = tokens_at(grid, step.takes, step.n_takes)
    units, missing = take(grid.scratch, row, takes, columns, grid.scratch[Spare.UNITS])
    free = read(row[step.engine], columns, grid.scratch[Spare.FREE])
    if step.beside >= 0:
        _begin(step, grid, row, columns, free, units)
    if step.table < 0:
        cycles = np.int32(step.cycles)
        for j in range(len(free)):
            free[j] = max(free[j], units[j]) + cycles
    else:
        table = read(grid.tables[step.table, number], columns, grid.scratch[Spare.CYCLES])
        for j in range(len(free)):
            free[j] = max(free[j], units[j]) + table[j]
    write_back(row[step.engine], columns, free)
    if step.beside >= 0:
        _count_overlap(step, grid, row, columns, free)
    gives = tokens_at(grid, step.gives, step.n_gives)
    return missing or give(row, gives, columns, free)


@compiled
def _begin(step: Step, grid: Grid, row: Times, columns: Columns, free: Times, units: Times) -> None:
    """Note when work starts, and since when its engine has worked without a pause."""
    starts = grid.scratch[Spare.STARTS]
    since = read(row[Slot.SINCE + step.engine], columns, grid.scratch[Spare.SINCE])
    for j in range(len(free)):
        starts[j] = max(free[j], units[j])
        since[j] = starts[j] if starts[j] > free[j] else since[j]
    write_back(row[Slot.SINCE + step.engine], columns, since)


@compiled
def _count_overlap(step: Step, grid: Grid, row: Times, columns: Columns, ends: Times) -> None:
    """Count the cycles of some work in which the engine beside it works too.

    Of that engine the work since its last pause is known. What it did before has ended earlier than
    this starts, unless a tile's work stands in the program far out of the order in which it starts.
    """
    starts = grid.scratch[Spare.STARTS]
    until = read(row[step.beside], columns, grid.scratch[Spare.BESIDE])
    since = read(row[Slot.SINCE + step.beside], columns, grid.scratch[Spare.BESIDE_SINCE])
    overlap = read(row[Slot.OVERLAP], columns, grid.scratch[Spare.OVERLAP])
    for j in range(len(ends)):
        begun = max(starts[j], since[j])
        overlap[j] += max(np.int32(0), np.int32(min(until[j], ends[j]) - begun))
    write_back(row[Slot.OVERLAP], columns, overlap)
