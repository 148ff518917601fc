"""What running a program yields, at any level."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Cycles = NDArray[np.int64]
OUTCOME_BYTES_PER_TILE = 7 * 8


@dataclass(frozen=True)
class Outcome:
    """Times of a program run on R x C tiles, in cycles.

    Attributes:
        engine_end_cycle: Shape (4, R, C): when each engine (`Engine`) ended its last operation; 0
            if it had none.
        last_arrival_cycle: Shape (R, C): when the last transfer into the tile was written; 0 if
            none.
        matrix_busy_cycles: Shape (R, C): cycles the matrix engine worked.
        compute_busy_cycles: Shape (R, C): cycles in which the matrix or the vector engine worked.
            At level `lt` more than those, if a tile's work stands in the program far out of the
            order in which it starts (`tlm.engines.lt.work`).
    """

    engine_end_cycle: Cycles
    last_arrival_cycle: Cycles
    matrix_busy_cycles: Cycles
    compute_busy_cycles: Cycles

    @cached_property
    def finish_cycle(self) -> Cycles:
        """Shape (R, C): when the last operation or arrival at the tile ended."""
        last_end: Cycles = self.engine_end_cycle.max(axis=0)
        return np.maximum(last_end, self.last_arrival_cycle)

    @property
    def cycles(self) -> int:
        """Length of the run: the end of the last operation anywhere."""
        return int(self.finish_cycle.max())

    @property
    def wait_cycles(self) -> Cycles:
        """Shape (R, C): cycles up to the tile's end in which its matrix engine stood still."""
        return self.finish_cycle - self.matrix_busy_cycles

    @property
    def last_tile(self) -> tuple[int, int]:
        """Row and column of the tile that ends last (the first of them in row order)."""
        row, col = np.unravel_index(int(self.finish_cycle.argmax()), self.finish_cycle.shape)
        return int(row), int(col)
