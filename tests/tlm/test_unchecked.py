"""Arrays whose indices are not looked at."""

from typing import Annotated, Any

import numpy as np
import pytest
from numba import njit, types

from tlm.compiled import compiled, prepare
from tlm.unchecked import Unchecked, fetch

_Row = Annotated[Any, Unchecked()]
_Table = Annotated[Any, Unchecked(columns=3)]


@compiled
def _sum_ahead(numbers: _Row, count: int) -> int:
    total = 0
    for place in range(count):
        fetch(numbers, place + 16)
        total += numbers[place]
    return total


@compiled
def _move(row: _Row, table: _Table) -> int:
    table[1, 2] = row[0] + 1
    row[0] += table[1, 0]
    return _sum_ahead(row, 2)


@compiled
def _enter(
    row: Annotated[Any, types.int32[::1]], table: Annotated[Any, types.int32[:, ::1]]
) -> int:
    return _move(row, table)


def test_an_item_of_a_row_and_of_a_table() -> None:
    prepare(_move)
    row, table = np.array([4, 7], dtype=np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)
    assert _move(row, table) == 4 + 3 + 7
    assert row.tolist() == [7, 7]
    assert table.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_checked_array_may_be_handed_on() -> None:
    prepare(_enter)
    row, table = np.array([4, 7], dtype=np.int32), np.zeros((2, 3), dtype=np.int32)
    assert _enter(row, table) == 4 + 7
    assert table[1, 2] == 5


@pytest.mark.parametrize(
    "row", [np.zeros(4), np.zeros(4, dtype=np.int32)[::2], np.zeros((2, 2), dtype=np.int32)]
)
def test_only_an_array_of_the_kind_is_taken(row: Any) -> None:
    prepare(_sum_ahead)
    with pytest.raises(TypeError):
        _sum_ahead(row, 2)


def test_fetch_asks_for_a_line_and_changes_nothing() -> None:
    prepare(_sum_ahead)
    numbers = np.arange(100, dtype=np.int32)
    assert _sum_ahead(numbers, 100) == numbers.sum()  # the last ones fetch from behind the end
    # What comes from the compile cache is machine code alone.
    anew = njit(_sum_ahead.py_func)
    anew.compile(_sum_ahead.signatures[0])
    (code,) = anew.inspect_llvm().values()
    assert "call void @llvm.prefetch" in code
