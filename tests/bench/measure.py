"""Rows of the speed table: repeated measurements of one figure, and the target it is held to."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, measured several times.

    Attributes:
        work: What was done.
        unit: Unit of the figure; a name that ends in ``/CPU-s`` or ``x`` is better if higher.
        runs: The figure in each run.
        target: The least value, or the highest where lower is better; None: only told.
        equal_work: What both sides of a comparison were seen to do alike; empty if there is one.
    """

    work: str
    unit: str
    runs: tuple[float, ...]
    target: float | None = None
    equal_work: str = ""

    @property
    def higher_is_better(self) -> bool:
        """Of a rate and of a gain."""
        return self.unit.endswith("/CPU-s") or self.unit.startswith("x ")

    @property
    def median(self) -> float:
        """The figure that is held to the target."""
        return statistics.median(self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the median is as good as the target; None without one."""
        if self.target is None:
            return None
        if self.higher_is_better:
            return self.median >= self.target
        return self.median <= self.target

    def to_json(self) -> dict[str, Any]:
        """The row as JSON holds it."""
        return {
            "work": self.work,
            "unit": self.unit,
            "median": self.median,
            "least": min(self.runs),
            "most": max(self.runs),
            "runs": list(self.runs),
            "target": self.target,
            "met": self.met,
            "equal_work": self.equal_work,
        }


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of a call in this process, all threads."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def ratios(dividends: Sequence[float], divisors: Sequence[float]) -> tuple[float, ...]:
    """One by one, of measurements that were made next to each other."""
    return tuple(a / b for a, b in zip(dividends, divisors, strict=True))


def short(value: float) -> str:
    """Three figures that count, and M from a million on."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
