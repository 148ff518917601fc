"""The compiled loop of the loosely-timed engine: a batch of steps over a region of the grid.

Memory binds a step that streams over the whole grid. So a batch goes over the grid block by block,
all its steps on one block while it lies in the cache. A block's rows move up from step to step as
far as sends reach, so that whatever a step reads has been written, and nothing later has.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale, unlocked
from tlm.engines.lt.multicast import column_multicast
from tlm.engines.lt.plain import plain_send, plain_work
from tlm.engines.lt.queue import Indices, Times
from tlm.engines.lt.reduce import column_reduce, row_reduce
from tlm.engines.lt.send import begin_send, end_send, resume_send, row_multicast, work
from tlm.engines.lt.spaced import spaced_send, spaced_work
from tlm.engines.lt.step import (
    BEGIN_SEND,
    COLUMN_MULTICAST,
    COLUMN_REDUCE,
    END_SEND,
    PLAIN_SEND,
    PLAIN_WORK,
    ROW_MULTICAST,
    ROW_REDUCE,
    SPACED_SEND,
    SPACED_WORK,
    WORK,
    Steps,
)

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
def sweep(
    steps: Steps,
    indices: Indices,
    delays: Times,
    tables: Times,
    state: Times,
    region: NDArray[np.void],
    scratch: Times,
    faults: Indices,
) -> None:
    """Do a batch of steps on a region.

    Args:
        steps: Records of `step.STEP`, of rising skew.
        indices: Pool of columns, rows, orders and tokens.
        delays: Pool of delays.
        tables: Cycles of work by tile, shape (tables, rows, columns).
        state: Times, shape (rows, slots, columns).
        region: One record of `REGION`.
        scratch: Shape (7, columns).
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
            _do(k, step, indices, delays, tables, state, low, high, where, scratch, faults)
        base += where.height


@compiled
def _do(
    k: int,
    step: Any,
    indices: Indices,
    delays: Times,
    tables: Times,
    state: Times,
    low: int,
    high: int,
    where: Any,
    scratch: Times,
    faults: Indices,
) -> None:
    """Do a step on the rows from ``low`` to ``high``."""
    columns = indices[step.columns : step.columns + step.size]
    begin = _place(columns, step.first, where.col_begin)
    end = _place(columns, step.first, where.col_end)
    if begin >= end or low >= high:
        return
    kind = step.kind
    if kind in (COLUMN_MULTICAST, COLUMN_REDUCE):
        if kind == COLUMN_MULTICAST:
            fault = column_multicast(step, indices, delays, state, begin, end, scratch)
        else:
            fault = column_reduce(step, indices, delays, state, begin, end, scratch)
        if fault and faults[k, 0] < 0:
            faults[k, 0], faults[k, 1] = 0, fault
        return
    i = max(0, -((step.row_first - low) // step.row_step))
    while i < step.rows and step.row_first + i * step.row_step < high:
        number = step.row_first + i * step.row_step
        row = state[number]
        fault = 0
        if kind == PLAIN_WORK:
            fault = plain_work(step, indices, tables, row, number, begin, end, scratch)
        elif kind == PLAIN_SEND:
            to_row, extra = state[indices[step.to_rows + i]], delays[step.extra + i]
            fault = plain_send(step, indices, delays, row, to_row, extra, begin, end, scratch)
        elif kind == SPACED_WORK:
            fault = spaced_work(step, indices, tables, row, number, begin, end)
        elif kind == SPACED_SEND:
            to_row, extra = state[indices[step.to_rows + i]], delays[step.extra + i]
            fault = spaced_send(step, indices, delays, row, to_row, extra, begin, end, scratch)
        elif kind == WORK:
            fault = work(step, indices, tables, row, number, begin, end, scratch)
        elif kind == ROW_MULTICAST:
            fault = row_multicast(step, indices, delays, row, i, scratch)
        elif kind == ROW_REDUCE:
            fault = row_reduce(step, indices, delays, row, i, scratch)
        else:
            to_number = indices[step.to_rows + i]
            to_row = state[to_number]
            extra = delays[step.extra + i]
            if kind == END_SEND:
                resume_send(step, indices, row, begin, end, scratch)
            else:
                fault = begin_send(step, indices, delays, row, to_row, extra, begin, end, scratch)
            if kind != BEGIN_SEND:
                full = end_send(step, indices, delays, row, to_row, extra, begin, end, scratch)
                fault = fault or full
        if fault and faults[k, 0] < 0:
            faults[k, 0], faults[k, 1] = number, fault
        i += 1


@compiled
def _place(columns: Indices, first: int, column: int) -> int:
    """How many of some rising columns lie before one."""
    if first >= 0:
        return min(max(column - first, 0), len(columns))
    low, high = 0, len(columns)
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


forget_stale(sweep)
