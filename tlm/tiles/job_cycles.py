"""Cycles of a job of a tile's engines that has the banks for itself."""

from functools import cache

from tlm.compiled import compiled, prepare
from tlm.tiles.cycle import step
from tlm.tiles.jobs import Job
from tlm.tiles.records import HEADER_COLUMNS, NOBODY, Brought, Tiles, Words, begin_job, new_tiles
from tlm.tiles.streams import job_streams, joined
from tlm.tiles.timing import TileTiming


@cache
def job_cycles(job: Job, tile: TileTiming) -> int:
    """Cycles of a job, from its start to its last result, both included."""
    _ready()
    records = new_tiles(1, tile)
    work, streams = job_streams(job, tile.array_size)
    words, spans = joined(streams, tile.banks)
    begin_job(records, HEADER_COLUMNS, tile.streams.ask_cycles, work, spans)
    return int(_alone(records, words))


@compiled
def _alone(t: Tiles, words: Words) -> int:
    """Cycles until the only tile, of which nothing goes to the network, has done a job."""
    now, ends = 0, Brought.MATRIX_ENDS | Brought.VECTOR_ENDS
    while step(t, words, HEADER_COLUMNS, now, NOBODY, False) & ends == 0:
        now += 1
    return now + 1


@cache
def _ready() -> None:
    """Compile the tile, or load what was compiled."""
    prepare(_alone)
