"""Compiled updates of the loosely-timed engine by what spans whole columns of tiles.

Arguments are those of `tlm.engines.lt.send`, with all rows of the state: a step is one update of
every row that it reaches, side by side over the columns ``begin`` to ``end`` of its set.
"""

from typing import Any

import numpy as np

from tlm.compiled import compiled
from tlm.engines.lt.queue import Indices, Times, give, load, store, take, take_here, through_port
from tlm.engines.lt.send import pairs

_TRANSFER = 2


@compiled
def column_multicast(
    step: Any,
    indices: Indices,
    delays: Times,
    state: Times,
    begin: int,
    end: int,
    scratch: Times,
) -> int:
    """Multicast from the root along each column."""
    size = end - begin
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    start, times = scratch[0][:size], scratch[3][:size]
    spare, left, none = scratch[1][:size], scratch[2][:size], scratch[4][:size]
    root = state[step.root]
    load(root[_TRANSFER], columns, first, start)
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(root, takes, columns, first, step.launch, start, spare)
    slots = pairs(indices, step.slots, step.n_slots)
    for j in range(size):
        none[j] = 0
    for i in range(step.rows if step.n_slots else 0):
        row, delay = state[step.row_first + i * step.row_step], delays[step.credit + i]
        missing = take(row, slots, columns, first, none, delay, start, spare)
        fault = fault or missing
    free = scratch[5][:size]
    for j in range(size):
        free[j] = start[j] + step.hold
    arrivals = pairs(indices, step.arrivals, step.n_arrivals)
    for i in range(step.rows):
        number = step.row_first + i * step.row_step
        row, delay = state[number], delays[step.latency + i]
        occupied = step.own_occupied if number == step.root else step.occupied
        wait = through_port(row, columns, first, start, none, delay, occupied, times, spare)
        count = abs(number - step.root) + 1
        if wait > 0 and step.flits > count * step.packet:
            for j in range(size):
                held = np.int32(times[j] - count * step.room)
                free[j] = max(free[j], held if spare[j] > 0 else 0)
        full = give(row, arrivals, columns, first, times, spare, left)
        fault = fault or full
    store(root[_TRANSFER], columns, first, free)
    gives = pairs(indices, step.gives, step.n_gives)
    over = give(root, gives, columns, first, free, spare, left)
    return fault or over
