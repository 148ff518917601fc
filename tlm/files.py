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
