"""Errors of many cases in three figures: the mean, the worst, and the case that is worst."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Case = TypeVar("Case")


@dataclass(frozen=True, slots=True)
class Spread(Generic[Case]):
    """Errors of cases.

    Attributes:
        cases: How many.
        mean_abs_pct: Mean of the errors' sizes.
        max_abs_pct: The largest of them.
        worst: The case that has it.
    """

    cases: int
    mean_abs_pct: float
    max_abs_pct: float
    worst: Case

    def __str__(self) -> str:
        return f"{self.mean_abs_pct:.2g} %, {self.max_abs_pct:.3g} %"


def spread(cases: Sequence[Case], error_pct: Callable[[Case], float]) -> Spread[Case]:
    """The errors of some cases, of which there is at least one."""
    errors = [abs(error_pct(case)) for case in cases]
    largest = max(errors)
    return Spread(len(cases), sum(errors) / len(errors), largest, cases[errors.index(largest)])


class _OfKernel(Protocol):
    @property
    def kernel(self) -> str: ...


Point = TypeVar("Point", bound=_OfKernel)


def by_kernel(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points of each kernel, in the order in which kernels first come."""
    kernels: dict[str, list[Point]] = {}
    for point in points:
        kernels.setdefault(point.kernel, []).append(point)
    return kernels
