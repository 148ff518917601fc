"""The matrix engine in Verilog: products bit for bit, and what they cost."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.tiles.blocks import Block, block_of, panels, rows_of, wrapped
from cosim.tiles.descriptors import Descriptor
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.program import Engine
from tlm.tiles.jobs import MatrixJob

pytestmark = pytest.mark.rtl

#: Addresses whose banks differ as the streams go along.
A, B, C = 0, 1026, 2052


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


def operands(
    job: MatrixJob, size: int, bits: int, generator: np.random.Generator
) -> tuple[Block, Block, Block]:
    """A, B (or W) and C of a job, whole magnitudes, extremes among them."""
    rows, steps = (size, job.length) if job.output_stationary else (job.length, size)
    edge = 2 ** (bits - 1)
    a, b = (
        np.where(
            generator.random(shape) < 0.2,
            generator.choice([-edge, edge - 1], shape),
            generator.integers(-edge, edge, shape),
        )
        for shape in ((job.panels_m * rows, steps), (steps, job.panels_n * size))
    )
    return a, b, generator.integers(-(2**31), 2**31, (len(a), b.shape[1]))


def job_of(
    size: int, panels_m: int, panels_n: int, length: int, dataflow: str, accumulate: bool
) -> MatrixJob:
    """A job whose blocks lie side by side from A, B and C on."""
    output_stationary = dataflow == "output-stationary"
    c_row = panels_n * size // 2
    return MatrixJob(
        length=length, a=A, b=B, c=C, c_row=c_row, accumulate=accumulate,
        output_stationary=output_stationary, panels_m=panels_m, panels_n=panels_n,
        a_panel=length, b_panel=length if output_stationary else size,
        c_panel=c_row * (size if output_stationary else length),
    )  # fmt: skip


def run_job(machine: TileMachine, job: MatrixJob, seed: int) -> int:
    """Run a job on tile 0, hold its result against NumPy's, and return its cycles."""
    size, bits = machine.model.array_size, machine.model.operand_bits
    a, b, c = operands(job, size, bits, np.random.default_rng(seed))
    west = panels(a if job.output_stationary else a.T, bits)
    memory = {A: west, B: panels(b.T, bits), C: rows_of(c)}
    if not job.output_stationary:
        # Row blocks of A follow each other, each one panel of its own.
        blocks = a.reshape(job.panels_m, job.length, size)
        memory[A] = np.concatenate([panels(block.T, bits) for block in blocks])
    image = TileImage({Engine.MATRIX: [Descriptor(job)]}, memory=memory)
    run = machine.run({0: image})
    got = block_of(machine.read(0, C, len(memory[C])), c.shape)
    np.testing.assert_array_equal(got, wrapped(a @ b + (c if job.accumulate else 0)))
    return run.cycles - run.spans[0].start_cycle


def law_cycles(job: MatrixJob, size: int) -> int:
    """From start to end, if no two streams meet at a bank: rtl/tile/README.md, "Matrix engine"."""
    folds, row_words = job.panels_m * job.panels_n, size // 2
    rows = size if job.output_stationary else job.length
    steps = job.length + size if job.output_stationary else 2 * size + 1
    period = max(job.length, size, rows * row_words)
    return 3 + steps + size - 1 + (folds - 1) * period + rows * row_words


@pytest.mark.parametrize("dataflow", ["output-stationary", "weight-stationary"])
@pytest.mark.parametrize("length", [1, 2, 4, 7, 16])
def test_a_fold_takes_the_cycles_of_the_law(
    machine: TileMachine, dataflow: str, length: int
) -> None:
    size = machine.model.array_size
    for accumulate in (False, True):
        job = job_of(size, 1, 1, length, dataflow, accumulate)
        assert run_job(machine, job, length) == law_cycles(job, size)


@pytest.mark.parametrize("panels_m, panels_n", [(2, 2), (1, 3), (3, 1)])
def test_folds_follow_each_other_as_fast_as_operands_or_results_move(
    machine: TileMachine, panels_m: int, panels_n: int
) -> None:
    size = machine.model.array_size
    for length in (2, 8, 24):
        job = job_of(size, panels_m, panels_n, length, "output-stationary", False)
        assert run_job(machine, job, length) == law_cycles(job, size)


@given(
    panels_m=st.integers(1, 4),
    panels_n=st.integers(1, 4),
    length=st.integers(1, 40),
    dataflow=st.sampled_from(["output-stationary", "weight-stationary"]),
    accumulate=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_products_of_any_size_are_right(
    machine: TileMachine,
    panels_m: int,
    panels_n: int,
    length: int,
    dataflow: str,
    accumulate: bool,
    seed: int,
) -> None:
    size = machine.model.array_size
    job = job_of(size, panels_m, panels_n, length, dataflow, accumulate)
    # Streams that meet at a bank take turns, and move on: never earlier, not much later.
    law = law_cycles(job, size)
    assert law <= run_job(machine, job, seed) <= 1.3 * law + 4


def test_a_job_adds_to_the_results_of_the_one_before(machine: TileMachine) -> None:
    size, bits = machine.model.array_size, machine.model.operand_bits
    generator = np.random.default_rng(3)
    first = job_of(size, 2, 2, 8, "output-stationary", False)
    second = job_of(size, 2, 2, 8, "output-stationary", True)
    a, b, c = operands(first, size, bits, generator)
    memory = {A: panels(a, bits), B: panels(b.T, bits), C: rows_of(c)}
    queue = [Descriptor(job) for job in (first, second, second)]
    run = machine.run({0: TileImage({Engine.MATRIX: queue}, memory=memory)})
    got = block_of(machine.read(0, C, len(memory[C])), c.shape)
    np.testing.assert_array_equal(got, wrapped(3 * (a @ b)))
    # One job after the other, without a cycle between them.
    starts = [span.start_cycle for span in run.spans]
    assert starts[1:] == [span.end_cycle + 1 for span in run.spans[:-1]]


@pytest.mark.slow
def test_an_array_of_8_bit_operands() -> None:
    with TileMachine(TileModel(2, 2, operand_bits=8)) as machine:
        for dataflow in ("output-stationary", "weight-stationary"):
            for length in (1, 8, 24):
                job = job_of(8, 1, 1, length, dataflow, True)
                assert run_job(machine, job, length) == law_cycles(job, 8)
