"""What was measured of the Verilog, as it is kept: a JSON file, and a block of a document."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from tlm.calibrated import REPOSITORY, file_hash
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


def changed_sources(sources: Mapping[str, str]) -> list[str]:
    """Files, given with the hashes of their content, that are no longer what was measured."""
    return [name for name, old in sources.items() if file_hash(REPOSITORY / name) != old]


def with_block(document: Path, name: str, block: str) -> str:
    """The text of a document with what stands between its marks of a name replaced.

    Raises:
        InputError: if it does not have these marks.
    """
    text = document.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    if not re.search(pattern, text, re.DOTALL):
        raise InputError(f"no '{begin.strip()}' with '{end}' after it in {document}")
    return re.sub(pattern, lambda _: begin + block + end, text, count=1, flags=re.DOTALL)


def store(texts: Mapping[Path, str]) -> None:
    """Write files, each whole."""
    for path, text in texts.items():
        with whole_file(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
