"""Compiled work and sends of the loosely-timed engine on plain rows: one pass for what is one law.

A step is plain if its columns are consecutive, here and there, and of its tokens each is one known
unit or a queue of depth 1 (`tlm.engines.lt.queue`), of those it takes at most two in a place. A
whole step is then a loop or two over the row, while `tlm.engines.lt.send` makes a pass over each of
its tokens; queues are emptied, and looked at before they are filled, in passes of their own.
Arguments and faults are as there.
"""

from typing import Any

import numpy as np

from tlm.compiled import compiled, inlined
from tlm.engines.lt.queue import BUSY, EMPTY, PORT, Indices, Times
from tlm.engines.lt.send import reorder

_TRANSFER = 2
MOST_TAKEN = 2
NEVER = 6
"""Row of the scratch that holds `EMPTY`: a unit that makes nothing wait."""


@inlined
def _units(
    row: Times, indices: Indices, offset: int, count: int, low: int, high: int, never: Times
) -> tuple[Times, Times]:
    """The times of up to two tokens of a row."""
    one = row[indices[offset]][low:high] if count > 0 else never
    two = row[indices[offset + 2]][low:high] if count > 1 else never
    return one, two


@compiled
def plain_work(
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
    low, high = step.first + begin, step.first + end
    free = row[step.engine][low:high]
    never = scratch[NEVER][: high - low]
    one, two = _units(row, indices, step.takes, step.n_takes, low, high, never)
    if step.table < 0:
        cycles = np.int32(step.cycles)
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + cycles
    else:
        table = tables[step.table, number][low:high]
        for j in range(len(free)):
            free[j] = max(free[j], max(one[j], two[j])) + table[j]
    missing = over = 0
    if step.queued:
        missing = _empty(row, indices, step.takes, step.n_takes, low, high)
        over = _full(row, indices, step.gives, step.n_gives, low, high)
    _give(row, indices, step.gives, step.n_gives, low, high, free)
    return missing or over


@compiled
def _empty(row: Times, indices: Indices, offset: int, count: int, low: int, high: int) -> int:
    """Drop what has been taken from the queues among some tokens; a fault if one had nothing."""
    fault = 0
    for k in range(count):
        slot, depth = indices[offset + 2 * k], indices[offset + 2 * k + 1]
        if depth == 0:
            continue
        queue, earliest = row[slot][low:high], np.int32(0)
        for j in range(len(queue)):
            earliest = min(earliest, queue[j])
            queue[j] = EMPTY
        if earliest == EMPTY and fault == 0:
            fault = slot
    return fault


@compiled
def _full(row: Times, indices: Indices, offset: int, count: int, low: int, high: int) -> int:
    """A fault if a queue among some tokens holds a unit already."""
    fault = 0
    for k in range(count):
        slot, depth = indices[offset + 2 * k], indices[offset + 2 * k + 1]
        if depth == 0:
            continue
        queue, latest = row[slot][low:high], EMPTY
        for j in range(len(queue)):
            latest = max(latest, queue[j])
        if latest != EMPTY and fault == 0:
            fault = -slot
    return fault


@compiled
def _give(
    row: Times, indices: Indices, offset: int, count: int, low: int, high: int, times: Times
) -> None:
    """Give a unit of each of some tokens."""
    for k in range(count):
        out = row[indices[offset + 2 * k]][low:high]
        for j in range(len(out)):
            out[j] = times[j]


@compiled
def plain_send(
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
    """Send from a row, and end what that begins.

    Rows may be done in any order: no place of a token is both taken from and given to.
    """
    low, high = step.first + begin, step.first + end
    size = high - low
    engine, never = row[_TRANSFER][low:high], scratch[NEVER][:size]
    one, two = _units(row, indices, step.takes, step.n_takes, low, high, never)
    launch, starts, free = np.int32(step.launch), scratch[0][:size], engine
    for j in range(size):
        starts[j] = max(engine[j], np.int32(max(one[j], two[j]) + launch))
    if step.order >= 0:
        starts, free = scratch[1][:size], scratch[0][:size]
        reorder(free, indices, step.order, 0, starts)
    missing = over = 0
    if step.queued:
        missing = _empty(row, indices, step.takes, step.n_takes, low, high)
    low, high = step.to_first + begin, step.to_first + end
    full = _deliver(step, indices, delays, to_row, extra, begin, low, high, starts, free, scratch)
    if step.order >= 0:
        reorder(free, indices, step.inverse, 0, engine)
    low, high = step.first + begin, step.first + end
    if step.queued:
        over = _full(row, indices, step.gives, step.n_gives, low, high)
    _give(row, indices, step.gives, step.n_gives, low, high, engine)
    return missing or over or full


@compiled
def _deliver(
    step: Any,
    indices: Indices,
    delays: Times,
    to_row: Times,
    extra: int,
    begin: int,
    low: int,
    high: int,
    starts: Times,
    free: Times,
    scratch: Times,
) -> int:
    """Start sends, in the order of their targets, and write them through the ejection ports.

    ``free`` becomes when the sources are free.
    """
    size = high - low
    never = scratch[NEVER][:size]
    one, two = _units(to_row, indices, step.slots, step.n_slots, low, high, never)
    credit = delays[step.credit + begin : step.credit + begin + size]
    latency = delays[step.latency + begin : step.latency + begin + size]
    since, until = to_row[BUSY][low:high], to_row[PORT][low:high]
    full = unfree = 0
    if step.queued:
        full = _full(to_row, indices, step.arrivals, step.n_arrivals, low, high)
    written = scratch[2][:size]
    if step.n_arrivals:
        written = to_row[indices[step.arrivals]][low:high]
    flits, later = np.int32(step.flits), np.int32(extra)
    # A source is held over no more than ``most`` buffers: more take all flits. What they take may
    # be no 32-bit number.
    buffers, most, room, away = latency, np.int32(-1), 0, 0
    if step.buffers >= 0:
        buffers = delays[step.buffers + begin : step.buffers + begin + size]
        most = np.int32((step.flits - 1) // step.packet)
        room, away = step.room, extra // step.per_hop
    for j in range(size):
        known = np.int32(max(one[j], two[j]) + np.int32(credit[j] + later))
        start = max(starts[j], known)
        come = np.int32(start + np.int32(latency[j] + later))
        begun, ended = since[j], until[j]
        turn = np.int32(ended + flits)
        early = come <= begun
        time = come if early else max(come, turn)
        since[j] = begun if early | (turn > come) else np.int32(come - flits)
        until[j] = max(ended, time)
        written[j] = time
        count = np.int32(buffers[j] + away)
        held = np.int32(time - np.int32(count * room))
        waits = (time > come) & (count <= most)
        free[j] = max(np.int32(start + flits), held if waits else np.int32(0))
    if step.n_arrivals > 1:
        _give(to_row, indices, step.arrivals + 2, step.n_arrivals - 1, low, high, written)
    if step.queued:
        unfree = _empty(to_row, indices, step.slots, step.n_slots, low, high)
    return unfree or full
