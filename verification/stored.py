"""What was measured of the Verilog, as it is kept: a JSON file, and a block of a document."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from calibration.tables import marked
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.tables import Table


class StoredRecord(Table):
    """What such a file holds, or a part of it."""


_Record = TypeVar("_Record", bound=StoredRecord)


def load(record: type[_Record], path: Path, target: str) -> _Record:
    """A stored record.

    Args:
        record: Its type.
        path: Its file.
        target: What of ``make`` writes it.

    Raises:
        InputError: if it is missing or cannot be read.
    """
    try:
        return record.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise InputError(f"{path}: {error}; run 'make {target}'") from error


def with_block(document: Path, name: str, block: str) -> str:
    """The text of a document with what stands between its marks of a name replaced.

    Raises:
        InputError: if it does not have these marks.
    """
    before, _, after = marked(document, name)
    return before + block + after


def store(texts: Mapping[Path, str]) -> None:
    """Write files, each whole."""
    for path, text in texts.items():
        with whole_file(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
