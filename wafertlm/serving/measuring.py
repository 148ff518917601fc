"""Kernels that serving measures at a level: where that is kept, and what is told of it."""

from collections.abc import Sequence

from wafertlm.output import SeldomLog, log
from workloads.serving.price.cost import Batch
from workloads.serving.price.level_runs import CountedRuns, LevelRuns, RunLevel
from workloads.serving.price.models import OnTiles

#: All kinds of kernels, of the least sizes.
_ANY = Batch(((1, 0),), 1, 1, 2)


def level_runs(level: RunLevel) -> LevelRuns:
    """Measurements beside the built models, told on stderr."""
    from cosim.verilated.cache import cache_folder  # slow to import: only at such a level

    return LevelRuns(level, cache_folder() / level, _Told(level))


def hold_cost(prices: Sequence[OnTiles]) -> None:
    """Say what measurements at level `at` cost that every run needs, before the first of them.

    Those are the ones by which interpolation is checked; sizes of the load come to them.

    Raises:
        InputError: if it is too much.
    """
    from cosim.verilated.cache import cache_folder  # slow to import: only at such a level

    counted = CountedRuns(cache_folder() / "at")
    for price in prices:
        at = price.at_level(counted)
        at.cost(_ANY)
        at.at_end("high").cost(_ANY)
    log(f"level at: at least {counted.cost}")


class _Told:
    def __init__(self, level: RunLevel) -> None:
        self._level, self._measured, self._log = level, 0, SeldomLog()

    def __call__(self, what: str) -> None:
        """Say before a measurement what it is of."""
        told = f"measured {self._measured} points of the grid; next: {what}"
        self._log(f"level {self._level}: {told}")
        self._measured += 1
