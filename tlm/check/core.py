"""Compiled walk over a program: what each moment depends on, with one mark per moment.

Marks and what becomes of them are those of `tlm.check.marks`. All takes of an operation come before
all its gives.
"""

import numpy as np

from tlm.check.marks import (
    ALL,
    NOT_KNOWN,
    Indices,
    Marks,
    fill_law,
    give,
    load,
    note,
    store,
    take,
)
from tlm.compiled import allocating, forget_stale

_Tokens = tuple[Indices, Indices]
_TRANSFER = 2


@allocating
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
    keep = np.full(len(cols), ALL)
    for i in range(len(rows)):
        row = rows[i]
        load(state[engine, row], cols, first, start)
        take(state, takes, row, cols, first, keep, start, fault)
        store(state[engine, row], cols, first, start)
        give(state, gives, row, cols, first, start, fault)


@allocating
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
    every = np.full(size, ALL)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        load(state[_TRANSFER, row], cols, first, start)
        take(state, before[0], row, cols, first, every, start, fault)
        fill_law(mode, row, cols, to_row, to_cols, keep, delay)
        take(state, before[1], to_row, to_cols, to_first, keep, start, fault)
        store(state[_TRANSFER, row], cols, first, start)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        load(state[_TRANSFER, row], cols, first, start)
        give(state, after[0], row, cols, first, start, fault)
        fill_law(mode, row, cols, to_row, to_cols, keep, delay)
        for j in range(size):
            start[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, start[j])
        give(state, after[1], to_row, to_cols, to_first, start, fault)
    return greatest


@allocating
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
    every = np.full(1, ALL)
    for i in range(len(rows)):
        row, at = rows[i], places[i : i + 1]
        start[0] = state[_TRANSFER, row, at[0]]
        take(state, before[0], row, at, -1, every, start, fault)
        fill_law(mode, row, cols, row, np.full(size, at[0]), keep, delay)
        marks[:] = start[0]
        take(state, before[1], row, cols, first, keep, marks, fault)
        start[0] = marks.max()
        state[_TRANSFER, row, at[0]] = start[0]
        give(state, after[0], row, at, -1, start, fault)
        for j in range(size):
            marks[j] = (start[0] & keep[j]) + delay[j]
        greatest = max(greatest, marks.max())
        give(state, after[1], row, cols, first, marks, fault)
    return greatest


@allocating
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
    load(state[_TRANSFER, root_row], cols, first, start)
    take(state, before[0], root_row, cols, first, np.full(size, ALL), start, fault)
    for row in rows:
        fill_law(mode, root_row, cols, row, cols, keep, delay)
        take(state, before[1], row, cols, first, keep, start, fault)
    store(state[_TRANSFER, root_row], cols, first, start)
    give(state, after[0], root_row, cols, first, start, fault)
    for row in rows:
        fill_law(mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, marks[j])
        give(state, after[1], row, cols, first, marks, fault)
    return greatest


@allocating
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
    every, one = np.full(size, ALL), np.full(1, ALL)
    for i in range(len(rows)):
        row, at = rows[i], places[i : i + 1]
        slots[0] = 0
        take(state, before[1], row, at, -1, one, slots, fault)
        load(state[_TRANSFER, row], cols, first, marks)
        take(state, before[0], row, cols, first, every, marks, fault)
        fill_law(mode, row, cols, row, np.full(size, at[0]), keep, delay)
        arrival = complete
        for j in range(size):
            marks[j] = max(marks[j], slots[0] & keep[j])
            arrival = max(arrival, (marks[j] & keep[j]) + delay[j])
            if marks[j] < required[i]:
                note(fault, NOT_KNOWN, -1, row, cols[j], 0)
        store(state[_TRANSFER, row], cols, first, marks)
        give(state, after[0], row, cols, first, marks, fault)
        slots[0] = arrival
        give(state, after[1], row, at, -1, slots, fault)
        greatest = max(greatest, arrival)
    return greatest


@allocating
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
    every, slots = np.full(size, ALL), np.zeros(size, dtype=np.int64)
    take(state, before[1], root_row, cols, first, every, slots, fault)
    for row in rows:
        load(state[_TRANSFER, row], cols, first, marks)
        take(state, before[0], row, cols, first, every, marks, fault)
        fill_law(mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = max(marks[j], slots[j] & keep[j])
            arrival[j] = max(arrival[j], (marks[j] & keep[j]) + delay[j])
            if marks[j] < required[j]:
                note(fault, NOT_KNOWN, -1, row, cols[j], 0)
        store(state[_TRANSFER, row], cols, first, marks)
    for row in rows:
        load(state[_TRANSFER, row], cols, first, marks)
        give(state, after[0], row, cols, first, marks, fault)
    give(state, after[1], root_row, cols, first, arrival, fault)
    return int(arrival.max())


forget_stale(work, send, row_multicast, column_multicast, row_reduce, column_reduce)
