"""Multicasts that meet, for the loosely-timed engine: their tokens, and what is under way.

Units are taken from and given to the state of the run, as the compiled steps do it, whole sets of
tiles at a time. Between that the packets go through the network (`multicast_packets`), those of
several operations at once, and what has been sent stays on its way until an operation needs it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention import multicast_packets as packets
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.state import EMPTY, Slot, Times
from tlm.engines.lt.tokens import Fault
from tlm.engines.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Engine, Multicast, root_lines

_MOST_ARRIVALS = 2**24
"""Tiles times operations that are under way at a time, if there are more than two."""
_MOST_OPERATIONS = 1024

_Cycles = NDArray[np.int64]
Tiles = tuple[slice, slice] | tuple[NDArray[np.int64], ...]
"""Some tiles, as they index an array over the grid."""


def most_under_way(rows: int, cols: int) -> int:
    """How many operations can be under way at a time."""
    return min(_MOST_OPERATIONS, max(2, _MOST_ARRIVALS // (rows * cols)))


class Links:
    """The network with the multicasts that are on their way.

    Args:
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        times: State of the run as the tiles lie, shape (slots, rows, columns).
    """

    def __init__(self, timing: NocTiming, launch_cycles: int, times: Times) -> None:
        packets.ready()
        self._timing, self._launch_cycles, self._times = timing, launch_cycles, times
        _, self._rows, self._cols = times.shape
        tiles = self._rows * self._cols
        most, self._lines = most_under_way(self._rows, self._cols), max(self._rows, self._cols)
        self._law = packets.law_of(timing)
        self._nodes = packets.fresh_nodes(tiles)
        self._wheel = np.zeros(packets.WHEEL_SIZE, dtype=np.int64)
        self._trees = np.empty((most * self._lines, packets.TREE_COLUMNS), dtype=np.int64)
        self._arrivals = np.empty((most, tiles), dtype=np.int32)
        self._owed = np.zeros(most, dtype=np.int64)
        self._last_tree = np.full((self._rows, self._cols), packets.NONE, dtype=np.int64)
        self._free = list(reversed(range(most)))
        self._under_way: dict[int, int] = {}

    def __contains__(self, taken: Taken) -> bool:
        return taken.number in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, taken: Taken) -> Fault | None:
        """Take the units of a multicast, and send it on its way."""
        multicast = taken.operation
        assert isinstance(multicast, Multicast)
        if not self._under_way:
            self._ports()[:] = self._times[Slot.PORT : Slot.BUSY + 1].transpose(1, 2, 0)
        ready, fault = self._take(taken, multicast)
        slot = self._under_way[taken.number] = self._free.pop()
        first = slot * self._lines
        trees = self._trees[first : first + len(ready)]
        self._describe(trees, multicast, ready, slot)
        count = -(-multicast.flits // self._timing.fifo_depth)
        self._owed[slot] = len(ready) * len(multicast.segment) * count
        roots = _roots(multicast)
        before, free = self._last_tree[roots], self._times[Engine.TRANSFER][roots]
        for k in range(len(ready)):
            previous = self._trees[before[k]]
            if before[k] != packets.NONE and previous[packets.NEXT] == packets.NONE:
                previous[packets.NEXT] = first + k
                continue
            since = free[k] if before[k] == packets.NONE else previous[packets.END]
            packets.begin(self._law, self._nodes, self._trees, self._wheel, first + k, int(since))
        self._last_tree[roots] = np.arange(first, first + len(ready))
        return fault

    def finish(self, taken: Taken, note: Callable[..., object] | None = None) -> Fault | None:
        """Let a multicast come to all its tiles, and give its units.

        ``note`` is told of it: when engines are free, and when it has come to its tiles.
        """
        multicast = taken.operation
        assert isinstance(multicast, Multicast)
        slot = self._under_way.pop(taken.number)
        packets.run(
            self._law,
            self._nodes,
            self._trees,
            self._cols,
            self._wheel,
            self._arrivals,
            self._owed,
            slot,
        )
        roots, targets = _roots(multicast), _targets(multicast)
        here = np.arange(len(roots[0])) + slot * self._lines
        ends = self._trees[here, packets.END].astype(np.int32)
        self._times[Engine.TRANSFER][roots] = ends
        last = self._last_tree[roots]
        self._last_tree[roots] = np.where(last == here, packets.NONE, last)
        come = self._arrivals[slot].reshape(self._rows, self._cols)
        full = give_units(self._times, taken, "gives", roots, ends)
        over = give_units(self._times, taken, "arrivals", targets, come[targets])
        if note is not None:
            note(taken.number, multicast, self._times[: len(Engine)], come)
        self._free.append(slot)
        if not self._under_way:
            self._times[Slot.PORT : Slot.BUSY + 1] = self._ports().transpose(2, 0, 1)
        return full or over

    def _ports(self) -> Times:
        """When ejection ports are free and since when they are busy, shape (rows, columns, 2)."""
        nodes = self._nodes.reshape(self._rows, self._cols, -1)
        return nodes[:, :, packets.PORT_COLUMNS]

    def _take(self, taken: Taken, multicast: Multicast) -> tuple[_Cycles, Fault | None]:
        """Take units; when each root knows of them, shape (lines,)."""
        lines, places = root_lines(multicast)
        ready = np.full(len(lines), EMPTY, dtype=np.int64)
        fault = None
        for slot, depth in taken.places["takes"]:
            oldest, missing = oldest_units(self._times, slot, depth, _roots(multicast))
            np.maximum(ready, oldest.astype(np.int64) + self._launch_cycles, out=ready)
            if missing and fault is None:
                fault = (taken.number, multicast, slot)
        hops = np.abs(np.array(multicast.segment) - places[:, None])
        laws = np.array([credit_cycles(self._timing, hop) for hop in range(int(hops.max()) + 1)])
        credit = laws[hops] + self._launch_cycles
        for slot, depth in taken.places["slots"]:
            oldest, missing = oldest_units(self._times, slot, depth, _targets(multicast))
            lined = oldest if multicast.along == "row" else oldest.T
            np.maximum(ready, (lined + credit).max(axis=1), out=ready)
            if missing and fault is None:
                fault = (taken.number, multicast, slot)
        return ready, fault

    def _describe(self, trees: _Cycles, multicast: Multicast, ready: _Cycles, slot: int) -> None:
        """Fill in the trees of an operation, one for each of its roots."""
        lines, places = root_lines(multicast)
        along_row, segment = multicast.along == "row", multicast.segment
        columns = {
            packets.BASE: np.array(lines) * (self._cols if along_row else 1),
            packets.STEP: 1 if along_row else self._cols,
            packets.ROOT: places,
            packets.FIRST: segment[0],
            packets.LAST: segment[-1],
            packets.STRIDE: segment.step,
            packets.FLITS: multicast.flits,
            packets.READY: ready,
            packets.OPERATION: slot,
            packets.NEXT: packets.NONE,
        }
        for column, values in columns.items():
            trees[:, column] = values


def _roots(multicast: Multicast) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lines, places = root_lines(multicast)
    roots = (np.array(lines), places)
    return roots if multicast.along == "row" else roots[::-1]


def _targets(multicast: Multicast) -> tuple[slice, slice]:
    lines, segment = (
        slice(places.start, places.stop, places.step)
        for places in (root_lines(multicast)[0], multicast.segment)
    )
    return (lines, segment) if multicast.along == "row" else (segment, lines)


def oldest_units(times: Times, slot: int, depth: int, tiles: Tiles) -> tuple[Times, bool]:
    """Times of the oldest units of a token, which are taken, and whether one is missing."""
    oldest = np.array(times[slot][tiles])
    for place in range(slot + 1, slot + depth):
        times[place - 1][tiles] = times[place][tiles]
    if depth:
        times[slot + depth - 1][tiles] = EMPTY
    return oldest, depth > 0 and bool((oldest == EMPTY).any())


def give_units(times: Times, taken: Taken, field: str, tiles: Tiles, given: Times) -> Fault | None:
    """Append units to tokens."""
    fault = None
    for slot, depth in taken.places[field]:
        if depth == 0:
            times[slot][tiles] = given
            continue
        left = given
        for place in range(slot, slot + depth):
            held = times[place][tiles]
            is_free = held == EMPTY
            times[place][tiles] = np.where(is_free, left, held)
            left = np.where(is_free, EMPTY, left)
        if (left != EMPTY).any() and fault is None:
            fault = (taken.number, taken.operation, -slot)
    return fault
