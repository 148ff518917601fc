"""Rows and columns of a program on a larger grid, of which other lines are out of use."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet


class Axis:
    """Where the rows, or the columns, of a program lie.

    Attributes:
        places: Shape (rows of the program,): where each of its rows, or columns, lies.
        size: Of the larger grid.
    """

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
class Placement:
    """Where the tiles of a program lie."""

    rows: Axis
    cols: Axis

    def pieces(self, tiles: TileSet) -> Iterator[tuple[slice, slice, TileSet]]:
        """A set of tiles as sets: which rows and columns of it, and where they lie."""
        for rows, to_rows in self.rows.runs(tiles.rows):
            for cols, to_cols in self.cols.runs(tiles.cols):
                yield rows, cols, TileSet(to_rows, to_cols)
