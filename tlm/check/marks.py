"""Compiled marks of a walk over a program: taken and given at a row of tiles, and changed by a law.

A *moment* (when an engine is free, a unit of a token) carries a mark, and what depends on several
moments carries the greatest. Over a transfer the mark changes by the law of its `Mode`.

A credit comes with the mark of the moment that freed the slot; its way back adds no hops.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled, inlined
from tlm.program.operations import Engine

Marks = NDArray[np.int64]
Indices = NDArray[np.int64]

#: A chain's mark: hops times this, plus transfers.
HOP = 2**24
EMPTY = -1
TRANSFER, FIRST_TOKEN = int(Engine.TRANSFER), len(Engine)
ALL, _NONE = -1, 0


class Mode(IntEnum):
    """What marks say."""

    CHAIN = 0  # hops and transfers on the longest chain of transfers so far, in one number
    ROWS = 1  # the last reduction of a family known to be complete; of the same row only
    COLUMNS = 2  # the same along columns


class FaultKind(IntEnum):
    """What is wrong with an operation."""

    NONE = 0
    MISSING = 1  # a unit is taken that is not there
    BEYOND_DEPTH = 2  # a unit is given that has no room
    NOT_KNOWN = 3  # an operand begins while an earlier reduction may be in flight


class FirstFault(IntEnum):
    """Columns of the first fault."""

    KIND = 0  # a `FaultKind`
    SLOT = 1  # of the token
    ROW = 2
    COLUMN = 3
    OWED = 4  # units taken there before that were not there either


class MarkLaw(NamedTuple):
    """Of transfers: the bits of a mark that they keep, and what they add to it."""

    keep: Marks
    delay: Marks


class WalkState(NamedTuple):
    """All that a walk knows."""

    # [slot, row, column]: the engines' slots, and for each token a queue of ``depth`` slots, oldest
    # first, `EMPTY` behind. Where units were taken before they were there, the first slot is below
    # `EMPTY` by their number.
    marks: Marks
    fault: Indices  # the first one, columns `FirstFault`
    mode: int  # a `Mode`
    # Of what stays at the tiles of a row: it keeps all, and adds nothing.
    here: MarkLaw


class RowTiles(NamedTuple):
    """Some tiles of a row."""

    indices: Indices  # of their columns
    first: int  # of consecutive columns (the fast path), else -1


class Tokens(NamedTuple):
    """Tokens of an operation, each as rows of (slot, depth)."""

    takes: Indices
    slots: Indices
    gives: Indices
    arrivals: Indices


@allocating
def no_marks(count: int) -> Marks:
    """Of so many moments with nothing before them."""
    return np.zeros(count, dtype=np.int64)


@compiled
def note(state: WalkState, kind: int, slot: int, row: int, col: int, owed: int) -> None:
    """Keep the first fault."""
    fault = state.fault
    if fault[FirstFault.KIND] == FaultKind.NONE:
        fault[FirstFault.KIND], fault[FirstFault.SLOT] = kind, slot
        fault[FirstFault.ROW], fault[FirstFault.COLUMN] = row, col
        fault[FirstFault.OWED] = owed


@compiled
def load(state: WalkState, slot: int, row: int, columns: RowTiles, out: Marks) -> None:
    """Copy the marks of some tiles of a row."""
    marks = state.marks[slot, row]
    if columns.first >= 0:
        part = marks[columns.first : columns.first + len(out)]
        for j in range(len(out)):
            out[j] = part[j]
    else:
        for j in range(len(out)):
            out[j] = marks[columns.indices[j]]


@compiled
def store(state: WalkState, slot: int, row: int, columns: RowTiles, values: Marks) -> None:
    """Set the marks of some tiles of a row."""
    marks = state.marks[slot, row]
    if columns.first >= 0:
        part = marks[columns.first : columns.first + len(values)]
        for j in range(len(values)):
            part[j] = values[j]
    else:
        for j in range(len(values)):
            marks[columns.indices[j]] = values[j]


@compiled
def take(
    state: WalkState, tokens: Indices, row: int, columns: RowTiles, law: MarkLaw, start: Marks
) -> None:
    """Take the oldest unit of each token; of its mark counts what the law keeps."""
    cols, first, size, keep = columns.indices, columns.first, len(columns.indices), law.keep
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        marks = state.marks[slot, row]
        lowest = 0
        if first >= 0:
            part = marks[first : first + size]
            for j in range(size):
                lowest = min(lowest, part[j])
                start[j] = max(start[j], part[j] & keep[j])
        else:
            for j in range(size):
                mark = marks[cols[j]]
                lowest = min(lowest, mark)
                start[j] = max(start[j], mark & keep[j])
        if lowest < 0:
            for j in range(size):
                if marks[cols[j]] < 0:
                    note(state, FaultKind.MISSING, slot, row, cols[j], EMPTY - marks[cols[j]])
        if depth == 1 and first >= 0:
            part = marks[first : first + size]
            for j in range(size):
                part[j] = min(part[j], 0) - 1
            continue
        for j in range(size):
            if marks[cols[j]] < 0:
                marks[cols[j]] -= 1
                continue
            for place in range(slot, slot + depth - 1):
                state.marks[place, row, cols[j]] = state.marks[place + 1, row, cols[j]]
            state.marks[slot + depth - 1, row, cols[j]] = EMPTY


@compiled
def give(state: WalkState, tokens: Indices, row: int, columns: RowTiles, values: Marks) -> None:
    """Give a unit of each token with a mark for each column."""
    cols, first, size = columns.indices, columns.first, len(columns.indices)
    for k in range(len(tokens)):
        slot, depth = tokens[k, 0], tokens[k, 1]
        if depth == 1 and first >= 0:
            part = state.marks[slot, row, first : first + size]
            highest = EMPTY
            for j in range(size):
                highest = max(highest, part[j])
            if highest >= 0:
                place = 0
                while part[place] < 0:
                    place += 1
                note(state, FaultKind.BEYOND_DEPTH, slot, row, first + place, 0)
            for j in range(size):
                part[j] = values[j] if part[j] >= EMPTY else part[j] + 1
            continue
        for j in range(size):
            if state.marks[slot, row, cols[j]] < EMPTY:
                state.marks[slot, row, cols[j]] += 1
                continue
            place = slot
            while place < slot + depth - 1 and state.marks[place, row, cols[j]] >= 0:
                place += 1
            if state.marks[place, row, cols[j]] >= 0:
                note(state, FaultKind.BEYOND_DEPTH, slot, row, cols[j], 0)
            state.marks[place, row, cols[j]] = values[j]


@compiled
def fill_law(
    mode: int, row: int, cols: Indices, to_row: int, to_cols: Indices, law: MarkLaw
) -> None:
    """Set the law of transfers from a row's tiles to their destinations."""
    down, keep, delay = abs(to_row - row), law.keep, law.delay
    for j in range(len(cols)):
        if mode == Mode.CHAIN:
            keep[j] = ALL
            delay[j] = (down + abs(to_cols[j] - cols[j])) * HOP + 1
        else:
            same = row == to_row if mode == Mode.ROWS else cols[j] == to_cols[j]
            keep[j] = ALL if same else _NONE
            delay[j] = 0


@inlined
def carry(law: MarkLaw, start: Marks, out: Marks) -> int:
    """Marks of what is sent when it comes, in ``out``; the greatest."""
    greatest = 0
    for j in range(len(out)):
        out[j] = (start[j] & law.keep[j]) + law.delay[j]
        greatest = max(greatest, out[j])
    return greatest
