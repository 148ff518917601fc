"""The compute swap point: shape in, cycles out."""

from abc import ABC, abstractmethod
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError

Sizes = NDArray[np.int64]


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

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """`gemm_cycles` of many products at once, which broadcast; sizes of 1 or more."""
        ...


class LawOfShape(ABC):
    """A matrix engine of one law, the same of numbers and of arrays (`Compute`)."""

    __slots__ = ()

    @abstractmethod
    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        """Cycles of C[M,N] = A[M,K] B[K,N] with sizes of 1 or more."""

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """See `Compute`."""
        check_shape(m, k, n)
        return int(self._cycles(m, k, n))

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """See `Compute`."""
        cycles: Sizes = self._cycles(m, k, n)
        return cycles


def check_shape(m: int, k: int, n: int) -> None:
    """Raise InputError unless the sizes of a matrix product are all at least 1."""
    for name, size in (("M", m), ("K", k), ("N", n)):
        if size < 1:
            raise InputError(f"matrix product: {name} is {size}; sizes are at least 1")


def larger(one: Any, other: Any) -> Any:
    """The larger of two numbers, or of each pair of two arrays."""
    arrays = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.maximum(one, other) if arrays else max(one, other)


@overload
def ceil_div(dividend: int, divisor: int) -> int: ...
@overload
def ceil_div(dividend: Any, divisor: Any) -> Any: ...
def ceil_div(dividend: Any, divisor: Any) -> Any:
    """Quotient of positive integers, rounded up; of arrays, of each."""
    return -(-dividend // divisor)
