"""What every operation says of itself, so that who handles one need not ask which it is.

An operation has two ends. At the *near* one are the tiles whose engine does it: they take ``takes``
and give ``gives``. At the *far* one are those that are written to: they take ``slots`` and give
``arrivals``. Work has no far end.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer
from tlm.program.lines import Placement

Indices = NDArray[np.int64]
Along = Literal["row", "column"]
Tile = tuple[int, int]
Grid = tuple[int, int]


class Engine(IntEnum):
    """The in-order engines of a tile."""

    MATRIX = 0
    VECTOR = 1
    TRANSFER = 2
    CONTROL = 3


#: Engines that compute.
COMPUTING = (Engine.MATRIX, Engine.VECTOR)


@dataclass(frozen=True, slots=True)
class Ends:
    """Tiles at one end of an operation: all of ``rows`` x ``cols``, or one after the other.

    Attributes:
        rows: Their rows.
        cols: Their columns.
        paired: The i-th tile lies in the i-th row and the i-th column.
    """

    rows: range | Indices
    cols: range | Indices
    paired: bool = False

    @classmethod
    def of(cls, tiles: TileSet) -> Self:
        """All tiles of a set."""
        return cls(tiles.rows, tiles.cols)

    def __len__(self) -> int:
        """Number of tiles."""
        return len(self.rows) * (1 if self.paired else len(self.cols))

    def __contains__(self, tile: Tile) -> bool:
        rows, cols = indices(self.rows), indices(self.cols)
        if self.paired:
            return bool(((rows == tile[0]) & (cols == tile[1])).any())
        return tile[0] in rows and tile[1] in cols

    @property
    def index(self) -> tuple[NDArray[Any], ...]:
        """Rows and columns of all of them, as they index an array of shape (rows, columns, ...)."""
        rows, cols = indices(self.rows), indices(self.cols)
        return (rows, cols) if self.paired else np.ix_(rows, cols)

    @property
    def part(self) -> tuple[Any, ...]:
        """The same for the part of an array that they are: slices if evenly spaced."""
        rows, cols = self.rows, self.cols
        if self.paired or not (isinstance(rows, range) and isinstance(cols, range)):
            return self.index
        return tuple(slice(each.start, each.stop, each.step) for each in (rows, cols))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; pairs stand below each other if their rows are evenly spaced."""
        if not self.paired:
            return len(self.rows), len(self.cols)
        return (len(self.rows), 1) if isinstance(self.rows, range) else (1, len(self.cols))


@dataclass(frozen=True, slots=True)
class Way:
    """One transfer: from ``tile`` to ``members``; ``inwards`` from these, combined, to the tile."""

    tile: Tile
    members: TileSet
    inwards: bool = False


@dataclass(frozen=True, slots=True)
class Unicasts:
    """Packets each of its own: tile (rows[i], cols[j]) sends to (to_rows[i], to_cols[j])."""

    rows: Indices
    cols: Indices
    to_rows: Indices
    to_cols: Indices

    @property
    def longest_hops(self) -> int:
        """Hops of the longest."""
        down, across = np.abs(self.to_rows - self.rows), np.abs(self.to_cols - self.cols)
        return int(down.max() + across.max())


@dataclass(frozen=True, slots=True)
class Trees:
    """On each of some lines a tree from a root to a segment, or ``inwards`` from that to the root.

    Attributes:
        along: Whether the lines are rows or columns.
        lines: Which ones.
        place: Column, or row, of the root on each.
        segment: Columns, or rows, of the other tiles.
        inwards: Flits go to the root, which gets one block.
    """

    along: Along
    lines: Indices
    place: int
    segment: range
    inwards: bool

    @property
    def span(self) -> tuple[int, int]:
        """First and last place that a tree reaches."""
        return min(self.segment[0], self.place), max(self.segment[-1], self.place)

    @property
    def longest_hops(self) -> int:
        """Hops from the root to the farthest tile."""
        low, high = self.span
        return max(self.place - low, high - self.place)


class Operation(ABC):
    """What a program's operations have in common; each is SPMD: it stands for all of its tiles.

    Attributes:
        engine: The engine of the near tiles that does it.
        flits: Length of each transfer; 0 of work.
        takes: Tokens taken at the near end, before it starts.
        slots: Tokens taken at the far end; they reach the near one as credits.
        gives: Tokens given at the near end when it has ended, or the tail flit has left.
        arrivals: Tokens given at the far end when the tail flit has been written.
        label: What it is for, for traces.
    """

    __slots__ = ()

    engine: Engine
    flits: int
    takes: tuple[str, ...]
    slots: tuple[str, ...]
    gives: tuple[str, ...]
    arrivals: tuple[str, ...]
    label: str

    @property
    def forks(self) -> bool:
        """Whether the network copies what is sent, packet by packet, to several tiles."""
        return False

    @property
    def transfers(self) -> int:
        """How many it stands for: its sources; if they are combined, who gets what they send."""
        return 0

    def moves(self) -> Iterator[Unicasts | Trees]:
        """What crosses the network, in as few forms as there are."""
        return iter(())

    @property
    def longest_hops(self) -> int:
        """Hops of the longest of its transfers."""
        return max((move.longest_hops for move in self.moves()), default=0)

    @property
    def bystander_takes(self) -> tuple[str, ...]:
        """Tokens that tiles out of use take which a collective passes, as its members do."""
        return ()

    @property
    def bystander_gives(self) -> tuple[str, ...]:
        """Tokens that these give."""
        return ()

    @property
    @abstractmethod
    def near(self) -> Ends:
        """Tiles whose engine does it."""

    @property
    @abstractmethod
    def far(self) -> Ends:
        """Tiles that are written to; none of work."""

    @property
    @abstractmethod
    def touched(self) -> tuple[tuple[str, Ends], ...]:
        """Buffers that it reads or writes, and where."""

    @abstractmethod
    def turned(self) -> Self:
        """The same with rows for columns; the cycles of work stay as they are."""

    @abstractmethod
    def on_lines(self, lines: Placement) -> "Iterator[tuple[Operation, list[TileSet]]]":
        """The same on a larger grid, in pieces; and the tiles out of use that each of them passes.

        Raises:
            InputError: if it would need tiles that are not evenly spaced.
        """

    def within_tiles(self) -> "Operation":
        """The same but for off-chip memory: each tile sends the block to itself."""
        return self

    def called(self, number: int) -> str:
        """What messages call it as the ``number``-th of a program."""
        return f"operation {number} ({type(self).__name__} '{self.label}')"

    def fault(
        self, grid: Grid, tokens: Mapping[str, object], buffers: Mapping[str, Buffer]
    ) -> str | None:
        """What is wrong with it, if anything is.

        Args:
            grid: Rows and columns of tiles.
            tokens: Known tokens by name.
            buffers: Known buffers by name.
        """
        unknown = {*self.takes, *self.gives, *self.slots, *self.arrivals} - tokens.keys()
        if unknown:
            return f"unknown token '{min(unknown)}'; known: {', '.join(sorted(tokens))}"
        return self._own_fault(grid, buffers)

    @abstractmethod
    def _own_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        """What is wrong beside its tokens."""


def indices(given: ArrayLike | range) -> Indices:
    """Whole numbers as `Indices`; what is none stays, to be refused with its operation's name."""
    if isinstance(given, range):  # as an array it would be read number by number
        return np.arange(given.start, given.stop, given.step, dtype=np.int64)
    if isinstance(given, np.ndarray) and given.dtype == np.int64 and given.ndim == 1:
        return np.ascontiguousarray(given)
    array = np.atleast_1d(np.asarray(given))
    return np.ascontiguousarray(array, np.int64) if array.dtype.kind in "iu" else array


def indices_fault(name: str, found: Indices) -> str | None:
    """What is wrong with what should be `Indices`."""
    if found.dtype != np.int64 or found.ndim != 1:
        return (
            f"{name} is of type {found.dtype} and shape {found.shape}; "
            "allowed: whole numbers in a row"
        )
    return None


def outside_fault(tiles: TileSet, grid: Grid) -> str | None:
    """What is wrong with tiles that are none, or not on the grid."""
    for places, size in ((tiles.rows, grid[0]), (tiles.cols, grid[1])):
        ends = (places[0], places[-1]) if len(places) else (-1, -1)
        if min(ends) < 0 or max(ends) >= size:
            return f"tiles {tiles} on a grid of {grid[0]} x {grid[1]}"
    return None


def turned_tiles(tiles: TileSet) -> TileSet:
    """A set of tiles with rows for columns."""
    return TileSet(tiles.cols, tiles.rows)
