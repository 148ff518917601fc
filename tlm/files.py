"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tlm.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of ``path`` at the end.

    Folders that are missing are made.

    Raises:
        InputError: naming the path, if it cannot be written.
    """
    if not path.name:
        raise InputError(f"'{path}' is no name of a file")
    scratch = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        scratch.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def names_file(asked: str) -> bool:
    """Whether an option that takes a name or a file was given a file."""
    return asked.endswith((".toml", ".json")) or os.sep in asked


def read_text(path: Path, told: str) -> str:
    """The text of a file.

    Raises:
        InputError: beginning with ``told``, if it cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{told}: cannot be read: {reason}") from error
