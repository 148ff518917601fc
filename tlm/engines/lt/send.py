"""Compiled updates of the loosely-timed engine by work and by transfers, a row of tiles at a time.

All take a step's record, the two pools that its offsets lie in, and views of the rows of state that
they change (`tlm.engines.lt.queue`). ``begin`` and ``end`` are the part of the step's columns to
update, ``scratch`` holds rows to compute in. The first fault is returned, 0 if there is none.
"""

from typing import Any

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.queue import (
    BUSY,
    OVERLAP,
    PORT,
    SINCE,
    Indices,
    Times,
    give,
    load,
    store,
    take,
    take_here,
    through_port,
)

_TRANSFER = 2


@inlined
def pairs(indices: Indices, offset: int, count: int) -> Indices:
    """The tokens at an offset: rows of slot and depth."""
    return indices[offset : offset + 2 * count].reshape((count, 2))


@compiled
def work(
    step: Any,
    indices: Indices,
    tables: Times,
    row: Times,
    number: int,
    begin: int,
    end: int,
    scratch: Times,
) -> int:
    """Occupy an engine of the tiles of row ``number``."""
    size = end - begin
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    times, spare, left = scratch[0][:size], scratch[1][:size], scratch[2][:size]
    load(row[step.engine], columns, first, times)
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(row, takes, columns, first, 0, times, spare)
    if step.beside >= 0:
        load(times, columns, 0, left)
    if step.table < 0:
        for j in range(size):
            times[j] += step.cycles
    else:
        load(tables[step.table, number], columns, first, spare)
        for j in range(size):
            times[j] += spare[j]
    if step.beside >= 0:
        _count_overlaps(row, step.engine, step.beside, columns, first, left, times)
    store(row[step.engine], columns, first, times)
    gives = pairs(indices, step.gives, step.n_gives)
    return fault or give(row, gives, columns, first, times, spare, left)


@inlined
def count_overlap(
    row: Times, engine: int, beside: int, column: int, start: np.int32, end: np.int32
) -> None:
    """Count the cycles of some work in which the engine beside it works too.

    Of that engine the work since its last pause is known. What it did before has ended earlier than
    this starts, unless a tile's work stands in the program far out of the order in which it starts.
    """
    if start > row[engine, column]:
        row[SINCE + engine, column] = start
    since = max(start, row[SINCE + beside, column])
    row[OVERLAP, column] += max(0, min(row[beside, column], end) - since)


@compiled
def _count_overlaps(
    row: Times, engine: int, beside: int, columns: Indices, first: int, starts: Times, ends: Times
) -> None:
    size = len(ends)
    if first < 0:
        for j in range(size):
            count_overlap(row, engine, beside, columns[j], starts[j], ends[j])
        return
    free, since = row[engine][first : first + size], row[SINCE + engine][first : first + size]
    for j in range(size):
        since[j] = starts[j] if starts[j] > free[j] else since[j]
    until, other = row[beside][first : first + size], row[SINCE + beside][first : first + size]
    overlap = row[OVERLAP][first : first + size]
    for j in range(size):
        begun = max(starts[j], other[j])
        overlap[j] += max(np.int32(0), np.int32(min(until[j], ends[j]) - begun))


@compiled
def begin_send(
    step: Any,
    indices: Indices,
    delays: Times,
    row: Times,
    to_row: Times,
    extra: int,
    begin: int,
    end: int,
    scratch: Times,
) -> int:
    """Find when the sends of a row start, and hold the engine.

    Leaves when it is free in ``scratch[0]``, and the starts in order of targets, if that is another
    one, in ``scratch[3]``.
    """
    size = end - begin
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    free, spare = scratch[0][:size], scratch[1][:size]
    load(row[_TRANSFER], columns, first, free)
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(row, takes, columns, first, step.launch, free, spare)
    starts = scratch[0 if step.order < 0 else 3][:size]
    if step.order >= 0:
        reorder(free, indices, step.order, 0, starts)
    to_columns = indices[step.to_columns + begin : step.to_columns + end]
    to_first = step.to_first + begin if step.to_first >= 0 else -1
    slots = pairs(indices, step.slots, step.n_slots)
    credit = delays[step.credit + begin : step.credit + end]
    missing = take(to_row, slots, to_columns, to_first, credit, extra, starts, spare)
    if step.order >= 0 and step.n_slots:
        reorder(starts, indices, step.inverse, step.flits, free)
    else:
        for j in range(size):
            free[j] += step.flits
    store(row[_TRANSFER], columns, first, free)
    return fault or missing


@compiled
def resume_send(
    step: Any, indices: Indices, row: Times, begin: int, end: int, scratch: Times
) -> None:
    """Find again in ``scratch`` what `begin_send` left there."""
    size = end - begin
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    load(row[_TRANSFER], columns, first, scratch[0][:size])
    if step.order >= 0:
        reorder(scratch[0][:size], indices, step.order, -step.flits, scratch[3][:size])


@compiled
def end_send(
    step: Any,
    indices: Indices,
    delays: Times,
    row: Times,
    to_row: Times,
    extra: int,
    begin: int,
    end: int,
    scratch: Times,
) -> int:
    """Give the tokens of the sends of a row, of which ``scratch`` holds the times."""
    size = end - begin
    spare, left = scratch[1][:size], scratch[2][:size]
    to_columns = indices[step.to_columns + begin : step.to_columns + end]
    to_first = step.to_first + begin if step.to_first >= 0 else -1
    free, times, waits = scratch[0][:size], scratch[3][:size], scratch[4][:size]
    starts, later = (free, extra - step.flits) if step.order < 0 else (times, extra)
    latency = delays[step.latency + begin : step.latency + end]
    wait = through_port(
        to_row, to_columns, to_first, starts, latency, later, step.flits, times, waits
    )
    arrivals = pairs(indices, step.arrivals, step.n_arrivals)
    full = give(to_row, arrivals, to_columns, to_first, times, spare, left)
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    if wait > 0 and step.buffers >= 0:
        _hold(step, indices, delays, begin, free, times, waits, extra, spare)
        store(row[_TRANSFER], columns, first, free)
    gives = pairs(indices, step.gives, step.n_gives)
    return give(row, gives, columns, first, free, spare, left) or full


@compiled
def _hold(
    step: Any,
    indices: Indices,
    delays: Times,
    begin: int,
    free: Times,
    times: Times,
    waits: Times,
    extra: int,
    spare: Times,
) -> None:
    """Hold sources whose transfers wait at the port, but for what the buffers on the way take."""
    buffers = delays[step.buffers + begin : step.buffers + begin + len(free)]
    away = extra // step.per_hop
    for j in range(len(free)):
        count = buffers[j] + away
        held = np.int32(times[j] - count * step.room)
        times[j] = held if (waits[j] > 0) & (step.flits > count * step.packet) else 0
    if step.order < 0:
        for j in range(len(free)):
            free[j] = max(free[j], times[j])
    else:
        reorder(times, indices, step.inverse, 0, spare)
        for j in range(len(free)):
            free[j] = max(free[j], spare[j])


@compiled
def reorder(times: Times, indices: Indices, order: int, later: int, out: Times) -> None:
    """Times, some cycles later, in an order that lies at an offset (`step.Pools.put_order`)."""
    even, odd = indices[order], indices[order + 1]
    low, high, exceptions = indices[order + 2], indices[order + 3], indices[order + 4]
    at_even, at_odd, part = times[low + even :], times[low + odd :], out[low:high]
    for j in range(high - low):
        from_even, from_odd = at_even[j], at_odd[j]
        part[j] = np.int32((from_odd if (low + j) & 1 else from_even) + later)
    pairs = indices[order + 5 : order + 5 + 2 * exceptions]
    for k in range(exceptions):
        out[address(pairs[2 * k])] = times[address(pairs[2 * k + 1])] + later


@compiled
def _place_of(columns: Indices, column: int) -> int:
    """Place of one among evenly spaced columns; -1: it is none of them."""
    stride = columns[1] - columns[0] if len(columns) > 1 else 1
    place, rest = divmod(column - columns[0], stride)
    return place if rest == 0 and 0 <= place < len(columns) else -1


@compiled
def row_multicast(
    step: Any, indices: Indices, delays: Times, row: Times, i: int, scratch: Times
) -> int:
    """Multicast from the root along the ``i``-th row."""
    size = step.size
    columns = indices[step.columns : step.columns + size]
    at = indices[step.root + i : step.root + i + 1]
    credit, latency = indices[step.law + 2 * i], indices[step.law + 2 * i + 1]
    times, spare, left = scratch[0][:size], scratch[1][:size], scratch[2][:size]
    start, one, two = scratch[3][:1], scratch[4][:1], scratch[5][:1]
    start[0] = row[_TRANSFER, at[0]]
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(row, takes, at, at[0], step.launch, start, one)
    for j in range(size):
        times[j] = start[0]
    slots = pairs(indices, step.slots, step.n_slots)
    missing = take(row, slots, columns, step.first, delays[credit : credit + size], 0, times, spare)
    latest = start[0]
    for j in range(size):
        latest = max(latest, times[j])
    for j in range(size):
        times[j] = latest
    law = delays[latency : latency + size]
    own = _place_of(columns, at[0])
    port, busy = row[PORT, at[0]], row[BUSY, at[0]]
    wait = through_port(row, columns, step.first, times, law, 0, step.occupied, times, spare)
    if own >= 0:  # its copy has fewer waits
        row[PORT, at[0]], row[BUSY, at[0]] = port, busy
        one[0] = latest
        through_port(row, at, at[0], one, law[own : own + 1], 0, step.own_occupied, one, two)
        times[own], spare[own] = one[0], two[0]
    free = latest + step.hold
    if wait > 0:
        for j in range(size):
            count = abs(columns[j] - at[0]) + 1
            if spare[j] > 0 and step.flits > count * step.packet:
                free = max(free, times[j] - count * step.room)
    arrivals = pairs(indices, step.arrivals, step.n_arrivals)
    full = give(row, arrivals, columns, step.first, times, spare, left)
    start[0] = free
    row[_TRANSFER, at[0]] = free
    over = give(row, pairs(indices, step.gives, step.n_gives), at, at[0], start, one, two)
    return fault or missing or over or full
