"""Products on a vector engine whose lanes multiply a row of A with a column of weights each.

A lane of S units adds S products of its column to a sum in a cycle. The lanes keep their weights
while all rows of A pass, so weights are read once, no faster than local memory gives them. NpuSim
(arXiv 2510.05632, table 3) has 32 to 128 lanes of 64 units; its public inputs run a product on the
array or here, whichever is faster. How lanes work on one it does not say: the rest is assumed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlm.compute.base import Compute, LawOfShape, Sizes, ceil_div, larger


@dataclass(frozen=True, slots=True)
class VectorProduct(LawOfShape):
    """A vector engine that multiplies matrices (`Compute`).

    Attributes:
        lanes: Columns that it works on at the same time.
        units: Elements of a column that a lane multiplies in a cycle.
        weights_per_cycle: What local memory gives; None: as many as are multiplied.
    """

    lanes: int
    units: int
    weights_per_cycle: float | None = None

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every unit at work."""
        return float(self.lanes * self.units)

    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        worked = m * ceil_div(n, self.lanes) * ceil_div(k, self.units)
        if self.weights_per_cycle is None:
            return worked
        return larger(worked, np.ceil(k * n / self.weights_per_cycle).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Faster:
    """Two engines, of which the faster one has a product (`Compute`)."""

    one: Compute
    other: Compute

    @property
    def macs_per_cycle(self) -> float:
        """Of the engine that has more."""
        return max(self.one.macs_per_cycle, self.other.macs_per_cycle)

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles of C[M,N] = A[M,K] B[K,N] where they are fewest."""
        return min(self.one.gemm_cycles(m, k, n), self.other.gemm_cycles(m, k, n))

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """See `Compute`."""
        each = (engine.gemm_cycles_over(m, k, n) for engine in (self.one, self.other))
        fewest: Sizes = np.minimum(*each)
        return fewest
