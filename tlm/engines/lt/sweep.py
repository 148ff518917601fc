"""The compiled loop of the loosely-timed engine: a batch of steps over a region of the grid.

Memory binds a step that streams over the whole grid. So a batch goes over the grid block by block,
all its steps on one block while it lies in the cache. A block's rows move up from step to step as
far as sends reach, so that whatever a step reads has been written, and nothing later has.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale, unlocked
from tlm.engines.lt.collectives import along_columns, along_row
from tlm.engines.lt.send import send
from tlm.engines.lt.state import GridArrays, Indices
from tlm.engines.lt.step import StepKind, StepRecord, Steps
from tlm.engines.lt.work import work

REGION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "low",  # first row
            "low_slope",  # by how many rows it moves with each row of a step's skew
            "high",  # behind the last row
            "high_slope",
            "height",  # rows of a block
            "col_begin",
            "col_end",
        )
    ]
)


@unlocked
def sweep(steps: Steps, grid: GridArrays, region: NDArray[np.void], faults: Indices) -> None:
    """Do a batch of steps on a region.

    Args:
        steps: Records of `step.STEP`, of rising skew.
        grid: What they read and update.
        region: One record of `REGION`.
        faults: Shape (steps, 2): of each step the first row with a fault, and the fault; row -1 if
            there is none.
    """
    where = region[0]
    last = steps[len(steps) - 1].skew
    base = where.low
    while base < where.high + 2 * last + 1:
        for k in range(len(steps)):
            step = steps[k]
            low = max(base - step.skew, where.low + where.low_slope * step.skew)
            high = min(base + where.height - step.skew, where.high + where.high_slope * step.skew)
            columns = grid.indices[step.columns : step.columns + step.size]
            begin = _before(columns, step.first, where.col_begin)
            end = _before(columns, step.first, where.col_end)
            if begin < end and low < high:
                _do(step, grid, low, high, begin, end, faults[k])
        base += where.height


@compiled
def _do(
    step: StepRecord, grid: GridArrays, low: int, high: int, begin: int, end: int, fault: Indices
) -> None:
    """Do a step on the rows from ``low`` to ``high``, on columns from ``begin`` to ``end``."""
    if step.kind == StepKind.ALONG_COLUMNS:
        _note(fault, 0, along_columns(step, grid, begin, end))
        return
    i = max(0, -((step.row_first - low) // step.row_step))
    while i < step.rows and step.row_first + i * step.row_step < high:
        if step.kind == StepKind.WORK:
            found = work(step, grid, i, begin, end)
        elif step.kind == StepKind.ALONG_ROWS:
            found = along_row(step, grid, i)
        else:
            found = send(step, grid, i, begin, end)
        _note(fault, step.row_first + i * step.row_step, found)
        i += 1


@compiled
def _note(fault: Indices, row: int, found: int) -> None:
    """Note a step's first fault."""
    if found and fault[0] < 0:
        fault[0], fault[1] = row, found


@compiled
def _before(columns: Indices, first: int, column: int) -> int:
    """How many of some rising columns lie before one."""
    if first >= 0:
        return min(max(column - first, 0), len(columns))
    return int(np.searchsorted(columns, column))


forget_stale(sweep)
