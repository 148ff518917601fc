"""Programs over a grid of tiles: what a kernel builds and every level runs (docs/programs.md).

A program is a sequence of SPMD operations. Each belongs to one in-order engine of every tile of its
set, takes tokens before it starts and gives tokens when it ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet

Indices = NDArray[np.int64]


class Engine(IntEnum):
    """The in-order engines of a tile."""

    MATRIX = 0
    VECTOR = 1
    TRANSFER = 2
    CONTROL = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A counting semaphore that every tile has one of.

    Attributes:
        initial: Units there from the start; as slots they need no credit to be known.
        depth: Most units given and not yet taken, counting in program order.

    Raises:
        InputError: if the depth is below 1, or does not hold the initial units.
    """

    initial: int = 0
    depth: int = 1

    def __post_init__(self) -> None:
        if self.depth < 1 or not 0 <= self.initial <= self.depth:
            raise InputError(
                f"token: initial {self.initial}, depth {self.depth}; "
                "allowed: a depth of 1 or more, initial from 0 to depth"
            )


@dataclass(frozen=True, slots=True)
class Work:
    """Occupies an engine of each tile for some cycles.

    Attributes:
        engine: Any engine but TRANSFER.
        tiles: Tiles that work.
        cycles: One number for all, or an array of shape (rows of the set, columns of the set).
        takes: Tokens taken at the tile at the start.
        gives: Tokens given at the tile at the end.
        label: What is computed, for traces and functional checks.
    """

    engine: Engine
    tiles: TileSet
    cycles: int | NDArray[np.int64]
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    label: str = ""


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
        label: What is sent, for traces and functional checks.
    """

    tiles: TileSet
    to_rows: Indices
    to_cols: Indices
    flits: int
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Multicast:
    """Every root tile sends ``flits`` to a segment of its own row or of its own column.

    Attributes:
        roots: Root tiles; a single column of them along rows, a single row along columns.
        along: Whether the segments lie in the roots' rows or columns.
        segment: Columns (along rows) or rows (along columns) of the destinations, in rising order;
            may hold the root. A segment of one tile is reached as by `Send`.
        flits: Length of the transfer.
        takes: Tokens taken at the root.
        slots: Tokens taken at every destination; they reach the root as credits.
        gives: Tokens given at the root when the tail flit has left.
        arrivals: Tokens given at each destination when the tail flit has been written there.
        label: What is sent, for traces and functional checks.
    """

    roots: TileSet
    along: Literal["row", "column"]
    segment: range
    flits: int
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    label: str = ""


Operation = Work | Send | Multicast


@dataclass(frozen=True, slots=True)
class Program:
    """Operations over ``rows`` x ``cols`` tiles.

    ``build`` returns a fresh iterator each time, so that a long program is never held in memory.
    """

    rows: int
    cols: int
    tokens: Mapping[str, Token]
    build: Callable[[], Iterable[Operation]]

    def operations(self) -> Iterator[Operation]:
        """The operations in program order, each checked against the grid and the tokens.

        Raises:
            InputError: naming the operation and what does not fit.
        """
        for number, operation in enumerate(self.build()):
            fault = _fault(operation, self)
            if fault:
                raise InputError(
                    f"operation {number} ({type(operation).__name__} '{operation.label}'): {fault}"
                )
            yield operation


def destination(send: Send, row: int, col: int) -> tuple[int, int]:
    """Where the tile (``row``, ``col``) of a send's set sends to."""
    tiles = send.tiles
    return int(send.to_rows[tiles.rows.index(row)]), int(send.to_cols[tiles.cols.index(col)])


def segment_of(multicast: Multicast, row: int, col: int) -> TileSet:
    """Destinations of the root (``row``, ``col``)."""
    if multicast.along == "row":
        return TileSet(range(row, row + 1), multicast.segment)
    return TileSet(multicast.segment, range(col, col + 1))


def _fault(operation: Operation, program: Program) -> str | None:
    """What is wrong with an operation, if anything is."""
    names = {*operation.takes, *operation.gives}
    if not isinstance(operation, Work):
        names |= {*operation.slots, *operation.arrivals}
    unknown = sorted(names - program.tokens.keys())
    if unknown:
        return f"unknown token '{unknown[0]}'; known: {', '.join(sorted(program.tokens))}"
    if isinstance(operation, Work):
        return _work_fault(operation, program)
    fault = _transfer_fault(operation)
    if fault is None and isinstance(operation, Send):
        return _send_fault(operation, program)
    if fault is None and isinstance(operation, Multicast):
        return _multicast_fault(operation, program)
    return fault


def _transfer_fault(transfer: Send | Multicast) -> str | None:
    if transfer.flits < 1:
        return f"flits is {transfer.flits}; a transfer has at least 1"
    for here, there, names in (
        ("takes", "slots", {*transfer.takes} & {*transfer.slots}),
        ("gives", "arrivals", {*transfer.gives} & {*transfer.arrivals}),
    ):
        # A tile is a source and a destination of the same operation: which unit would come first?
        if names:
            return f"token '{min(names)}' is among both {here} and {there}"
    return None


def _work_fault(work: Work, program: Program) -> str | None:
    if work.engine is Engine.TRANSFER:
        return "engine TRANSFER only moves data; use Send or Multicast"
    if np.min(work.cycles) < 0:
        return f"cycles holds {np.min(work.cycles)}; allowed: 0 or more"
    expected = (len(work.tiles.rows), len(work.tiles.cols))
    if not isinstance(work.cycles, int) and work.cycles.shape != expected:
        return f"cycles has shape {work.cycles.shape}; the tile set is {expected}"
    return _outside(work.tiles, program)


def _send_fault(send: Send, program: Program) -> str | None:
    for axis, sources, targets, size in (
        ("rows", send.tiles.rows, send.to_rows, program.rows),
        ("cols", send.tiles.cols, send.to_cols, program.cols),
    ):
        if len(targets) != len(sources):
            return f"to_{axis} has {len(targets)} entries for {len(sources)} {axis}"
        if len(targets) and not 0 <= targets.min() <= targets.max() < size:
            return f"to_{axis} leaves the grid of {program.rows} x {program.cols} tiles"
        if len(targets) and np.bincount(targets).max() > 1:
            return f"to_{axis} names a destination twice"
    return _outside(send.tiles, program)


def _multicast_fault(multicast: Multicast, program: Program) -> str | None:
    roots = multicast.roots
    across = roots.cols if multicast.along == "row" else roots.rows
    if len(across) != 1:
        return f"{len(across)} roots share a {multicast.along}; allowed: 1"
    if not len(multicast.segment):
        return "the segment is empty"
    if multicast.segment.step < 1:
        return f"the segment has a step of {multicast.segment.step}; allowed: 1 or more"
    first = segment_of(multicast, roots.rows[0], roots.cols[0])
    return _outside(roots, program) or _outside(first, program)


def _outside(tiles: TileSet, program: Program) -> str | None:
    for indices, size in ((tiles.rows, program.rows), (tiles.cols, program.cols)):
        ends = (indices[0], indices[-1]) if len(indices) else (-1, -1)
        if min(ends) < 0 or max(ends) >= size:
            return f"tiles {tiles} on a grid of {program.rows} x {program.cols}"
    return None
