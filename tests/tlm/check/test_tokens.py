"""Planted faults are found and named; programs without any pass."""

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of, run_mesh, send, tile
from tlm.check import check_program
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Send, Work
from tlm.program.steps import ProgramDeadlockError


def findings(program: Program) -> list[tuple[str, int | None, str]]:
    return [
        (found.rule, found.operation, found.message) for found in check_program(program).findings
    ]


def work(col: int, **tokens: tuple[str, ...]) -> Work:
    return Work(Engine.MATRIX, tile(col), 5, **tokens)


def test_a_unit_that_no_operation_gives() -> None:
    operations = [send(0, 1, 4, arrivals=("a",)), work(1, takes=("a", "b"))]
    program = program_of(1, 2, operations, a=(0, 1), b=(0, 1))
    assert findings(program) == [
        ("token", 1, "tile (0, 1): takes a unit of 'b' that no operation gives")
    ]
    with pytest.raises(ProgramDeadlockError):
        run_mesh(program, TIMING)


def test_a_planted_cycle_of_two_tiles_that_wait_for_each_other() -> None:
    operations = [
        send(0, 1, 4, takes=("ready",), arrivals=("x",)),
        send(1, 0, 4, takes=("x",), arrivals=("ready",)),
    ]
    program = program_of(1, 2, operations, ready=(0, 1), x=(0, 1))
    assert findings(program) == [
        (
            "cycle",
            0,
            "tile (0, 0): takes a unit of 'ready' that operation 1 gives, which comes later; "
            "operations may wait for each other: 0 for 1 for 0",
        )
    ]
    with pytest.raises(ProgramDeadlockError):
        run_mesh(program, TIMING)


def test_a_cycle_through_an_engine_that_is_held() -> None:
    """The multicast holds the interface that the block it waits for would have to leave by."""
    operations = [
        Multicast(tile(0), "row", range(1, 3), 4, slots=("room",), arrivals=("y",)),
        send(0, 1, 4, arrivals=("x",)),
        work(1, takes=("x",), gives=("room",)),
    ]
    program = program_of(1, 3, operations, room=(0, 1), x=(0, 1), y=(0, 1))
    (found,) = check_program(program).findings
    assert (found.rule, found.operation, found.tile, found.token) == ("cycle", 0, (0, 1), "room")
    assert found.message.endswith("operations may wait for each other: 0 for 2 for 1 for 0")
    with pytest.raises(ProgramDeadlockError):
        run_mesh(program, TIMING)


def test_a_unit_that_comes_later_without_a_cycle() -> None:
    operations = [work(1, takes=("a",)), send(0, 1, 4, arrivals=("a",))]
    program = program_of(1, 2, operations, a=(0, 1))
    assert findings(program) == [
        (
            "token",
            0,
            "tile (0, 1): takes a unit of 'a' that operation 1 gives, "
            "which comes later in program order",
        )
    ]
    run_mesh(program, TIMING)


def test_a_unit_beyond_the_depth() -> None:
    operations = [send(0, 1, 4, arrivals=("a",)) for _ in range(3)]
    report = check_program(program_of(1, 2, operations, a=(0, 1)))
    (found,) = report.findings
    assert found.message == "tile (0, 1): gives a unit of 'a' beyond its depth of 1"
    assert (found.operation, report.more, report.holds) == (1, 1, False)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_as_many_units_as_the_depth_pass(depth: int) -> None:
    operations: list[Operation] = [send(0, 1, 4, arrivals=("a",)) for _ in range(depth)]
    operations += [work(1, takes=("a",)) for _ in range(depth)]
    operations += operations
    assert check_program(program_of(1, 2, operations, a=(0, depth))).holds


def test_a_fault_at_one_tile_of_many() -> None:
    rows, cols = 5, 6
    all_but_one = [TileSet(range(rows - 1), range(cols)), TileSet(range(rows - 1, rows), range(5))]
    operations: list[Operation] = [
        Work(Engine.VECTOR, part, 1, gives=("a",)) for part in all_but_one
    ]
    operations.append(Work(Engine.MATRIX, TileSet(range(rows), range(cols)), 1, takes=("a",)))
    (found,) = check_program(program_of(rows, cols, operations, a=(0, 1))).findings
    assert (found.operation, found.tile) == (2, (4, 5))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_unit_beyond_the_depth_at_one_tile_of_many(depth: int) -> None:
    """All tiles give as many as fit, then one tile one more."""
    everywhere = TileSet(range(5), range(6))
    operations: list[Operation] = [Work(Engine.VECTOR, everywhere, 1, gives=("a",))] * depth
    operations.append(Work(Engine.MATRIX, TileSet.tile(3, 4), 1, takes=("a",)))
    operations.append(Work(Engine.VECTOR, TileSet(range(3, 4), range(4, 6)), 1, gives=("a",)))
    (found,) = check_program(program_of(5, 6, operations, a=(0, depth))).findings
    assert found.message == f"tile (3, 5): gives a unit of 'a' beyond its depth of {depth}"
    assert found.operation == depth + 1


def test_strided_and_permuted_tiles() -> None:
    """Each second column sends one to the right; those take what came."""
    tiles = TileSet(range(3), range(0, 6, 2))
    operations: list[Operation] = [
        Send(tiles, np.array([2, 0, 1]), np.array([5, 1, 3]), 4, arrivals=("a",)),
        Work(Engine.MATRIX, TileSet(range(3), range(1, 6, 2)), 1, takes=("a",)),
    ]
    assert check_program(program_of(3, 6, operations, a=(0, 1))).holds
