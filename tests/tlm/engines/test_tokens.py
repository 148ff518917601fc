"""Tokens of both engines, as whole timelines, and what they refuse."""

import numpy as np
import pytest

from tests.tlm.programs import (
    TIMING,
    Along,
    Run,
    both_levels,
    program_of,
    run_mesh,
    send,
    tile,
    timeline,
)
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Send, Work
from tlm.program.steps import ProgramDeadlockError


@both_levels
def test_the_nth_take_gets_the_nth_unit_in_program_order(run: Run) -> None:
    program = program_of(
        1,
        1,
        [
            Work(Engine.MATRIX, tile(0), 100, gives=("unit",)),
            Work(Engine.VECTOR, tile(0), 10, gives=("unit",)),
            Work(Engine.CONTROL, tile(0), 1, takes=("unit",)),
            Work(Engine.VECTOR, tile(0), 1, takes=("unit",)),
        ],
        unit=(0, 2),
    )
    assert timeline(run, program) == [([100], []), ([10], []), ([101], []), ([11], [])]


@both_levels
def test_several_units_and_tokens_are_taken_together(run: Run) -> None:
    program = program_of(
        1,
        1,
        [
            Work(Engine.VECTOR, tile(0), 4, gives=("a", "a")),
            Work(Engine.MATRIX, tile(0), 9, gives=("b",)),
            Work(Engine.CONTROL, tile(0), 1, takes=("a", "b", "a")),
        ],
        a=(0, 2),
        b=(0, 1),
    )
    assert timeline(run, program) == [([4], []), ([9], []), ([10], [])]


@both_levels
def test_tokens_of_a_transfer(run: Run) -> None:
    # Taken where the block lies; given at the source when it is gone, there when it has come.
    program = program_of(
        1,
        3,
        [
            Work(Engine.MATRIX, tile(0), 7, gives=("block",)),
            send(0, 2, 4, takes=("block",), gives=("gone",), arrivals=("block",)),
            Work(Engine.VECTOR, tile(0), 1, takes=("gone",)),
            Work(Engine.VECTOR, tile(2), 1, takes=("block",)),
        ],
        block=(0, 1),
        gone=(0, 1),
    )
    assert timeline(run, program) == [([7], []), ([11], [14]), ([12], []), ([15], [])]


@both_levels
def test_a_ring_takes_before_it_gives(run: Run) -> None:
    # All tiles of a column pass on the one block that they hold, twice.
    around = Send(
        TileSet(range(3), range(1)),
        np.array([1, 2, 0]),
        np.array([0]),
        2,
        takes=("block",),
        arrivals=("block",),
    )
    program = program_of(3, 1, [around, around], block=(1, 1))
    assert timeline(run, program) == [([2, 2, 2], [4, 4, 5]), ([7, 6, 6], [9, 8, 9])]


def buffered(slots: int) -> Program:
    """Four blocks of 8 flits over two hops, worked on for 20 cycles each."""
    once: list[Operation] = [
        send(0, 2, 8, slots=("free",), arrivals=("block",)),
        Work(Engine.MATRIX, tile(2), 20, takes=("block",), gives=("free",)),
    ]
    return program_of(1, 3, once * 4, free=(slots, slots), block=(0, slots))


@both_levels
def test_one_slot_pays_for_the_way_of_its_credit(run: Run) -> None:
    # Free at 31, known two hops away at 35; the block then takes 11 cycles.
    assert timeline(run, buffered(1))[:6] == [
        ([8], [11]),
        ([31], []),
        ([43], [46]),
        ([66], []),
        ([78], [81]),
        ([101], []),
    ]


@both_levels
def test_two_slots_hide_it(run: Run) -> None:
    assert timeline(run, buffered(2)) == [
        ([8], [11]),
        ([31], []),
        ([16], [19]),
        ([51], []),
        ([43], [46]),
        ([71], []),
        ([63], [66]),
        ([91], []),
    ]


@both_levels
def test_only_initial_slots_are_known_without_a_credit(run: Run) -> None:
    program = program_of(
        1,
        4,
        [
            send(0, 3, 1, slots=("initial",)),
            Work(Engine.CONTROL, tile(2), 0, gives=("given",)),
            send(1, 2, 1, slots=("given",)),
        ],
        initial=(1, 1),
        given=(0, 1),
    )
    assert timeline(run, program) == [([1], [5]), ([0], []), ([4], [6])]


@both_levels
@pytest.mark.parametrize("along", ["row", "column"])
def test_a_multicast_waits_for_a_slot_of_every_destination(run: Run, along: Along) -> None:
    # Known at the root at 10 + 1 + 1 + 1 and at 9 + 1 + 3 + 1.
    shape, receivers = (1, 4), TileSet(range(1), range(1, 4))
    cycles = np.array([[10, 0, 9]])
    if along == "column":
        shape, receivers, cycles = (4, 1), TileSet(range(1, 4), range(1)), cycles.T
    program = program_of(
        *shape,
        [
            Work(Engine.MATRIX, receivers, cycles, gives=("free",)),
            Multicast(tile(0), along, range(1, 4), 2, slots=("free",)),
        ],
        free=(0, 1),
    )
    assert timeline(run, program)[1] == ([16], [18, 19, 20])


@both_levels
def test_a_credit_travels_along_rows_and_columns(run: Run) -> None:
    # Three hops from the first column, one from the second.
    there = np.array([0, 3]), np.array([2, 1])
    far = Send(TileSet(range(1, 3), range(2)), *there, 2, slots=("free",))
    receivers = TileSet(range(0, 4, 3), range(1, 3))
    program = program_of(
        4, 3, [Work(Engine.MATRIX, receivers, 10, gives=("free",)), far], free=(0, 1)
    )
    assert timeline(run, program)[1] == ([17, 15, 17, 15], [21, 17, 21, 17])


# What is refused


def faulty(*operations: Operation) -> Program:
    return program_of(1, 2, operations, unit=(0, 1))


GIVE = Work(Engine.VECTOR, tile(0), 1, gives=("unit",), label="give")
TAKE = Work(Engine.MATRIX, tile(0), 1, takes=("unit",), label="take")
GIVEN_TOO_OFTEN = "operation 1 (Work 'give') gives token 'unit' beyond its depth of 1"
TAKEN_TOO_SOON = "takes token 'unit', which no earlier operation has given there"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (faulty(GIVE, GIVE), GIVEN_TOO_OFTEN),
        (faulty(TAKE), f"operation 0 (Work 'take') {TAKEN_TOO_SOON}"),
        (faulty(GIVE, TAKE, TAKE), f"operation 2 (Work 'take') {TAKEN_TOO_SOON}"),
        (faulty(GIVE, send(0, 1, 1, slots=("unit",))), f"operation 1 (Send '') {TAKEN_TOO_SOON}"),
        (
            faulty(GIVE, Multicast(tile(1), "row", range(2), 1, slots=("unit",))),
            f"operation 1 (Multicast '') {TAKEN_TOO_SOON}",
        ),
        (
            faulty(send(0, 1, 1, arrivals=("unit",)), send(0, 1, 1, arrivals=("unit",))),
            "operation 1 (Send '') gives token 'unit' beyond its depth of 1",
        ),
    ],
)
def test_lt_refuses_tokens_that_do_not_add_up(program: Program, message: str) -> None:
    with pytest.raises(InputError) as caught:
        run_lt(program, TIMING)
    assert str(caught.value) == message


@pytest.mark.parametrize("depth", [1, 2, 3])
@both_levels
def test_a_token_holds_as_many_units_as_it_is_deep(run: Run, depth: int) -> None:
    tiles = TileSet(range(1), range(0, 4, 2))
    give = Work(Engine.VECTOR, tiles, 5, gives=("unit",))
    take = Work(Engine.MATRIX, tiles, 1, takes=("unit",))
    operations = [*[give] * depth, *[take] * depth]
    ends = run(program_of(1, 3, operations, unit=(0, depth)), TIMING).engine_end_cycle
    assert ends[Engine.MATRIX].tolist() == [[5 * depth + 1, 0, 5 * depth + 1]]
    with pytest.raises(InputError, match=f"beyond its depth of {depth}"):
        run_lt(program_of(1, 3, [give, *operations], unit=(0, depth)), TIMING)


def test_at_says_which_operation_waits_for_ever() -> None:
    program = program_of(1, 2, [GIVE, TAKE, TAKE, send(1, 0, 1, takes=("unit",))], unit=(0, 1))
    with pytest.raises(ProgramDeadlockError) as caught:
        run_mesh(program, TIMING)
    assert str(caught.value) == (
        "operation 2 waits for ever at the MATRIX engine of tile (0, 0); "
        "engines that wait for ever: 2"
    )


def test_lt_refuses_times_beyond_its_range() -> None:
    long = [Work(Engine.MATRIX, tile(0), 2**29)] * 2
    with pytest.raises(InputError, match="operation 1 ends after 1073741824 cycles"):
        run_lt(program_of(1, 1, long), TIMING)
