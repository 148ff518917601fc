"""Compiled walk over a program: what each moment depends on, with one mark per moment.

Marks and what becomes of them are those of `tlm.check.marks`. All takes of an operation come before
all its gives. Each law returns the greatest mark on arrival.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tlm.check.marks import (
    ALL,
    NOT_KNOWN,
    TRANSFER,
    Indices,
    Marks,
    RowTiles,
    Tokens,
    WalkState,
    fill_law,
    give,
    load,
    note,
    store,
    take,
)
from tlm.compiled import allocating, forget_stale
from tlm.program.operations import Collective, Multicast, Reduce, Relay


class Reduction(NamedTuple):
    """What the order of reductions needs to know of one."""

    complete: int  # the least mark at its end
    required: Marks  # the least mark that contributors may start with, on each line


@allocating
def work(state: WalkState, engine: int, rows: Indices, columns: RowTiles, tokens: Tokens) -> None:
    """Each tile works."""
    start = np.zeros(len(columns.indices), dtype=np.int64)
    keep = np.full(len(start), ALL)
    for row in rows:
        load(state, engine, row, columns, start)
        take(state, tokens.takes, row, columns, keep, start)
        store(state, engine, row, columns, start)
        give(state, tokens.gives, row, columns, start)


@allocating
def send(
    state: WalkState,
    rows: Indices,
    columns: RowTiles,
    to_rows: Indices,
    to_columns: RowTiles,
    tokens: Tokens,
) -> int:
    """Each tile sends to one of its own: to the row of its row, and the column of its column."""
    cols, to_cols = columns.indices, to_columns.indices
    size, greatest = len(cols), 0
    start = np.zeros(size, dtype=np.int64)
    every = np.full(size, ALL)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        load(state, TRANSFER, row, columns, start)
        take(state, tokens.takes, row, columns, every, start)
        fill_law(state.mode, row, cols, to_row, to_cols, keep, delay)
        take(state, tokens.slots, to_row, to_columns, keep, start)
        store(state, TRANSFER, row, columns, start)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        load(state, TRANSFER, row, columns, start)
        give(state, tokens.gives, row, columns, start)
        fill_law(state.mode, row, cols, to_row, to_cols, keep, delay)
        for j in range(size):
            start[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, start[j])
        give(state, tokens.arrivals, to_row, to_columns, start)
    return greatest


@allocating
def row_multicast(
    state: WalkState, rows: Indices, places: Indices, segment: RowTiles, tokens: Tokens
) -> int:
    """On each row the tile at its place sends to the segment."""
    cols = segment.indices
    size, greatest = len(cols), 0
    marks, start = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every = np.full(1, ALL)
    for i in range(len(rows)):
        row, root = rows[i], RowTiles(places[i : i + 1], -1)
        load(state, TRANSFER, row, root, start)
        take(state, tokens.takes, row, root, every, start)
        fill_law(state.mode, row, cols, row, np.full(size, places[i]), keep, delay)
        marks[:] = start[0]
        take(state, tokens.slots, row, segment, keep, marks)
        start[0] = marks.max()
        store(state, TRANSFER, row, root, start)
        give(state, tokens.gives, row, root, start)
        for j in range(size):
            marks[j] = (start[0] & keep[j]) + delay[j]
        greatest = max(greatest, marks.max())
        give(state, tokens.arrivals, row, segment, marks)
    return greatest


@allocating
def column_multicast(
    state: WalkState, root_row: int, columns: RowTiles, rows: Indices, tokens: Tokens
) -> int:
    """On each column the tile of the root row sends to the segment."""
    cols = columns.indices
    size, greatest = len(cols), 0
    start, marks = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    load(state, TRANSFER, root_row, columns, start)
    take(state, tokens.takes, root_row, columns, np.full(size, ALL), start)
    for row in rows:
        fill_law(state.mode, root_row, cols, row, cols, keep, delay)
        take(state, tokens.slots, row, columns, keep, start)
    store(state, TRANSFER, root_row, columns, start)
    give(state, tokens.gives, root_row, columns, start)
    for row in rows:
        fill_law(state.mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = (start[j] & keep[j]) + delay[j]
            greatest = max(greatest, marks[j])
        give(state, tokens.arrivals, row, columns, marks)
    return greatest


@allocating
def row_reduce(
    state: WalkState,
    rows: Indices,
    places: Indices,
    segment: RowTiles,
    tokens: Tokens,
    reduction: Reduction,
) -> int:
    """On each row the segment brings operands, and the tile at its place gets the result."""
    cols = segment.indices
    size, greatest = len(cols), 0
    marks, slots = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every, one = np.full(size, ALL), np.full(1, ALL)
    for i in range(len(rows)):
        row, root = rows[i], RowTiles(places[i : i + 1], -1)
        slots[0] = 0
        take(state, tokens.slots, row, root, one, slots)
        load(state, TRANSFER, row, segment, marks)
        take(state, tokens.takes, row, segment, every, marks)
        fill_law(state.mode, row, cols, row, np.full(size, places[i]), keep, delay)
        arrival = reduction.complete
        for j in range(size):
            marks[j] = max(marks[j], slots[0] & keep[j])
            arrival = max(arrival, (marks[j] & keep[j]) + delay[j])
            if marks[j] < reduction.required[i]:
                note(state, NOT_KNOWN, -1, row, cols[j], 0)
        store(state, TRANSFER, row, segment, marks)
        give(state, tokens.gives, row, segment, marks)
        slots[0] = arrival
        give(state, tokens.arrivals, row, root, slots)
        greatest = max(greatest, arrival)
    return greatest


@allocating
def column_reduce(
    state: WalkState,
    root_row: int,
    columns: RowTiles,
    rows: Indices,
    tokens: Tokens,
    reduction: Reduction,
) -> int:
    """On each column the segment brings operands to the root row."""
    cols = columns.indices
    size = len(cols)
    marks, arrival = np.zeros(size, dtype=np.int64), np.full(size, reduction.complete)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every, slots = np.full(size, ALL), np.zeros(size, dtype=np.int64)
    take(state, tokens.slots, root_row, columns, every, slots)
    for row in rows:
        load(state, TRANSFER, row, columns, marks)
        take(state, tokens.takes, row, columns, every, marks)
        fill_law(state.mode, root_row, cols, row, cols, keep, delay)
        for j in range(size):
            marks[j] = max(marks[j], slots[j] & keep[j])
            arrival[j] = max(arrival[j], (marks[j] & keep[j]) + delay[j])
            if marks[j] < reduction.required[j]:
                note(state, NOT_KNOWN, -1, row, cols[j], 0)
        store(state, TRANSFER, row, columns, marks)
    for row in rows:
        load(state, TRANSFER, row, columns, marks)
        give(state, tokens.gives, row, columns, marks)
    give(state, tokens.arrivals, root_row, columns, arrival)
    return int(arrival.max())


@allocating
def row_relay(
    state: WalkState, rows: Indices, places: Indices, segment: RowTiles, tokens: Tokens
) -> int:
    """On each row the segment's tiles send to the next one inwards, as soon as they may."""
    cols = segment.indices
    size, greatest = len(cols), 0
    marks, slots = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    every, one = np.full(size, ALL), np.full(1, ALL)
    for i in range(len(rows)):
        row, root = rows[i], RowTiles(places[i : i + 1], -1)
        slots[0] = 0
        take(state, tokens.slots, row, root, one, slots)
        load(state, TRANSFER, row, segment, marks)
        take(state, tokens.takes, row, segment, every, marks)
        fill_law(state.mode, row, cols, row, np.full(size, places[i]), keep, delay)
        for j in range(size):
            marks[j] = max(marks[j], slots[0] & keep[j])
        fill_law(state.mode, row, cols[1:], row, cols[:-1], keep, delay)
        at = 0
        while cols[at] < places[i]:
            marks[at + 1] = max(marks[at + 1], (marks[at] & keep[at]) + delay[at])
            at += 1
        for j in range(size - 1, at, -1):
            marks[j - 1] = max(marks[j - 1], (marks[j] & keep[j - 1]) + delay[j - 1])
        store(state, TRANSFER, row, segment, marks)
        give(state, tokens.gives, row, segment, marks)
        slots[0] = marks[at]
        give(state, tokens.arrivals, row, root, slots)
        greatest = max(greatest, marks[at])
    return greatest


@allocating
def column_relay(
    state: WalkState, root_row: int, columns: RowTiles, rows: Indices, tokens: Tokens
) -> int:
    """On each column the segment's tiles send to the next one inwards."""
    cols = columns.indices
    size = len(cols)
    slots, every = np.zeros(size, dtype=np.int64), np.full(size, ALL)
    marks, come = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    arrival = np.zeros(size, dtype=np.int64)
    keep, delay = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    take(state, tokens.slots, root_row, columns, every, slots)
    for step in (1, -1):  # from above, then from below; the root belongs to both
        come[:] = 0
        for k in range(len(rows)):
            row = rows[k] if step > 0 else rows[len(rows) - 1 - k]
            if (row - root_row) * step > 0 or (row == root_row and step < 0):
                break
            load(state, TRANSFER, row, columns, marks)
            take(state, tokens.takes, row, columns, every, marks)
            fill_law(state.mode, row, cols, root_row, cols, keep, delay)
            for j in range(size):
                marks[j] = max(marks[j], slots[j] & keep[j], come[j])
            store(state, TRANSFER, row, columns, marks)
            if row == root_row:
                break
            give(state, tokens.gives, row, columns, marks)
            fill_law(state.mode, row, cols, row + step * (rows[1] - rows[0]), cols, keep, delay)
            for j in range(size):
                come[j] = (marks[j] & keep[j]) + delay[j]
        for j in range(size):  # the root's own mark holds what came from above
            arrival[j] = marks[j] if step > 0 else max(arrival[j], come[j])
    store(state, TRANSFER, root_row, columns, arrival)
    give(state, tokens.gives, root_row, columns, arrival)
    give(state, tokens.arrivals, root_row, columns, arrival)
    return int(arrival.max())


#: Laws of collectives along rows, and along columns.
LAWS: dict[type[Collective], tuple[Callable[..., int], Callable[..., int]]] = {
    Multicast: (row_multicast, column_multicast),
    Reduce: (row_reduce, column_reduce),
    Relay: (row_relay, column_relay),
}
forget_stale(work, send, *(law for laws in LAWS.values() for law in laws))
