"""What programs may say, and the examples of docs/programs.md."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import (
    Buffer,
    Engine,
    Gemm,
    Multicast,
    Operation,
    Program,
    Reduce,
    Roots,
    Send,
    Task,
    Token,
    Vector,
    Work,
)

PAGE = Path(__file__).parents[3] / "docs" / "programs.md"
ALL = TileSet(range(2), range(3))
ROW = TileSet(range(1), range(3))
COLUMN = TileSet(range(2), range(1))
TILE = TileSet.tile(0, 0)
STAY, ALONG = np.arange(1), np.array([1, 2, 0])


def operations_of(*operations: Operation) -> list[Operation]:
    tokens = {"here": Token(), "there": Token()}
    return list(Program(2, 3, tokens, lambda: operations, BUFFERS).operations())


BUFFERS = {
    "a": Buffer(4, 6, 8),
    "b": Buffer(6, 2, 8),
    "c": Buffer(4, 2, 32),
    "column": Buffer(4, 1, 32),
    "half": Buffer(2, 2, 32, within="c", offset=4),
}


def matrix(task: Task) -> Work:
    return Work(Engine.MATRIX, ALL, 1, task=task)


def vector(task: Task) -> Work:
    return Work(Engine.VECTOR, ALL, 1, task=task)


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
            "operation 1 (Work ''): engine TRANSFER only moves data; use a transfer",
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
            Work(Engine.MATRIX, ALL, 2.5),
            "operation 1 (Work ''): cycles is of type float64; allowed: whole numbers",
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
            Send(ROW, STAY, ALONG, 2.5),
            "operation 1 (Send ''): flits is 2.5; allowed: whole numbers from 1",
        ),
        (
            Send(ROW, STAY, np.array([0.0, 1.0, 2.0]), 1),
            "operation 1 (Send ''): to_cols is of type float64 and shape (3,); "
            "allowed: whole numbers in a row",
        ),
        (
            Send(ROW, np.array([[0]]), ALONG, 1),
            "operation 1 (Send ''): to_rows is of type int64 and shape (1, 1); "
            "allowed: whole numbers in a row",
        ),
        (
            Reduce(Roots(range(1), np.array([0.5])), "row", range(3), 1),
            "operation 1 (Reduce ''): places is of type float64 and shape (1,); "
            "allowed: whole numbers in a row",
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
        (
            Reduce(COLUMN, "row", range(1, 4), 1),
            "operation 1 (Reduce ''): tiles TileSet(rows=range(0, 2), cols=range(1, 4)) "
            "on a grid of 2 x 3",
        ),
        (
            Reduce(Roots(range(2), np.array([2])), "row", range(3), 1),
            "operation 1 (Reduce ''): roots has 1 places for 2 rows",
        ),
        (
            Multicast(Roots(range(2), np.array([2, 3])), "row", range(3), 1),
            "operation 1 (Multicast ''): roots leave the grid of 2 x 3 tiles",
        ),
        (
            Send(ROW, STAY, ALONG, 1, source="a"),
            "operation 1 (Send ''): source 'a' and target 'None'; allowed: both or neither",
        ),
        (
            Send(ROW, STAY, ALONG, 1, source="a", target="d"),
            "operation 1 (Send ''): unknown buffer 'd'; known: a, b, c, column, half",
        ),
        (
            Reduce(COLUMN, "row", range(3), 1, source="c", target="b"),
            "operation 1 (Reduce ''): source 'c' is 4 x 2 of 32 bits, target 'b' 6 x 2 of 8",
        ),
        (
            matrix(Gemm("a", "b", "c", turned=True)),
            "operation 1 (Work ''): a product of 4 x 6 and 2 x 6 into 4 x 2",
        ),
        (
            matrix(Gemm("b", "a", "c")),
            "operation 1 (Work ''): a product of 6 x 2 and 4 x 6 into 4 x 2",
        ),
        (
            matrix(Vector("exp", "c", "c")),
            "operation 1 (Work ''): a task of engine VECTOR on engine MATRIX",
        ),
        (
            vector(Vector("add", "c", "c")),
            "operation 1 (Work ''): 'add' has no second operand",
        ),
        (
            vector(Vector("exp", "c", "c", b="c")),
            "operation 1 (Work ''): 'exp' has a second operand",
        ),
        (
            vector(Vector("row-sum", "c", "c")),
            "operation 1 (Work ''): 'row-sum' of 4 x 2 into 4 x 2; allowed: 4 x 1",
        ),
        (
            vector(Vector("maximum", "column", "column", b="c")),
            "operation 1 (Work ''): 'maximum' of 4 x 1 and 4 x 2",
        ),
        (
            vector(Vector("scale", "c", "c", multiplier=2**15)),
            "operation 1 (Work ''): multiplier 32768, shift 0; allowed: -32768 to 32767, 0 to 63",
        ),
    ],
)
def test_an_operation_that_does_not_fit_is_named(operation: Operation, message: str) -> None:
    fine = Work(Engine.CONTROL, ALL, 0)
    with pytest.raises(InputError) as caught:
        operations_of(fine, operation)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Buffer(2, 2, 32, within="half"), "within 'half', which is no buffer of its own"),
        (Buffer(2, 2, 32, within="d"), "within 'd', which is no buffer of its own"),
        (
            Buffer(2, 2, 32, within="c", offset=5),
            "9 elements of 32 bits up to its end; allowed within 'c': 8 of 32",
        ),
    ],
)
def test_a_part_lies_within_a_buffer(part: Buffer, message: str) -> None:
    program = Program(1, 1, {}, list, {**BUFFERS, "part": part})
    with pytest.raises(InputError) as caught:
        list(program.operations())
    assert str(caught.value) == f"buffer 'part': {message}"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"rows": 0}, "buffer of 0 x 1 elements of 8 bits; allowed: 1 or more of each"),
        ({"offset": 1}, "buffer: offset 1; allowed: 0 or more, within another buffer"),
    ],
)
def test_sizes_of_buffers(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Buffer(**{"rows": 1, "columns": 1, "bits": 8, **sizes})


def test_memory_of_a_tile() -> None:
    # Packed: 24 + 12 + 32 + 16 bytes; a part takes nothing.
    assert Program(1, 1, {}, list, BUFFERS).tile_bytes == 84


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
    assert [send.destination(0, 0), send.destination(1, 2)] == [(1, 2), (0, 1)]
    along_row = Multicast(COLUMN, "row", range(1, 3), 1)
    assert along_row.members((1, 0)) == TileSet(range(1, 2), range(1, 3))
    along_column = Multicast(ROW, "column", range(2), 1)
    assert along_column.members((0, 2)) == TileSet(range(2), range(2, 3))
    assert along_row.root_tiles == [(0, 0), (1, 0)]
    assert along_column.root_tiles == [(0, 0), (0, 1), (0, 2)]
    diagonal = Roots(range(1, 3), np.array([0, 1]))
    assert Reduce(diagonal, "row", range(3), 1).root_tiles == [(1, 0), (2, 1)]
    assert Reduce(diagonal, "column", range(3), 1).root_tiles == [(0, 1), (1, 2)]


def test_the_examples_of_the_page_print_what_the_page_says() -> None:
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 2
    for code, shown in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), {})
        assert printed.getvalue() == shown


@pytest.mark.parametrize(("count", "built"), [(10_000, 1), (12_000, 3)])
def test_a_short_program_is_built_once(count: int, built: int) -> None:
    asked: list[None] = []

    def build() -> list[Operation]:
        asked.append(None)
        return [Work(Engine.VECTOR, TILE, 1)] * count

    program = Program(2, 3, {}, build)
    assert all(len(list(each())) == count for each in (program.operations, program.built))
    assert len(list(program.operations())) == count
    assert len(asked) == built
