"""A row per request in a CSV file, written as requests finish and kept in order of arrival."""

import csv
from typing import TextIO

from workloads.serving.metrics import Row


class RowWriter:
    """Writes rows in order of their number; those that come early are held until their turn.

    Args:
        file: An open text file, without translation of line ends.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._early: dict[int, Row] = {}
        self._next = 0

    def add(self, index: int, row: Row) -> None:
        """The row of a request, each once; the numbers are 0, 1, ..."""
        self._early[index] = row
        while (row_in_turn := self._early.pop(self._next, None)) is not None:
            writer = csv.DictWriter(self._file, fieldnames=list(row_in_turn))
            if self._next == 0:
                writer.writeheader()
            writer.writerow(row_in_turn)
            self._next += 1
