"""Where blocks lie in a tile's scratchpad, and what that is worth to the passes over them."""

import pytest

from tests.tlm.programs import TIMING
from tlm.interconnect.base import EventKind
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Program, Work
from tlm.program.data import Vector
from tlm.program.operations import Engine
from tlm.tiles.banked import Rows
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import vector_job
from tlm.tiles.layout import place_buffers
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
    places = place_buffers(program(3, 8), 8, TILE.banks)
    assert places["before"].address == 0
    assert places["sums"].address == 8  # bank 0; the column before ends at word 5
    assert places["come"].address == 8 + 32 + 6  # bank 6: three quarters of them
    assert places["free"].address == 8 + 32 + 6 + 32  # where there is room


@pytest.mark.parametrize("columns", [2, 4, 6, 8, 10, 12, 16, 96])
@pytest.mark.parametrize("begins", [3, 17, 40])
@pytest.mark.parametrize("words", [1, 9, 60])
def test_a_sum_that_words_on_their_way_disturb_does_not_take_twice_its_cycles(
    columns: int, begins: int, words: int
) -> None:
    """Words of both operands at one bank would: of 62 rows of 6 elements each of three would wait
    for the others, word after word."""
    job = vector_job(SUM, places := place_buffers(program(62, columns), 8, TILE.banks))
    mesh, free = TiledMesh(1, 2, TIMING, TILE), places["free"].address
    mesh.begin(0, 0, job)
    mesh.begin_reading(begins, 1, Rows(free, 1, words, 0), Rows(free, 1, words, 0))
    mesh.inject(begins, 1, TileSet.tile(0, 0), words)
    found = [event for happened in iter(lambda: mesh.advance(10**6), []) for event in happened]
    ended = next(event.cycle for event in found if event.kind is EventKind.VECTOR)
    assert ended + 1 <= job_cycles(job, TILE) + words
