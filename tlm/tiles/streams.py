"""Cycles of a job of a tile's engines that has the banks for itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, prepare
from tlm.tiles import records as at
from tlm.tiles.banks import step
from tlm.tiles.records import (
    Banks,
    Folds,
    Pass,
    Tiles,
    Words,
    begin_matrix,
    begin_vector,
    new_tiles,
)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Constants of the streams, which calibration identifies.

    Attributes:
        lead_cycles: From the start of a job to the cycle in which its first operand is there; at
            least 2.
        places: Words that a reader holds or has asked for.
        pipeline_cycles: From an operand's entry into the vector unit to its result.
    """

    lead_cycles: int
    places: int
    pipeline_cycles: int

    @property
    def ask_cycles(self) -> int:
        """From the start of a job to the cycle in which it asks for its first word."""
        return self.lead_cycles - 2


def loop(base: int, counts: Sequence[int], strides: Sequence[int]) -> Numbers:
    """Addresses of nested loops in the order of their words; the innermost loop comes first."""
    found = np.array([base], dtype=np.int64)
    for count, stride in zip(counts, strides, strict=True):
        found = (np.arange(count, dtype=np.int64)[:, None] * stride + found[None, :]).ravel()
    return found


def matrix_job_cycles(
    folds: Folds, streams: Sequence[Numbers], banks: int, timing: StreamTiming
) -> int:
    """Cycles of a job of the matrix engine, from its start to its last result, both included.

    Args:
        folds: What the array does.
        streams: Addresses of the words of A, B (or the weights), sums and results in order; those
            of sums, to which results are added, are empty if there are none.
        banks: Banks of the scratchpad.
        timing: Constants.
    """
    ready()
    tiles = new_tiles(1, folds.size, banks, timing.places, timing.pipeline_cycles)
    words, ends = joined(streams, banks)
    begin_matrix(tiles, at.HEADER_COLUMNS, timing.ask_cycles, folds, ends)
    return int(_alone(tiles, words, at.MATRIX_ENDS))


def vector_job_cycles(
    work: Pass, streams: Sequence[Numbers], banks: int, timing: StreamTiming
) -> int:
    """Cycles of a job of the vector engine, from its start to its last result, both included.

    Args:
        work: What the unit does.
        streams: Addresses of the words of A, B and results in order; those of B are empty of
            operations with one operand.
        banks: Banks of the scratchpad.
        timing: Constants.
    """
    ready()
    tiles = new_tiles(1, 0, banks, timing.places, timing.pipeline_cycles)
    words, ends = joined(streams, banks)
    begin_vector(tiles, at.HEADER_COLUMNS, timing.ask_cycles, work, ends)
    return int(_alone(tiles, words, at.VECTOR_ENDS))


def joined(streams: Sequence[Numbers], banks: int) -> tuple[Banks, list[tuple[int, int]]]:
    """Banks of all words, one stream behind the other; where each begins and ends."""
    ends = np.cumsum([0, *map(len, streams)]).tolist()
    words = (np.concatenate(streams) % banks).astype(np.int32)
    return words, list(zip(ends, ends[1:], strict=False))


@compiled
def _alone(t: Tiles, words: Words, awaited: int) -> int:
    """Cycles until the first tile, of which nothing goes to the network, has done a job."""
    now = 0
    while step(t, words, at.HEADER_COLUMNS, now, at.NOBODY, False) & awaited == 0:
        now += 1
    return now + 1


@cache
def ready() -> None:
    """Compile the tile, or load what was compiled."""
    prepare(_alone)
