"""What steps of the loosely-timed engine name by offset: tiles, and delays over each distance."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.step import Pools
from tlm.engines.transfer_times import arrival_cycles, credit_cycles, hold_cycles
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Indices

Fields = dict[str, int]
"""Of `step.STEP`, by name."""
Lines = Iterable[int] | Indices
_MOST_KEPT = 2**14


class Laws:
    """Fields of steps, each put into the pools once.

    Args:
        timing: Measured constants of the router.
        pools: Where numbers lie.
        launch_cycles: From the start of a transfer to its first flit.
    """

    def __init__(self, timing: NocTiming, pools: Pools, launch_cycles: int) -> None:
        self._timing, self._pools, self._launch_cycles = timing, pools, launch_cycles
        self._kept: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Forget what lies in the pools."""
        self._kept.clear()

    def length(self, flits: int) -> Fields:
        """Fields that say how long a transfer is, and what it costs to start."""
        return {"flits": flits, "launch": self._launch_cycles}

    def _credit_cycles(self, hops: int) -> int:
        """From the freeing of a slot to the first flit that a sender so far away has for it."""
        return credit_cycles(self._timing, hops) + self._launch_cycles

    def send_rows(self, rows: range, targets: bytes) -> tuple[Fields, int]:
        """Fields of the rows of unicasts; and the rows between a source and its target, at most."""
        to_rows = np.frombuffer(targets, dtype=np.int64)
        hops = np.abs(to_rows - np.array(rows))
        fields = {
            **rows_of(rows),
            "to_rows": self._pools.put_indices(to_rows),
            "extra": self._pools.put_delays(hops * self._timing.hop_cycles),
        }
        return fields, int(hops.max())

    def send(self, cols: range, targets: bytes, flits: int) -> tuple[Fields, int, bool]:
        """Fields of the columns of unicasts; the columns crossed at most; whether none are."""
        to_cols = np.frombuffer(targets, dtype=np.int64)
        order = np.argsort(to_cols, kind="stable")
        hops = np.abs(to_cols - np.array(cols))[order]
        fields = {**self.columns(cols)}
        there = self.columns(to_cols[order])
        fields |= {"to_columns": there["columns"], "to_first": there["first"]}
        if (order == np.arange(len(order))).all():
            fields |= {"order": -1, "inverse": -1}
        else:
            inverse = np.argsort(order, kind="stable")
            fields["order"] = self._pools.put_order(order)
            fields["inverse"] = self._pools.put_order(inverse)
        fields |= self._delays(hops, lambda hop: arrival_cycles(self._timing, hop, flits))
        fields |= self._buffers(hops, flits)
        straight = bool((to_cols == np.array(cols)).all())
        return fields, int(hops.max()), straight

    def _buffers(self, hops: NDArray[np.int64], flits: int) -> Fields:
        """What holds a source whose transfer waits at its end: the buffers on the way are full.

        A place in a buffer is filled again ``return_cycles`` after it was left.
        """
        timing = self._timing
        depth = timing.fifo_depth + timing.output_depth
        needed = flits > depth * (1 + int(hops.min()))
        return {
            "buffers": self._pools.put_delays(hops + 1) if needed else -1,
            "packet": depth,
            "room": depth - timing.return_cycles,
            "per_hop": timing.hop_cycles,
        }

    def multicast(self, segment: range, root: int, flits: int) -> tuple[Fields, int]:
        """Fields of a multicast from a place of a line; more cycles than it can take."""
        forks = len(segment) > 1
        hops = np.abs(np.array(segment) - root)
        fields = self._delays(
            hops, lambda hop: arrival_cycles(self._timing, hop, flits, multicast=forks)
        )
        fields["hold"] = hold_cycles(self._timing, flits, multicast=forks)
        fields |= self._buffers(hops, flits)
        for name, hop in (("occupied", 1), ("own_occupied", 0)):
            arrival = arrival_cycles(self._timing, hop, flits, multicast=forks)
            fields[name] = arrival - arrival_cycles(self._timing, hop, 1) + 1
        return fields, self.longest_cycles(int(hops.max()), flits)

    def reduce(self, segment: range, root: int, flits: int) -> tuple[Fields, int]:
        """Fields of a reduction to a place of a line; more cycles than it can take."""
        timing = self._timing
        hops = np.abs(np.array(segment) - root)
        farthest = int(hops.max())
        per_hop = timing.hop_cycles + timing.reduce_cycles
        arrival = timing.reduction_cycles(farthest, flits) + 1
        interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
        # The flit that leaves its place in the first buffer to the tail.
        packets, flit = divmod(flits - timing.fifo_depth - 1, timing.fifo_depth)
        packets = max(packets, -1)
        fields = {
            "credit": self._pools.put_delays([self._credit_cycles(hop) for hop in hops]),
            "latency": self._pools.put_delays([arrival - farthest * per_hop]),
            "per_hop": per_hop,
            "packet": timing.fifo_depth * interval,
            "ahead": packets,
            "hold": flit * interval + timing.hop_cycles + 2,
        }
        longest = arrival + credit_cycles(timing, farthest) + (packets + 2) * (per_hop + flits)
        return fields, longest

    def _delays(self, hops: NDArray[np.int64], arrival: Callable[[int], int]) -> Fields:
        """A credit's delay and a transfer's latency over each number of hops."""
        counts = range(int(hops.max()) + 1)
        laws = {
            "credit": [self._credit_cycles(hop) for hop in counts],
            "latency": [arrival(hop) for hop in counts],
        }
        return {name: self._pools.put_delays(np.array(law)[hops]) for name, law in laws.items()}

    def columns(self, columns: Lines) -> Fields:
        """Fields that say of which columns a step is, rising ones."""
        if isinstance(columns, range):
            fields: Fields = self.keep(self._indexed, columns)
            return fields
        return self._indexed(columns)

    def _indexed(self, columns: Lines) -> Fields:
        indices = np.array(columns)
        first = int(indices[0]) if (np.diff(indices) == 1).all() else -1
        offset = self._pools.put_indices(indices)
        return {"columns": offset, "first": first, "size": len(indices)}

    def keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """What is made of some arguments, which is kept."""
        key = (make.__name__, *arguments)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = make(*arguments)
        return kept

    def longest_cycles(self, hops: int, flits: int) -> int:
        """More than a transfer and its credit can add to any time."""
        arrival = arrival_cycles(self._timing, hops, flits, multicast=True)
        return arrival + credit_cycles(self._timing, hops) + flits


def rows_of(rows: range) -> Fields:
    """Fields that say of which rows a step is."""
    return {"row_first": rows.start, "row_step": rows.step, "rows": len(rows)}


def shared_hops(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> int:
    """Links that the transfers of a send cross in all, if two of them share one; else 0.

    Those that move along both axes are not followed: 0.
    """
    by_row, by_col = _hops(tiles.rows, to_rows), _hops(tiles.cols, to_cols)
    if by_row[0] and by_col[0]:
        return 0
    crossed, most = by_col if by_col[0] else by_row
    return crossed * len(tiles.rows if by_col[0] else tiles.cols) if most > 1 else 0


def _hops(places: range, targets: bytes) -> tuple[int, int]:
    """Links crossed in all on a line, and how many cross the busiest of them in a direction."""
    here, there = np.array(places), np.frombuffer(targets, dtype=np.int64)
    size = int(max(here.max(), there.max())) + 1
    most = 0
    for forward in (True, False):
        going = (there > here) == forward
        first, last = (here, there) if forward else (there, here)
        changes = np.bincount(first[going], minlength=size) - np.bincount(
            last[going], minlength=size
        )
        most = max(most, int(np.cumsum(changes).max()))
    return int(np.abs(there - here).sum()), most
