"""Programs on real blocks: arithmetic, what moves where, and what tokens have to prevent."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Send, Token, Work
from tlm.program.arithmetic import exp2, saturate, vector, wrap
from tlm.program.data import Buffer, Gemm, Vector
from tlm.program.functional import TileBlocks, run_functional
from tlm.program.steps import ProgramDeadlockError

ROW = TileSet(range(1), range(3))
FIRST = TileSet.tile(0, 0)
BLOCK = Buffer(2, 2, 8)


def program_of(*operations: Operation, wide: bool = False, **tokens: tuple[int, int]) -> Program:
    """On a row of three tiles, with two buffers."""
    block = replace(BLOCK, bits=32) if wide else BLOCK
    named = {name: Token(*pair) for name, pair in tokens.items()}
    return Program(1, 3, named, lambda: operations, {"x": block, "y": block})


def filled(program: Program, seed: int = 0) -> TileBlocks:
    """Tile c holds c + 1 in x."""
    memory = TileBlocks(program, seed)
    memory["x"][:] = np.arange(1, 4)[None, :, None, None]
    return memory


def after(program: Program, seed: int = 0) -> TileBlocks:
    memory = filled(program, seed)
    run_functional(program, memory, seed)
    return memory


# Arithmetic


@given(st.integers(-(2**40), 2**40), st.sampled_from([8, 16, 32]))
def test_wrapped_and_saturated_values_fit(value: int, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    one = np.array([value])
    assert low <= wrap(one, bits)[0] <= high
    assert (value - wrap(one, bits)[0]) % 2**bits == 0
    assert saturate(one, bits)[0] == min(max(value, low), high)


@given(st.integers(-8000, 100))
def test_exp_is_the_power_of_two_cut_off(value: int) -> None:
    exact = 2.0**16 * 2.0 ** (min(value, 0) / 256)
    # The table is rounded to half a unit, doubled and halved again before it is cut off.
    assert exact - 1 - 1e-9 < exp2(np.array([value]))[0] + 0 <= exact + 0.5


def test_passes_of_the_vector_unit() -> None:
    a = np.array([[7, -7], [100, -128]])
    column = np.array([[10], [-20]])
    assert vector("add", a, column, 32).tolist() == [[17, 3], [80, -148]]
    assert vector("maximum", a, column, 32).tolist() == [[10, 10], [100, -20]]
    assert vector("scale", a, None, 32, multiplier=3, shift=1).tolist() == [[10, -11], [150, -192]]
    assert vector("quantize", a, None, 8, multiplier=3, shift=1).tolist() == [
        [10, -11],
        [127, -128],
    ]
    assert vector("multiply", a, column, 32, shift=2).tolist() == [[17, -18], [-500, 640]]
    assert vector("row-sum", a, None, 32).tolist() == [[0], [-28]]
    assert vector("row-maximum", a, None, 32).tolist() == [[7], [100]]
    # The factor of a multiplication is the low half of an element.
    assert vector("multiply", a, np.full((2, 1), 2**16 - 1), 32).tolist() == (-a).tolist()


def test_sums_wrap_like_the_accumulator() -> None:
    program = replace(
        program_of(Work(Engine.MATRIX, ROW, 1, task=Gemm("x", "x", "y", accumulate=True))),
        buffers={"x": BLOCK, "y": BLOCK},
    )
    memory = filled(program)
    memory["x"][:], memory["y"][:] = 8, 1
    run_functional(program, memory)
    assert np.unique(memory["y"]).tolist() == [129 - 256]


def test_a_turned_operand_of_a_product() -> None:
    shape = {"x": Buffer(2, 3, 8), "y": Buffer(4, 3, 8), "z": Buffer(2, 4, 32)}
    work = Work(Engine.MATRIX, ROW, 1, task=Gemm("x", "y", "z", turned=True))
    program = replace(program_of(work), buffers=shape)
    memory = TileBlocks(program)
    wanted = memory["x"] @ memory["y"].swapaxes(2, 3)
    run_functional(program, memory)
    assert memory["z"].tolist() == wanted.tolist()


# Transfers


def test_blocks_move_at_once() -> None:
    around = Send(ROW, np.array([0]), np.array([1, 2, 0]), 1, source="x", target="y")
    memory = after(program_of(around))
    assert memory["y"][0, :, 0, 0].tolist() == [3, 1, 2]


def test_a_multicast_and_reductions() -> None:
    line = {"along": "row", "segment": range(3), "flits": 1}
    for seed in range(5):
        spread = Multicast(TileSet.tile(0, 1), source="x", target="y", **line)
        assert np.unique(after(program_of(spread), seed)["y"]).tolist() == [2]
        added = Reduce(FIRST, source="x", target="y", **line)
        assert np.unique(after(program_of(added), seed)["y"][0, 0]).tolist() == [6]
        largest = replace(added, operation="maximum", segment=range(2))
        assert np.unique(after(program_of(largest), seed)["y"][0, 0]).tolist() == [2]


def test_a_part_of_a_buffer_is_the_buffers() -> None:
    program = replace(
        program_of(Work(Engine.VECTOR, ROW, 1, task=Vector("add", "low", "low", b="low"))),
        buffers={"x": BLOCK, "low": Buffer(1, 2, 8, within="x", offset=2)},
    )
    assert after(program)["x"][0, 1].tolist() == [[2, 2], [4, 4]]


# Tokens


def chain(*, guarded: bool) -> Program:
    """The first tile sends its block on, then doubles it."""
    tokens = ("sent",) if guarded else ()
    double = Vector("add", "x", "x", b="x")
    return program_of(
        Send(
            FIRST, np.array([0]), np.array([1]), 1, gives=tokens, source="x", target="y"
        ),
        Work(Engine.VECTOR, FIRST, 1, takes=tokens, task=double),
        sent=(0, 1),
    )  # fmt: skip


def test_tokens_keep_a_block_until_it_has_left() -> None:
    results = {
        guarded: {int(after(chain(guarded=guarded), seed)["y"][0, 1, 0, 0]) for seed in range(20)}
        for guarded in (True, False)
    }
    assert results == {True: {1}, False: {1, 2}}


def test_what_nobody_writes_is_random() -> None:
    program = program_of(Work(Engine.VECTOR, ROW, 1, task=Vector("maximum", "x", "x", b="y")))
    assert len({after(program, seed)["x"].tobytes() for seed in range(4)}) == 4
    assert after(program, 1)["x"].tolist() == after(program, 1)["x"].tolist()


def test_operations_that_wait_for_ever_are_named() -> None:
    program = program_of(
        Work(Engine.MATRIX, FIRST, 1, takes=("never",)),
        Send(FIRST, np.array([0]), np.array([1]), 1, slots=("never",)),
        never=(0, 1),
    )
    with pytest.raises(ProgramDeadlockError) as caught:
        after(program)
    assert str(caught.value) == (
        "operation 0 waits for ever at the MATRIX engine of tile (0, 0); "
        "engines that wait for ever: 2"
    )
