"""Programs with the times of tiles in Verilog: their own cycles and flits, operation by operation.

Kernels plan with laws of shapes. What a job of a tile costs depends on more: which streams meet at
a bank, whether results are added to what is there, how the words of a block lie. A program that
says what it computes on (`tlm.program.data`) says all of that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tlm.program import Program
from tlm.program.data import Gemm, Task
from tlm.program.operations import Operation, Transfer, Work
from tlm.tiles.jobs import MatrixJob, VectorJob, matrix_jobs, vector_job
from tlm.tiles.layout import WORD_BITS, Place, place_buffers
from tlm.tiles.records import Folds, Pass
from tlm.tiles.streams import Numbers, loop, matrix_job_cycles, vector_job_cycles
from tlm.tiles.timing import TileTiming

_TWO_OPERANDS = ("add", "maximum", "multiply")
_OF_ROWS = ("row-sum", "row-maximum")


def on_tiles(
    program: Program, tile: TileTiming, products: Callable[[Gemm], int] | None = None
) -> Program:
    """The same program with the cycles of its work and the flits of its transfers on such tiles.

    Work without a task takes as long as it says, or the least that a tile can; transfers without a
    buffer are as long as they say.

    Args:
        program: The program.
        tile: What tiles cost.
        products: Cycles of a product; None: those of the streams of its jobs.

    Raises:
        InputError: for buffers that such tiles cannot hold.
    """
    times = _Times(tile, place_buffers(program, WORD_BITS // tile.array_size), products)

    def operations() -> Iterator[Operation]:
        return map(times.of, program.operations())

    return Program(program.rows, program.cols, program.tokens, operations, program.buffers)


@dataclass(frozen=True, slots=True)
class _Times:
    """Times of operations."""

    tile: TileTiming
    places: Mapping[str, Place]
    products: Callable[[Gemm], int] | None

    def of(self, operation: Operation) -> Operation:
        """An operation with its own."""
        if isinstance(operation, Transfer):
            if operation.source is None:
                return operation
            rows, words = self.places[operation.source].sent
            return operation.of_flits(rows * words)
        assert isinstance(operation, Work)
        if operation.task is not None:
            return replace(operation, cycles=self._task(operation.task))
        longer = np.maximum(operation.cycles, self.tile.queues.least_work_cycles)
        return replace(operation, cycles=longer if longer.ndim else int(longer))

    def _task(self, task: Task) -> int:
        if isinstance(task, Gemm):
            if self.products is not None:
                return self.products(task)
            jobs = matrix_jobs(task, self.places, self.tile.array_size)
            return sum(matrix_cycles(job, self.tile) for job in jobs)
        return vector_cycles(vector_job(task, self.places), self.tile)


@cache
def matrix_cycles(job: MatrixJob, tile: TileTiming) -> int:
    """Cycles of a job of the matrix engine, from its start to its end, both included."""
    return matrix_job_cycles(*matrix_streams(job, tile.array_size), tile.banks, tile.streams)


def matrix_streams(job: MatrixJob, size: int) -> tuple[Folds, list[Numbers]]:
    """What the array does in a job; addresses of A, B, sums and results, word by word."""
    panels, words = (job.panels_n, job.panels_m), size // 2
    if job.output_stationary:
        rows, weights = size, job.length
    else:
        rows, weights = job.length, size
    a = loop(job.a, (job.length, *panels), (job.a_step, 0, job.a_panel))
    b = loop(job.b, (weights, *panels), (1, job.b_panel, 0))
    results = loop(job.c, (words, rows, *panels), (1, job.c_row, words, job.c_panel))
    sums = results if job.accumulate else results[:0]
    folds = Folds(size, job.panels_m * job.panels_n, job.length, job.output_stationary)
    return folds, [a, b, sums, results]


@cache
def vector_cycles(job: VectorJob, tile: TileTiming) -> int:
    """Cycles of a job of the vector engine, from its start to its end, both included."""
    return vector_job_cycles(*vector_streams(job, tile.array_size), tile.banks, tile.streams)


def vector_streams(job: VectorJob, size: int) -> tuple[Pass, list[Numbers]]:
    """What the unit does in a job; addresses of A, B and results, word by word."""
    a = loop(job.a, (job.words, job.rows), (1, job.a_row))
    b = loop(job.b, (job.words, job.rows), (job.b_step, job.b_row))
    results = loop(job.out, (job.out_words, job.rows), (1, job.out_row))
    two = job.operation in _TWO_OPERANDS
    work = Pass(job.words, job.operation in _OF_ROWS, size // 2 if job.pack else 1)
    return work, [a, b if two else b[:0], results]
