"""Records of tiles: all that is known of what goes on in them, in one array.

Behind a header with what all have in common, every tile has a record, named by the index of its
first column: ``t[tile + Column.STEP]``. It begins with its ports, and ends with two columns a bank.
"""

from enum import IntEnum, auto
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.tiles.streams import Folds, Pass, Spans
from tlm.tiles.timing import TileTiming

Int64s = NDArray[np.int64]
Tiles = Annotated[Int64s, types.int64[::1]]
WordPlaces = Annotated[NDArray[np.int64], types.int64[::1]]
Words = Annotated[NDArray[np.int32], types.int32[::1]]
NEVER = 2**62
NOBODY = -1
#: Route of a packet that asks a node without a tile for a load.
LOAD = -1


class Header(IntEnum):
    """Columns of the header."""

    PLACES = 0  # words that a reader holds or has asked for, at most
    ARRAY_SIZE = auto()  # rows, and columns, of the systolic array
    VECTOR_STEPS = auto()  # steps of the vector unit
    RECORD_SIZE = auto()  # columns of a record
    STIRRING = auto()  # whether anything goes on by itself


class TilePort(IntEnum):
    """Ports of the scratchpad, in the order of their turns."""

    WEST = 0  # reads A for the array
    NORTH = auto()  # reads B, or weights
    SUMS = auto()  # reads what results of the array are added to
    RESULTS = auto()  # writes them
    LEFT = auto()  # reads A for the vector unit
    RIGHT = auto()  # reads B
    OUT = auto()  # writes its results
    GOING = auto()  # reads words for the network
    COMING = auto()  # writes words from the network


class PortColumn(IntEnum):
    """Columns of each port."""

    ASKS = 0  # place in the list of words, by their banks, of the next one that it asks for
    HELD = auto()  # words that it holds
    UNDER_WAY = auto()  # words that come at the end of the cycle
    END = auto()  # place behind its last word
    BANK = auto()  # the bank that it asks


HEADER_COLUMNS, PORT_COLUMNS = len(Header), len(PortColumn)


class Column(IntEnum):
    """Columns of a record behind its ports."""

    LIVE = len(TilePort) * PORT_COLUMNS  # jobs and words to be sent that are not done
    MATRIX_FROM = auto()  # cycle from which the matrix engine asks for words, or NEVER
    VECTOR_FROM = auto()  # the same of the vector engine
    GOING_FROM = auto()  # the same of what is read to be sent
    # The matrix engine.
    FOLDS = auto()  # that have not entered the array
    LENGTH = auto()  # steps of a fold
    STATIONARY = auto()  # whether outputs are stationary; else weights
    ADDS = auto()  # whether results are added to sums
    PIPE = auto()  # what is in the array, a bit a step
    ROWS = auto()  # rows of results that wait
    WRITTEN = auto()  # words of the first one that are written
    STEP = auto()  # steps of the fold that have entered
    DRAIN = auto()  # steps of the one before that have not left
    LOADING = auto()  # rows of weights that are loaded
    LOADED = auto()  # whether all are
    REMAINING = auto()  # rows that may still enter with the weights in use
    # The vector unit.
    ROW_WORDS = auto()  # words of a row of A
    OF_ROWS = auto()  # whether a row has one result
    PACKED = auto()  # words of results that become one
    TWO = auto()  # whether there are two operands
    UNIT_PIPE = auto()  # what is in the unit, a bit a step
    ENTERED = auto()  # words of the row that have entered
    PARTS = auto()  # words of results that wait to be packed
    # From here on a column a bank: a bit a port for the one that it served last and those before
    # it. And from the record's end backwards a column a bank, zero between cycles: a bit a port
    # that asks.
    TURNS = auto()


class Brought(IntEnum):
    """What a cycle brought to a tile, a bit each."""

    MATRIX_ENDS = 1  # a job's end
    VECTOR_ENDS = 2
    READ_ENDS = 4  # a transfer's last word is read
    SENT = 8  # a word to the network
    CAME = 16  # a word from there is written
    STIRS = 32  # more goes on than that words wait for room in the network


class TileTables(NamedTuple):
    """Tiles and what they work on."""

    records: Tiles
    words: Words  # banks of the words of all jobs and transfers so far
    routes: WordPlaces  # by packet, where the words begin that its flits are written to, or LOAD


def new_tiles(count: int, timing: TileTiming) -> Int64s:
    """Records of so many tiles after reset."""
    streams, record = timing.streams, Column.TURNS + 2 * timing.banks
    tiles = np.zeros(HEADER_COLUMNS + count * record, dtype=np.int64)
    common = streams.places, timing.array_size, streams.pipeline_cycles, record
    tiles[: Header.STIRRING] = common
    rows = tiles[HEADER_COLUMNS:].reshape(count, record)
    rows[:, [Column.MATRIX_FROM, Column.VECTOR_FROM]] = NEVER
    return tiles


def begin_job(t: Int64s, tile: int, now: int, work: Folds | Pass, words: Spans) -> None:
    """Give a job to an engine that is free; it asks for words from ``now`` on.

    Args:
        t: Records of tiles.
        tile: The tile.
        now: When.
        work: What the engine does.
        words: Where the words of A, B, sums (of a product) and results begin and end; those of B
            (of a pass) and sums may be none.
    """
    if isinstance(work, Folds):
        port, begins = TilePort.WEST, Column.MATRIX_FROM
        first, behind = Column.FOLDS, Column.ROW_WORDS
        begin, end = words[TilePort.SUMS]
        state = [work.folds, work.length, work.output_stationary, begin < end]
    else:
        port, begins = TilePort.LEFT, Column.VECTOR_FROM
        first, behind = Column.ROW_WORDS, Column.TURNS
        begin, end = words[1]
        state = [work.words, work.of_rows, work.packed, begin < end]
    t[tile + first : tile + behind] = 0
    t[tile + first : tile + first + len(state)] = state
    ports = [column for begin, end in words for column in (begin, 0, 0, end, 0)]
    place = tile + port * PORT_COLUMNS
    t[place : place + len(ports)] = ports
    t[tile + begins] = now
    t[tile + Column.LIVE] += 1
    t[Header.STIRRING] = 1


def begin_reading(t: Int64s, tile: int, now: int, begin: int, end: int) -> None:
    """Have a transfer's words read by an interface that has asked for all those before."""
    port = tile + TilePort.GOING * PORT_COLUMNS
    t[port + PortColumn.ASKS], t[port + PortColumn.END] = begin, end
    t[tile + Column.GOING_FROM] = now
    t[tile + Column.LIVE] += end - begin
    t[Header.STIRRING] = 1
