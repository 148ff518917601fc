"""The law of work at level lt: an engine of each tile is occupied for some cycles."""

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.port import Time
from tlm.engines.lt.queue import fault_of, give, give_at, take_at, take_two, tokens_at
from tlm.engines.lt.state import Grid, Indices, Slot, Spare, Times, columns_of
from tlm.engines.lt.step import FEW, Step


@compiled
def work(step: Step, grid: Grid, i: int, begin: int, end: int) -> int:
    """Occupy an engine of tiles of the ``i``-th row; the fault."""
    number = step.row_first + i * step.row_step
    row, columns = grid.state[number], columns_of(grid, step.columns, step.first, begin, end)
    takes = tokens_at(grid, step.takes, step.n_takes)
    gives = tokens_at(grid, step.gives, step.n_gives)
    table = grid.tables[max(step.table, 0), number]
    if columns.first < 0 or step.size <= FEW:
        return _work_few(step, row, table, columns.indices, takes, gives)
    one, two, missing = take_two(grid.scratch, row, takes, columns, Spare.UNITS)
    low, high = columns.first, columns.first + end - begin
    free = row[step.engine][low:high]
    if step.beside >= 0:
        _work_beside(step, row, table, one, two, low, high)
    elif step.table < 0:
        cycles = np.int32(step.cycles)
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + cycles
    else:
        cycles_at = table[low:high]
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + cycles_at[j]
    return missing or give(row, gives, columns, free)


@compiled
def _work_few(
    step: Step, row: Times, table: Times, columns: Indices, takes: Indices, gives: Indices
) -> int:
    """Do work tile by tile, where tiles are few or spaced."""
    missing, full, cycles = len(takes), len(gives), np.int32(step.cycles)
    engine, beside = step.engine, step.beside
    for j in range(len(columns)):
        column = address(columns[j])
        units, missing = take_at(row, takes, column, missing)
        free = row[engine, column]
        start = max(free, units)
        finish = np.int32(start + (cycles if step.table < 0 else table[column]))
        if beside >= 0:
            since = row[Slot.SINCE + engine, column]
            row[Slot.SINCE + engine, column] = _since(start, free, since)
            since, until = row[Slot.SINCE + beside, column], row[beside, column]
            row[Slot.OVERLAP, column] += _overlap(start, finish, since, until)
        row[engine, column] = finish
        full = give_at(row, gives, column, finish, full)
    return fault_of(takes, missing) or -fault_of(gives, full)


@compiled
def _work_beside(
    step: Step, row: Times, table: Times, one: Times, two: Times, low: int, high: int
) -> None:
    """Do work, and count in how many of its cycles the engine beside it works too."""
    free, since = row[step.engine][low:high], row[Slot.SINCE + step.engine][low:high]
    until, other = row[step.beside][low:high], row[Slot.SINCE + step.beside][low:high]
    overlap, cycles_at = row[Slot.OVERLAP][low:high], table[low:high]
    constant, same = np.int32(step.cycles), step.table < 0
    for j in range(len(free)):
        start = max(free[j], max(one[j], two[j]))
        finish = np.int32(start + (constant if same else cycles_at[j]))
        since[j] = _since(start, free[j], since[j])
        overlap[j] += _overlap(start, finish, other[j], until[j])
        free[j] = finish


@inlined
def _since(start: Time, free: Time, since: Time) -> Time:
    """Since when an engine works without a pause that was free before work starts."""
    return start if start > free else since


@inlined
def _overlap(start: Time, end: Time, since: Time, until: Time) -> Time:
    """Cycles of some work in which the engine beside it works too.

    Of that engine the work since its last pause is known. What it did before has ended earlier than
    this starts, unless a tile's work stands in the program far out of the order in which it starts.
    """
    return max(np.int32(0), np.int32(min(until, end) - max(start, since)))
