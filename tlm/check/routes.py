"""Distinct routes through each tile's router: the R of PLMR (WaferLLM, sections 3.1 and 5.1).

A route is a source and its destinations, or a root and its contributors; packets go along the row
first. A router holds those that begin, pass and end at it, as often as they are used.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tlm.program import Program
from tlm.program.operations import Along, Operation, Relay, Trees, Unicasts

_Counts = NDArray[np.int32]
_Indices = NDArray[np.int64]
#: Destinations of one source that are told apart; one that has more exceeds any limit met so far.
MOST_DESTINATIONS = 64


class Routes:
    """The routes of a program's transfers.

    ``at_least``: some source has more destinations than are told apart, so there may be more.
    Memory per tile: 4 bytes for each distinct destination that the busiest source has.
    """

    def __init__(self, program: Program) -> None:
        self._shape = (program.rows, program.cols)
        self._targets = np.full((2, *self._shape), -1, dtype=np.int32)
        self._seen: set[tuple[object, ...]] = set()
        self._trees: dict[tuple[object, ...], tuple[Along, tuple[int, int], NDArray[np.bool_]]] = {}
        self._relays: dict[tuple[Along, range], _Indices] = {}
        self.at_least = False

    def add(self, operation: Operation) -> None:
        """Take note of the routes that an operation uses."""
        if isinstance(operation, Relay):
            self._add_relay(operation)
            return
        for move in operation.moves():
            if isinstance(move, Trees):
                self._add_trees(move)
            else:
                self._add_unicasts(move)

    def paths(self) -> NDArray[np.int64]:
        """Routes through each tile, shape (rows, columns)."""
        for (along, segment), ends in self._relays.items():
            self._add_streams(along, segment, ends)
        rows, cols = self._shape
        by_row = np.zeros((rows, cols + 1), dtype=np.int64)
        by_column = np.zeros((rows + 1, cols), dtype=np.int64)
        for layer in self._targets:
            _count_ways(layer, by_row, by_column)
        for along, (low, high), lines in self._trees.values():
            if along == "row":
                by_row[:, low] += lines
                by_row[:, high + 1] -= lines
            else:
                by_column[low] += lines
                by_column[high + 1] -= lines
        counted = np.cumsum(by_row, axis=1)[:, :cols]
        counted += np.cumsum(by_column, axis=0)[:rows]
        return counted

    def _add_relay(self, relay: Relay) -> None:
        """Of each line the outermost roots on either side say who sends inwards which way."""
        lines, places = relay.root_lines
        key = relay.along, relay.segment
        if key not in self._relays:
            count = self._shape[0 if relay.by_row else 1]
            self._relays[key] = np.repeat([[self._shape[0] + self._shape[1]], [-1]], count, axis=1)
        first, last = self._relays[key]
        numbers = np.array(lines)
        first[numbers] = np.minimum(first[numbers], places)
        last[numbers] = np.maximum(last[numbers], places)

    def _add_streams(self, along: Along, segment: range, ends: _Indices) -> None:
        members, used = np.array(segment), np.flatnonzero(ends[1] >= 0)
        for first, last in np.unique(ends[:, used], axis=1).T:
            lines = used[(ends[0, used] == first) & (ends[1, used] == last)]
            rising, falling = members[members < last], members[members > first]
            for some, step in ((rising, segment.step), (falling, -segment.step)):
                here, there = (lines, some), (lines, some + step)
                if along == "column":
                    here, there = here[::-1], there[::-1]
                self._add_unicasts(Unicasts(*here, *there))

    def _add_unicasts(self, ways: Unicasts) -> None:
        sources, targets = (ways.rows, ways.cols), (ways.to_rows, ways.to_cols)
        key = tuple(indices.tobytes() for indices in (*sources, *targets))
        if key in self._seen:
            return
        self._seen.add(key)
        while not _add(self._targets, sources, targets):
            layers = len(self._targets)
            if layers == MOST_DESTINATIONS:
                self.at_least = True
                return
            more = np.full((layers, *self._shape), -1, dtype=np.int32)
            self._targets = np.concatenate([self._targets, more])

    def _add_trees(self, trees: Trees) -> None:
        key = (trees.along, trees.inwards, trees.segment, trees.place)
        if key not in self._trees:
            by_row = trees.along == "row"
            lines = np.zeros(self._shape[0 if by_row else 1], dtype=np.bool_)
            self._trees[key] = trees.along, trees.span, lines
        self._trees[key][2][trees.lines] = True


@njit(cache=True)
def _add(
    layers: _Counts, sources: tuple[_Indices, _Indices], targets: tuple[_Indices, _Indices]
) -> bool:
    """Enter each source's destination unless it is there; False where there is no room."""
    cols = layers.shape[2]
    fits = True
    for i in range(len(sources[0])):
        for j in range(len(sources[1])):
            row, col = sources[0][i], sources[1][j]
            target = targets[0][i] * cols + targets[1][j]
            if target == row * cols + col:
                continue
            place = 0
            while place < len(layers) and layers[place, row, col] not in (-1, target):
                place += 1
            if place < len(layers):
                layers[place, row, col] = target
            else:
                fits = False
    return fits


@njit(cache=True)
def _count_ways(layer: _Counts, by_row: _Indices, by_column: _Indices) -> None:
    """Add the ways of a layer of destinations as steps along rows and columns."""
    rows, cols = layer.shape
    for row in range(rows):
        for col in range(cols):
            if layer[row, col] < 0:
                continue
            to_row, to_col = divmod(layer[row, col], cols)
            by_row[row, min(col, to_col)] += 1
            by_row[row, max(col, to_col) + 1] -= 1
            if to_row > row:
                by_column[row + 1, to_col] += 1
                by_column[to_row + 1, to_col] -= 1
            elif to_row < row:
                by_column[to_row, to_col] += 1
                by_column[row, to_col] -= 1
