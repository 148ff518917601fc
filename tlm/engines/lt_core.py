"""Compiled max-plus updates of the loosely-timed engine: one call per operation, not per tile.

``state[slot, row, col]`` holds times: slots 0 to 3 are when the tile's engines are free, slot 4
when its ejection port is, and each token is a queue of ``depth`` slots, oldest first, `EMPTY`
behind. An operation streams through the few slots that it touches, and every step is a plain loop
over consecutive columns, which the compiler turns into vector instructions: slices are copied by
loops, and scratch rows are taken one by one, because whole-slice assignments and the rows of an
unpacked array are not.

Columns are given as an index array and ``first``: the first index if they are consecutive (the
fast path), else -1. Tokens come as ``(slot, depth)`` rows. A return value of 0 is success, ``slot``
a take of a token that is not there in program order, ``-slot`` a give beyond the token's depth.

All is in one file because the cache of compiled code does not see a change in another.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Times = NDArray[np.int32]
Indices = NDArray[np.int64]
_Source = tuple[Indices, int, Indices]
_Target = tuple[Indices, int, Indices, bool]
_Tokens = tuple[Indices, Indices]
_Delays = tuple[Times, int]

PORT = 4
FIRST_TOKEN = 5
EMPTY = np.int32(-(2**30))
FROM_THE_START = np.int32(-(2**29))
"""Time of an initial unit: longer ago than any credit takes."""
_TRANSFER = 2


@njit(cache=True)
def _load(times: Times, columns: Indices, first: int, out: Times) -> None:
    if first >= 0:
        part = times[first : first + len(out)]
        for j in range(len(out)):
            out[j] = part[j]
    else:
        for j in range(len(out)):
            out[j] = times[columns[j]]


@njit(cache=True)
def _store(times: Times, columns: Indices, first: int, values: Times) -> None:
    if first >= 0:
        part = times[first : first + len(values)]
        for j in range(len(values)):
            part[j] = values[j]
    else:
        for j in range(len(values)):
            times[columns[j]] = values[j]


@njit(cache=True)
def _fill(times: Times, columns: Indices, first: int, value: np.int32) -> None:
    if first >= 0:
        times[first : first + len(columns)] = value
    else:
        for j in range(len(columns)):
            times[columns[j]] = value


@njit(cache=True)
def _take(
    state: Times,
    row: int,
    tokens: Indices,
    columns: Indices,
    first: int,
    delay: Times,
    extra: int,
    start: Times,
    scratch: Times,
) -> int:
    """Start no earlier than each token's oldest time plus its delay; drop those times."""
    size = len(start)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        oldest = np.int32(0)
        if first >= 0 and depth == 1:
            times = state[slot, row][first : first + size]
            for j in range(size):
                time = times[j]
                oldest = min(oldest, time)
                start[j] = max(start[j], np.int32(time + delay[j] + extra))
                times[j] = EMPTY
        else:
            _load(state[slot, row], columns, first, scratch)
            for j in range(size):
                oldest = min(oldest, scratch[j])
                start[j] = max(start[j], np.int32(scratch[j] + delay[j] + extra))
            for place in range(slot + 1, slot + depth):
                _load(state[place, row], columns, first, scratch)
                _store(state[place - 1, row], columns, first, scratch)
            _fill(state[slot + depth - 1, row], columns, first, EMPTY)
        if oldest == EMPTY:
            return int(slot)
    return 0


@njit(cache=True)
def _give(
    state: Times,
    row: int,
    tokens: Indices,
    columns: Indices,
    first: int,
    times: Times,
    scratch: Times,
    left: Times,
) -> int:
    """Append times to each token's queue."""
    size = len(times)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if first >= 0 and depth == 1:
            places = state[slot, row][first : first + size]
            newest = EMPTY
            for j in range(size):
                newest = max(newest, places[j])
                places[j] = times[j]
            if newest != EMPTY:
                return -int(slot)
            continue
        left[:] = times
        for place in range(slot, slot + depth):
            _load(state[place, row], columns, first, scratch)
            for j in range(len(left)):
                is_free = scratch[j] == EMPTY
                scratch[j] = left[j] if is_free else scratch[j]
                left[j] = EMPTY if is_free else left[j]
            _store(state[place, row], columns, first, scratch)
        if left.max() != EMPTY:
            return -int(slot)
    return 0


@njit(cache=True)
def _arrive(
    state: Times,
    row: int,
    tokens: Indices,
    columns: Indices,
    first: int,
    times: Times,
    flits: int,
    scratch: Times,
    left: Times,
) -> int:
    """Write transfers through the ejection port, a flit a cycle, and give their tokens."""
    if first >= 0:
        port = state[PORT, row][first : first + len(times)]
        for j in range(len(times)):
            times[j] = max(times[j], np.int32(port[j] + flits))
            port[j] = times[j]
    else:
        _load(state[PORT, row], columns, first, scratch)
        for j in range(len(times)):
            times[j] = max(times[j], np.int32(scratch[j] + flits))
        _store(state[PORT, row], columns, first, times)
    return _give(state, row, tokens, columns, first, times, scratch, left)


@njit(cache=True)
def _four_rows(size: int) -> tuple[Times, Times, Times, Times]:
    rows = np.zeros((4, size), dtype=np.int32)
    return rows[0], rows[1], rows[2], rows[3]


@njit(cache=True)
def work(
    state: Times,
    rows: Indices,
    columns: Indices,
    first: int,
    engine: int,
    takes: Indices,
    gives: Indices,
    cycles: Times,
) -> int:
    """Occupy an engine for ``cycles`` (shape (1, 1) for one number, else one per tile)."""
    start, scratch, left, no_delay = _four_rows(len(columns))
    uniform = cycles.size == 1
    for i in range(len(rows)):
        row = rows[i]
        _load(state[engine, row], columns, first, start)
        fault = _take(state, row, takes, columns, first, no_delay, 0, start, scratch)
        if fault:
            return fault
        if uniform:
            start += cycles[0, 0]
        else:
            start += cycles[i]
        _store(state[engine, row], columns, first, start)
        fault = _give(state, row, gives, columns, first, start, scratch, left)
        if fault:
            return fault
    return 0


@njit(cache=True)
def _begin_send(
    state: Times,
    row: int,
    to_row: int,
    source: _Source,
    target: _Target,
    tokens: _Tokens,
    delays: _Delays,
    flits: int,
    starts: Times,
    buffers: Times,
) -> int:
    """Find when the sends of a row start (kept in order of target columns); hold the engine."""
    columns, first, permutation = source
    to_columns, to_first, inverse, straight = target
    takes, slots = tokens
    credit, credit_extra = delays
    start, scratch, no_delay = buffers[0], buffers[1], buffers[2]
    _load(state[_TRANSFER, row], columns, first, start)
    fault = _take(state, row, takes, columns, first, no_delay, 0, start, scratch)
    if fault:
        return fault
    if straight:
        for j in range(len(start)):
            starts[j] = start[j]
    else:
        for j in range(len(start)):
            starts[j] = start[permutation[j]]
    fault = _take(state, to_row, slots, to_columns, to_first, credit, credit_extra, starts, scratch)
    if straight:
        for j in range(len(start)):
            start[j] = starts[j]
    else:
        for j in range(len(start)):
            start[j] = starts[inverse[j]]
    start += flits
    _store(state[_TRANSFER, row], columns, first, start)
    return fault


@njit(cache=True)
def _end_send(
    state: Times,
    row: int,
    to_row: int,
    source: _Source,
    target: _Target,
    tokens: _Tokens,
    delays: _Delays,
    flits: int,
    starts: Times,
    buffers: Times,
) -> int:
    """Give the tokens of the sends of a row at their sources and targets."""
    columns, first, _ = source
    to_columns, to_first, _, _ = target
    gives, arrivals = tokens
    latency, latency_extra = delays
    times, scratch, left = buffers[0], buffers[1], buffers[3]
    _load(state[_TRANSFER, row], columns, first, times)
    fault = _give(state, row, gives, columns, first, times, scratch, left)
    if fault:
        return fault
    for j in range(len(times)):
        times[j] = starts[j] + latency[j] + latency_extra
    return _arrive(state, to_row, arrivals, to_columns, to_first, times, flits, scratch, left)


@njit(cache=True)
def send(
    state: Times,
    rows: Indices,
    to_rows: Indices,
    source: _Source,
    target: _Target,
    before: _Tokens,
    after: _Tokens,
    credit: Times,
    latency: Times,
    hop_cycles: int,
    flits: int,
) -> int:
    """Unicast transfers of a product set to a product set.

    Takes come before gives over the whole set, so a row whose target is another row waits for the
    starts of all rows; transfers within rows are finished row by row, while a row is in the cache.

    Args:
        state: Times.
        rows: Source rows.
        to_rows: Target row of each.
        source: Source columns, first, and for each target (sorted) the place of its source.
        target: Target columns (sorted), first, for each source the place of its target, and whether
            both orders are the same.
        before: Tokens taken at the source and at the target.
        after: Tokens given at the source and at the target.
        credit: Per target column, delay of a credit over the hops along the row.
        latency: Per target column, from start to arrival over the hops along the row.
        hop_cycles: Further delay of both per hop along the column.
        flits: Length of each transfer.
    """
    size = len(source[0])
    buffers = np.zeros((4, size), dtype=np.int32)
    within_rows = True
    for i in range(len(rows)):
        within_rows &= rows[i] == to_rows[i]
    starts = np.empty((1 if within_rows else len(rows), size), dtype=np.int32)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        begun = starts[0 if within_rows else i]
        extra = abs(row - to_row) * hop_cycles
        fault = _begin_send(
            state, row, to_row, source, target, before, (credit, extra), flits, begun, buffers
        )
        if fault:
            return fault
        if within_rows:
            fault = _end_send(
                state, row, row, source, target, after, (latency, 0), flits, begun, buffers
            )
            if fault:
                return fault
    if within_rows:
        return 0
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        extra = abs(row - to_row) * hop_cycles
        fault = _end_send(
            state, row, to_row, source, target, after, (latency, extra), flits, starts[i], buffers
        )
        if fault:
            return fault
    return 0


@njit(cache=True)
def row_multicast(
    state: Times,
    rows: Indices,
    root: Indices,
    columns: Indices,
    first: int,
    before: _Tokens,
    after: _Tokens,
    credit: Times,
    latency: Times,
    hold: int,
    flits: int,
) -> int:
    """Multicasts from the column ``root[0]`` along each row.

    Args:
        state: Times.
        rows: Rows of the roots.
        root: Shape (1,): the column of the roots.
        columns: Columns of the destinations.
        first: First of them if consecutive, else -1.
        before: Tokens taken at the root and at the destinations.
        after: Tokens given at the root and at the destinations.
        credit: Per destination, delay of its credit.
        latency: Per destination, from start to arrival.
        hold: Cycles the root's interface is busy.
        flits: Length of the transfer.
    """
    times, scratch, left, _ = _four_rows(len(columns))
    start, one, two, no_delay = _four_rows(1)
    at = root[0]
    for i in range(len(rows)):
        row = rows[i]
        start[0] = state[_TRANSFER, row, at]
        fault = _take(state, row, before[0], root, at, no_delay, 0, start, one)
        if fault:
            return fault
        times[:] = start[0]
        fault = _take(state, row, before[1], columns, first, credit, 0, times, scratch)
        if fault:
            return fault
        start[0] = times.max()
        times[:] = start[0] + latency
        start[0] += hold
        state[_TRANSFER, row, at] = start[0]
        fault = _give(state, row, after[0], root, at, start, one, two)
        if fault:
            return fault
        fault = _arrive(state, row, after[1], columns, first, times, flits, scratch, left)
        if fault:
            return fault
    return 0


@njit(cache=True)
def column_multicast(
    state: Times,
    rows: Indices,
    root: int,
    columns: Indices,
    first: int,
    before: _Tokens,
    after: _Tokens,
    credit: Times,
    latency: Times,
    hold: int,
    flits: int,
) -> int:
    """Multicasts from the row ``root`` along each column; arguments as of `row_multicast`."""
    start, scratch, left, no_delay = _four_rows(len(columns))
    times = np.zeros(len(columns), dtype=np.int32)
    _load(state[_TRANSFER, root], columns, first, start)
    fault = _take(state, root, before[0], columns, first, no_delay, 0, start, scratch)
    if fault:
        return fault
    for i in range(len(rows)):
        row = rows[i]
        fault = _take(state, row, before[1], columns, first, no_delay, credit[i], start, scratch)
        if fault:
            return fault
    times[:] = start + hold
    _store(state[_TRANSFER, root], columns, first, times)
    fault = _give(state, root, after[0], columns, first, times, scratch, left)
    if fault:
        return fault
    for i in range(len(rows)):
        times[:] = start + latency[i]
        row = rows[i]
        fault = _arrive(state, row, after[1], columns, first, times, flits, scratch, left)
        if fault:
            return fault
    return 0
