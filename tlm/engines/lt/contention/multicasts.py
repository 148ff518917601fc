"""Multicasts that meet, for the loosely-timed engine: their tokens, and what is under way.

Units are taken from and given to the state of the run, as the compiled steps do it, whole sets of
tiles at a time. Between that the packets go through the network (`multicast_packets`), those of
several operations at once, and what has been sent stays on its way until an operation needs it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention import multicast_network as parts
from tlm.engines.lt.contention import multicast_packets as packets
from tlm.engines.lt.contention.held import Taken, lines_of
from tlm.engines.lt.contention.tiles import Cycles, give_units, leave_tiles, take_units
from tlm.engines.lt.state import TileSlot, Times, engine_ends
from tlm.engines.lt.tokens import Fault
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Engine, Multicast

_MOST_ARRIVALS = 2**24
"""Tiles times operations that are under way at a time, if there are more than two."""
_MOST_OPERATIONS = 1024


def most_under_way(rows: int, cols: int) -> int:
    """How many operations, each on lines of its own, can be under way at a time."""
    return min(_MOST_OPERATIONS, max(2, _MOST_ARRIVALS // (rows * cols)))


class MulticastLinks:
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
        routers = self._rows * self._cols
        most, self._lines = most_under_way(self._rows, self._cols), max(self._rows, self._cols)
        self._network = parts.Network(
            router=parts.router_of(timing),
            nodes=parts.fresh_nodes(routers),
            queues=parts.fresh_queues(routers),
            trees=np.empty((most * self._lines, parts.TREE_COLUMNS), dtype=np.int64),
            wheel=np.zeros(parts.WHEEL_SIZE, dtype=np.int64),
            arrivals=np.empty((most, routers), dtype=np.int32),
            owed=np.zeros(most, dtype=np.int64),
            answers=np.empty(0, dtype=np.int64),
            served=np.empty(0, dtype=np.int64),
            graph=parts.no_graph(),
            cols=self._cols,
        )
        self._last_tree = np.full((self._rows, self._cols), parts.NONE, dtype=np.int64)
        self._free = list(reversed(range(most)))
        self._under_way: dict[int, list[tuple[int, Multicast]]] = {}

    def __contains__(self, taken: Taken) -> bool:
        return taken.number in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, taken: Taken) -> Fault | None:
        """Take the units of a multicast, and send it on its way."""
        if not self._under_way:
            self._ports()[:] = self._times[TileSlot.PORT : TileSlot.BUSY + 1].transpose(1, 2, 0)
        lines = [(self._free.pop(), each) for each in lines_of(taken.operation)]
        self._under_way[taken.number], (row, _) = lines, lines[0]
        self._network.owed[row] = sum(self._packets(each) for _, each in lines)
        faults = [self._start(taken, slot, multicast, row) for slot, multicast in lines]
        return next((fault for fault in faults if fault), None)

    def _packets(self, multicast: Multicast) -> int:
        """How many packets come to a tile, of all of them."""
        lines, _ = multicast.root_lines
        count = -(-multicast.flits // self._longest_packet(multicast))
        return len(lines) * len(multicast.segment) * count

    def _start(self, taken: Taken, slot: int, multicast: Multicast, row: int) -> Fault | None:
        """Send one on its way, whose trees begin at a slot and whose operation has a row."""
        ready, fault = self._take(taken, multicast)
        first, roots = slot * self._lines, multicast.near.index
        self._describe(self._network.trees[first : first + len(ready)], multicast, ready, row)
        before, free = self._last_tree[roots], self._times[Engine.TRANSFER][roots]
        for k in range(len(ready)):
            previous = self._network.trees[before[k]]
            if before[k] != parts.NONE and previous[parts.Tree.NEXT] == parts.NONE:
                previous[parts.Tree.NEXT] = first + k
                continue
            since = free[k]
            if before[k] != parts.NONE:
                since = max(since, previous[parts.Tree.END])
            packets.begin(self._network, first + k, int(since))
        self._last_tree[roots] = np.arange(first, first + len(ready))
        return fault

    def finish(self, taken: Taken, note: Callable[..., object] | None = None) -> Fault | None:
        """Let a multicast come to all its tiles, and give its units.

        ``note`` is told of it: when engines are free, and when it has come to its tiles.
        """
        lines = self._under_way.pop(taken.number)
        row, _ = lines[0]
        packets.run(self._network, row)
        come = self._network.arrivals[row].reshape(self._rows, self._cols)
        faults = [self._finish(taken, slot, multicast, come) for slot, multicast in lines]
        if note is not None:
            ends = engine_ends(self._times, self._launch_cycles)
            note(taken.number, taken.operation, ends, come)
        self._free += [slot for slot, _ in lines]
        if not self._under_way:
            self._times[TileSlot.PORT : TileSlot.BUSY + 1] = self._ports().transpose(2, 0, 1)
        return next((fault for fault in faults if fault), None)

    def _finish(
        self, taken: Taken, slot: int, multicast: Multicast, come: NDArray[np.int32]
    ) -> Fault | None:
        """Give the units of one that has come."""
        roots, targets = multicast.near.index, multicast.far.index
        here = np.arange(len(roots[0])) + slot * self._lines
        ends = self._network.trees[here, parts.Tree.END].astype(np.int32)
        before = self._times[TileSlot.LEFT][roots]
        leave_tiles(self._times, roots, ends, before, self._launch_cycles)
        last = self._last_tree[roots]
        self._last_tree[roots] = np.where(last == here, parts.NONE, last)
        full = give_units(self._times, taken.places["gives"], roots, ends)
        over = give_units(self._times, taken.places["arrivals"], targets, come[targets])
        return taken.fault(full or over)

    def _longest_packet(self, multicast: Multicast) -> int:
        """Flits of the longest packet: all of what goes to one tile, as by a send."""
        return self._timing.packet_bound if multicast.forks else multicast.flits

    def _ports(self) -> Times:
        """When ejection ports are free and since when they are busy, shape (rows, columns, 2)."""
        nodes = self._network.nodes.reshape(-1, self._cols, parts.NODE_COLUMNS)
        return nodes[:, :, parts.PORT_COLUMNS]

    def _take(self, taken: Taken, multicast: Multicast) -> tuple[Cycles, Fault | None]:
        """Take units; when each root knows of them, shape (lines,)."""
        _, places = multicast.root_lines
        ready, missing = take_units(self._times, taken.places["takes"], multicast.near.index)
        slots, unfree = take_units(self._times, taken.places["slots"], multicast.far.index)
        hops = np.abs(np.array(multicast.segment) - places[:, None])
        known = (slots if multicast.by_row else slots.T) + credit_cycles_over(self._timing, hops)
        ready = np.maximum(ready, known.max(axis=1)) + self._launch_cycles
        return ready, taken.fault(missing or unfree)

    def _describe(self, trees: Cycles, multicast: Multicast, ready: Cycles, row: int) -> None:
        """Fill in the trees of a multicast, one for each of its roots."""
        lines, places = multicast.root_lines
        along_row, segment = multicast.by_row, multicast.segment
        columns = {
            parts.Tree.BASE: np.array(lines) * (self._cols if along_row else 1),
            parts.Tree.STEP: 1 if along_row else self._cols,
            parts.Tree.ROOT: places,
            parts.Tree.FIRST: segment[0],
            parts.Tree.LAST: segment[-1],
            parts.Tree.STRIDE: segment.step,
            parts.Tree.FLITS: multicast.flits,
            parts.Tree.PACKET: self._longest_packet(multicast),
            parts.Tree.READY: ready,
            parts.Tree.OPERATION: row,
            parts.Tree.NEXT: parts.NONE,
            parts.Tree.ROOM: self._longest_packet(multicast),
            parts.Tree.ANSWER: parts.NONE,
            parts.Tree.BEFORE: 0,
            parts.Tree.WAITS: 1,
            parts.Tree.JOB: parts.Job.TREE,
        }
        parts.fill(trees, columns)
