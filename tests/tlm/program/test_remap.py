"""Programs on the rows and columns that remain: times, tokens and results."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tlm.engines.test_levels_agree import pipelines, reductions, spaced
from tests.tlm.programs import TIMING, both_levels, program_of, run_mesh, send, tile
from tlm.engines.lt import run_lt
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Engine, Multicast, Operation, Program, Reduce, Send, Work
from tlm.program.functional import TileBlocks, run_functional
from tlm.program.remap import on_lines
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.summa import summa

Run = Callable[[Program, NocTiming], Outcome]
programs = st.one_of(pipelines(), spaced(), reductions())


def lines(draw: st.DrawFn, count: int) -> list[int]:
    """Where so many lines lie, with some out of use before and between them."""
    gaps = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=count, max_size=count))
    return [int(place) for place in np.cumsum(gaps) - 1]


def remapped(draw: st.DrawFn, program: Program) -> tuple[Program, list[int], list[int]]:
    rows, cols = lines(draw, program.rows), lines(draw, program.cols)
    other = on_lines(program, rows, cols)
    try:
        list(other.build())
    except InputError:
        assume(False)  # a segment that leaves out working tiles
    return other, rows, cols


@st.composite
def remaps(draw: st.DrawFn) -> tuple[Program, list[int], list[int]]:
    return remapped(draw, draw(programs))


def times(outcome: Outcome, rows: list[int], cols: list[int]) -> list[list[int]]:
    """All times of some tiles."""
    where = np.ix_(rows, cols)
    found = [*outcome.engine_end_cycle, outcome.last_arrival_cycle, outcome.matrix_busy_cycles]
    return [each[where].ravel().tolist() for each in found]


@settings(max_examples=60, deadline=None)
@given(remaps())
def test_levels_agree_beside_lines_out_of_use(remap: tuple[Program, list[int], list[int]]) -> None:
    program, rows, cols = remap
    lt, at = run_lt(program, TIMING), run_mesh(program, TIMING)
    assert times(lt, rows, cols) == times(at, rows, cols)


@settings(max_examples=80, deadline=None)
@given(programs)
@both_levels
def test_every_other_line_out_of_use_is_twice_as_long_a_hop(run: Run, program: Program) -> None:
    # So it is for what is one packet, and where reductions take no time to meet.
    def short(operation: Operation) -> Operation:
        return operation if isinstance(operation, Work) else replace(operation, flits=1)

    near = replace(TIMING, reduce_cycles=0)
    program = replace(program, build=lambda p=program: map(short, p.build()))
    rows, cols = ([2 * line for line in range(size)] for size in (program.rows, program.cols))
    far = replace(near, hop_cycles=2 * near.hop_cycles)
    apart = times(run(on_lines(program, rows, cols), near), rows, cols)
    everywhere = list(range(program.rows)), list(range(program.cols))
    assert apart == times(run_lt(program, far), *everywhere)


@both_levels
def test_a_line_out_of_use_is_a_hop_more(run: Run) -> None:
    to_all = Multicast(tile(0), "row", range(3), 4, slots=("room",), arrivals=("come",))
    take = Work(Engine.VECTOR, TileSet(range(1), range(3)), 0, takes=("come",), gives=("room",))
    sum_up = Reduce(tile(0), "row", range(3), 4, arrivals=("sum",))
    tokens = {"room": (1, 1), "come": (0, 1), "sum": (0, 1)}
    for operations, later in (
        ([send(1, 2, 4, arrivals=("come",))], 1),
        ([to_all], 1),
        ([to_all, take, to_all], 3),  # there, the credit's way back, and there again
        ([sum_up], 2),
    ):
        program = program_of(1, 3, operations, **tokens)
        gap = on_lines(program, [0], [0, 1, 3])
        apart = run(gap, TIMING).finish_cycle[:, [0, 1, 3]]
        assert apart.max() == run(program, TIMING).cycles + later


@pytest.mark.parametrize("depth", [1, 2])
@both_levels
def test_bystanders_hold_nobody_up(run: Run, depth: int) -> None:
    # A root that goes on as soon as its slots are free again, and knows of them.
    operations: list[Operation] = []
    for _ in range(6):
        operations += [
            Multicast(tile(0), "row", range(1, 3), 2, slots=("room",), arrivals=("come",)),
            Work(Engine.MATRIX, TileSet(range(1), range(1, 3)), 3, ("come",), ("room",)),
        ]
    program = program_of(1, 3, operations, room=(depth, depth), come=(0, depth))
    apart = run(on_lines(program, [0], [0, 2, 4]), TIMING)
    far = run_lt(program, replace(TIMING, hop_cycles=2))
    assert times(apart, [0], [0, 2, 4]) == times(far, [0], [0, 1, 2])


@both_levels
def test_bystanders_have_room_where_units_are_given_first(run: Run) -> None:
    # No unit is there from the start: the tiles say when they have room.
    targets = TileSet(range(1), range(1, 3))
    operations: list[Operation] = []
    for wait in (5, 40, 0):
        operations += [
            Work(Engine.VECTOR, targets, wait, gives=("room",)),
            Multicast(tile(0), "row", range(1, 3), 2, slots=("room",), arrivals=("come",)),
            Work(Engine.MATRIX, targets, 3, ("come",)),
        ]
    program = program_of(1, 3, operations, room=(0, 1), come=(0, 1))
    apart = run(on_lines(program, [0], [0, 2, 4]), TIMING)
    far = run_lt(program, replace(TIMING, hop_cycles=2))
    assert times(apart, [0], [0, 2, 4]) == times(far, [0], [0, 1, 2])


def test_blocks_are_those_of_the_whole_grid() -> None:
    rows, cols = [1, 2, 5, 6], [0, 3, 4, 6]
    where = np.ix_(rows, cols)
    for make in (mesh_gemm, summa):
        program = make(GemmPlan(4, 4, (2, 3, 2), 10, 4, 4))
        apart = on_lines(program, rows, cols)
        whole, parts = TileBlocks(program, 3), TileBlocks(apart, 4)
        for name, buffer in program.buffers.items():
            if buffer.within is None:
                parts[name][where] = whole[name]
        run_functional(program, whole, 5)
        run_functional(apart, parts, 6)
        for name in program.buffers:
            assert (parts[name][where] == whole[name]).all()


@pytest.mark.parametrize("operation", ["sum", "maximum"])
def test_bystanders_contribute_nothing_to_a_reduction(operation: str) -> None:
    reduce = Reduce(tile(1), "row", range(3), 1, operation, source="part", target="total")
    buffers = {"part": Buffer(1, 2, 32), "total": Buffer(1, 2, 32)}
    program = replace(program_of(1, 3, [reduce]), buffers=buffers)
    apart = on_lines(program, [0], [0, 2, 5])
    for seed in range(5):
        memory = TileBlocks(apart, seed)
        memory["part"][0, [0, 2, 5]] = [[[-7, 1]], [[-3, 2]], [[-5, 3]]]
        run_functional(apart, memory, seed)
        wanted = [[-15, 6]] if operation == "sum" else [[-3, 3]]
        assert memory["total"][0, 2].tolist() == wanted


@both_levels
def test_a_program_is_remapped_twice(run: Run) -> None:
    reduce = Reduce(tile(1), "row", range(3), 1, arrivals=("sum",), source="part", target="total")
    to_all = Multicast(tile(0), "row", range(3), 2, slots=("room",), arrivals=("come",))
    take = Work(Engine.VECTOR, TileSet(range(1), range(3)), 2, takes=("come",), gives=("room",))
    plain = program_of(1, 3, [to_all, take, reduce], sum=(0, 1), room=(1, 1), come=(0, 1))
    program = replace(plain, buffers={"part": Buffer(1, 2, 32), "total": Buffer(1, 2, 32)})
    once = on_lines(program, [0], [0, 2, 3])
    twice = on_lines(once, [0], [0, 2, 3, 6])
    found = next(each for each in twice.operations() if isinstance(each, Reduce))
    assert (found.segment, found.neutral) == (range(7), (1, 2, 4, 5))
    places = [0, 3, 6]
    at_once = on_lines(program, [0], places)
    assert times(run(twice, TIMING), [0], places) == times(run(at_once, TIMING), [0], places)
    for seed in range(5):
        memory = TileBlocks(twice, seed)
        memory["part"][0, places] = [[[-7, 1]], [[-3, 2]], [[-5, 3]]]
        run_functional(twice, memory, seed)
        assert memory["total"][0, 3].tolist() == [[-15, 6]]


def test_work_and_sends_keep_their_tiles() -> None:
    works = Work(Engine.VECTOR, TileSet(range(2), range(3)), np.array([[1, 2, 3], [4, 5, 6]]))
    sends = Send(TileSet(range(2), range(2)), np.array([1, 0]), np.array([2, 0]), 4)
    apart = on_lines(program_of(2, 3, [works, sends]), [0, 2], [0, 1, 4])
    assert (apart.rows, apart.cols) == (3, 5)
    found = np.zeros((3, 5), dtype=int)
    sent = {}
    for op in apart.operations():
        if isinstance(op, Work):
            found[np.ix_(op.tiles.rows, op.tiles.cols)] += op.cycles
        elif isinstance(op, Send):
            for i, row in enumerate(op.tiles.rows):
                for j, col in enumerate(op.tiles.cols):
                    sent[row, col] = (int(op.to_rows[i]), int(op.to_cols[j]))
    assert found.tolist() == [[1, 2, 0, 0, 3], [0] * 5, [4, 5, 0, 0, 6]]
    assert sent == {(0, 0): (2, 4), (0, 1): (2, 0), (2, 0): (0, 4), (2, 1): (0, 0)}


def test_a_grid_without_lines_out_of_use_is_the_program_itself() -> None:
    program = program_of(2, 3, [])
    assert on_lines(program, [0, 1], [0, 1, 2]) is program


def test_segments_that_leave_out_working_tiles() -> None:
    def program(places: list[int]) -> Program:
        multicast = Multicast(tile(0), "row", range(0, 5, 2), 4, label="B")
        return on_lines(program_of(1, 5, [multicast]), [0], places)

    even = next(iter(program([1, 2, 3, 4, 5]).operations()))
    assert isinstance(even, Multicast)
    assert even.segment == range(1, 6, 2)
    even = next(iter(program([0, 2, 3, 4, 6]).operations()))
    assert isinstance(even, Multicast)
    assert even.segment == range(0, 7, 3)
    with pytest.raises(InputError) as caught:
        list(program([0, 1, 2, 4, 5]).operations())
    assert str(caught.value) == (
        "operation 0 (Multicast 'B'): the segment [0, 2, 4] lies at [0, 2, 5] beside lines out of "
        "use; allowed: tiles side by side or evenly spaced"
    )


@pytest.mark.parametrize("rows", [[0], [0, 0], [1, 0], [-1, 0], [0, 1, 2]])
def test_lines_have_to_rise(rows: list[int]) -> None:
    with pytest.raises(InputError) as caught:
        on_lines(program_of(2, 2, []), rows, [0, 1])
    assert str(caught.value) == f"rows: found {rows}; allowed: 2 numbers that rise"
