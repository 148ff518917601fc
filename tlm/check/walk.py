"""A walk over a program's operations in order, tile by tile, without time (`tlm.check.core`)."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tlm.check import core, marks
from tlm.check.marks import RowTiles, Tokens
from tlm.program import Collective, Operation, Program, Reduce, Send, Work

_Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WalkFault:
    """The first fault of an operation.

    Attributes:
        kind: What is wrong.
        token: Name of the token; None where there is none.
        row: Row of the tile.
        col: Its column.
        owed: Units taken there before, that were not there either.
    """

    kind: marks.FaultKind
    token: str | None
    row: int
    col: int
    owed: int


class Walk:
    """State of a walk: a mark of every engine and unit at every tile.

    Memory is 8 bytes per tile for each engine and each unit of token depth.

    Attributes:
        greatest: The greatest mark on an arrival so far.
    """

    def __init__(self, program: Program, mode: marks.Mode = marks.Mode.CHAIN) -> None:
        self._slots: dict[str, tuple[int, int]] = {}
        slot = marks.FIRST_TOKEN
        for name, token in program.tokens.items():
            self._slots[name] = (slot, token.depth)
            slot += token.depth
        self._names = {slot: name for name, (slot, _) in self._slots.items()}
        places = np.zeros((slot, program.rows, program.cols), dtype=np.int64)
        for name, token in program.tokens.items():
            first, depth = self._slots[name]
            places[first + token.initial : first + depth] = marks.EMPTY
        here = marks.MarkLaw(
            np.full(program.cols, marks.ALL), np.zeros(program.cols, dtype=np.int64)
        )
        self._state = marks.WalkState(
            places, np.zeros(len(marks.FirstFault), dtype=np.int64), int(mode), here
        )
        self._tables: dict[tuple[str, ...], _Indices] = {}
        self.greatest = 0

    def apply(
        self, operation: Operation, *, complete: int = 0, required: _Indices | None = None
    ) -> WalkFault | None:
        """Go over one operation; the first fault, if there is one.

        Args:
            operation: The operation.
            complete: Of a reduction: the least mark at its end.
            required: Of a reduction: the least mark that its contributors may start with, on each
                line that has a root; none if not given.
        """
        state = self._state
        state.fault[:] = 0
        names = (operation.takes, operation.slots, operation.gives, operation.arrivals)
        tokens = Tokens(*map(self._table, names))
        if isinstance(operation, Work):
            tiles = operation.tiles
            core.work(state, int(operation.engine), along(tiles.rows), spread(tiles.cols), tokens)
        elif isinstance(operation, Send):
            tiles = operation.tiles
            to = (operation.to_rows, _columns(operation.to_cols))
            self._came(core.send(state, along(tiles.rows), spread(tiles.cols), *to, tokens))
        else:
            assert isinstance(operation, Collective), "off-chip memory is not followed"
            self._collective(operation, tokens, complete, required)
        return self._fault()

    def _collective(
        self, operation: Collective, tokens: Tokens, complete: int, required: _Indices | None
    ) -> None:
        lines, places = operation.root_lines
        by_row, by_column = core.LAWS[type(operation)]
        least = np.zeros(len(lines), dtype=np.int64) if required is None else required
        rows, numbers = along(operation.segment), along(lines)

        def reduction(at: _Indices | slice) -> tuple[core.Reduction, ...]:
            return (core.Reduction(complete, least[at]),) if type(operation) is Reduce else ()

        if operation.by_row:
            segment, state = spread(operation.segment), self._state
            self._came(by_row(state, numbers, places, segment, tokens, *reduction(np.s_[:])))
            return
        for root_row in np.unique(places).tolist():
            at = np.flatnonzero(places == root_row)
            columns = _columns(numbers[at])
            self._came(by_column(self._state, root_row, columns, rows, tokens, *reduction(at)))

    def _came(self, mark: int) -> None:
        self.greatest = max(self.greatest, mark)

    def _fault(self) -> WalkFault | None:
        kind, slot, row, col, owed = self._state.fault.tolist()
        if kind == marks.FaultKind.NONE:
            return None
        return WalkFault(marks.FaultKind(kind), self._names.get(slot), row, col, owed)

    def _table(self, tokens: tuple[str, ...]) -> _Indices:
        if tokens not in self._tables:
            rows = [self._slots[name] for name in tokens]
            self._tables[tokens] = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        return self._tables[tokens]


@cache
def along(places: range) -> _Indices:
    """A range as an array, not to be written to."""
    return np.array(places, dtype=np.int64)


@cache
def spread(places: range) -> RowTiles:
    """Evenly spaced columns."""
    return RowTiles(along(places), places[0] if places.step == 1 else -1)


def _columns(indices: _Indices) -> RowTiles:
    consecutive = bool((np.diff(indices) == 1).all())
    return RowTiles(indices, int(indices[0]) if consecutive else -1)
