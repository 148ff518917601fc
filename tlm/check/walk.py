"""A walk over a program's operations in order, tile by tile, without time (`tlm.check.core`)."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tlm.check import core, marks
from tlm.program import Multicast, Operation, Program, Reduce, Send, Work

_Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fault:
    """The first fault of an operation.

    Attributes:
        kind: `marks.MISSING`, `marks.BEYOND_DEPTH` or `marks.NOT_KNOWN`.
        token: Name of the token; None where there is none.
        row: Row of the tile.
        col: Its column.
        owed: Units taken there before, that were not there either.
    """

    kind: int
    token: str | None
    row: int
    col: int
    owed: int


class Walk:
    """State of a walk: a mark of every engine and unit at every tile.

    Memory is 8 bytes per tile for each engine and each unit of token depth.
    """

    def __init__(self, program: Program, mode: int = marks.CHAIN) -> None:
        self._mode = mode
        self._slots: dict[str, tuple[int, int]] = {}
        slot = marks.FIRST_TOKEN
        for name, token in program.tokens.items():
            self._slots[name] = (slot, token.depth)
            slot += token.depth
        self._names = {slot: name for name, (slot, _) in self._slots.items()}
        self._state = np.zeros((slot, program.rows, program.cols), dtype=np.int64)
        for name, token in program.tokens.items():
            first, depth = self._slots[name]
            self._state[first + token.initial : first + depth] = marks.EMPTY
        self._tables: dict[tuple[str, ...], _Indices] = {}
        self.greatest = 0

    def apply(
        self, operation: Operation, *, complete: int = 0, required: _Indices | None = None
    ) -> Fault | None:
        """Go over one operation; the first fault, if there is one.

        Args:
            operation: The operation.
            complete: Of a reduction: the least mark at its end.
            required: Of a reduction: the least mark that its contributors may start with, on each
                line that has a root; none if not given.
        """
        fault = np.zeros(5, dtype=np.int64)
        if isinstance(operation, Work):
            takes, gives = self._table(operation.takes), self._table(operation.gives)
            columns = spread(operation.tiles.cols)
            rows = along(operation.tiles.rows)
            core.work(self._state, rows, *columns, int(operation.engine), takes, gives, fault)
            return self._read(fault)
        before = (self._table(operation.takes), self._table(operation.slots))
        after = (self._table(operation.gives), self._table(operation.arrivals))
        if isinstance(operation, Send):
            sources = (along(operation.tiles.rows), *spread(operation.tiles.cols))
            to_cols = np.ascontiguousarray(operation.to_cols)
            targets = (np.ascontiguousarray(operation.to_rows), to_cols, _first(to_cols))
            greatest = core.send(self._state, self._mode, sources, targets, before, after, fault)
            self.greatest = max(self.greatest, greatest)
            return self._read(fault)
        tokens = (before, after)
        if isinstance(operation, Reduce):
            self._reduce(operation, tokens, complete, required, fault)
        else:
            assert isinstance(operation, Multicast), "all others send to themselves"
            self._multicast(operation, tokens, fault)
        return self._read(fault)

    def _multicast(
        self,
        operation: Multicast,
        tokens: tuple[tuple[_Indices, _Indices], tuple[_Indices, _Indices]],
        fault: _Indices,
    ) -> None:
        lines, places = operation.root_lines
        state, mode = self._state, self._mode
        if operation.along == "row":
            segment = spread(operation.segment)
            greatest = core.row_multicast(
                state, mode, along(lines), places, segment, *tokens, fault
            )
            self.greatest = max(self.greatest, greatest)
            return
        rows = along(operation.segment)
        for root_row, part in _equal_places(lines, places):
            greatest = core.column_multicast(
                state, mode, root_row, (part, _first(part)), rows, *tokens, fault
            )
            self.greatest = max(self.greatest, greatest)

    def _reduce(
        self,
        operation: Reduce,
        tokens: tuple[tuple[_Indices, _Indices], tuple[_Indices, _Indices]],
        complete: int,
        required: _Indices | None,
        fault: _Indices,
    ) -> None:
        lines, places = operation.root_lines
        state, mode = self._state, self._mode
        least = np.zeros(len(lines), dtype=np.int64) if required is None else required
        if operation.along == "row":
            segment = spread(operation.segment)
            greatest = core.row_reduce(
                state, mode, along(lines), places, segment, *tokens, complete, least, fault
            )
            self.greatest = max(self.greatest, greatest)
            return
        rows = along(operation.segment)
        for root_row, part in _equal_places(lines, places):
            columns, needed = (part, _first(part)), least[places == root_row]
            greatest = core.column_reduce(
                state, mode, root_row, columns, rows, *tokens, complete, needed, fault
            )
            self.greatest = max(self.greatest, greatest)

    def _read(self, fault: _Indices) -> Fault | None:
        kind, slot, row, col, owed = fault.tolist()
        return Fault(kind, self._names.get(slot), row, col, owed) if kind else None

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
def spread(places: range) -> tuple[_Indices, int]:
    """Columns as an array, and the first of them if they are consecutive, else -1."""
    return along(places), places[0] if places.step == 1 else -1


def _first(columns: _Indices) -> int:
    consecutive = bool((np.diff(columns) == 1).all())
    return int(columns[0]) if consecutive else -1


def _equal_places(lines: range, places: _Indices) -> list[tuple[int, _Indices]]:
    """Places of roots, and the lines that have theirs there."""
    numbers = along(lines)
    return [(place, numbers[places == place]) for place in np.unique(places).tolist()]
