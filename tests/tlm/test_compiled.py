"""Compiled functions: each for the types it is annotated with, and anew when a source is newer."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numba import types

from tlm.compiled import compiled, internal, prepare

_SOURCES = {
    "plain_columns": """
from enum import IntEnum

class Column(IntEnum):
    FACTOR = 2
""",
    "plain_more": """
from tlm.compiled import law

@law
def more_of(index, more):
    return index + more
""",
    "plain_law": """
from plain_more import more_of
from tlm.compiled import law

@law
def law_of(index, more):
    return 1 * more_of(index, more)
""",
    "plain_part": """
from plain_columns import Column
from tlm.compiled import Address, compiled

@compiled
def twice(index: Address) -> int:
    return Column.FACTOR * index
""",
    "plain_whole": """
import plain_part as part
from plain_law import law_of
from tlm.compiled import compiled, internal, prepare

@compiled
def run(index: int, more: bool) -> int:
    return law_of(part.twice(index), more)
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Modules that call each other, on the path."""
    for name, text in _SOURCES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in _SOURCES:
        sys.modules.pop(name, None)


def _prepared() -> Any:
    """The modules loaded anew, as by another process."""
    _forget()
    whole = import_module("plain_whole")
    whole.prepare(whole.run)
    return whole


def test_a_function_is_compiled_once_for_the_types_of_its_annotations(folder: Path) -> None:
    whole = _prepared()
    assert whole.run(4, True) == 9
    assert [str(types) for types in whole.run.signatures] == ["(int64, bool)"]
    assert [str(types) for types in whole.part.twice.signatures] == ["(uint32,)"]


def test_threads_that_prepare_at_once_do_not_meet(folder: Path) -> None:
    whole = import_module("plain_whole")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(whole.prepare, [whole.run, whole.run]))
    assert whole.run(4, True) == 9


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("plain_part", "Column.FACTOR * index", "3 * index"),
        ("plain_columns", "FACTOR = 2", "FACTOR = 3"),
        ("plain_law", "1 * more_of", "4 + more_of"),
        ("plain_more", "index + more", "index + 5 * more"),
    ],
)
def test_a_change_of_what_is_called_or_named_is_seen(
    folder: Path, module: str, before: str, after: str
) -> None:
    """Numba alone looks at the file of the caller only."""
    assert _prepared().run(4, True) == 9
    source = folder / f"{module}.py"
    source.write_text(source.read_text().replace(before, after))
    later = source.stat().st_mtime + 10
    os.utime(source, (later, later))
    assert _prepared().run(4, True) == 13


class _Pair(NamedTuple):
    numbers: Annotated[Any, types.int32[::1]]
    more: int


@compiled
def _last_of(pair: _Pair) -> int:
    return int(pair.numbers[-1]) + pair.more


def test_named_tuples_are_of_the_types_of_their_fields() -> None:
    prepare(_last_of)
    assert _last_of(_Pair(np.arange(5, dtype=np.int32), 3)) == 7


@internal
def _half(index: int) -> int:
    return index // 2


@compiled
def _quarter(index: int) -> int:
    return _half(_half(index))


def test_internal_functions_are_called_by_compiled_ones_alone() -> None:
    """They have nothing that Python could call: the process would break down."""
    prepare(_quarter)
    assert _quarter(9) == 2
    with pytest.raises(TypeError, match="_half: called by Python"):
        _half(9)
