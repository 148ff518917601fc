"""What programs may say, and the example of docs/programs.md."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import (
    Engine,
    Multicast,
    Operation,
    Program,
    Send,
    Token,
    Work,
    destination,
    segment_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "programs.md"
ALL = TileSet(range(2), range(3))
ROW = TileSet(range(1), range(3))
COLUMN = TileSet(range(2), range(1))
TILE = TileSet.tile(0, 0)
STAY, ALONG = np.arange(1), np.array([1, 2, 0])


def operations_of(*operations: Operation) -> list[Operation]:
    tokens = {"here": Token(), "there": Token()}
    return list(Program(2, 3, tokens, lambda: operations).operations())


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            Work(Engine.MATRIX, ALL, 1, takes=("thre",), label="C"),
            "operation 1 (Work 'C'): unknown token 'thre'; known: here, there",
        ),
        (
            Send(ROW, STAY, ALONG, 1, slots=("slot",), label="A"),
            "operation 1 (Send 'A'): unknown token 'slot'; known: here, there",
        ),
        (
            Work(Engine.TRANSFER, ALL, 1),
            "operation 1 (Work ''): engine TRANSFER only moves data; use Send or Multicast",
        ),
        (
            Work(Engine.MATRIX, ALL, -1),
            "operation 1 (Work ''): cycles holds -1; allowed: 0 or more",
        ),
        (
            Work(Engine.MATRIX, ALL, np.ones((3, 2), dtype=np.int64)),
            "operation 1 (Work ''): cycles has shape (3, 2); the tile set is (2, 3)",
        ),
        (
            Work(Engine.MATRIX, TileSet(range(2), range(1, 4)), 1),
            "operation 1 (Work ''): tiles TileSet(rows=range(0, 2), cols=range(1, 4)) "
            "on a grid of 2 x 3",
        ),
        (
            Work(Engine.MATRIX, TileSet(range(0), range(3)), 1),
            "operation 1 (Work ''): tiles TileSet(rows=range(0, 0), cols=range(0, 3)) "
            "on a grid of 2 x 3",
        ),
        (
            Send(ROW, STAY, ALONG, 0),
            "operation 1 (Send ''): flits is 0; a transfer has at least 1",
        ),
        (
            Send(ROW, STAY, np.array([1, 2]), 1),
            "operation 1 (Send ''): to_cols has 2 entries for 3 cols",
        ),
        (
            Send(ROW, STAY, np.array([1, 2, 1]), 1),
            "operation 1 (Send ''): to_cols names a destination twice",
        ),
        (
            Send(ROW, np.array([2]), ALONG, 1),
            "operation 1 (Send ''): to_rows leaves the grid of 2 x 3 tiles",
        ),
        (
            Send(ROW, STAY, ALONG, 1, takes=("here",), slots=("here",)),
            "operation 1 (Send ''): token 'here' is among both takes and slots",
        ),
        (
            Multicast(TILE, "row", range(3), 1, gives=("here",), arrivals=("there", "here")),
            "operation 1 (Multicast ''): token 'here' is among both gives and arrivals",
        ),
        (
            Multicast(ROW, "row", range(3), 1),
            "operation 1 (Multicast ''): 3 roots share a row; allowed: 1",
        ),
        (
            Multicast(COLUMN, "column", range(2), 1),
            "operation 1 (Multicast ''): 2 roots share a column; allowed: 1",
        ),
        (
            Multicast(TILE, "row", range(1, 1), 1),
            "operation 1 (Multicast ''): the segment is empty",
        ),
        (
            Multicast(TILE, "row", range(2, -1, -1), 1),
            "operation 1 (Multicast ''): the segment has a step of -1; allowed: 1 or more",
        ),
        (
            Multicast(TILE, "column", range(3), 1),
            "operation 1 (Multicast ''): tiles TileSet(rows=range(0, 3), cols=range(0, 1)) "
            "on a grid of 2 x 3",
        ),
    ],
)
def test_an_operation_that_does_not_fit_is_named(operation: Operation, message: str) -> None:
    fine = Work(Engine.CONTROL, ALL, 0)
    with pytest.raises(InputError) as caught:
        operations_of(fine, operation)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("initial", "depth"), [(2, 1), (-1, 1), (0, 0)])
def test_a_token_holds_its_initial_units(initial: int, depth: int) -> None:
    with pytest.raises(InputError, match=f"token: initial {initial}, depth {depth}; allowed: a"):
        Token(initial, depth)


def test_a_program_can_be_run_again() -> None:
    program = Program(2, 3, {}, lambda: iter([Work(Engine.CONTROL, ALL, 1)]))
    assert len(list(program.operations())) == len(list(program.operations())) == 1


def test_who_sends_to_whom() -> None:
    strided = TileSet(range(0, 2), range(0, 3, 2))
    send = Send(strided, np.array([1, 0]), np.array([2, 1]), 1)
    assert [destination(send, 0, 0), destination(send, 1, 2)] == [(1, 2), (0, 1)]
    along_row = Multicast(COLUMN, "row", range(1, 3), 1)
    assert segment_of(along_row, 1, 0) == TileSet(range(1, 2), range(1, 3))
    along_column = Multicast(ROW, "column", range(2), 1)
    assert segment_of(along_column, 0, 2) == TileSet(range(2), range(2, 3))


def test_the_example_of_the_page_prints_what_the_page_says() -> None:
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], str(PAGE), "exec"), {})
    assert printed.getvalue() == found[2]
