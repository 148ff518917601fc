"""A row per request in a CSV file, written as requests finish and kept in order of arrival."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from tlm.errors import InputError
from tlm.files import whole_file
from workloads.serving.result.metrics import Row


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

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here; the file holds all rows before it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"early": self._early, "next": self._next, "size": self._file.tell()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on in the file of a run that was killed; what it wrote later is cut off.

        Raises:
            InputError: if the file holds less than it did.
        """
        size = self._file.seek(0, os.SEEK_END)
        if size < state["size"]:
            raise InputError(
                f"{self._file.name}: found {size} bytes; the checkpoint is of {state['size']}"
            )
        self._file.truncate(state["size"])
        self._file.seek(state["size"])
        self._early, self._next = state["early"], state["next"]


@contextmanager
def row_file(path: Path, *, resumable: bool) -> Iterator[RowWriter]:
    """Where the rows go; the file appears when all are written.

    With ``resumable`` they are kept in ``PATH.part`` until then, for a run that is killed.

    Raises:
        InputError: naming the path, if it cannot be written.
    """
    if not resumable:
        with whole_file(path) as scratch, scratch.open("w", newline="", encoding="utf-8") as file:
            yield RowWriter(file)
        return
    if not path.name:
        raise InputError(f"'{path}' is no name of a file")
    part = path.with_name(f"{path.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        with part.open("r+", newline="", encoding="utf-8") as file:
            yield RowWriter(file)
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            if not part.stat().st_size:  # nothing to go on from
                part.unlink()
