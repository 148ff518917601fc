"""Records of tiles: all that is known of what goes on in them, in one array.

Each record is named by the index of its first column, behind a first record with what all have in
common.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

Columns = NDArray[np.int64]
Tiles = Annotated[Columns, types.int64[::1]]
Banks = NDArray[np.int32]
Words = Annotated[Banks, types.int32[::1]]
NEVER = 2**62

# The first record: places of a reader; rows, and columns, of the array; steps of the vector unit;
# length of a record; whether anything goes on by itself.
PLACES, ARRAY_SIZE, VECTOR_STEPS, RECORD_SIZE, STIRRING, HEADER_COLUMNS = range(6)
# Ports of the scratchpad, in the order of their turns. Of each: place in the list of words, by
# their banks, of the next one that it asks for; words that it holds; words that come at the end of
# the cycle; place behind its last word; the bank that it asks.
WEST, NORTH, SUMS, RESULTS, LEFT, RIGHT, OUT, GOING, COMING, PORTS = range(10)
ASKS, HELD, UNDER_WAY, END, BANK, PORT_COLUMNS = range(6)
SHARED = PORTS * PORT_COLUMNS
# Jobs and words to be sent that are not done; cycles from which the engines, and what is read to be
# sent, ask for words.
LIVE, MATRIX_FROM, VECTOR_FROM, GOING_FROM, MATRIX = range(SHARED, SHARED + 5)
# The matrix engine: folds that have not entered; steps of one; dataflow; whether results are added
# to sums. What is in the array, a bit a step; rows of results that wait, and the words of the first
# one that are written; steps of the fold that have entered, and of the one before that have not
# left; weights that are loaded, whether all are, rows that may still enter with those in use.
FOLDS, LENGTH, STATIONARY, ADDS, PIPE, ROWS, WRITTEN, STEP, DRAIN = range(MATRIX, MATRIX + 9)
LOADING, LOADED, REMAINING, VECTOR = range(MATRIX + 9, MATRIX + 13)
# The vector unit: words of a row of A; whether a row has one result; words that become one; whether
# there are two operands. What is in the unit, a bit a step; words of the row that have entered, and
# of results that wait to be packed.
ROW_WORDS, OF_ROWS, PACKED, TWO, UNIT_PIPE, ENTERED, PARTS, TURNS = range(VECTOR, VECTOR + 8)
# From TURNS on a column a bank: a bit a port for the one that it served last and those before it.
# And from the record's end backwards a column a bank, zero between cycles: a bit a port that asks.

#: What a cycle brought: the end of a job, a transfer's last word read; a word sent, one written.
#: STIRS: more goes on than that words wait for room in the network.
MATRIX_ENDS, VECTOR_ENDS, READ_ENDS, SENT, CAME, STIRS = 1, 2, 4, 8, 16, 32
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Folds:
    """What the systolic array does in a job.

    Attributes:
        size: Rows, and columns, of the array.
        folds: Folds of the job.
        length: Steps of a fold.
        output_stationary: The dataflow.
    """

    size: int
    folds: int
    length: int
    output_stationary: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """What the vector unit does in a job.

    Attributes:
        words: Words of a row of A.
        of_rows: A row has one result.
        packed: Words of results that become one.
    """

    words: int
    of_rows: bool = False
    packed: int = 1


def new_tiles(count: int, size: int, banks: int, places: int, vector_steps: int) -> Columns:
    """Records of so many tiles after reset."""
    record = TURNS + 2 * banks
    tiles = np.zeros(HEADER_COLUMNS + count * record, dtype=np.int64)
    tiles[:STIRRING] = places, size, vector_steps, record
    rows = tiles[HEADER_COLUMNS:].reshape(count, record)
    rows[:, [MATRIX_FROM, VECTOR_FROM]] = NEVER
    return tiles


def begin_matrix(
    t: Columns, tile: int, now: int, folds: Folds, words: Sequence[tuple[int, int]]
) -> None:
    """Give a job to a matrix engine that is free; it asks for words from ``now`` on.

    Args:
        t: Records of tiles.
        tile: The tile.
        now: When.
        folds: What the array does.
        words: Where the words of A, B, sums and results begin and end; those of sums may be none.
    """
    adds = words[SUMS][0] < words[SUMS][1]
    state = (folds.folds, folds.length, folds.output_stationary, adds)
    t[tile + MATRIX : tile + VECTOR] = [*state, *[0] * (VECTOR - MATRIX - len(state))]
    t[tile : tile + LEFT * PORT_COLUMNS] = [n for a, z in words for n in (a, 0, 0, z, 0)]
    t[tile + MATRIX_FROM] = now
    t[tile + LIVE] += 1
    t[STIRRING] = 1


def begin_vector(
    t: Columns, tile: int, now: int, work: Pass, words: Sequence[tuple[int, int]]
) -> None:
    """Give a job to a vector engine that is free; it asks for words from ``now`` on.

    Args:
        t: Records of tiles.
        tile: The tile.
        now: When.
        work: What the unit does.
        words: Where the words of A, B and results begin and end; those of B may be none.
    """
    two = words[1][0] < words[1][1]
    state = (work.words, work.of_rows, work.packed, two)
    t[tile + VECTOR : tile + TURNS] = [*state, *[0] * (TURNS - VECTOR - len(state))]
    t[tile + LEFT * PORT_COLUMNS : tile + GOING * PORT_COLUMNS] = [
        n for a, z in words for n in (a, 0, 0, z, 0)
    ]
    t[tile + VECTOR_FROM] = now
    t[tile + LIVE] += 1
    t[STIRRING] = 1


def begin_reading(t: Columns, tile: int, now: int, begin: int, end: int) -> None:
    """Have a transfer's words read by an interface that has asked for all those before."""
    port = tile + GOING * PORT_COLUMNS
    t[port + ASKS], t[port + END] = begin, end
    t[tile + GOING_FROM] = now
    t[tile + LIVE] += end - begin
    t[STIRRING] = 1
