"""The times that the loosely-timed engine keeps of tiles, and the compiled steps' view of them.

A tile has a time for each of its engines (`Engine`), those of `TileSlot`, and those of its tokens'
units. A row of tiles is ``row[slot, column]``. Steps work on some columns of a row at once, in
plain loops over columns that lie side by side. The compiler turns these into vector instructions,
which it does not with assignments of whole slices. Columns that are spaced are copied out and in.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import address, compiled, inlined
from tlm.program.operations import Engine

Times = NDArray[np.int32]
Indices = NDArray[np.int64]

EMPTY = np.int32(-(2**30))
"""Time of a unit that is not there."""
FROM_THE_START = np.int32(-(2**29))
"""Time of an initial unit: longer ago than any credit takes."""


class TileSlot(IntEnum):
    """Of a tile's times, behind those of its engines.

    A program that uses one computing engine alone has tokens from `OVERLAP` on.
    """

    PORT = 4  # when the ejection port is free
    BUSY = 5  # since when it has been busy without a pause before that
    LEFT = 6  # when the last transfer left, if they are launched
    OVERLAP = 7  # in how many cycles both computing engines have worked
    SINCE = 8  # since when the first of them has worked without a pause; behind it the other
    FIRST_TOKEN = 10


class Spare(IntEnum):
    """Rows of scratch to compute in, each for one thing."""

    NEVER = 0  # `EMPTY`: a unit that makes nothing wait
    UNITS = 1  # when what is taken at the tiles, or at sources, is there,
    MORE_UNITS = 2  # with one token more
    SLOTS = 3  # the same at targets,
    MORE_SLOTS = 4  # with one token more
    STARTS = 5  # when transfers, or work, start
    ORDERED = 6  # starts in the order of the targets
    FREE = 7  # when engines are
    COME = 8  # when transfers could be written
    TIMES = 9  # when they are
    LATEST = 10  # of a reduction: when the operands from farther out have come
    RESULT = 11  # of a reduction: when its result leaves the root's router
    SINCE = 12  # of ports, or of work: since when without a pause
    UNTIL = 13  # of ports: until when they are busy
    CYCLES = 14  # of work
    BESIDE = 15  # of work: until when the other engine works,
    BESIDE_SINCE = 16  # and since when
    OVERLAP = 17  # of work: `TileSlot.OVERLAP`
    LEFT = 18  # when the engines of sources are free, in their own order


def engine_ends(state: Times, launch_cycles: int) -> Times:
    """When engines are free, shape (engines, rows, columns), of a state (slots, rows, columns).

    Of transfers that are launched, the state has when the next one's first flit may leave.
    """
    ends = state[: len(Engine)].copy()
    if launch_cycles:
        ends[Engine.TRANSFER] = state[TileSlot.LEFT]
    return ends


class GridArrays(NamedTuple):
    """All that steps read and update."""

    state: Times  # shape (rows, slots, columns)
    tables: Times  # cycles of work, shape (tables, rows, columns)
    indices: Indices  # pool of columns, rows, orders and tokens
    delays: Times  # pool of delays
    scratch: Times  # shape (len(Spare), columns)


class Columns(NamedTuple):
    """Some columns of a row of tiles."""

    indices: Indices  # rising
    first: int  # the first of them if they lie side by side, else -1


@inlined
def columns_of(grid: GridArrays, offset: int, first: int, begin: int, end: int) -> Columns:
    """A part of the columns that lie at an offset."""
    return Columns(grid.indices[offset + begin : offset + end], first + begin if first >= 0 else -1)


@inlined
def read(times: Times, columns: Columns, spare: Times) -> Times:
    """The times of some columns: as they lie if side by side, else a copy."""
    size, first = len(columns.indices), columns.first
    part = times[first : first + size] if first >= 0 else spare[:size]
    if first < 0:
        _copy(times, columns.indices, part)
    return part


@compiled
def _copy(times: Times, columns: Indices, out: Times) -> None:
    for j in range(len(columns)):
        out[j] = times[address(columns[j])]


@compiled
def write(times: Times, columns: Columns, values: Times) -> None:
    """Set the times of some columns."""
    size = len(columns.indices)
    if columns.first >= 0:
        part = times[columns.first : columns.first + size]
        for j in range(size):
            part[j] = values[j]
    else:
        for j in range(size):
            times[address(columns.indices[j])] = values[j]


@compiled
def write_back(times: Times, columns: Columns, values: Times) -> None:
    """Set the times of some columns to what `read` gave, which has been changed."""
    if columns.first < 0:
        write(times, columns, values)
