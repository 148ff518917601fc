"""Shape-aware model of the systolic array (``rtl/tile/systolic_array.sv``).

A product runs as folds, each as large as the array allows. With L steps a fold (M for
weight-stationary, K for output-stationary) on R rows and C columns,

    cycles = (folds - 1) max(L + gap, R + turnaround) + L + 2 R + C - 2 + pipeline

The 2 R + C - 2 is the geometry: R cycles to bring the first weights in or to drain the last
results, and the wave's way of R - 1 rows and C - 1 columns. A fold takes as long as its own steps
or as the R weights or R results that overlap with them. The three constants are what the RTL shows.
"""

from dataclasses import dataclass
from typing import Any, Literal

from tlm.compute.base import LawOfShape, ceil_div, check_shape, larger

Dataflow = Literal["weight-stationary", "output-stationary"]


@dataclass(frozen=True, slots=True)
class FoldTiming:
    """Constants of one dataflow, in cycles; calibration identifies them.

    Attributes:
        fold_gap_cycles: From the last step of a fold to the first of the next, beyond one cycle.
        turnaround_cycles: From the last weight loaded (row drained) of a fold to the first of the
            next, beyond one cycle, when a fold's steps are too few to hide them.
        pipeline_cycles: Registers on the way in and out, beyond the wave through the array.
    """

    fold_gap_cycles: int
    turnaround_cycles: int
    pipeline_cycles: int


@dataclass(frozen=True, slots=True)
class Systolic(LawOfShape):
    """A systolic array of ``rows`` x ``cols`` elements, one multiply-accumulate each a cycle.

    Cycles are from the first operand handshake to the last result handshake, inclusive.
    """

    rows: int
    cols: int
    dataflow: Dataflow
    timing: FoldTiming

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every element at work."""
        return float(self.rows * self.cols)

    def folds(self, m: int, k: int, n: int) -> int:
        """Folds of a product; partial sums over K are added outside the array."""
        check_shape(m, k, n)
        folds: int = self._folds(m, k, n)
        return folds

    def _folds(self, m: Any, k: Any, n: Any) -> Any:
        return ceil_div(k if self._holds_weights else m, self.rows) * ceil_div(n, self.cols)

    def fold_steps(self, m: int, k: int) -> int:
        """Steps of a fold: one west word each."""
        return m if self._holds_weights else k

    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        steps = self.fold_steps(m, k)
        interval = larger(
            steps + self.timing.fold_gap_cycles, self.rows + self.timing.turnaround_cycles
        )
        last_fold = steps + self.wave_cycles + self.timing.pipeline_cycles
        return (self._folds(m, k, n) - 1) * interval + last_fold

    @property
    def wave_cycles(self) -> int:
        """Cycles of one fold beyond its steps that the array's geometry asks for."""
        return 2 * self.rows + self.cols - 2

    @property
    def _holds_weights(self) -> bool:
        return self.dataflow == "weight-stationary"
