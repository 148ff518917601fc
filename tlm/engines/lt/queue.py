"""How units of tokens are taken and given, on some columns of a row of tiles.

Of each token its slot and its depth are given. Depth 0 is the time of one known unit. Else the
token is a queue of that many slots, oldest first, `EMPTY` behind. A fault is ``slot`` for a take of
a token that is not there in program order, ``-slot`` for a give beyond its depth, and 0 for none.
"""

from typing import Any

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.state import EMPTY, Columns, Grid, Indices, Spare, Times, write


@inlined
def tokens_at(grid: Grid, offset: int, count: int) -> Indices:
    """The tokens at an offset."""
    return grid.indices[offset : offset + 2 * count]


@inlined
def oldest_of(row: Times, slot: int, depth: int, column: int) -> Any:
    """Take the oldest unit of a token at a tile; `EMPTY`: there is none."""
    time = row[slot, column]
    for place in range(slot + 1, slot + depth):
        row[place - 1, column] = row[place, column]
    if depth > 0:
        row[slot + depth - 1, column] = EMPTY
    return time


@inlined
def append_to(row: Times, slot: int, depth: int, column: int, time: int) -> bool:
    """Give a unit of a token at a tile; whether there was room."""
    place, last = slot, slot + depth - 1
    while place < last and row[place, column] != EMPTY:
        place += 1
    room = depth == 0 or row[place, column] == EMPTY
    row[place, column] = time
    return room


@compiled
def take(
    scratch: Times, row: Times, tokens: Indices, columns: Columns, out: Times
) -> tuple[Times, int]:
    """Take the oldest unit of each token.

    Returns:
        When the last of a column's units is there, in ``out`` or where it lies; and the fault.
    """
    size, first, fault = len(columns.indices), columns.first, 0
    never, latest = scratch[Spare.NEVER][:size], out[:size]
    if len(tokens) == 0:
        return never, 0
    if len(tokens) == 2 and tokens[1] == 0 and first >= 0:
        return row[tokens[0]][first : first + size], 0
    for j in range(size):
        latest[j] = EMPTY
    for k in range(0, len(tokens), 2):
        slot, depth, earliest = tokens[k], tokens[k + 1], np.int32(0)
        if first < 0:
            for j in range(size):
                time = oldest_of(row, slot, depth, address(columns.indices[j]))
                earliest, latest[j] = min(earliest, time), max(latest[j], time)
        else:
            oldest = row[slot][first : first + size]
            for j in range(size):
                earliest, latest[j] = min(earliest, oldest[j]), max(latest[j], oldest[j])
            for place in range(slot + 1, slot + depth):
                write(row[place - 1], columns, row[place][first : first + size])
            if depth > 0:
                write(row[slot + depth - 1], columns, never)
        if depth > 0 and earliest == EMPTY and fault == 0:
            fault = slot
    return latest, fault


@compiled
def give(row: Times, tokens: Indices, columns: Columns, times: Times) -> int:
    """Give a unit of each token at some times; the fault."""
    size, first, fault = len(columns.indices), columns.first, 0
    for k in range(0, len(tokens), 2):
        slot, depth, full = tokens[k], tokens[k + 1], False
        if first < 0:
            for j in range(size):
                column = address(columns.indices[j])
                full |= not append_to(row, slot, depth, column, times[j])
        elif depth == 0:
            write(row[slot], columns, times)
        for place in range(slot + depth - 1, slot - 1 if first >= 0 else slot + depth, -1):
            held, latest = row[place][first : first + size], EMPTY
            ahead = row[place - 1][first : first + size] if place > slot else times
            for j in range(size):
                latest = max(latest, held[j])
                last = (held[j] == EMPTY) & (ahead[j] != EMPTY)
                held[j] = times[j] if last else held[j]
            full |= latest != EMPTY and place == slot + depth - 1
        if full and fault == 0:
            fault = -slot
    return fault
