"""Compiled steps of the loosely-timed engine on one row of tiles: tokens taken and given.

``row[slot, column]`` holds the times of a row of tiles: slots 0 to 3 are when the engines are free,
slots `PORT` and `BUSY` when the ejection port is, and since when it has been busy without a pause
before that, slot `OVERLAP` in how many cycles both computing engines have worked, two from `SINCE`
since when each has without a pause; the others belong to tokens, and if a program uses one
computing engine alone all from `OVERLAP` on. Tokens come as ``(slot, depth)`` rows. Depth 0 is the
time of one known unit. Else the token is a queue of that many slots, oldest first, `EMPTY` behind.

Columns are an index array and ``first``: the first of them if they are consecutive (the fast path),
else -1. A return value of 0 is success, ``slot`` a take of a token that is not there in program
order, ``-slot`` a give beyond the token's depth.

Every step is a plain loop over consecutive columns, which the compiler turns into vector
instructions; assignments of whole slices are not.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled

Times = NDArray[np.int32]
Indices = NDArray[np.int64]

PORT = 4
BUSY = 5
OVERLAP = 6
SINCE = 7
FIRST_TOKEN = 9
EMPTY = np.int32(-(2**30))
FROM_THE_START = np.int32(-(2**29))
"""Time of an initial unit: longer ago than any credit takes."""


@compiled
def load(times: Times, columns: Indices, first: int, out: Times) -> None:
    """Copy the times of some columns."""
    if first >= 0:
        part = times[first : first + len(out)]
        for j in range(len(out)):
            out[j] = part[j]
    else:
        for j in range(len(out)):
            out[j] = times[columns[j]]


@compiled
def store(times: Times, columns: Indices, first: int, values: Times) -> None:
    """Set the times of some columns."""
    if first >= 0:
        part = times[first : first + len(values)]
        for j in range(len(values)):
            part[j] = values[j]
    else:
        for j in range(len(values)):
            times[columns[j]] = values[j]


@compiled
def take(
    row: Times,
    tokens: Indices,
    columns: Indices,
    first: int,
    delay: Times,
    extra: int,
    start: Times,
    scratch: Times,
) -> int:
    """Start no earlier than each token's oldest time plus its delay; drop those times."""
    fault = 0
    size = len(start)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if depth == 0 and first >= 0:
            times = row[slot][first : first + size]
            for j in range(size):
                start[j] = max(start[j], np.int32(times[j] + delay[j] + extra))
            continue
        if depth == 1 and first >= 0:
            times, earliest = row[slot][first : first + size], np.int32(0)
            for j in range(size):
                earliest = min(earliest, times[j])
                start[j] = max(start[j], np.int32(times[j] + delay[j] + extra))
                times[j] = EMPTY
            fault = fault or (slot if earliest == EMPTY else 0)
            continue
        load(row[slot], columns, first, scratch)
        oldest = np.int32(0)
        for j in range(size):
            oldest = min(oldest, scratch[j])
            start[j] = max(start[j], np.int32(scratch[j] + delay[j] + extra))
        if oldest == EMPTY and fault == 0:
            fault = slot
        _drop_oldest(row, slot, depth, columns, first, scratch)
    return fault


@compiled
def take_here(
    row: Times,
    tokens: Indices,
    columns: Indices,
    first: int,
    later: int,
    start: Times,
    scratch: Times,
) -> int:
    """`take` at the tile itself, all some cycles later."""
    fault = 0
    size = len(start)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if depth == 0 and first >= 0:
            times = row[slot][first : first + size]
            for j in range(size):
                start[j] = max(start[j], np.int32(times[j] + later))
            continue
        if depth == 1 and first >= 0:
            times, earliest = row[slot][first : first + size], np.int32(0)
            for j in range(size):
                earliest = min(earliest, times[j])
                start[j] = max(start[j], np.int32(times[j] + later))
                times[j] = EMPTY
            fault = fault or (slot if earliest == EMPTY else 0)
            continue
        load(row[slot], columns, first, scratch)
        oldest = np.int32(0)
        for j in range(size):
            oldest = min(oldest, scratch[j])
            start[j] = max(start[j], np.int32(scratch[j] + later))
        if oldest == EMPTY and fault == 0:
            fault = slot
        _drop_oldest(row, slot, depth, columns, first, scratch)
    return fault


@compiled
def _drop_oldest(
    row: Times, slot: int, depth: int, columns: Indices, first: int, scratch: Times
) -> None:
    for place in range(slot + 1, slot + depth):
        load(row[place], columns, first, scratch)
        store(row[place - 1], columns, first, scratch)
    if depth:
        for j in range(len(scratch)):
            scratch[j] = EMPTY
        store(row[slot + depth - 1], columns, first, scratch)


@compiled
def give(
    row: Times,
    tokens: Indices,
    columns: Indices,
    first: int,
    times: Times,
    scratch: Times,
    left: Times,
) -> int:
    """Append times to each token's queue."""
    fault = 0
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if depth == 0:
            store(row[slot], columns, first, times)
            continue
        if depth == 1 and first >= 0:
            queue, latest = row[slot][first : first + len(times)], EMPTY
            for j in range(len(times)):
                latest = max(latest, queue[j])
                queue[j] = times[j]
            fault = fault or (-slot if latest != EMPTY else 0)
            continue
        for j in range(len(times)):
            left[j] = times[j]
        for place in range(slot, slot + depth):
            load(row[place], columns, first, scratch)
            for j in range(len(left)):
                is_free = scratch[j] == EMPTY
                scratch[j] = left[j] if is_free else scratch[j]
                left[j] = EMPTY if is_free else left[j]
            store(row[place], columns, first, scratch)
        most = EMPTY
        for j in range(len(left)):
            most = max(most, left[j])
        if most != EMPTY and fault == 0:
            fault = -slot
    return fault


@compiled
def through_port(
    row: Times,
    columns: Indices,
    first: int,
    starts: Times,
    latency: Times,
    extra: int,
    flits: int,
    times: Times,
    waits: Times,
) -> int:
    """Write transfers that start at ``starts`` through the ejection port; the longest wait there.

    They come after their latency, a flit a cycle, and wait for what the program has given the port
    before, unless they are through before that begins. ``times`` becomes when they have come, and
    ``waits`` how long each has waited.
    """
    wait = np.int32(0)
    size = len(starts)
    if first >= 0:
        since, until = row[BUSY][first : first + size], row[PORT][first : first + size]
        for j in range(size):
            begun, ended, turn = since[j], until[j], np.int32(until[j] + flits)
            come = np.int32(starts[j] + latency[j] + extra)
            time = come if come <= begun else max(come, turn)
            since[j] = begun if (come <= begun) | (turn > come) else np.int32(come - flits)
            until[j] = max(ended, time)
            times[j] = time
            waits[j] = time - come
            wait = max(wait, waits[j])
    else:
        for j in range(size):
            since, until = row[BUSY, columns[j]], row[PORT, columns[j]]
            come = np.int32(starts[j] + latency[j] + extra)
            turn = np.int32(until + flits)
            times[j] = come if come <= since else max(come, turn)
            if come > since and turn <= come:
                row[BUSY, columns[j]] = come - flits
            row[PORT, columns[j]] = max(until, times[j])
            waits[j] = times[j] - come
            wait = max(wait, waits[j])
    return int(wait)
