"""Warnings of programs that break a property of PLMR, on chips whose routers hold few routes.

`wafertlm check` has all four properties; warnings are of what transfers alone tell.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from tlm.check import TileLimits, Verdict, chip_limits, of_transfers
from tlm.chips import Chip
from tlm.program import Program

_NAMES = {"P": "parallelism", "L": "latency", "M": "memory", "R": "routing"}


@dataclass(frozen=True, slots=True)
class RunKernel:
    """A kernel that a command runs.

    Attributes:
        kernel: Its name.
        grid: Rows and columns.
        variant: Choices that change its transfers.
        program: Its program, which these three determine but for lengths.
    """

    kernel: str
    grid: tuple[int, int]
    variant: Hashable
    program: Program = field(compare=False)


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
