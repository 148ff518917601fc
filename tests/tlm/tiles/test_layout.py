"""Where blocks lie in a tile's scratchpad, and what that is worth to the passes over them."""

from dataclasses import replace

import pytest

from tests.tlm.programs import TIMING
from tlm.interconnect.base import EventKind
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Program, Store, Work
from tlm.program.data import Gemm, Vector
from tlm.program.operations import Engine
from tlm.tiles.banked import Rows
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import matrix_jobs, vector_job
from tlm.tiles.layout import place_buffers, used_words
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, StreamTiming, TileTiming

TILE = TileTiming(
    array_size=8, banks=8, streams=StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3),
    queues=FREE,
)  # fmt: skip
#: Into a block that lies behind a row of a few words.
SUM = Vector("add", a="sums", b="come", out="sums")


def program(rows: int, columns: int) -> Program:
    """Adds a block that has come to sums."""
    buffers = {
        "before": Buffer(6, 1, 32),
        "sums": Buffer(rows, columns, 32),
        "come": Buffer(rows, columns, 32),
        "free": Buffer(1, 128, 32),
    }
    tiles = TileSet.tile(0, 0)
    work = [Work(Engine.VECTOR, tiles, 1, task=SUM)]
    return Program(1, 2, {}, lambda: iter(work), buffers)


def test_operands_that_a_pass_reads_together_begin_at_banks_apart() -> None:
    places = place_buffers(program(3, 8), 8, TILE.banks, TILE.words)
    assert places["before"].address == 0
    assert places["sums"].address == 8  # bank 0; the column before ends at word 5
    assert places["come"].address == 8 + 32 + 6  # bank 6: three quarters of them
    assert places["free"].address == 8 + 32 + 6 + 32  # where there is room


def end_of_pass(mesh: TiledMesh) -> int:
    """The cycle in which the vector engine of a mesh ends a pass."""
    found = [event for happened in iter(lambda: mesh.advance(10**6), []) for event in happened]
    return next(event.cycle for event in found if event.kind is EventKind.VECTOR)


@pytest.mark.parametrize("columns", [2, 4, 6, 8, 10, 12, 16, 96])
@pytest.mark.parametrize("begins", [3, 17, 40])
@pytest.mark.parametrize("words", [1, 9, 60])
def test_a_sum_that_words_on_their_way_disturb_does_not_take_twice_its_cycles(
    columns: int, begins: int, words: int
) -> None:
    """Words of both operands at one bank would: of 62 rows of 6 elements each of three would wait
    for the others, word after word."""
    job = vector_job(SUM, places := place_buffers(program(62, columns), 8, TILE.banks, TILE.words))
    mesh, free = TiledMesh(1, 2, TIMING, TILE), places["free"].address
    mesh.begin(0, 0, job)
    mesh.begin_reading(begins, 1, Rows(free, 1, words, 0), Rows(free, 1, words, 0))
    mesh.inject(begins, 1, TileSet.tile(0, 0), words)
    assert end_of_pass(mesh) + 1 <= job_cycles(job, TILE) + words


def test_rows_of_few_elements_begin_where_those_before_them_end() -> None:
    """Else a pass would find two words of every four, in half of the banks, beside a product.

    That writes its results into the same half, and each takes up to twice its cycles.
    """
    buffers = {
        "a": Buffer(32, 32, 8),
        "b": Buffer(32, 4, 8),
        "made": Buffer(32, 4, 32),
        "sums": Buffer(32, 4, 32),
        "come": Buffer(32, 4, 32),
    }
    tiles, product = TileSet.tile(0, 0), Gemm("a", "b", "made")
    work = [
        Work(Engine.VECTOR, tiles, 1, task=SUM),
        Work(Engine.MATRIX, tiles, 1, task=product),
    ]
    built = Program(1, 1, {}, lambda: iter(work), buffers)
    apart = place_buffers(built, 8, TILE.banks, TILE.words)
    dense = place_buffers(built, 8, TILE.banks, used_words(apart) - 1)
    # Rows have two words each and room for four.
    assert {places["sums"].row_words for places in (apart, dense)} == {10, 4}
    assert apart["made"].row_words == 4  # no pass goes through it
    took = {10: list[int](), 4: list[int]()}
    for places in (apart, dense):
        for begins in range(0, 90, 7):
            mesh = TiledMesh(1, 1, TIMING, TILE)
            mesh.begin(0, 0, matrix_jobs(product, places, TILE.array_size)[0])
            mesh.advance(begins)
            mesh.begin(begins, 0, vector_job(SUM, places))
            took[places["sums"].row_words].append(end_of_pass(mesh) + 1 - begins)
    assert job_cycles(vector_job(SUM, apart), TILE) == 70
    assert (min(took[4]), max(took[4])) == (97, 144)
    assert (min(took[10]), max(took[10])) == (71, 81)


def test_rows_that_a_product_adds_to_begin_where_those_before_them_end() -> None:
    """Else the words of all rows of a fold would be in two of eight banks, and nowhere else."""
    buffers = {
        "scores": Buffer(8, 16, 32),
        "packed": Buffer(8, 16, 16),
        "values": Buffer(16, 32, 16),
        "output": Buffer(8, 32, 32),
        "row": Buffer(1, 32, 32, within="output", offset=64),
    }
    tiles, product = TileSet.tile(0, 0), Gemm("packed", "values", "output", accumulate=True)
    work = [
        Work(Engine.VECTOR, tiles, 1, task=Vector("quantize", a="scores", out="packed")),
        Work(Engine.MATRIX, tiles, 1, task=product),
    ]
    built = Program(1, 1, {}, lambda: iter(work), buffers)
    places = place_buffers(built, 16, TILE.banks, TILE.words)
    assert (places["output"].row_words, places["output"].words) == (16 + 2, 8 * 18)
    assert places["row"].address == places["output"].address + 2 * 18
    assert (places["scores"].row_words, places["packed"].row_words) == (8, 4)
    jobs = matrix_jobs(product, places, 4)
    assert len(jobs) == 4
    spread = sum(job_cycles(each, replace(TILE, array_size=4)) for each in jobs)
    dense = sum(job_cycles(replace(each, c_row=16), replace(TILE, array_size=4)) for each in jobs)
    assert spread < 0.93 * dense
    full = used_words(places)
    assert place_buffers(built, 16, TILE.banks, full) == places
    assert place_buffers(built, 16, TILE.banks, full - 1)["output"].row_words == 16
    stored = Program(
        1, 1, {}, lambda: iter([*work, Store(tiles, 64, source="row", target="far")]),
        buffers | {"far": Buffer(1, 32, 32, offchip=True)},
    )  # fmt: skip
    assert place_buffers(stored, 16, TILE.banks, TILE.words)["output"].row_words == 16
