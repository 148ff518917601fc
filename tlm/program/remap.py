"""Programs on grids with lines out of use: the same program on the rows and columns that remain.

A line out of use has tiles that compute nothing; their routers pass packets on, and their network
interfaces stay on as bystanders: they drop their copies of the multicasts that pass, and bring the
neutral element to the reductions that pass. So the network is the one without lines out of use, and
every level runs the result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program.bystanders import Bystanders
from tlm.program.operations import (
    Collective,
    Engine,
    Load,
    Multicast,
    Operation,
    Reduce,
    Roots,
    Send,
    Store,
    Work,
    root_lines,
)
from tlm.program.program import Program
from tlm.program.tokens import Token


def on_lines(program: Program, rows: Sequence[int], cols: Sequence[int]) -> Program:
    """The same program on some rows and columns of a larger grid.

    Operations become several where their tiles are no longer evenly spaced. Their tokens, and what
    they compute, stay those of the program.

    Args:
        program: What every tile does.
        rows: Shape (rows of the program,): where each of its rows lies, in rising order.
        cols: Shape (columns of the program,): the same of its columns.

    Returns:
        A program on ``rows[-1] + 1`` x ``cols[-1] + 1`` tiles.

    Raises:
        InputError: if the lines are too few or many, or do not rise; while it is read, if the tiles
            of a multicast or reduction would be neither side by side nor evenly spaced.
    """
    axes = []
    for name, lines, size in (("rows", rows, program.rows), ("cols", cols, program.cols)):
        if len(lines) != size or lines[0] < 0 or any(np.diff(lines) < 1):
            raise InputError(f"{name}: found {list(lines)}; allowed: {size} numbers that rise")
        axes.append(_Axis(list(lines)))
    grid = _Grid(*axes)
    if not grid.rows.has_gaps and not grid.cols.has_gaps and rows[0] == cols[0] == 0:
        return program
    engine = Engine.VECTOR
    if any(isinstance(each, Work) and each.engine is Engine.MATRIX for each in program.build()):
        engine = Engine.MATRIX
    tokens = _with_room(program)

    def build() -> Iterator[Operation]:
        bystanders = Bystanders(tokens, (grid.rows.size, grid.cols.size), engine)
        for number, operation in enumerate(program.operations()):
            try:
                if isinstance(operation, Multicast | Reduce):
                    yield from _collective(operation, grid, bystanders)
                else:
                    yield from _pieces(operation, grid)
            except InputError as error:
                name = f"operation {number} ({type(operation).__name__} '{operation.label}')"
                raise InputError(f"{name}: {error}") from None
            yield from bystanders.settle(operation)

    return Program(grid.rows.size, grid.cols.size, tokens, build, program.buffers)


class _Axis:
    """Where the rows, or the columns, of a program lie."""

    def __init__(self, places: list[int]) -> None:
        self.places = np.array(places, dtype=np.int64)
        self.size = places[-1] + 1
        self._runs: dict[range, list[tuple[slice, range]]] = {}
        used = set(places)
        self._unused = [line for line in range(places[0], self.size) if line not in used]

    @property
    def has_gaps(self) -> bool:
        """Whether lines between those of the program are out of use."""
        return bool(self._unused)

    def runs(self, lines: range) -> list[tuple[slice, range]]:
        """Lines of a program as evenly spaced ones: which of ``lines``, and where they lie."""
        if lines not in self._runs:
            self._runs[lines] = list(_even_runs(self.places[np.array(lines)].tolist()))
        return self._runs[lines]

    def segment(self, segment: range) -> tuple[range, list[int]]:
        """A collective's segment, and the lines out of use that it spans.

        Raises:
            InputError: if it leaves out lines in use, and is not evenly spaced.
        """
        runs = self.runs(segment)
        if len(runs) == 1 and len(segment) > 1 and segment.step > 1:
            return runs[0][1], []
        if len(segment) > 1 and segment.step > 1:
            raise InputError(
                f"the segment {list(segment)} lies at {self.places[np.array(segment)].tolist()} "
                "beside lines out of use; allowed: tiles side by side or evenly spaced"
            )
        first, last = int(self.places[segment[0]]), int(self.places[segment[-1]])
        return range(first, last + 1), [each for each in self._unused if first < each < last]


def _even_runs(places: list[int]) -> Iterator[tuple[slice, range]]:
    """Numbers as evenly spaced ranges, one after the other."""
    first = 0
    while first < len(places):
        last = first + 1
        step = places[last] - places[first] if last < len(places) else 1
        while last < len(places) and places[last] - places[last - 1] == step:
            last += 1
        beyond = places[last - 1] + (1 if step > 0 else -1)
        yield slice(first, last), range(places[first], beyond, step)
        first = last


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where the tiles of a program lie."""

    rows: _Axis
    cols: _Axis

    def pieces(self, tiles: TileSet) -> Iterator[tuple[slice, slice, TileSet]]:
        """A set of tiles as sets: which rows and columns of it, and where they lie."""
        for rows, to_rows in self.rows.runs(tiles.rows):
            for cols, to_cols in self.cols.runs(tiles.cols):
                yield rows, cols, TileSet(to_rows, to_cols)


def _pieces(operation: Work | Send | Load | Store, grid: _Grid) -> Iterator[Operation]:
    """What tiles do each for itself."""
    for rows, cols, tiles in grid.pieces(operation.tiles):
        if isinstance(operation, Send):
            to_rows = grid.rows.places[operation.to_rows[rows]]
            to_cols = grid.cols.places[operation.to_cols[cols]]
            yield replace(operation, tiles=tiles, to_rows=to_rows, to_cols=to_cols)
        elif isinstance(operation, Work) and not isinstance(operation.cycles, int):
            yield replace(operation, tiles=tiles, cycles=operation.cycles[rows, cols])
        else:
            yield replace(operation, tiles=tiles)


def _collective(collective: Collective, grid: _Grid, bystanders: Bystanders) -> Iterator[Operation]:
    """Each line's part, with the tiles out of use that its way leads by."""
    by_row = collective.along == "row"
    across, along = (grid.rows, grid.cols) if by_row else (grid.cols, grid.rows)
    lines, places = root_lines(collective)
    segment, spanned = along.segment(collective.segment)
    for which, there in across.runs(lines):
        roots = Roots(there, along.places[places[which]])
        sets = [
            TileSet(there, range(line, line + 1))
            if by_row
            else TileSet(range(line, line + 1), there)
            for line in spanned
        ]
        if isinstance(collective, Multicast):
            yield from bystanders.take(collective.slots, sets)
            yield replace(collective, roots=roots, segment=segment)
            bystanders.give(collective.arrivals, sets)
        else:
            yield from bystanders.take(collective.takes, sets)
            neutral = sorted([*along.places[list(collective.neutral)].tolist(), *spanned])
            yield replace(collective, roots=roots, segment=segment, neutral=tuple(neutral))
            bystanders.give(collective.gives, sets)


def _with_room(program: Program) -> Mapping[str, Token]:
    """Tokens deep enough for operations in pieces, and for bystanders.

    Of a send in pieces a tile may be given a unit before it takes one; bystanders keep the units
    that were there from the start.
    """
    both: set[str] = set()
    piled: set[str] = set()
    for operation in program.build():
        if isinstance(operation, Send):
            both |= _names(operation.takes, operation.slots) & _names(
                operation.gives, operation.arrivals
            )
        elif isinstance(operation, Multicast):
            piled |= _names(operation.arrivals)
        elif isinstance(operation, Reduce):
            piled |= _names(operation.gives)
    return {
        name: replace(
            token, depth=token.depth + (name in both) + (token.initial if name in piled else 0)
        )
        for name, token in program.tokens.items()
    }


def _names(*named: Iterable[str]) -> set[str]:
    return {name for names in named for name in names}
