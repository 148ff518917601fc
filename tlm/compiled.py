"""How the hot loops are compiled with Numba, and how what is stored of them is kept in step."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])
# The cores make no arrays. Counting references to those that they are given would take a third to
# two thirds of their time.
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def compiled(function: _Function) -> _Function:
    """Compile a function that makes no array; the machine code is stored on disk."""
    made: _Function = njit(**_OPTIONS)(function)
    return made


def inlined(function: _Function) -> _Function:
    """The same, as a part of every function that calls it."""
    made: _Function = njit(**_OPTIONS, inline="always")(function)
    return made


@compiled
def address(index: int) -> int:
    """The same number, unsigned: Numba then leaves out its test for indices from an array's end."""
    return np.uint32(index)  # type: ignore[return-value]  # an int to Numba


def forget_stale(entry: Callable[..., Any], modules: list[ModuleType]) -> None:
    """Drop stored machine code of ``entry`` and its callees that is older than their sources.

    Numba looks at a function's own file only, not at those of what it calls.

    Args:
        entry: A compiled function, not called yet.
        modules: The modules that it is made of, its own among them, in one folder.
    """
    sources = [Path(str(module.__file__)) for module in modules]
    newest = max(source.stat().st_mtime for source in sources)
    if not hasattr(entry, "stats"):  # $NUMBA_DISABLE_JIT: nothing is compiled
        return
    cache = Path(entry.stats.cache_path)
    for source in sources:
        for index in cache.glob(f"{source.stem}.*.nbi"):
            with suppress(FileNotFoundError):  # another process drops it too
                if index.stat().st_mtime < newest:
                    index.unlink()
