"""Compiled marks of a walk over a program: taken and given at a row of tiles, and changed by a law.

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
"""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled

Marks = NDArray[np.int64]
Indices = NDArray[np.int64]

CHAIN, ROWS, COLUMNS = 0, 1, 2
#: A chain's mark: hops times this, plus transfers.
HOP = 2**24
EMPTY = -1
FIRST_TOKEN = 4
#: What a fault says: kind (0: none), slot of the token, row, column, units owed before.
MISSING, BEYOND_DEPTH, NOT_KNOWN = 1, 2, 3
ALL, _NONE = -1, 0


@compiled
def note(fault: Indices, kind: int, slot: int, row: int, col: int, owed: int) -> None:
    """Keep the first fault."""
    if fault[0] == 0:
        fault[0], fault[1], fault[2], fault[3], fault[4] = kind, slot, row, col, owed


@compiled
def load(marks: Marks, cols: Indices, first: int, out: Marks) -> None:
    """Copy the marks of some columns."""
    if first >= 0:
        part = marks[first : first + len(out)]
        for j in range(len(out)):
            out[j] = part[j]
    else:
        for j in range(len(out)):
            out[j] = marks[cols[j]]


@compiled
def store(marks: Marks, cols: Indices, first: int, values: Marks) -> None:
    """Set the marks of some columns."""
    if first >= 0:
        part = marks[first : first + len(values)]
        for j in range(len(values)):
            part[j] = values[j]
    else:
        for j in range(len(values)):
            marks[cols[j]] = values[j]


@compiled
def take(
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
                    note(fault, MISSING, slot, row, cols[j], EMPTY - mark)
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


@compiled
def give(
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
                place = 0
                while marks[place] < 0:
                    place += 1
                note(fault, BEYOND_DEPTH, slot, row, first + place, 0)
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
                note(fault, BEYOND_DEPTH, slot, row, cols[j], 0)
            state[place, row, cols[j]] = values[j]


@compiled
def fill_law(
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
            keep[j] = ALL
            delay[j] = (down + abs(to_cols[j] - cols[j])) * HOP + 1
        else:
            same = row == to_row if mode == ROWS else cols[j] == to_cols[j]
            keep[j] = ALL if same else _NONE
            delay[j] = 0
