"""Warnings of programs that break a property of PLMR, on chips whose routers hold few routes.

`wafertlm check` has all four properties; warnings are of what transfers alone tell.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self, cast

from tlm.check import TileLimits, Verdict, chip_limits, of_transfers
from tlm.chips import Chip
from tlm.program import Program
from workloads.kernels.catalogue import KERNELS, Plan
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemv.plan import GemvPlan
from workloads.machine.place import Place

_NAMES = {"P": "parallelism", "L": "latency", "M": "memory", "R": "routing"}


@dataclass(frozen=True, slots=True)
class RunKernel:
    """A kernel that a command runs.

    Attributes:
        kernel: Its name.
        grid: Rows and columns.
        transfers: What decides them, but for lengths.
        program: Its program.
    """

    kernel: str
    grid: tuple[int, int]
    transfers: Hashable
    program: Program = field(compare=False)

    @classmethod
    def of(cls, kernel: str, place: Place, plan: Plan, program: Program) -> Self:
        """A kernel as it is planned on a place."""
        # Nothing is known of a user's kernel: each run is like no other.
        transfers = _without_lengths(plan) if kernel in KERNELS else object()
        return cls(kernel, (place.rows, place.cols), transfers, program)


def _without_lengths(plan: Plan) -> Hashable:
    """A plan, products in the tiles alike for all sizes: a wafer runs many, each long to walk."""
    if isinstance(plan, GemmPlan):
        plan = replace(plan, block=(1, 1, 1), step_cycles=0, align_cycles=0)
        return replace(plan, a_flits=1, b_flits=1, c_flits=1)
    if isinstance(plan, GemvPlan):
        return replace(plan, block=(1, 1), product_cycles=0, combine_cycles=0, c_flits=1)
    return cast(Hashable, plan)


def plmr_warnings(chip: Chip, kernels: Iterable[RunKernel]) -> list[str]:
    """A line for each property that a kernel breaks on a chip; none where routes are free."""
    limits = chip_limits(chip)
    if limits.routing_paths is None:
        return []
    found = {
        f"{each.kernel} on {each.grid[0]}x{each.grid[1]} {told(verdict)}": None
        for each in kernels
        for verdict in _of_transfers(each, limits)
        if not verdict.holds
    }
    return list(found)


def told(verdict: Verdict) -> str:
    """A verdict that does not hold, in words."""
    name = f"{verdict.letter} ({_NAMES[verdict.letter]})"
    if verdict.letter == "P":
        return f"breaks {name}: {verdict.measure}: found {verdict.found:.1%}; needed: all"
    found = f"{verdict.measure}: found {verdict.found:,}"
    return f"breaks {name}: {found}; allowed: {verdict.bound:,}"


@lru_cache(1024)
def _of_transfers(each: RunKernel, limits: TileLimits) -> tuple[Verdict, ...]:
    return tuple(of_transfers(each.program, limits))
