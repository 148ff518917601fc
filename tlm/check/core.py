"""Compiled walk over a program: what each moment depends on, with one mark per moment.

A *moment* (when an engine is free, a unit of a token) carries a mark, and what depends on several
moments carries the greatest. Over a transfer the mark changes by its law:

- `CHAIN`: hops and transfers on the longest chain of dependent transfers so far, in one number.
- `ROWS`, `COLUMNS`: the last reduction of a family that is known to be complete. Only what is known
  of the same row (column) counts.

A credit comes with the mark of the moment that freed the slot; its way back adds no hops.

``state[slot, row, col]`` holds the marks: slots 0 to 3 are the engines, and each token is a queue
of ``depth`` slots, oldest first, `EMPTY` behind; where units were taken before they were there, the
first slot is below `EMPTY` by their number. Tokens come as rows of (slot, depth). Columns are given
as an index array and ``first``: the first index if they are consecutive (the fast path), else -1.
All takes of an operation come before all its gives. All is in one file because the cache of
compiled code does not see a change in another.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Marks = NDArray[np.int64]
Indices = NDArray[np.int64]
_Tokens = tuple[Indices, Indices]

CHAIN, ROWS, COLUMNS = 0, 1, 2
#: A chain's mark: hops times this, plus transfers.
HOP = 2**24
EMPTY = -1
FIRST_TOKEN = 4
#: What a fault says: kind (0: none), slot of the token, row, column, units owed before.
MISSING, BEYOND_DEPTH, NOT_KNOWN = 1, 2, 3
_ALL, _NONE = -1, 0
_TRANSFER = 2


@njit(cache=True)
def _note(fault: Indices, kind: int, slot: int, row: int, col: int, owed: int) -> None:
    """Keep the first fault."""
    if fault[0] == 0:
        fault[0], fault[1], fault[2], fault[3], fault[4] = kind, slot, row, col, owed


@njit(cache=True)
def _load(marks: Marks, cols: Indices, first: int, out: Marks) -> None:
    if first >= 0:
        part = marks[first : first + len(out)]
        for j in range(len(out)):
            out[j] = part[j]
    else:
        for j in range(len(out)):
            out[j] = marks[cols[j]]


@njit(cache=True)
def _store(marks: Marks, cols: Indices, first: int, values: Marks) -> None:
    if first >= 0:
        part = marks[first : first + len(values)]
        for j in range(len(values)):
            part[j] = values[j]
    else:
        for j in range(len(values)):
            marks[cols[j]] = values[j]


@njit(cache=True)
def _take(
    state: Marks,
    tokens: Indices,
    row: int,
    cols: Indices,
    first: int,
    keep: Marks,
    start: Marks,
    fault: Indices,
) -> None:
    """Take the oldest unit of each token; its mark counts where ``keep`` has its bits set."""
    size = len(cols)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        lowest = 0
        if first >= 0:
            marks = state[slot, row, first : first + size]
            for j in range(size):
                lowest = min(lowest, marks[j])
                start[j] = max(start[j], marks[j] & keep[j])
        else:
            marks = state[slot, row]
            for j in range(size):
                mark = marks[cols[j]]
                lowest = min(lowest, mark)
                start[j] = max(start[j], mark & keep[j])
        if lowest < 0:
            for j in range(size):
                mark = state[slot, row, cols[j]]
                if mark < 0:
                    _note(fault, MISSING, slot, row, cols[j], EMPTY - mark)
        if depth == 1 and first >= 0:
            marks = state[slot, row, first : first + size]
            for j in range(size):
                marks[j] = min(marks[j], 0) - 1
            continue
        for j in range(size):
            if state[slot, row, cols[j]] < 0:
                state[slot, row, cols[j]] -= 1
                continue
            for place in range(slot, slot + depth - 1):
                state[place, row, cols[j]] = state[place + 1, row, cols[j]]
            state[slot + depth - 1, row, cols[j]] = EMPTY


@njit(cache=True)
def _give(
    state: Marks,
    tokens: Indices,
    row: int,
    cols: Indices,
    first: int,
    values: Marks,
    fault: Indices,
) -> None:
    """Give a unit of each token with a mark for each column."""
    size = len(cols)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if depth == 1 and first >= 0:
            marks = state[slot, row, first : first + size]
            highest = EMPTY
            for j in range(size):
                highest = max(highest, marks[j])
            if highest >= 0:
                _note(fault, BEYOND_DEPTH, slot, row, first + int(np.argmax(marks >= 0)), 0)
            for j in range(size):
                marks[j] = values[j] if marks[j] >= EMPTY else marks[j] + 1
            continue
        for j in range(size):
            if state[slot, row, cols[j]] < EMPTY:
                state[slot, row, cols[j]] += 1
                continue
            place = slot
            while place < slot + depth - 1 and state[place, row, cols[j]] >= 0:
                place += 1
            if state[place, row, cols[j]] >= 0:
                _note(fault, BEYOND_DEPTH, slot, row, cols[j], 0)
            state[place, row, cols[j]] = values[j]


@njit(cache=True)
def _fill_law(
    mode: int,
    row: int,
    cols: Indices,
    to_row: int,
    to_cols: Indices,
    keep: Marks,
    delay: Marks,
) -> None:
    """What transfers from a row's tiles to their destinations keep of marks, and add to them."""
    down = abs(to_row - row)
    for j in range(len(cols)):
        if mode == CHAIN:
            keep[j] = _ALL
            delay[j] = (down + abs(to_cols[j] - cols[j])) * HOP + 1
        else:
            same = row == to_row if mode == ROWS else cols[j] == to_cols[j]
            keep[j] = _ALL if same else _NONE
            delay[j] = 0


@njit(cache=True)
def work(
    state: Marks,
    rows: Indices,
    cols: Indices,
    first: int,
    engine: int,
    takes: Indices,
    gives: Indices,
    fault: Indices,
) -> None:
    """Each tile works."""
    start = np.zeros(len(cols), dtype=np.int64)
    keep = np.full(len(cols), _ALL)
    for i in range(len(rows)):
        row = rows[i]
        _load(state[engine, row], cols, first, start)
        _take(state, takes, row, cols, first, keep, start, fault)
        _store(state[engine, row], cols, first, start)
        _give(state, gives, row, cols, first, start, fault)


@njit(cache=True)
def send(
    state: Marks,
    mode: int,
    sources: tuple[Indices, Indices, int],
    targets: tuple[Indices, Indices, int],
    before: _Tokens,
    after: _Tokens,
    fault: Indices,
) -> int:
    """Each tile sends to one of its own; the greatest mark on arrival.

    Args:
        state: The marks.
        mode: Their law.
        sources: Rows, columns and ``first``.
        targets: Row of each row, column of each column, and ``first``.
        before: Tokens taken at the source and at the destination.
        after: Tokens given at the source and at the destination.
        fault: The first fault.
    """
    rows, cols, first = sources
    to_rows, to_cols, to_first = targets
    size, greatest = len(cols), 0
    start = np.zeros(size, dtype=np.int64)
    every = np.full(size, _ALL)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        _load(state[_TRANSFER, row], cols, first, start)
        _take(state, before[0], row, cols, first, every, start, fault)
        _fill_law(mode, row, cols, to_row, to_cols, keep, delay)
        _take(state, before[1], to_row, to_cols, to_first, keep, start, fault)
        _store(state[_TRANSFER, row], cols, first, start)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        _load(state[_TRANSFER, row], cols, first, start)
        _give(state, after[0], row, cols, first, start, fault)
        _fill_law(mode, row, cols, to_row, to_cols, keep, delay)
        for j in range(size):
            start[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, start[j])
        _give(state, after[1], to_row, to_cols, to_first, start, fault)
    return greatest


@njit(cache=True)
def row_multicast(
    state: Marks,
    mode: int,
    rows: Indices,
    places: Indices,
    segment: tuple[Indices, int],
    before: _Tokens,
    after: _Tokens,
    fault: Indices,
) -> int:
    """On each row the tile at its place sends to the segment; else as `send`."""
    cols, first = segment
    size, greatest = len(cols), 0
    marks, start = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every = np.full(1, _ALL)
    for i in range(len(rows)):
        row, at = rows[i], places[i : i + 1]
        start[0] = state[_TRANSFER, row, at[0]]
        _take(state, before[0], row, at, -1, every, start, fault)
        _fill_law(mode, row, cols, row, np.full(size, at[0]), keep, delay)
        marks[:] = start[0]
        _take(state, before[1], row, cols, first, keep, marks, fault)
        start[0] = marks.max()
        state[_TRANSFER, row, at[0]] = start[0]
        _give(state, after[0], row, at, -1, start, fault)
        for j in range(size):
            marks[j] = (start[0] & keep[j]) + delay[j]
        greatest = max(greatest, marks.max())
        _give(state, after[1], row, cols, first, marks, fault)
    return greatest


@njit(cache=True)
def column_multicast(
    state: Marks,
    mode: int,
    root_row: int,
    columns: tuple[Indices, int],
    rows: Indices,
    before: _Tokens,
    after: _Tokens,
    fault: Indices,
) -> int:
    """On each column the tile of the root row sends to the segment; else as `send`."""
    cols, first = columns
    size, greatest = len(cols), 0
    start, marks = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    _load(state[_TRANSFER, root_row], cols, first, start)
    _take(state, before[0], root_row, cols, first, np.full(size, _ALL), start, fault)
    for row in rows:
        _fill_law(mode, root_row, cols, row, cols, keep, delay)
        _take(state, before[1], row, cols, first, keep, start, fault)
    _store(state[_TRANSFER, root_row], cols, first, start)
    _give(state, after[0], root_row, cols, first, start, fault)
    for row in rows:
        _fill_law(mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, marks[j])
        _give(state, after[1], row, cols, first, marks, fault)
    return greatest


@njit(cache=True)
def row_reduce(
    state: Marks,
    mode: int,
    rows: Indices,
    places: Indices,
    segment: tuple[Indices, int],
    before: _Tokens,
    after: _Tokens,
    complete: int,
    required: Marks,
    fault: Indices,
) -> int:
    """On each row the segment brings operands, and the tile at its place gets the result.

    Args:
        state: The marks.
        mode: Their law.
        rows: Rows.
        places: Column of each row's root.
        segment: Columns of the contributors, and ``first``.
        before: Tokens taken at each contributor and, once, at the root.
        after: Tokens given at each contributor and at the root.
        complete: The least mark at its end.
        required: The least mark that each row's contributors may start with, shape (rows,).
        fault: The first fault.
    """
    cols, first = segment
    size, greatest = len(cols), 0
    marks, slots = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every, one = np.full(size, _ALL), np.full(1, _ALL)
    for i in range(len(rows)):
        row, at = rows[i], places[i : i + 1]
        slots[0] = 0
        _take(state, before[1], row, at, -1, one, slots, fault)
        _load(state[_TRANSFER, row], cols, first, marks)
        _take(state, before[0], row, cols, first, every, marks, fault)
        _fill_law(mode, row, cols, row, np.full(size, at[0]), keep, delay)
        arrival = complete
        for j in range(size):
            marks[j] = max(marks[j], slots[0] & keep[j])
            arrival = max(arrival, (marks[j] & keep[j]) + delay[j])
            if marks[j] < required[i]:
                _note(fault, NOT_KNOWN, -1, row, cols[j], 0)
        _store(state[_TRANSFER, row], cols, first, marks)
        _give(state, after[0], row, cols, first, marks, fault)
        slots[0] = arrival
        _give(state, after[1], row, at, -1, slots, fault)
        greatest = max(greatest, arrival)
    return greatest


@njit(cache=True)
def column_reduce(
    state: Marks,
    mode: int,
    root_row: int,
    columns: tuple[Indices, int],
    rows: Indices,
    before: _Tokens,
    after: _Tokens,
    complete: int,
    required: Marks,
    fault: Indices,
) -> int:
    """On each column the segment brings operands to the root row; else as `row_reduce`."""
    cols, first = columns
    size = len(cols)
    marks, arrival = np.zeros(size, dtype=np.int64), np.full(size, complete)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every, slots = np.full(size, _ALL), np.zeros(size, dtype=np.int64)
    _take(state, before[1], root_row, cols, first, every, slots, fault)
    for row in rows:
        _load(state[_TRANSFER, row], cols, first, marks)
        _take(state, before[0], row, cols, first, every, marks, fault)
        _fill_law(mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = max(marks[j], slots[j] & keep[j])
            arrival[j] = max(arrival[j], (marks[j] & keep[j]) + delay[j])
            if marks[j] < required[j]:
                _note(fault, NOT_KNOWN, -1, row, cols[j], 0)
        _store(state[_TRANSFER, row], cols, first, marks)
    for row in rows:
        _load(state[_TRANSFER, row], cols, first, marks)
        _give(state, after[0], row, cols, first, marks, fault)
    _give(state, after[1], root_row, cols, first, arrival, fault)
    return int(arrival.max())
