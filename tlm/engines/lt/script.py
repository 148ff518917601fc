"""What runs of a program are made of, kept so that it is planned once and run as often as asked.

Each run is on times of its own. Which calls of compiled code it takes is the same for all.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.machine import Fixed, Machine
from tlm.engines.outcome import Outcome

#: Of a machine, in order, each with its arguments.
Calls = list[tuple[Callable[..., None], tuple[Any, ...]]]

_MOST = 4
"""Scripts of a program."""


@dataclass(frozen=True, slots=True)
class Script:
    """A run, planned.

    Attributes:
        operations: How many the program has.
        fixed: What all its runs have in common.
        calls: What a run does.
        busy_cycles: Of each computing engine, shape (2, rows, columns).
    """

    operations: int
    fixed: Fixed
    calls: Calls
    busy_cycles: NDArray[np.int64]

    def run(self) -> Outcome:
        """Run the program."""
        machine = Machine(self.fixed)
        for call, arguments in self.calls:
            call(machine, *arguments)
        return machine.outcome(self.busy_cycles)


def keep_script(known: dict[Any, Script], key: Hashable, script: Script) -> None:
    """Keep a script of a program by all else that it depends on, in place of others if need be."""
    if len(known) == _MOST:
        known.clear()
    known[key] = script
