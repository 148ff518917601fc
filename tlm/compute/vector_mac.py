"""A core that multiplies matrices in software on a scalar or SIMD unit.

The model of WSE-2 cores, as WaferLLM's code uses them: for each k one iteration of a loop; in it a
vector multiply-accumulate for each column of the result, as long as the result has rows. A result
of one row takes one vector an iteration, along its columns. The figures are a chip profile's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlm.compute.base import Sizes, check_shape


@dataclass(frozen=True, slots=True)
class VectorMac:
    """A core with a software multiply-accumulate loop.

    Attributes:
        macs_per_cycle: Peak multiply-accumulates a cycle, for utilization.
        cycles_per_mac: Of a vector's multiply-accumulate.
        vector_cycles: Of a vector beside them.
        inner_cycles: Of an iteration over k beside its vectors.
    """

    macs_per_cycle: float
    cycles_per_mac: float
    vector_cycles: float = 0.0
    inner_cycles: float = 0.0

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles of one call on C[M,N] = A[M,K] B[K,N], to the nearest cycle."""
        check_shape(m, k, n)
        return round(float(self._cycles(m, k, n, n if m > 1 else 1)))

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """See `Compute`."""
        whole: Sizes = np.rint(self._cycles(m, k, n, np.where(m > 1, n, 1))).astype(np.int64)
        return whole

    def _cycles(self, m: Any, k: Any, n: Any, vectors: Any) -> Any:
        return k * (self.inner_cycles + vectors * self.vector_cycles + m * n * self.cycles_per_mac)
