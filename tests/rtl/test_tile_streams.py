"""What a job of a tile's engines costs, word by word: the cycles of the Verilog."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.tiles.descriptors import Descriptor
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.program.operations import Engine
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.streams import loop
from tlm.tiles.timing import TileTiming, rtl_tile

pytestmark = pytest.mark.rtl

_OPERATIONS = ("add", "maximum", "scale", "quantize", "exp", "multiply", "row-sum", "row-maximum")


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


@pytest.fixture(scope="module")
def tile(machine: TileMachine) -> TileTiming:
    return rtl_tile(machine.model.array_size, machine.model.banks)


def measured_cycles(machine: TileMachine, engine: Engine, job: MatrixJob | VectorJob) -> int:
    [span] = machine.run({0: TileImage({engine: [Descriptor(job)]})}).spans
    return span.cycles


banks = st.integers(0, 7)


@given(
    output_stationary=st.booleans(),
    accumulate=st.booleans(),
    length=st.integers(1, 30),
    panels=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    places=st.tuples(banks, banks, banks),
)
@settings(max_examples=80, deadline=None)
def test_a_product_whose_streams_meet_at_banks(
    machine: TileMachine,
    tile: TileTiming,
    output_stationary: bool,
    accumulate: bool,
    length: int,
    panels: tuple[int, int],
    places: tuple[int, int, int],
) -> None:
    size = tile.array_size
    rows, weights = (size, length) if output_stationary else (length, size)
    c_row = panels[1] * size // 2
    job = MatrixJob(
        length=length, a=places[0], b=1000 + places[1], c=2000 + places[2], c_row=c_row,
        output_stationary=output_stationary, accumulate=accumulate, panels_m=panels[0],
        panels_n=panels[1], a_panel=length, b_panel=weights, c_panel=c_row * rows,
    )  # fmt: skip
    assert job_cycles(job, tile) == measured_cycles(machine, Engine.MATRIX, job)


@given(
    operation=st.sampled_from(_OPERATIONS),
    words=st.integers(1, 20),
    rows=st.integers(1, 8),
    places=st.tuples(banks, banks, banks),
    column=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_pass_whose_streams_meet_at_banks(
    machine: TileMachine,
    tile: TileTiming,
    operation: str,
    words: int,
    rows: int,
    places: tuple[int, int, int],
    column: bool,
) -> None:
    a, b, out = (1000 * n + place for n, place in enumerate(places))
    packed = tile.array_size // 2
    pack = operation == "quantize" and words % packed == 0
    out_words = 1 if operation.startswith("row-") else words // packed if pack else words
    job = VectorJob(
        operation, words, rows, a, words, out, out_words, out_words, b=b,
        b_row=1 if column else words, b_step=int(not column), pack=pack,
    )  # fmt: skip
    assert job_cycles(job, tile) == measured_cycles(machine, Engine.VECTOR, job)


def test_streams_that_never_meet_take_the_cycles_of_the_closed_law(tile: TileTiming) -> None:
    # One fold of 5 steps on 4 x 4: 3 cycles, 5 + 2 x 4 - 1 to the first row, 4 rows of 2 words.
    job = MatrixJob(length=5, a=0, b=1026, c=2052, c_row=2)
    assert job_cycles(job, tile) == 3 + 12 + 8
    assert job_cycles(VectorJob("scale", 10, 3, 0, 10, 36, 10, 10), tile) == 30 + 6


def test_addresses_of_nested_loops() -> None:
    np.testing.assert_array_equal(loop(5, (2, 3), (1, 10)), [5, 6, 15, 16, 25, 26])
