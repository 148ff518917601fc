"""Compiled walk over a program: what each moment depends on, with one mark per moment.

Marks and what becomes of them are those of `tlm.check.marks`. All takes of an operation come before
all its gives. Each law returns the greatest mark on arrival.
"""

from collections.abc import Callable
from typing import NamedTuple

from tlm.check.marks import (
    TRANSFER,
    FaultKind,
    Indices,
    MarkLaw,
    Marks,
    RowTiles,
    Tokens,
    WalkState,
    carry,
    fill_law,
    give,
    load,
    no_marks,
    note,
    store,
    take,
)
from tlm.compiled import allocating, compiled, forget_stale
from tlm.program.operations import Collective, Multicast, Reduce, Relay


class Reduction(NamedTuple):
    """What the order of reductions needs to know of one."""

    complete: int  # the least mark at its end
    required: Marks  # the least mark that contributors may start with, on each line


@allocating
def work(state: WalkState, engine: int, rows: Indices, columns: RowTiles, tokens: Tokens) -> None:
    """Each tile works."""
    start = no_marks(len(columns.indices))
    for row in rows:
        load(state, engine, row, columns, start)
        take(state, tokens.takes, row, columns, state.here, start)
        store(state, engine, row, columns, start)
        give(state, tokens.gives, row, columns, start)


@compiled
def _begin(state: WalkState, row: int, columns: RowTiles, tokens: Tokens, start: Marks) -> None:
    """Marks with which transfers of a row begin: of their interfaces, and of what they take."""
    load(state, TRANSFER, row, columns, start)
    take(state, tokens.takes, row, columns, state.here, start)


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
    start, law = no_marks(size), MarkLaw(no_marks(size), no_marks(size))
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        _begin(state, row, columns, tokens, start)
        fill_law(state.mode, row, cols, to_row, to_cols, law)
        take(state, tokens.slots, to_row, to_columns, law, start)
        store(state, TRANSFER, row, columns, start)
    for i in range(len(rows)):
        row, to_row = rows[i], to_rows[i]
        load(state, TRANSFER, row, columns, start)
        give(state, tokens.gives, row, columns, start)
        fill_law(state.mode, row, cols, to_row, to_cols, law)
        greatest = max(greatest, carry(law, start, start))
        give(state, tokens.arrivals, to_row, to_columns, start)
    return greatest


@allocating
def row_multicast(
    state: WalkState, rows: Indices, places: Indices, segment: RowTiles, tokens: Tokens
) -> int:
    """On each row the tile at its place sends to the segment."""
    cols = segment.indices
    size, greatest = len(cols), 0
    marks, start, law = no_marks(size), no_marks(1), MarkLaw(no_marks(size), no_marks(size))
    for i in range(len(rows)):
        row, root = rows[i], RowTiles(places[i : i + 1], -1)
        _begin(state, row, root, tokens, start)
        fill_law(state.mode, row, cols, row, no_marks(size) + places[i], law)
        marks[:] = start[0]
        take(state, tokens.slots, row, segment, law, marks)
        start[0] = marks.max()
        store(state, TRANSFER, row, root, start)
        give(state, tokens.gives, row, root, start)
        marks[:] = start[0]
        greatest = max(greatest, carry(law, marks, marks))
        give(state, tokens.arrivals, row, segment, marks)
    return greatest


@allocating
def column_multicast(
    state: WalkState, root_row: int, columns: RowTiles, rows: Indices, tokens: Tokens
) -> int:
    """On each column the tile of the root row sends to the segment."""
    cols = columns.indices
    size, greatest = len(cols), 0
    start, marks, law = no_marks(size), no_marks(size), MarkLaw(no_marks(size), no_marks(size))
    _begin(state, root_row, columns, tokens, start)
    for row in rows:
        fill_law(state.mode, root_row, cols, row, cols, law)
        take(state, tokens.slots, row, columns, law, start)
    store(state, TRANSFER, root_row, columns, start)
    give(state, tokens.gives, root_row, columns, start)
    for row in rows:
        fill_law(state.mode, root_row, cols, row, cols, law)
        greatest = max(greatest, carry(law, start, marks))
        give(state, tokens.arrivals, row, columns, marks)
    return greatest


@compiled
def _contribute(
    state: WalkState,
    row: int,
    columns: RowTiles,
    tokens: Tokens,
    law: MarkLaw,
    slots: Marks,
    marks: Marks,
) -> None:
    """`_begin` of what goes inwards by a law, where marks of the slots at its end are known."""
    _begin(state, row, columns, tokens, marks)
    for j in range(len(marks)):
        marks[j] = max(marks[j], slots[j] & law.keep[j])


@allocating
def _contribute_along(
    state: WalkState,
    row: int,
    segment: RowTiles,
    place: int,
    tokens: Tokens,
    law: MarkLaw,
    marks: Marks,
) -> None:
    """`_contribute` of a row to a place of it."""
    slots, places = no_marks(len(marks)), no_marks(len(marks)) + place
    take(state, tokens.slots, row, RowTiles(places[:1], -1), state.here, slots)
    slots[:] = slots[0]
    fill_law(state.mode, row, segment.indices, row, places, law)
    _contribute(state, row, segment, tokens, law, slots, marks)


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
    size, greatest = len(segment.indices), 0
    marks, come, law = no_marks(size), no_marks(1), MarkLaw(no_marks(size), no_marks(size))
    for i in range(len(rows)):
        row = rows[i]
        _contribute_along(state, row, segment, places[i], tokens, law, marks)
        come[0] = reduction.complete
        for j in range(size):
            come[0] = max(come[0], (marks[j] & law.keep[j]) + law.delay[j])
            if marks[j] < reduction.required[i]:
                note(state, FaultKind.NOT_KNOWN, -1, row, segment.indices[j], 0)
        store(state, TRANSFER, row, segment, marks)
        give(state, tokens.gives, row, segment, marks)
        give(state, tokens.arrivals, row, RowTiles(places[i : i + 1], -1), come)
        greatest = max(greatest, come[0])
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
    marks, slots, law = no_marks(size), no_marks(size), MarkLaw(no_marks(size), no_marks(size))
    arrival = no_marks(size) + reduction.complete
    take(state, tokens.slots, root_row, columns, state.here, slots)
    for row in rows:
        fill_law(state.mode, root_row, cols, row, cols, law)
        _contribute(state, row, columns, tokens, law, slots, marks)
        for j in range(size):
            arrival[j] = max(arrival[j], (marks[j] & law.keep[j]) + law.delay[j])
            if marks[j] < reduction.required[j]:
                note(state, FaultKind.NOT_KNOWN, -1, row, cols[j], 0)
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
    marks, law = no_marks(size), MarkLaw(no_marks(size), no_marks(size))
    for i in range(len(rows)):
        row, at = rows[i], 0
        _contribute_along(state, row, segment, places[i], tokens, law, marks)
        fill_law(state.mode, row, cols[1:], row, cols[:-1], law)
        while cols[at] < places[i]:
            marks[at + 1] = max(marks[at + 1], (marks[at] & law.keep[at]) + law.delay[at])
            at += 1
        for j in range(size - 1, at, -1):
            come = (marks[j] & law.keep[j - 1]) + law.delay[j - 1]
            marks[j - 1] = max(marks[j - 1], come)
        store(state, TRANSFER, row, segment, marks)
        give(state, tokens.gives, row, segment, marks)
        give(state, tokens.arrivals, row, RowTiles(places[i : i + 1], -1), marks[at : at + 1])
        greatest = max(greatest, marks[at])
    return greatest


@allocating
def column_relay(
    state: WalkState, root_row: int, columns: RowTiles, rows: Indices, tokens: Tokens
) -> int:
    """On each column the segment's tiles send to the next one inwards."""
    cols = columns.indices
    size = len(cols)
    marks, slots, law = no_marks(size), no_marks(size), MarkLaw(no_marks(size), no_marks(size))
    come, arrival = no_marks(size), no_marks(size)
    take(state, tokens.slots, root_row, columns, state.here, slots)
    for step in (1, -1):  # from above, then from below; the root belongs to both
        come[:] = 0
        for k in range(len(rows)):
            row = rows[k] if step > 0 else rows[len(rows) - 1 - k]
            if (row - root_row) * step > 0 or (row == root_row and step < 0):
                break
            fill_law(state.mode, row, cols, root_row, cols, law)
            _contribute(state, row, columns, tokens, law, slots, marks)
            for j in range(size):
                marks[j] = max(marks[j], come[j])
            if row == root_row:
                break
            store(state, TRANSFER, row, columns, marks)
            give(state, tokens.gives, row, columns, marks)
            fill_law(state.mode, row, cols, row + step * (rows[1] - rows[0]), cols, law)
            carry(law, marks, come)
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
