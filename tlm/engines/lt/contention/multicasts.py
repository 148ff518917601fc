"""Multicasts that meet, for the loosely-timed engine: their tokens, and what is under way.

Units are taken from and given to the state of the run, as the compiled steps do it, whole sets of
tiles at a time. Between that the packets go through the network (`multicast_packets`), those of
several operations at once, and what has been sent stays on its way until an operation needs it.
Blocks of off-chip memory (`blocks`) go among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention import blocks
from tlm.engines.lt.contention import multicast_packets as packets
from tlm.engines.lt.contention.held import Taken, lines_of
from tlm.engines.lt.contention.tiles import Cycles, TileIndex, give_units, leave_tiles, take_units
from tlm.engines.lt.state import TileSlot, Times, engine_ends
from tlm.engines.lt.tokens import Fault
from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program.operations import Engine, Multicast, OffChip, Operation

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
        edge: Channels whose blocks go this way, too.
    """

    def __init__(
        self, timing: NocTiming, launch_cycles: int, times: Times, edge: Edge | None = None
    ) -> None:
        packets.ready()
        self._edge = edge
        self._timing, self._launch_cycles, self._times = timing, launch_cycles, times
        _, self._rows, self._cols = times.shape
        routers = (self._rows + (0 if edge is None else edge.edge_rows)) * self._cols
        most, self._lines = most_under_way(self._rows, self._cols), max(self._rows, self._cols)
        self._network = packets.Network(
            router=packets.router_of(timing),
            nodes=packets.fresh_nodes(routers),
            queues=packets.fresh_queues(routers),
            trees=np.empty((most * self._lines, packets.TREE_COLUMNS), dtype=np.int64),
            wheel=np.zeros(packets.WHEEL_SIZE, dtype=np.int64),
            arrivals=np.empty((most, routers), dtype=np.int32),
            owed=np.zeros(most, dtype=np.int64),
            answers=np.full(self._cols, packets.NONE, dtype=np.int64),
            cols=self._cols,
        )
        self._last_tree = np.full((self._rows, self._cols), packets.NONE, dtype=np.int64)
        self._free = list(reversed(range(most)))
        self._under_way: dict[int, list[tuple[int, Multicast | OffChip]]] = {}
        self._answering: dict[int, int] = {}  # slots of answers, by those of their requests

    def __contains__(self, taken: Taken) -> bool:
        return taken.number in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, taken: Taken) -> Fault | None:
        """Take the units of a multicast, and send it on its way."""
        if not self._under_way:
            self._ports()[:] = self._times[TileSlot.PORT : TileSlot.BUSY + 1].transpose(1, 2, 0)
        parts = [(self._free.pop(), each) for each in _parts(taken.operation)]
        self._under_way[taken.number], (row, _) = parts, parts[0]
        self._network.owed[row] = sum(self._packets(each) for _, each in parts)
        faults = [self._start(taken, slot, multicast, row) for slot, multicast in parts]
        return next((fault for fault in faults if fault), None)

    def _packets(self, multicast: Multicast | OffChip) -> int:
        """How many packets come to a tile, or to a channel, of all of them."""
        if isinstance(multicast, OffChip):
            assert self._edge is not None
            law = blocks.law_of(self._timing, self._edge, multicast)
            return len(multicast.tiles) * blocks.packets_of(self._edge, law)
        lines, _ = multicast.root_lines
        count = -(-multicast.flits // self._longest_packet(multicast))
        return len(lines) * len(multicast.segment) * count

    def _start(self, taken: Taken, slot: int, part: Multicast | OffChip, row: int) -> Fault | None:
        """Send one on its way, whose trees begin at a slot and whose operation has a row."""
        if isinstance(part, OffChip):
            ready, fault = self._ask(taken, slot, part, row)
        else:
            ready, fault = self._take(taken, part)
            self._describe(self._trees(slot, len(ready)), part, ready, row)
        first, (roots, _) = slot * self._lines, _ends(part)
        before, free = self._last_tree[roots], self._times[Engine.TRANSFER][roots]
        for k in range(len(ready)):
            previous = self._network.trees[before[k]]
            if before[k] != packets.NONE and previous[packets.Tree.NEXT] == packets.NONE:
                previous[packets.Tree.NEXT] = first + k
                continue
            since = free[k]
            if before[k] != packets.NONE:
                since = max(since, previous[packets.Tree.END])
            packets.begin(self._network, first + k, int(since))
        self._last_tree[roots] = np.arange(first, first + len(ready))
        return fault

    def finish(self, taken: Taken, note: Callable[..., object] | None = None) -> Fault | None:
        """Let a multicast come to all its tiles, and give its units.

        ``note`` is told of it: when engines are free, and when it has come to its tiles.
        """
        parts = self._under_way.pop(taken.number)
        row, _ = parts[0]
        packets.run(self._network, row)
        come = self._network.arrivals[row].reshape(-1, self._cols)[: self._rows]
        faults = [self._finish(taken, slot, part, come) for slot, part in parts]
        if note is not None:
            ends, operation = engine_ends(self._times, self._launch_cycles), taken.operation
            if isinstance(operation, OffChip):
                operation = operation.of_flits(operation.sent_flits).within_tiles()
            note(taken.number, operation, ends, come)
        self._free += [slot for slot, _ in parts]
        self._free += [self._answering.pop(slot) for slot, _ in parts if slot in self._answering]
        if not self._under_way:
            self._times[TileSlot.PORT : TileSlot.BUSY + 1] = self._ports().transpose(2, 0, 1)
        return next((fault for fault in faults if fault), None)

    def _finish(
        self, taken: Taken, slot: int, part: Multicast | OffChip, come: NDArray[np.int32]
    ) -> Fault | None:
        """Give the units of one that has come."""
        roots, targets = _ends(part)
        here = np.arange(len(roots[0])) + slot * self._lines
        ends = self._network.trees[here, packets.Tree.END].astype(np.int32)
        before = self._times[TileSlot.LEFT][roots]
        leave_tiles(self._times, roots, ends, before, self._launch_cycles)
        last = self._last_tree[roots]
        self._last_tree[roots] = np.where(last == here, packets.NONE, last)
        if isinstance(part, OffChip):
            self._forget_answers(slot, part)
        full = give_units(self._times, taken.places["gives"], roots, ends)
        over = give_units(self._times, taken.places["arrivals"], targets, come[targets])
        return taken.fault(full or over)

    def _longest_packet(self, multicast: Multicast) -> int:
        """Flits of the longest packet: all of what goes to one tile, as by a send."""
        return self._timing.packet_bound if multicast.forks else multicast.flits

    def _ports(self) -> Times:
        """When ejection ports are free and since when they are busy, shape (rows, columns, 2)."""
        nodes = self._network.nodes.reshape(-1, self._cols, packets.NODE_COLUMNS)
        return nodes[: self._rows, :, packets.PORT_COLUMNS]

    def _trees(self, slot: int, count: int) -> packets.TreeTable:
        """The first trees of a slot."""
        first = slot * self._lines
        return self._network.trees[first : first + count]

    def _ask(self, taken: Taken, slot: int, part: OffChip, row: int) -> tuple[Cycles, Fault | None]:
        """Describe requests of a row of tiles, and their answers; when they may begin."""
        assert self._edge is not None
        self._answering[slot] = answering = self._free.pop()
        (roots, _), count = _ends(part), len(part.tiles.cols)
        units, missing = take_units(self._times, taken.places["takes"], roots)
        ready = units + self._launch_cycles
        trees = self._trees(slot, count), self._trees(answering, count)
        law = blocks.law_of(self._timing, self._edge, part)
        first = answering * self._lines
        blocks.describe(trees, first, part, law, self._edge, self._timing, ready, row)
        return ready, taken.fault(missing)

    def _forget_answers(self, slot: int, part: OffChip) -> None:
        """Have channels know nothing of answers that have come."""
        cols = np.array(part.tiles.cols)
        last = self._network.answers[cols]
        own = np.arange(len(cols)) + self._answering[slot] * self._lines
        self._network.answers[cols] = np.where(last == own, packets.NONE, last)

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
            packets.Tree.BASE: np.array(lines) * (self._cols if along_row else 1),
            packets.Tree.STEP: 1 if along_row else self._cols,
            packets.Tree.ROOT: places,
            packets.Tree.FIRST: segment[0],
            packets.Tree.LAST: segment[-1],
            packets.Tree.STRIDE: segment.step,
            packets.Tree.FLITS: multicast.flits,
            packets.Tree.PACKET: self._longest_packet(multicast),
            packets.Tree.READY: ready,
            packets.Tree.OPERATION: row,
            packets.Tree.NEXT: packets.NONE,
            packets.Tree.ROOM: self._longest_packet(multicast),
            packets.Tree.ANSWER: packets.NONE,
        }
        for column, values in columns.items():
            trees[:, column] = values


def _parts(operation: Operation) -> Sequence[Multicast | OffChip]:
    """An operation line by line: multicasts, or blocks of the tiles of one row."""
    if not isinstance(operation, OffChip):
        return lines_of(operation)
    rows, cols = operation.tiles.rows, operation.tiles.cols
    return [replace(operation, tiles=TileSet(range(row, row + 1), cols)) for row in rows]


def _ends(part: Multicast | OffChip) -> tuple[TileIndex, TileIndex]:
    """Where a part's trees begin, and the tiles that it comes to."""
    if isinstance(part, Multicast):
        return part.near.index, part.far.index
    cols = np.array(part.tiles.cols)
    tiles = np.full(len(cols), part.tiles.rows[0]), cols
    return tiles, tiles
