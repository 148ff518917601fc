"""Batches of steps: which operations go over the grid together, and by what blocks.

By rows go operations whose sends stay within a few rows; by columns those that move nothing along
the rows. Threads share the blocks. Blocks of columns are shared as they are. Of rows
come first parts that shrink from step to step, each as far as its neighbour's sends reach, and then
what lies between them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.compile import Built
from tlm.engines.lt.step import OPERATION, SKEW, STEP, Steps
from tlm.engines.lt.sweep import REGION
from tlm.program import Operation

_CACHE_BYTES = 2**22
_MOST_STEPS = 256
_BLOCK_ROWS = 8


Region = tuple[int, ...]


class Sweep(NamedTuple):
    """Operations that go over the grid together.

    Attributes:
        steps: Of all of them, records of `step.STEP`.
        phases: One after another: for each thread its regions, arrays of one record of `REGION`.
        operations: With their numbers in the program.
    """

    steps: Steps
    phases: list[list[list[NDArray[np.void]]]]
    operations: list[tuple[int, Operation]]


class Batch:
    """Operations that are to be done together, on a state of shape (rows, slots, columns)."""

    def __init__(self, shape: tuple[int, int, int], threads: int) -> None:
        self._threads = threads
        self._rows, slots, self._cols = shape
        self._window_rows = _CACHE_BYTES // (4 * slots * self._cols)
        self._end_batch()

    def _end_batch(self) -> None:
        self._operations: list[tuple[int, Operation]] = []
        self._steps: list[NDArray[np.int64]] = []
        self._of: list[tuple[int, int]] = []
        self._skew = self._reach = 0
        self._by_row = self._by_column = True

    def takes(self, built: Built) -> bool:
        """Whether an operation goes with those taken up so far."""
        if not self._steps:
            return True
        by_row = self._by_row and not built.by_column
        far = self._skew + self._reach + 2 * built.reach > self._window_rows
        by_row &= not built.reach or not far
        by_column = self._by_column and built.straight
        return (by_row or by_column) and len(self._steps) < _MOST_STEPS

    def add(self, number: int, operation: Operation, built: Built) -> None:
        """Take an operation up."""
        reach = self._reach
        for step in built.steps:
            self._skew += built.reach + reach
            reach = 0  # the halves of a send need only its own between them
            self._steps.append(step)
            self._of.append((len(self._operations), self._skew))
        self._reach = built.reach
        self._operations.append((number, operation))
        self._by_row &= not built.by_column
        self._by_column &= built.straight

    def end(self) -> Sweep | None:
        """What was taken up, if anything was; the next batch begins."""
        if not self._steps:
            return None
        numbers = np.stack(self._steps)
        numbers[:, [OPERATION, SKEW]] = self._of
        steps = numbers.view(STEP)[:, 0]
        if self._by_row:
            phases = self._row_regions()
        else:
            steps["skew"] = 0
            phases = [self._column_regions()]
        shared = [self._shared(regions) for regions in phases]
        ended = Sweep(steps, shared, self._operations)
        self._end_batch()
        return ended

    def _shared(self, regions: list[Region]) -> list[list[NDArray[np.void]]]:
        """Regions of each thread."""
        each = [np.array([region], dtype=REGION) for region in regions]
        return [each[thread :: self._threads] for thread in range(self._threads)]

    def _row_regions(self) -> list[list[Region]]:
        """First the parts of the threads, then what lies between them."""
        parts = self._threads if self._rows >= 4 * self._threads * (self._skew + 1) else 1
        cuts = [self._rows * part // parts for part in range(parts + 1)]
        columns = (_BLOCK_ROWS, 0, self._cols)
        shrinking: list[Region] = [
            (low, int(low > 0), high, -int(high < self._rows), *columns)
            for low, high in zip(cuts, cuts[1:], strict=False)
        ]
        between: list[Region] = [(cut, -1, cut, 1, *columns) for cut in cuts[1:-1]]
        return [shrinking, between] if self._skew else [shrinking]

    def _column_regions(self) -> list[Region]:
        width = -(-self._cols // self._threads)
        return [
            (0, 0, self._rows, 0, self._rows, first, min(first + width, self._cols))
            for first in range(0, self._cols, width)
        ]
