"""What steps of the loosely-timed engine name by offset: tiles, and delays over each distance."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.step import Pools
from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles, credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Indices

Fields = dict[str, int]
"""Of `step.STEP`, by name."""
Lines = Iterable[int] | Indices
_MOST_KEPT = 2**14


class Laws:
    """Fields of steps that several operations have, each put into the pools once.

    Args:
        timing: Measured constants of the router.
        pools: Where numbers lie.
        launch_cycles: From the start of a transfer to its first flit.
    """

    def __init__(self, timing: NocTiming, pools: Pools, launch_cycles: int) -> None:
        self.timing, self.pools, self.launch_cycles = timing, pools, launch_cycles
        self._kept: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Forget what lies in the pools."""
        self._kept.clear()

    def credits(self, hops: NDArray[np.int64]) -> int:
        """Offset of delays in cycles, one for each of some numbers of ``hops``, shape (pairs,).

        From a slot's freeing to the first flit that a sender has for it.
        """
        return self.pools.put_delays(credit_cycles_over(self.timing, hops) + self.launch_cycles)

    def delays(self, hops: NDArray[np.int64], arrival: Callable[[int], int]) -> Fields:
        """A credit's delay and a transfer's latency over each number of ``hops``, (pairs,)."""
        latency = np.array([arrival(count) for count in range(int(hops.max()) + 1)])
        return {"credit": self.credits(hops), "latency": self.pools.put_delays(latency[hops])}

    def buffers(self, hops: NDArray[np.int64], flits: int) -> Fields:
        """What holds a source whose transfer waits at its end: the buffers on the way are full.

        A place in a buffer is filled again ``return_cycles`` after it was left. ``hops`` has shape
        (pairs,).
        """
        depth = self.timing.input_places + self.timing.output_depth
        return {
            "buffers": self.pools.put_delays(hops + 1),
            "most": (flits - 1) // depth,
            "room": depth - self.timing.return_cycles,
            "per_hop": self.timing.hop_cycles,
        }

    def columns(self, columns: Lines) -> Fields:
        """Fields that say of which columns a step is, rising ones."""
        if isinstance(columns, range):
            fields: Fields = self.keep(self._indexed, columns)
            return fields
        return self._indexed(columns)

    def _indexed(self, columns: Lines) -> Fields:
        indices = np.array(columns)
        first = int(indices[0]) if (np.diff(indices) == 1).all() else -1
        offset = self.pools.put_indices(indices)
        return {"columns": offset, "first": first, "size": len(indices)}

    def keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """What is made of some arguments, which is kept."""
        key = (make, *arguments)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = make(*arguments)
        return kept

    def longest_cycles(self, hops: int, flits: int) -> int:
        """More than a transfer and its credit can add to any time."""
        arrival = arrival_cycles(self.timing, hops, flits, multicast=True)
        return arrival + credit_cycles(self.timing, hops) + flits


def rows_of(rows: range) -> Fields:
    """Fields that say of which rows a step is."""
    return {"row_first": rows.start, "row_step": rows.step, "rows": len(rows)}
