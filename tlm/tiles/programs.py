"""Programs with the times of tiles in Verilog: their own cycles and flits, operation by operation.

Kernels plan with laws of shapes. What a job of a tile costs depends on more: which streams meet at
a bank, whether results are added to what is there, how the words of a block lie. A program that
says what it computes on (`tlm.program.data`) says all of that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tlm.program import Program
from tlm.program.data import Gemm, Task
from tlm.program.operations import Operation, Transfer, Work
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import matrix_jobs, vector_job
from tlm.tiles.layout import WORD_BITS, BufferPlace, place_buffers
from tlm.tiles.timing import TileTiming


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
    bits = WORD_BITS // tile.array_size
    times = _Times(tile, place_buffers(program, bits, tile.banks, tile.words), products)

    def operations() -> Iterator[Operation]:
        return map(times.of, program.operations())

    return Program(program.rows, program.cols, program.tokens, operations, program.buffers)


@dataclass(frozen=True, slots=True)
class _Times:
    """Times of operations."""

    tile: TileTiming
    places: Mapping[str, BufferPlace]
    products: Callable[[Gemm], int] | None

    def of(self, operation: Operation) -> Operation:
        """An operation with its own."""
        if isinstance(operation, Transfer):
            if operation.source is None:
                return operation
            return operation.of_flits(self.places[operation.source].sent_words)
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
            return sum(job_cycles(job, self.tile) for job in jobs)
        return job_cycles(vector_job(task, self.places), self.tile)
