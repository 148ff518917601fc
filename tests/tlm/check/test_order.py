"""The ordering rule of reductions: sound against the mesh, and able to let good programs pass."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tlm.programs import TIMING, program_of, send, tile
from tlm.check import check_program
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets, TileSet
from tlm.interconnect.packets import ReductionGoal as Goal
from tlm.program import Along, Engine, Multicast, Operation, Program, Reduce, Work

SIZE = 7
Line = tuple[tuple[int, int, int], int]


def reduce(segment: range, root: int, along: Along = "row", **tokens: tuple[str, ...]) -> Reduce:
    roots = TileSet.tile(0, root) if along == "row" else TileSet.tile(root, 0)
    return Reduce(roots, along, segment, 4, **tokens)


def program(reductions: list[tuple[range, int]], along: Along = "row") -> Program:
    rows, cols = (1, SIZE) if along == "row" else (SIZE, 1)
    return program_of(rows, cols, [reduce(*each, along) for each in reductions])


def hangs(reductions: list[tuple[range, int]], delays: np.ndarray) -> bool:
    """On a mesh whose tiles issue their operands in program order, each when it likes."""
    turns = [
        (int(delays[tile]) + 5 * number, tile, Goal(TileSet(range(1), segment), root), 4)
        for number, (segment, root) in enumerate(reductions)
        for tile in segment
    ]
    packets = Packets.of(sorted(turns, key=lambda turn: turn[0]))
    try:
        HandshakeMesh(1, SIZE, TIMING, reductions=True).simulate(packets)
    except DeadlockError:
        return True
    return False


@st.composite
def reductions(draw: st.DrawFn) -> tuple[range, int]:
    first, step = draw(st.integers(0, SIZE - 2)), draw(st.integers(1, 3))
    last = draw(st.integers(first + 1, SIZE - 1))
    return range(first, last + 1, step), draw(st.integers(0, SIZE - 1))


#: Tile 1 sends 0's second operand on before its own first one.
REVERSED = [(range(1, 4), 3), (range(0, 4, 3), 3)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(reductions(), min_size=2, max_size=4),
    st.lists(st.integers(0, 60), min_size=SIZE, max_size=SIZE),
)
@example(REVERSED, [0, 60, 60, 60, 0, 0, 0])
def test_what_passes_never_hangs(chosen: list[tuple[range, int]], delays: list[int]) -> None:
    if check_program(program(chosen)).holds:
        assert not hangs(chosen, np.array(delays))


def test_a_planted_deadlock_is_found_and_hangs() -> None:
    assert hangs(REVERSED, np.array([0, 60, 60, 60, 0, 0, 0]))
    (found,) = check_program(program(REVERSED)).findings
    assert (found.rule, found.operation, found.tile) == ("order", 1, (0, 0))
    assert found.message == (
        "operands may block each other for ever: tile (0, 0) begins while the reduction of "
        "operation 0 may be in flight, and on the link from tile (0, 1) to (0, 2) nothing keeps "
        "their order; reductions in flight together need segments that keep it, such as equal "
        "ones, or tokens between them"
    )


@pytest.mark.parametrize("along", ["row", "column"])
def test_the_rule_along_rows_and_columns(along: Along) -> None:
    assert not check_program(program(REVERSED, along)).holds
    mirrored = [(range(3, 6), 3), (range(3, 7, 3), 3)]
    assert not check_program(program(mirrored, along)).holds
    assert check_program(program([(range(3), 0), (range(3), 2), (range(3), 6)], along)).holds
    assert check_program(program([(range(3), 2), (range(3, 7), 6)], along)).holds
    assert check_program(program([(range(4), 3), (range(1, 4), 3)], along)).holds


def test_tokens_between_reductions_keep_them_apart() -> None:
    (first, root), (second, _) = REVERSED
    tell = Multicast(tile(root), "row", range(4), 4, takes=("sum",), arrivals=("go",))
    apart: list[Operation] = [
        reduce(first, root, arrivals=("sum",)),
        tell,
        reduce(second, root, takes=("go",)),
    ]
    tokens = {"sum": (0, 1), "go": (0, 1)}
    assert check_program(program_of(1, SIZE, apart, **tokens)).holds
    # Knowledge of another moment is not enough: here the multicast does not wait for the sum.
    early = Multicast(tile(root), "row", range(4), 4, arrivals=("go",))
    assert not check_program(program_of(1, SIZE, [apart[0], early, apart[2]], **tokens)).holds


def test_what_is_known_of_one_row_says_nothing_of_another() -> None:
    segment, strided = range(1, 4), range(0, 4, 3)
    rows = TileSet(range(2), range(3, 4))
    operations: list[Operation] = [
        Reduce(rows, "row", segment, 4, arrivals=("sum",)),
        # Row 0 knows of its own sum; tells all of row 1.
        Work(Engine.VECTOR, tile(3), 1, takes=("sum",), gives=("told",)),
        Multicast(tile(3), "column", range(1, 2), 4, takes=("told",), arrivals=("told",)),
        Multicast(TileSet.tile(1, 3), "row", range(4), 4, takes=("told",), arrivals=("go",)),
        Reduce(TileSet.tile(1, 3), "row", strided, 4, takes=("go",)),
    ]
    tokens = {"sum": (0, 1), "told": (0, 1), "go": (0, 1)}
    (found,) = check_program(program_of(2, SIZE, operations, **tokens)).findings
    assert (found.rule, found.operation, found.tile) == ("order", 4, (1, 0))


def test_messages_do_not_stand_in_the_way() -> None:
    assert check_program(program_of(1, SIZE, [reduce(range(4), 3), send(0, 3, 8)])).holds
