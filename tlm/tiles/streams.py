"""Which words of the scratchpad an engine reads and writes in a job, one behind the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlm.program.data import OF_ROWS, TWO_OPERANDS
from tlm.tiles.jobs import Job, MatrixJob, VectorJob

Numbers = NDArray[np.int64]
#: Where streams begin and end in a list of words.
Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Folds:
    """What the systolic array does in a job.

    Attributes:
        folds: Folds of the job.
        length: Steps of a fold.
        output_stationary: The dataflow.
    """

    folds: int
    length: int
    output_stationary: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """What the vector unit does in a job.

    Attributes:
        words: Words of a row of A.
        of_rows: A row has one result.
        packed: Words of results that become one.
    """

    words: int
    of_rows: bool = False
    packed: int = 1


def job_streams(job: Job, size: int) -> tuple[Folds | Pass, list[Numbers]]:
    """What an engine does in a job, and the addresses of its words, stream by stream.

    Args:
        job: The job.
        size: Rows, and columns, of the array.

    Returns:
        Of a product the streams of A, B (or the weights), sums, which is empty if results are not
        added to any, and results; of a pass those of A, B, empty if there is none, and results.
    """
    return _matrix_streams(job, size) if isinstance(job, MatrixJob) else _vector_streams(job, size)


def _matrix_streams(job: MatrixJob, size: int) -> tuple[Folds, list[Numbers]]:
    panels, words = (job.panels_n, job.panels_m), size // 2
    if job.output_stationary:
        rows, weights = size, job.length
    else:
        rows, weights = job.length, size
    a = loop(job.a, (job.length, *panels), (job.a_step, 0, job.a_panel))
    b = loop(job.b, (weights, *panels), (1, job.b_panel, 0))
    results = loop(job.c, (words, rows, *panels), (1, job.c_row, words, job.c_panel))
    sums = results if job.accumulate else results[:0]
    folds = Folds(job.panels_m * job.panels_n, job.length, job.output_stationary)
    return folds, [a, b, sums, results]


def _vector_streams(job: VectorJob, size: int) -> tuple[Pass, list[Numbers]]:
    a = loop(job.a, (job.words, job.rows), (1, job.a_row))
    b = loop(job.b, (job.words, job.rows), (job.b_step, job.b_row))
    results = loop(job.out, (job.out_words, job.rows), (1, job.out_row))
    two = job.operation in TWO_OPERANDS
    work = Pass(job.words, job.operation in OF_ROWS, size // 2 if job.pack else 1)
    return work, [a, b if two else b[:0], results]


def loop(base: int, counts: Sequence[int], strides: Sequence[int]) -> Numbers:
    """Addresses of nested loops in the order of their words; the innermost loop comes first."""
    found = np.array([base], dtype=np.int64)
    for count, stride in zip(counts, strides, strict=True):
        found = (np.arange(count, dtype=np.int64)[:, None] * stride + found[None, :]).ravel()
    return found


def joined(streams: Sequence[Numbers], banks: int) -> tuple[NDArray[np.int32], Spans]:
    """Banks of all words, (words,), one stream behind the other; where each begins and ends."""
    ends = np.cumsum([0, *map(len, streams)]).tolist()
    words = (np.concatenate(streams) % banks).astype(np.int32)
    return words, list(zip(ends, ends[1:], strict=False))
