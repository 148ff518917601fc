"""The law of work at level lt: an engine of each tile is occupied for some cycles."""

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.port import Time
from tlm.engines.lt.queue import append_to, give, oldest_of, single, take_two, tokens_at
from tlm.engines.lt.state import (
    EMPTY,
    Columns,
    GridArrays,
    Indices,
    Spare,
    TileSlot,
    Times,
    columns_of,
    read,
    write_back,
)
from tlm.engines.lt.step import StepRecord


@compiled
def work(step: StepRecord, grid: GridArrays, i: int, begin: int, end: int) -> int:
    """Occupy an engine of tiles of the ``i``-th row; the fault."""
    number = step.row_first + i * step.row_step
    row, columns = grid.state[number], columns_of(grid, step.columns, step.first, begin, end)
    takes, gives = tokens_at(grid, step.takes), tokens_at(grid, step.gives)
    table = grid.tables[max(step.table, 0), number]
    if step.few:
        return _work_few(step, row, table, columns.indices, takes, gives)
    one, two, missing = take_two(grid.scratch, row, takes, columns, Spare.UNITS)
    free = read(row[step.engine], columns, grid.scratch[Spare.FREE])
    if step.table >= 0:
        table = read(table, columns, grid.scratch[Spare.CYCLES])
    if step.beside >= 0:
        _work_beside(step, grid.scratch, row, columns, table, one, two, free)
    elif step.table < 0:
        cycles = np.int32(step.cycles)
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + cycles
    else:
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + table[j]
    write_back(row[step.engine], columns, free)
    return missing or give(row, gives, columns, free)


@compiled
def _work_few(
    step: StepRecord, row: Times, table: Times, columns: Indices, takes: Indices, gives: Indices
) -> int:
    """Do work tile by tile."""
    (taken, taken_depth), (given, given_depth) = single(takes), single(gives)
    engine, beside, same, cycles = step.engine, step.beside, step.table < 0, np.int32(step.cycles)
    missing = full = False
    for j in range(len(columns)):
        column = address(columns[j])
        units, free = oldest_of(row, taken, taken_depth, column), row[engine, column]
        missing |= units == EMPTY
        start = max(free, units)
        finish = np.int32(start + (cycles if same else table[column]))
        if beside >= 0:
            since, other = (
                row[TileSlot.SINCE + engine, column],
                row[TileSlot.SINCE + beside, column],
            )
            row[TileSlot.SINCE + engine, column] = _since(start, free, since)
            row[TileSlot.OVERLAP, column] += _overlap(start, finish, other, row[beside, column])
        row[engine, column] = finish
        full |= not append_to(row, given, given_depth, column, finish)
    return taken if missing and taken_depth > 0 else (-given if full else 0)


@compiled
def _work_beside(
    step: StepRecord,
    scratch: Times,
    row: Times,
    columns: Columns,
    table: Times,
    one: Times,
    two: Times,
    free: Times,
) -> None:
    """Do work, and count in how many of its cycles the engine beside it works too."""
    since = read(row[TileSlot.SINCE + step.engine], columns, scratch[Spare.SINCE])
    until = read(row[step.beside], columns, scratch[Spare.BESIDE])
    other = read(row[TileSlot.SINCE + step.beside], columns, scratch[Spare.BESIDE_SINCE])
    overlap = read(row[TileSlot.OVERLAP], columns, scratch[Spare.OVERLAP])
    same, cycles = step.table < 0, np.int32(step.cycles)
    for j in range(len(free)):
        start = max(free[j], max(one[j], two[j]))
        finish = np.int32(start + (cycles if same else table[j]))
        since[j] = _since(start, free[j], since[j])
        overlap[j] += _overlap(start, finish, other[j], until[j])
        free[j] = finish
    write_back(row[TileSlot.SINCE + step.engine], columns, since)
    write_back(row[TileSlot.OVERLAP], columns, overlap)


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
