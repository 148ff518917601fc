"""How many times as long as at `perf` kernels take at another level, and how well that is known.

Parts are measured at points of a grid (`workloads.serving.price.level_grid`). In between the ratio
is interpolated; the error of that is the worst of some checks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from workloads.serving.price.level_grid import around, checks, kind
from workloads.serving.price.level_runs import Ran


class LevelRatios:
    """Ratios of parts.

    Args:
        ran: Measures a part: cycles of as many kernels, or sums of kernels, for all parts of its
            kind.
    """

    def __init__(self, ran: Callable[[Any], Ran]) -> None:
        self._ran = ran
        self._measured: dict[Any, tuple[float, ...]] = {}
        self._errors: dict[Any, list[float]] = {}

    def of(self, part: Any) -> list[float]:
        """Ratio of each of a part's kernels."""
        points = [(self._at(point), weight) for point, weight in around(part)]
        columns = zip(*(ratios for ratios, _ in points), strict=True)
        weights = [weight for _, weight in points]
        return [sum(map(float.__mul__, ratios, weights)) for ratios in columns]

    def error(self, part: Any) -> float:
        """The largest error of interpolation in the checks of a part's kind, as a part of 1."""
        return max(map(abs, self.errors(part)))

    def errors(self, part: Any) -> list[float]:
        """Errors of interpolation in the checks of a part's kind, of each the same for all of it.

        Those of two places are of the same sizes, in the same order.
        """
        of = kind(part)
        if of not in self._errors:
            errors = []
            for check in checks(part):
                ran = self._ran(check)
                errors.append(sum(scaled(ran.perf, self.of(check))) / sum(ran.measured) - 1)
            self._errors[of] = errors
        return self._errors[of]

    def _at(self, point: Any) -> tuple[float, ...]:
        """The same at a point of the grid, as measured."""
        if point not in self._measured:
            ran = self._ran(point)
            found = zip(ran.measured, ran.perf, strict=True)
            self._measured[point] = tuple(measured / perf for measured, perf in found)
        return self._measured[point]


def scaled(cycles: Sequence[int], ratios: Sequence[float]) -> list[float]:
    """Cycles at another level, by those at `perf`."""
    return [one * ratio for one, ratio in zip(cycles, ratios, strict=True)]
