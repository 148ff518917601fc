"""What collectives at level lt have in common: a row that one goes along, and its root there."""

from typing import NamedTuple

import numpy as np

from tlm.compiled import inlined
from tlm.engines.lt.queue import take, tokens_at
from tlm.engines.lt.state import Columns, GridArrays, Spare, Times, columns_of, read
from tlm.engines.lt.step import StepRecord
from tlm.program.operations import Engine


class Line(NamedTuple):
    """A row with a collective along it."""

    row: Times
    columns: Columns  # of the segment
    root: int  # the root's column,
    at: Columns  # and the same as columns
    credit: Times  # delay of a credit, per column
    latency: int  # offset


@inlined
def row_of(step: StepRecord, grid: GridArrays, i: int) -> Times:
    """The ``i``-th row of a step."""
    row: Times = grid.state[step.row_first + i * step.row_step]
    return row


@inlined
def line_of(step: StepRecord, grid: GridArrays, i: int) -> Line:
    """The ``i``-th row of a collective along rows."""
    root = grid.indices[step.root + i]
    credit, latency = grid.indices[step.law + 2 * i], grid.indices[step.law + 2 * i + 1]
    return Line(
        row_of(step, grid, i),
        columns_of(grid, step.columns, step.first, 0, step.size),
        root,
        columns_of(grid, step.root + i, root, 0, 1),
        grid.delays[credit : credit + step.size],
        latency,
    )


@inlined
def begin_along(step: StepRecord, grid: GridArrays, line: Line) -> tuple[Times, int]:
    """When each tile of the segment begins, of what goes inwards, for its free time; the fault."""
    takes, slots = tokens_at(grid, step.takes), tokens_at(grid, step.slots)
    units, missing = take(grid.scratch, line.row, takes, line.columns, Spare.UNITS)
    known, unfree = take(grid.scratch, line.row, slots, line.at, Spare.SLOTS)
    free = read(line.row[Engine.TRANSFER], line.columns, grid.scratch[Spare.FREE])
    for j in range(len(free)):
        there = np.int32(known[0] + line.credit[j])
        free[j] = max(free[j], np.int32(units[j] + step.launch), there)
    return free, missing or unfree


@inlined
def begin_across(
    step: StepRecord, grid: GridArrays, i: int, columns: Columns, known: Times
) -> tuple[Times, int]:
    """The same at columns of a row, to roots whose slots were free at ``known``."""
    row, credit = row_of(step, grid, i), grid.delays[step.credit + i]
    units, fault = take(grid.scratch, row, tokens_at(grid, step.takes), columns, Spare.UNITS)
    free = read(row[Engine.TRANSFER], columns, grid.scratch[Spare.FREE])
    for j in range(len(free)):
        there = np.int32(known[j] + credit)
        free[j] = max(free[j], np.int32(units[j] + step.launch), there)
    return free, fault
