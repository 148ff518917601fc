"""How units of tokens are taken and given, on some columns of a row of tiles.

Of each token its slot and its depth are given. Depth 0 is the time of one known unit. Else the
token is a queue of that many slots, oldest first, `EMPTY` behind. A fault is ``slot`` for a take of
a token that is not there in program order, ``-slot`` for a give beyond its depth, and 0 for none.
"""

from typing import Any

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.state import EMPTY, Columns, GridArrays, Indices, Spare, Times


@inlined
def tokens_at(grid: GridArrays, offset: int) -> Indices:
    """The tokens at an offset, behind their number."""
    return grid.indices[offset + 1 : offset + 1 + 2 * grid.indices[offset]]


@inlined
def single(tokens: Indices) -> tuple[int, int]:
    """Slot and depth of the only one of at most one token; depth -1: there is none."""
    return (tokens[0], tokens[1]) if len(tokens) else (0, -1)


@inlined
def oldest_of(row: Times, slot: int, depth: int, column: int) -> Any:
    """Take the oldest unit of a token at a tile; `EMPTY`: there is none."""
    time = row[address(slot), column] if depth >= 0 else EMPTY
    for place in range(slot + 1, slot + depth):
        row[address(place - 1), column] = row[address(place), column]
    if depth > 0:
        row[address(slot + depth - 1), column] = EMPTY
    return time


@inlined
def append_to(row: Times, slot: int, depth: int, column: int, time: Any) -> bool:
    """Give a unit of a token at a tile; whether there was room."""
    room = depth < 1 or row[address(slot + depth - 1), column] == EMPTY
    last = slot
    while depth > 1 and last < slot + depth - 1 and row[address(last), column] != EMPTY:
        last += 1
    if depth > 1:
        row[address(last), column] = time
    elif depth >= 0:
        row[address(slot), column] = time
    return room


@inlined
def place_of(
    row: Times, tokens: Indices, columns: Columns, spare: Times
) -> tuple[Times, Indices, int]:
    """Where times are to be written that some tokens are given at; the tokens left; the fault.

    That is where the first token lies if it has one place and the columns lie side by side.
    """
    size, first, fault = len(columns.indices), columns.first, 0
    if len(tokens) == 0 or tokens[1] > 1 or first < 0:
        return spare[:size], tokens, 0
    times = row[tokens[0]][first : first + size]
    if tokens[1] == 1:
        latest = EMPTY
        for j in range(size):
            latest = max(latest, times[j])
        fault = 0 if latest == EMPTY else -tokens[0]
    return times, tokens[2:], fault


@compiled
def take(
    scratch: Times, row: Times, tokens: Indices, columns: Columns, spare: int
) -> tuple[Times, int]:
    """Take the oldest unit of each token.

    Returns:
        When the last of a column's units is there, where it lies or in row ``spare`` of the scratch
        or the next one; and the fault.
    """
    size, first, fault = len(columns.indices), columns.first, 0
    never = scratch[Spare.NEVER][:size]
    latest = never
    for k in range(0, len(tokens), 2):
        slot, depth = tokens[k], tokens[k + 1]
        if k == 0 and depth == 0 and first >= 0:
            latest = row[slot][first : first + size]
            continue
        # Not the row that is read: what is both is not done by vectors.
        out, earliest = scratch[spare + (k // 2 & 1)][:size], np.int32(0)
        if first < 0:
            for j in range(size):
                time = oldest_of(row, slot, depth, address(columns.indices[j]))
                earliest, out[j] = min(earliest, time), max(latest[j], time)
        else:
            earliest = _oldest_of_row(row, slot, depth, first, latest, never, out)
        latest = out
        if depth > 0 and earliest == EMPTY and fault == 0:
            fault = slot
    return latest, fault


@inlined
def take_two(
    scratch: Times, row: Times, tokens: Indices, columns: Columns, spare: int
) -> tuple[Times, Times, int]:
    """`take` in two rows, the later of which counts: two known units stay where they lie."""
    size, first = len(columns.indices), columns.first
    known, end = first >= 0 and len(tokens) <= 4, first + size
    for k in range(1, len(tokens), 2):
        known &= tokens[k] == 0
    one = two = scratch[Spare.NEVER][:size]
    fault = 0
    if not known:
        one, fault = take(scratch, row, tokens, columns, spare)
    elif len(tokens) > 0:
        one = row[tokens[0]][first:end]
    if known and len(tokens) > 2:
        two = row[tokens[2]][first:end]
    return one, two, fault


@inlined
def _oldest_of_row(
    row: Times, slot: int, depth: int, first: int, latest: Times, never: Times, out: Times
) -> Any:
    """`oldest_of` at columns side by side: in ``out`` if later than ``latest``; the earliest."""
    end = first + len(out)
    oldest, earliest = row[slot][first:end], np.int32(0)
    if depth == 0:
        for j in range(len(out)):
            out[j] = max(latest[j], oldest[j])
    else:
        behind = row[slot + 1][first:end] if depth > 1 else never
        for j in range(len(out)):
            earliest, out[j] = min(earliest, oldest[j]), max(latest[j], oldest[j])
            oldest[j] = behind[j]
    for place in range(slot + 1, slot + depth):
        held = row[place][first:end]
        behind = row[place + 1][first:end] if place + 1 < slot + depth else never
        for j in range(len(out)):
            held[j] = behind[j]
    return earliest


@compiled
def give(row: Times, tokens: Indices, columns: Columns, times: Times) -> int:
    """Give a unit of each token at some times; the fault."""
    size, first, fault = len(columns.indices), columns.first, 0
    for k in range(0, len(tokens), 2):
        slot, depth, latest = tokens[k], tokens[k + 1], EMPTY
        if first < 0:
            for j in range(size):
                column = address(columns.indices[j])
                room = append_to(row, slot, depth, column, times[j])
                latest = latest if room else np.int32(0)
        else:
            end = first + size
            held = row[slot + max(depth - 1, 0)][first:end]
            for j in range(size if depth > 0 else 0):
                latest = max(latest, held[j])
            for place in range(slot + depth - 1, slot, -1):
                held, ahead = row[place][first:end], row[place - 1][first:end]
                for j in range(size):
                    last = (held[j] == EMPTY) & (ahead[j] != EMPTY)
                    held[j] = times[j] if last else held[j]
            held = row[slot][first:end]
            for j in range(size if depth < 2 else 0):
                held[j] = times[j]
            for j in range(size if depth > 1 else 0):
                held[j] = times[j] if held[j] == EMPTY else held[j]
        if latest != EMPTY and fault == 0:
            fault = -slot
    return fault
