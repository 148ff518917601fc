"""Tiles that are not alike: programs whose work takes longer at some tiles than at others."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.program.operations import Operation, Work
from tlm.program.program import Program

_MOST_PERCENT = 100_000
_WHOLE_NUMBER = re.compile(r" *0*([0-9]{1,6}) *")


def percent_table(content: bytes, file: str) -> NDArray[np.int64]:
    """A table of tiles: a line of numbers, with commas between, for each row of tiles.

    Blank lines may come at the end, a byte order mark at the start, and spaces beside numbers.

    Args:
        content: The table in UTF-8.
        file: What messages call it.

    Returns:
        Shape (rows, columns): cycles of work at each tile, in per cent; 0: it is disabled.

    Raises:
        InputError: naming file, row and column, if it holds something else.
    """
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        raise InputError(f"{file}: found no rows; allowed: one or more")
    for row, fields in enumerate(rows):
        if not fields:
            raise InputError(
                f"{file}: row {row} (from 0): found a blank line; allowed: at the end only"
            )
        if len(fields) != len(rows[0]):
            raise InputError(
                f"{file}: row {row} (from 0): found {len(fields)} columns; "
                f"allowed: {len(rows[0])}, as in row 0"
            )
    return np.array(
        [
            [_percent(file, row, col, text) for col, text in enumerate(fields)]
            for row, fields in enumerate(rows)
        ],
        dtype=np.int64,
    )


def _percent(file: str, row: int, col: int, text: str) -> int:
    digits = _WHOLE_NUMBER.fullmatch(text)
    percent = int(digits[1]) if digits else -1
    if not 0 <= percent <= _MOST_PERCENT:
        raise InputError(
            f"{file}: row {row}, column {col} (from 0): found '{text}'; allowed: whole per cent "
            f"from 1 to {_MOST_PERCENT}, or 0 for a disabled tile"
        )
    return percent


def on_unequal_tiles(program: Program, percent: NDArray[np.int64]) -> Program:
    """The same program on tiles of which each takes its own time for all of its work.

    Args:
        program: What every tile does.
        percent: Shape (rows, columns): cycles of work at each tile, of what the program says, in
            per cent; fractions of a cycle count as one. 100 everywhere changes nothing.

    Raises:
        InputError: if the table has another shape, or an entry below 1.
    """
    shape = (program.rows, program.cols)
    if percent.shape != shape:
        raise InputError(f"percent: found a table of shape {percent.shape}; the grid is {shape}")
    if percent.min() < 1:
        row, col = np.unravel_index(int(percent.argmin()), shape)
        raise InputError(
            f"percent: found {percent.min()} at tile ({row}, {col}); allowed: 1 or more"
        )
    scaled = _Scaled(percent)

    def build() -> Iterator[Operation]:
        for operation in program.built():
            yield scaled.work(operation) if isinstance(operation, Work) else operation

    return replace(program, build=build)


class _Scaled:
    """Work by a table; equal work gets the same array, which cannot be written."""

    def __init__(self, percent: NDArray[np.int64]) -> None:
        self._percent = percent
        self._known: dict[tuple[int, range, range], NDArray[np.int64]] = {}

    def work(self, work: Work) -> Work:
        rows, cols = work.tiles.rows, work.tiles.cols
        if not isinstance(work.cycles, int):
            return replace(work, cycles=self._longer(work.cycles, rows, cols))
        key = (work.cycles, rows, cols)
        if key not in self._known:
            self._known[key] = self._longer(work.cycles, rows, cols)
            self._known[key].setflags(write=False)
        return replace(work, cycles=self._known[key])

    def _longer(
        self, cycles: int | NDArray[np.int64], rows: range, cols: range
    ) -> NDArray[np.int64]:
        longer: NDArray[np.int64] = -(-cycles * self._percent[np.ix_(rows, cols)] // 100)
        return longer
