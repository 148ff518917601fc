"""The operations of programs (docs/programs.md): work on a tile, and transfers between tiles."""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlm.interconnect.packets import TileSet
from tlm.program.data import Task

Indices = NDArray[np.int64]
Along = Literal["row", "column"]


def _indices(given: ArrayLike) -> Indices:
    """Whole numbers as `Indices`; what is none stays, to be refused with its operation's name."""
    if isinstance(given, np.ndarray) and given.dtype == np.int64 and given.ndim == 1:
        return np.ascontiguousarray(given)
    array = np.atleast_1d(np.asarray(given))
    return np.ascontiguousarray(array, np.int64) if array.dtype.kind in "iu" else array


class Engine(IntEnum):
    """The in-order engines of a tile."""

    MATRIX = 0
    VECTOR = 1
    TRANSFER = 2
    CONTROL = 3


#: Engines that compute.
COMPUTING = (Engine.MATRIX, Engine.VECTOR)


@dataclass(frozen=True, slots=True)
class Roots:
    """One root on each of some rows (or columns), each at a place of its own.

    Attributes:
        lines: Rows (along rows) or columns (along columns).
        places: Shape (lines,): the root's column, or row, on each.
    """

    lines: range
    places: Indices

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", _indices(self.places))


@dataclass(frozen=True, slots=True)
class Work:
    """Occupies an engine of each tile for some cycles.

    Attributes:
        engine: Any engine but TRANSFER.
        tiles: Tiles that work.
        cycles: One number for all, or an array of shape (rows of the set, columns of the set).
        takes: Tokens taken at the tile at the start.
        gives: Tokens given at the tile at the end.
        task: What is computed: a `Gemm` on MATRIX, a `Vector` on VECTOR; None computes nothing.
        label: What it is for, for traces.
    """

    engine: Engine
    tiles: TileSet
    cycles: int | NDArray[np.int64]
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    task: Task | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.cycles, np.integer):
            object.__setattr__(self, "cycles", int(self.cycles))
        elif not isinstance(self.cycles, int):
            object.__setattr__(self, "cycles", np.asarray(self.cycles))


@dataclass(frozen=True, slots=True)
class Send:
    """Every source tile sends ``flits`` to one destination tile of its own.

    The tile in the i-th row and j-th column of ``tiles`` sends to ``(to_rows[i], to_cols[j])``; all
    destinations differ.

    Attributes:
        tiles: Source tiles.
        to_rows: Destination row of each row of the set.
        to_cols: Destination column of each column of the set.
        flits: Length of each transfer.
        takes: Tokens taken at the source.
        slots: Tokens taken at the destination; they reach the source as credits.
        gives: Tokens given at the source when the tail flit has left.
        arrivals: Tokens given at the destination when the tail flit has been written.
        source: Buffer that is sent.
        target: Buffer into which it is written, of the same shape.
        label: What is sent, for traces.
    """

    tiles: TileSet
    to_rows: Indices
    to_cols: Indices
    flits: int
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "to_rows", _indices(self.to_rows))
        object.__setattr__(self, "to_cols", _indices(self.to_cols))


@dataclass(frozen=True, slots=True)
class Multicast:
    """Every root tile sends ``flits`` to a segment of its own row or of its own column.

    Attributes:
        roots: Root tiles, one a row (along rows) or column: a single column of tiles or a single
            row, or `Roots` at places of their own.
        along: Whether the segments lie in the roots' rows or columns.
        segment: Columns (along rows) or rows (along columns) of the destinations, in rising order;
            may hold the root. A segment of one tile is reached as by `Send`.
        flits: Length of the transfer.
        takes: Tokens taken at the root.
        slots: Tokens taken at every destination; they reach the root as credits.
        gives: Tokens given at the root when the tail flit has left.
        arrivals: Tokens given at each destination when the tail flit has been written there.
        source: Buffer that is sent.
        target: Buffer into which it is written, of the same shape.
        label: What is sent, for traces.
    """

    roots: TileSet | Roots
    along: Along
    segment: range
    flits: int
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Reduce:
    """A segment of each root's row or column sends ``flits``, which the network combines.

    The mirror image of `Multicast`: every contributor begins on its own, and the root gets one
    block, element by element the sum or the maximum of theirs.

    Attributes:
        roots: Root tiles, as of `Multicast`.
        along: Whether the segments lie in the roots' rows or columns.
        segment: Columns (along rows) or rows (along columns) of the contributors, in rising order;
            may hold the root.
        flits: Length of each contribution, and of the result.
        operation: ``sum`` (wraps) or ``maximum``.
        takes: Tokens taken at each contributor.
        slots: Tokens taken at the root, once; they reach every contributor as credits.
        gives: Tokens given at each contributor when its tail flit has left.
        arrivals: Tokens given at the root when the tail flit of the result has been written.
        source: Buffer that every contributor sends.
        target: Buffer of the root into which the result is written, of the same shape.
        label: What is combined, for traces.
        neutral: Columns (along rows) or rows of the segment whose contributions change nothing:
            zeros for a sum, least values for a maximum, instead of ``source``.
    """

    roots: TileSet | Roots
    along: Along
    segment: range
    flits: int
    operation: Literal["sum", "maximum"] = "sum"
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    label: str = ""
    neutral: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OffChip:
    """Every tile of a set moves a block between its memory and off-chip memory.

    Attributes:
        tiles: Tiles, each with a block of its own.
        flits: Length of each block.
        takes: Tokens taken at the tile.
        gives: Tokens given at the tile when all that it sends has left: a request, or a block.
        arrivals: Tokens given at the tile when a block, or the word that it is kept, has come.
        source: Buffer that is read.
        target: Buffer that is written, of the same shape.
        label: What is moved, for traces.
    """

    slots: ClassVar[tuple[str, ...]] = ()  # room in a tile's own memory is among what it takes

    tiles: TileSet
    flits: int
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    label: str = ""

    @property
    def block(self) -> str:
        """Name of the buffer in off-chip memory; empty if the program says none."""
        return (self.source if isinstance(self, Load) else self.target) or ""

    @property
    def sent_flits(self) -> int:
        """Flits that a tile sends: of a load a request, of a store the block and a request."""
        return 1 if isinstance(self, Load) else self.flits + 1

    def at_once(self) -> Work:
        """What it is if off-chip memory costs nothing: the block is there when asked for."""
        given = (*self.gives, *self.arrivals)
        return Work(Engine.TRANSFER, self.tiles, 0, self.takes, given, label=self.label)


@dataclass(frozen=True, slots=True)
class Load(OffChip):
    """Every tile of a set asks off-chip memory for a block; ``source`` is a buffer off chip."""


@dataclass(frozen=True, slots=True)
class Store(OffChip):
    """Every tile of a set writes a block to off-chip memory; ``target`` is a buffer off chip.

    What a tile loads after the arrival of its store is what it has stored.
    """


Collective = Multicast | Reduce
TileTransfer = Send | Multicast | Reduce
Transfer = TileTransfer | Load | Store
#: What tiles do among themselves.
TileOperation = Work | TileTransfer
Operation = TileOperation | Load | Store


def within_tiles(operation: Operation) -> TileOperation:
    """What an operation is but for off-chip memory: each tile sends the block to itself."""
    if not isinstance(operation, OffChip):
        return operation
    rows, cols = np.array(operation.tiles.rows), np.array(operation.tiles.cols)
    tokens = (operation.takes, (), operation.gives, operation.arrivals)
    buffers = (operation.source, operation.target)
    return Send(operation.tiles, rows, cols, operation.flits, *tokens, *buffers, operation.label)


def destination(send: Send, row: int, col: int) -> tuple[int, int]:
    """Where the tile (``row``, ``col``) of a send's set sends to."""
    tiles = send.tiles
    return int(send.to_rows[tiles.rows.index(row)]), int(send.to_cols[tiles.cols.index(col)])


def segment_of(collective: Collective, row: int, col: int) -> TileSet:
    """Destinations, or contributors, of the root (``row``, ``col``)."""
    if collective.along == "row":
        return TileSet(range(row, row + 1), collective.segment)
    return TileSet(collective.segment, range(col, col + 1))


def root_lines(collective: Collective) -> tuple[range, Indices]:
    """Rows (along rows) or columns that have a root, and shape (lines,) its place on each."""
    roots = collective.roots
    if isinstance(roots, Roots):
        return roots.lines, roots.places
    lines, across = roots.rows, roots.cols
    if collective.along == "column":
        lines, across = across, lines
    return lines, np.full(len(lines), across[0], dtype=np.int64)


def root_tiles(collective: Collective) -> list[tuple[int, int]]:
    """Row and column of every root."""
    lines, places = root_lines(collective)
    pairs = zip(lines, places.tolist(), strict=True)
    return [pair if collective.along == "row" else pair[::-1] for pair in pairs]
