"""Kernels that serving measures at level `lt`: where that is kept, and what is told of it."""

import math
import time

from rich.markup import escape

from wafertlm.output import log
from workloads.serving.price.lt_runs import LtRuns

#: Seconds between two lines.
_TOLD_EVERY_S = 5.0


def lt_runs() -> LtRuns:
    """Measurements beside the built models, told on stderr."""
    from cosim.verilated.cache import cache_folder  # slow to import: only at level lt

    return LtRuns(cache_folder() / "lt", _Told())


class _Told:
    def __init__(self) -> None:
        self._measured, self._due_s = 0, -math.inf

    def __call__(self, what: str) -> None:
        """Say before a measurement what it is of, unless something was said just now."""
        if time.monotonic() >= self._due_s:
            log(escape(f"level lt: measured {self._measured} points of the grid; next: {what}"))
            self._due_s = time.monotonic() + _TOLD_EVERY_S
        self._measured += 1
