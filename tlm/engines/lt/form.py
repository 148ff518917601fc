"""What the loosely-timed engine wants to know of a whole program before it runs it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tlm.interconnect.packets import TileSet
from tlm.program import Program
from tlm.program.operations import (
    COMPUTING,
    Collective,
    Engine,
    Multicast,
    Reduce,
    Roots,
    Send,
    TileOperation,
    Work,
    root_lines,
    within_tiles,
)

_ROW_COST_TILES = 150
"""To take up a row costs as much as so many tiles of it."""

Lines = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scan:
    """A program's form.

    Attributes:
        operations: How many there are.
        queued: Tokens that some operation takes or gives at a part of the tiles only.
        computing: Computing engines that do some work.
        turned: Whether rows and columns should change places: rows of state are updated at once.
        multicasts: How often a multicast comes to a tile.
        multicast_flits: The same of their flits.
    """

    operations: int
    queued: frozenset[str]
    computing: frozenset[Engine]
    turned: bool
    multicasts: int
    multicast_flits: int


def scan(program: Program) -> Scan:
    """Read a program once."""
    everywhere = (program.rows, program.cols)
    queued: set[str] = set()
    engines: set[Engine] = set()
    count = upright = turned = copies = flits = 0
    for operation in map(within_tiles, program.build()):
        count += 1
        for _, names, (rows, cols) in tokens_by_tiles(operation):
            if (rows, cols) != everywhere:
                queued.update(names)
        if isinstance(operation, Work):
            engines.add(operation.engine)
        if isinstance(operation, Multicast):
            reached = len(root_lines(operation)[0]) * len(operation.segment)
            copies += reached
            flits += reached * operation.flits
        rows, cols = _extent(operation)
        upright += rows * (cols + _ROW_COST_TILES)
        turned += cols * (rows + _ROW_COST_TILES)
    queues = frozenset(queued & program.tokens.keys())
    computing = frozenset(engines.intersection(COMPUTING))
    return Scan(count, queues, computing, turned < upright, copies, flits)


def turn(operation: TileOperation) -> TileOperation:
    """The same operation with rows for columns; the cycles of work stay as they are."""
    if isinstance(operation, Work):
        return replace(operation, tiles=_turned(operation.tiles))
    if isinstance(operation, Send):
        return replace(
            operation,
            tiles=_turned(operation.tiles),
            to_rows=operation.to_cols,
            to_cols=operation.to_rows,
        )
    assert isinstance(operation, Collective)
    return _turn_collective(operation)


def _turn_collective(collective: Collective) -> Collective:
    roots = collective.roots
    return replace(
        collective,
        roots=roots if isinstance(roots, Roots) else _turned(roots),
        along="column" if collective.along == "row" else "row",
    )


def _turned(tiles: TileSet) -> TileSet:
    return TileSet(tiles.cols, tiles.rows)


def tokens_by_tiles(operation: TileOperation) -> Iterator[tuple[str, tuple[str, ...], Lines]]:
    """Field, tokens, and the rows and columns of the tiles where they are taken or given."""
    if isinstance(operation, Work):
        here = there = (len(operation.tiles.rows), len(operation.tiles.cols))
    elif isinstance(operation, Send):
        here = (len(operation.tiles.rows), len(operation.tiles.cols))
        there = (len(operation.to_rows), len(operation.to_cols))
    else:
        assert isinstance(operation, Collective)
        here, there = _roots_and_segments(operation)
        if isinstance(operation, Reduce):
            here, there = there, here
    yield "takes", operation.takes, here
    if not isinstance(operation, Work):
        yield "slots", operation.slots, there
    yield "gives", operation.gives, here
    if not isinstance(operation, Work):
        yield "arrivals", operation.arrivals, there


def _roots_and_segments(collective: Collective) -> tuple[Lines, Lines]:
    lines, size = len(root_lines(collective)[0]), len(collective.segment)
    if collective.along == "row":
        return (lines, 1), (lines, size)
    return (1, lines), (size, lines)


def _extent(operation: TileOperation) -> Lines:
    """Rows and columns of the most tiles that an operation updates."""
    if isinstance(operation, Work | Send):
        return len(operation.tiles.rows), len(operation.tiles.cols)
    assert isinstance(operation, Collective)
    return _roots_and_segments(operation)[1]
