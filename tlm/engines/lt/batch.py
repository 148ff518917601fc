"""Batches of steps: which operations go over the grid together, and by what blocks.

By rows go operations whose sends stay within a few rows; by columns those that move nothing along
the rows. Threads share the blocks. Blocks of columns are shared as they are. Of rows
come first parts that shrink from step to step, each as far as its neighbour's sends reach, and then
what lies between them.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.compile import Built
from tlm.engines.lt.cycle_tables import CycleTables
from tlm.engines.lt.state import EMPTY, GridArrays, Spare, Times
from tlm.engines.lt.step import OPERATION, SKEW, STEP, Pools
from tlm.engines.lt.sweep import REGION, sweep
from tlm.engines.lt.tokens import Fault
from tlm.program import Operation

_CACHE_BYTES = 2**22
_MOST_STEPS = 256
_BLOCK_ROWS = 8


class Batch:
    """Operations that are done together."""

    def __init__(self, state: Times, pools: Pools, tables: CycleTables, threads: int) -> None:
        self._state, self._pools, self._tables = state, pools, tables
        self._threads = threads
        self._rows, slots, self._cols = state.shape
        self._window_rows = _CACHE_BYTES // (4 * slots * self._cols)
        self._scratch = [np.zeros((len(Spare), self._cols), dtype=np.int32) for _ in range(threads)]
        for scratch in self._scratch:
            scratch[Spare.NEVER] = EMPTY
        self._operations: list[tuple[int, Operation]] = []
        self._steps: list[NDArray[np.int64]] = []
        self._of: list[tuple[int, int]] = []
        self._end_batch()

    def _end_batch(self) -> None:
        self._operations.clear()
        self._steps.clear()
        self._of.clear()
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

    def run(self) -> Fault | None:
        """Do the operations taken up; the first fault in program order, if there is one."""
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
        faults = [np.full((len(steps), 2), -1, dtype=np.int64) for _ in range(self._threads)]
        for regions in phases:
            self._sweep(steps, regions, faults)
        found = [(k, *own[k]) for own in faults for k in np.flatnonzero(own[:, 0] >= 0)]
        fault = None
        if found:
            k, _, slot = min(found)
            fault = (*self._operations[steps[k]["operation"]], int(slot))
        self._end_batch()
        return fault

    def _row_regions(self) -> list[list[tuple[int, ...]]]:
        """First the parts of the threads, then what lies between them."""
        parts = self._threads if self._rows >= 4 * self._threads * (self._skew + 1) else 1
        cuts = [self._rows * part // parts for part in range(parts + 1)]
        columns = (_BLOCK_ROWS, 0, self._cols)
        shrinking: list[tuple[int, ...]] = [
            (low, int(low > 0), high, -int(high < self._rows), *columns)
            for low, high in zip(cuts, cuts[1:], strict=False)
        ]
        between: list[tuple[int, ...]] = [(cut, -1, cut, 1, *columns) for cut in cuts[1:-1]]
        return [shrinking, between] if self._skew else [shrinking]

    def _column_regions(self) -> list[tuple[int, ...]]:
        width = -(-self._cols // self._threads)
        return [
            (0, 0, self._rows, 0, self._rows, first, min(first + width, self._cols))
            for first in range(0, self._cols, width)
        ]

    def _sweep(
        self,
        steps: NDArray[np.void],
        regions: list[tuple[int, ...]],
        faults: list[NDArray[np.int64]],
    ) -> None:
        records = np.array(regions, dtype=REGION)
        shares = [records[t :: self._threads] for t in range(self._threads)]

        def work(thread: int) -> None:
            pools, scratch = self._pools, self._scratch[thread]
            grid = GridArrays(
                self._state, self._tables.values, pools.indices, pools.delays, scratch
            )
            for region in shares[thread]:
                sweep(steps, grid, np.array([region]), faults[thread])

        if self._threads == 1 or len(regions) == 1:
            work(0)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(work, range(self._threads)))
