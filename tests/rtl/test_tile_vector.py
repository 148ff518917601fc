"""The vector engine in Verilog: passes over rows, bit for bit and in their cycles."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from cosim.tiles.blocks import Block, block_of, rows_of, wrapped
from cosim.tiles.descriptors import VECTOR_OPERATIONS, Descriptor, Transfer, TransferKind, Wait
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tests.rtl.benches.vector_bench import computed
from tlm.errors import InputError
from tlm.program import Engine
from tlm.tiles.jobs import VectorJob

pytestmark = pytest.mark.rtl

A, B, OUT = 1, 1026, 2051


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


def run_job(machine: TileMachine, job: VectorJob, memory: dict[int, Block]) -> int:
    """Run a job on tile 0; returns its cycles."""
    words = {address: rows_of(block) for address, block in memory.items()}
    run = machine.run({0: TileImage({Engine.VECTOR: [Descriptor(job)]}, memory=words)})
    return run.spans[0].cycles


def expected(operation: str, a: Block, b: Block, multiplier: int, shift: int) -> Block:
    """What the unit's bench says a job gives."""
    job = {"operation": operation.replace("-", " "), "multiplier": multiplier, "shift": shift}
    return wrapped(computed(job, a, b, 16))


@pytest.mark.parametrize("operation", VECTOR_OPERATIONS)
@pytest.mark.parametrize(("rows", "words"), [(1, 1), (1, 9), (5, 3)])
def test_a_job_takes_a_cycle_a_word_and_six(
    machine: TileMachine, operation: str, rows: int, words: int
) -> None:
    generator = np.random.default_rng(rows)
    a, b = generator.integers(-(2**31), 2**31, (2, rows, 2 * words))
    if operation == "exp":
        a = -(np.abs(a) % 3000)
    by_row = operation.startswith("row")
    out_words = 1 if by_row else words
    job = VectorJob(
        operation, words, rows, A, words, OUT, out_words, out_words, b=B, b_row=words,
        multiplier=-3, shift=2,
    )  # fmt: skip
    assert run_job(machine, job, {A: a, B: b}) == rows * words + 6
    got = block_of(machine.read(0, OUT, rows * out_words), (rows, 2 * out_words))
    result = expected(operation, a, b, -3, 2)
    np.testing.assert_array_equal(got, np.repeat(result, 2, axis=1) if by_row else result)


def test_a_job_ends_when_its_last_result_is_written(machine: TileMachine) -> None:
    # Words that arrive and words that leave are at the bank of the result, too.
    words = Transfer(
        TransferKind.UNICAST, 1, OUT + 8, OUT + 400, rows=40, source_row=8, target_row=8
    )  # fmt: skip
    away = replace(words, col=1)
    job = VectorJob("scale", 1, 1, A, 0, OUT, 0, 1)
    cycles = set()
    for wait in (20, 21):
        queue = [Descriptor(Wait(wait)), Descriptor(job), Descriptor(job)]
        own = TileImage({Engine.VECTOR: queue, Engine.TRANSFER: [Descriptor(away)]})
        run = machine.run({0: own, 1: TileImage({Engine.TRANSFER: [Descriptor(words)]})})
        cycles |= {span.cycles for span in run.of(0, Engine.VECTOR)[1:]}
    assert cycles == {7, 8}


def test_a_result_of_a_row_meets_all_its_words(machine: TileMachine) -> None:
    generator = np.random.default_rng(1)
    a = generator.integers(-1000, 1000, (4, 10))
    column = np.repeat(generator.integers(-1000, 1000, (4, 1)), 2, axis=1)
    job = VectorJob("add", 5, 4, A, 5, OUT, 5, 5, b=B, b_row=1, b_step=0)
    run_job(machine, job, {A: a, B: column})
    got = block_of(machine.read(0, OUT, 20), (4, 10))
    np.testing.assert_array_equal(got, a + column[:, :1])


def test_rows_may_lie_apart_and_be_overwritten_in_place(machine: TileMachine) -> None:
    a = np.arange(48).reshape(4, 12)
    # The middle four elements of every row.
    job = VectorJob("scale", 2, 4, A + 2, 6, A + 2, 6, 2, multiplier=-1)
    run_job(machine, job, {A: a})
    a[:, 4:8] *= -1
    np.testing.assert_array_equal(block_of(machine.read(0, A, 24), (4, 12)), a)


def test_quantized_elements_are_packed_to_operands(machine: TileMachine) -> None:
    a = np.random.default_rng(2).integers(-(2**20), 2**20, (3, 16))
    job = VectorJob("quantize", 8, 3, A, 8, OUT, 4, 4, shift=4, pack=True)
    # Results move half as fast as operands, so now and then both want a word of one bank.
    assert run_job(machine, job, {A: a}) == 3 * 8 + 6 + 3
    got = block_of(machine.read(0, OUT, 12), (3, 16), bits=16)
    np.testing.assert_array_equal(got, np.clip(a >> 4, -(2**15), 2**15 - 1))


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(InputError) as error:
        Descriptor(VectorJob("divide", 1, 1, 0, 0, 0, 0, 1)).encode()
    assert str(error.value) == (
        "vector operation: found 'divide'; allowed: add, maximum, scale, quantize, exp, multiply, "
        "row-sum, row-maximum"
    )
