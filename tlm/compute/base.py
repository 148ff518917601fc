"""The compute swap point: shape in, cycles out."""

from typing import Protocol

from tlm.errors import InputError


class Compute(Protocol):
    """A matrix engine at some level of detail."""

    @property
    def macs_per_cycle(self) -> float:
        """Peak multiply-accumulates a cycle, over which utilization is counted."""
        ...

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles of one C[M,N] = A[M,K] B[K,N], from the first operand to the last result.

        Raises:
            InputError: if a size is below 1; an engine without work is not called.
        """
        ...


def check_shape(m: int, k: int, n: int) -> None:
    """Raise InputError unless the sizes of a matrix product are all at least 1."""
    for name, size in (("M", m), ("K", k), ("N", n)):
        if size < 1:
            raise InputError(f"matrix product: {name} is {size}; sizes are at least 1")


def ceil_div(dividend: int, divisor: int) -> int:
    """Quotient of positive integers, rounded up."""
    return -(-dividend // divisor)
