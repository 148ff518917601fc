"""A core that multiplies matrices in software on a scalar or SIMD unit.

The model of WSE-2 cores: the time of a call grows with its multiply-accumulates alone. The
figures are a chip profile's, fitted to published measurements.
"""

from dataclasses import dataclass

import numpy as np

from tlm.compute.base import Sizes, check_shape


@dataclass(frozen=True, slots=True)
class VectorMac:
    """A core with a software multiply-accumulate loop.

    Attributes:
        macs_per_cycle: Peak multiply-accumulates a cycle, for utilization.
        cycles_per_mac: Sustained cycles of one multiply-accumulate.
        call_overhead_cycles: Fixed cycles of a call.
    """

    macs_per_cycle: float
    cycles_per_mac: float
    call_overhead_cycles: float

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles of one call on C[M,N] = A[M,K] B[K,N], to the nearest cycle."""
        check_shape(m, k, n)
        return round(m * k * n * self.cycles_per_mac + self.call_overhead_cycles)

    def gemm_cycles_over(self, m: Sizes, k: Sizes, n: Sizes) -> Sizes:
        """See `Compute`."""
        cycles = np.rint(m * k * n * self.cycles_per_mac + self.call_overhead_cycles)
        whole: Sizes = cycles.astype(np.int64)
        return whole
