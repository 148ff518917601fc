"""Roofline of a matrix engine: the level that knows no shape effects.

Source of the model: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
"""

import math
from dataclasses import dataclass

import numpy as np

from tlm.compute.base import Sizes, check_shape


@dataclass(frozen=True, slots=True)
class Roofline:
    """An engine bound by its arithmetic or by its local memory.

    Attributes:
        macs_per_cycle: Peak multiply-accumulates a cycle.
        bytes_per_cycle: Bandwidth of the local memory; infinite if it never limits.
        element_bytes: Size of an element of A, B and C.
    """

    macs_per_cycle: float
    bytes_per_cycle: float = math.inf
    element_bytes: int = 1

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles of C[M,N] = A[M,K] B[K,N], each element of the matrices moved once."""
        check_shape(m, k, n)
        moved_bytes = (m * k + k * n + m * n) * self.element_bytes
        return math.ceil(max(m * k * n / self.macs_per_cycle, moved_bytes / self.bytes_per_cycle))

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """See `Compute`."""
        moved_bytes = (m * k + k * n + m * n) * self.element_bytes
        cycles = np.maximum(m * k * n / self.macs_per_cycle, moved_bytes / self.bytes_per_cycle)
        whole: Sizes = np.ceil(cycles).astype(np.int64)
        return whole
