"""The law of loads and stores at level lt: a latency, and a bandwidth that a channel's tiles share.

Operations that stand together are under way together: a channel serves blocks in the order in which
they are asked for, whatever operation asks. They wait for each other at the port of its router and
for its bandwidth. The network is its zero-load law, with the ejection port of the tile as for any
transfer. A channel at the tile itself answers beside that port. Where channels keep their links
busy, blocks are packets among others instead (`tlm.engines.lt.contention.ordered`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.port import leave, through_port, through_ports
from tlm.engines.lt.queue import give, take
from tlm.engines.lt.state import EMPTY, Columns, Indices, Spare, Times, engine_ends, read
from tlm.engines.lt.tokens import Fault, flat
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import PARTS_OF_A_CYCLE
from tlm.offchip.edge import Edge
from tlm.offchip.times import OffChipLaw, in_cycles, load_law, store_law
from tlm.program.operations import Engine, OffChip, Operation

#: Told of an operation: the cycles at which engines were free, and when answers have come.
Tell = Callable[[int, OffChip, Times], None]

_MOST_BLOCKS = 1 << 16
"""Under way together, but for those of one operation."""


class Moved(NamedTuple):
    """An operation's blocks, as they are compiled."""

    rows: Indices
    columns: Columns
    takes: Indices
    gives: Indices
    arrivals: Indices
    launch_cycles: int
    sent_flits: int
    there_cycles: int
    come_flits: int
    through_port: bool  # it comes through the network's port


class Channels(NamedTuple):
    """The channels, from the tiles, and how far they are."""

    way_cycles: Times  # shape (rows, columns): between a tile and its channel
    number: Indices  # shape (rows, columns): which one that is
    since: Indices  # since when the port of its router is busy without a pause,
    until: Indices  # and until when, or until when its node asks
    served: Indices  # when it is free itself, in parts of a cycle
    answered: Times  # shape (rows, columns): a tile's last answer that came beside its port


class BlockMove(NamedTuple):
    """An operation whose blocks are to be asked for."""

    taken: Taken
    operation: OffChip  # the same
    moved: Moved
    law: OffChipLaw


class UnderWay(NamedTuple):
    """One whose blocks are asked for."""

    of: BlockMove
    asked: Times  # shape (rows, columns) of its tiles: when a request is at the channel
    engines: Times | None  # when engines were free, if somebody is told
    fault: int


class Requests(NamedTuple):
    """Those of some operations, one after the other, but for when they are at their channels."""

    law: Indices  # of each its operation
    laws: Indices  # of each operation what `_answer` reads, in its order
    number: Indices  # channels
    way: Times  # cycles to them
    parts: list[slice]  # of each operation its requests


class OffChipTimes:
    """The channels' times, and what moves blocks.

    Args:
        timing: Constants of the network.
        edge: The channels.
        launch_cycles: From the start of a transfer to its first flit.
        state: The times of the tiles, shape (rows, slots, columns).
        turned: Whether rows and columns of the state have changed places.
    """

    def __init__(
        self, timing: NocTiming, edge: Edge, launch_cycles: int, state: Times, *, turned: bool
    ) -> None:
        self._timing, self._edge, self._launch = timing, edge, launch_cycles
        self._state, self._turned = state, turned
        hops, number = _places(edge, turned)
        self._farthest = int(hops.max())
        way = hops * np.int32(timing.hop_cycles)
        since, until, served = np.zeros((3, edge.channels), dtype=np.int64)
        self._channels = Channels(way, number, since, until, served, np.zeros_like(way))
        self._scratch = np.zeros((len(Spare), way.shape[1]), dtype=np.int32)
        self._scratch[Spare.NEVER] = EMPTY
        self._under_way: list[UnderWay] = []
        self._come: set[str] = set()

    def __len__(self) -> int:
        """How many operations are under way."""
        return len(self._under_way)

    @property
    def longest_under_way(self) -> int:
        """More than those under way can add to any time, in cycles."""
        return sum(self.longest_cycles(each.of.operation) for each in self._under_way)

    @property
    def latest_cycle(self) -> int:
        """The last answer of a channel at a tile."""
        return int(self._channels.answered.max())

    def arrivals(self, ports: Times) -> Times:
        """What has come to the tiles last, by when their ports are free: shape (rows, columns)."""
        if not self._edge.at_tiles:
            return ports
        answered = self._channels.answered
        return np.maximum(ports, answered.T if self._turned else answered)

    def longest_cycles(self, operation: OffChip) -> int:
        """More than an operation can add to any time."""
        law, tiles = self._law(operation), operation.tiles
        served = in_cycles(len(tiles) * law.served_parts) + len(tiles) * law.sent_flits
        longest: int = law.alone_cycles(self._farthest) + served + self._launch
        return longest

    def brings(self, operation: Operation) -> bool:
        """Whether an operation takes, or gives too, what those under way give when they come."""
        needed = {*operation.takes, *operation.gives}
        if self._come.isdisjoint(needed):
            return False
        return not isinstance(operation, OffChip) or any(
            not needed.isdisjoint(each.of.operation.arrivals)
            and _meet(each.of.operation.tiles, operation.tiles)
            for each in self._under_way
        )

    def waits(self, operation: OffChip) -> bool:
        """Whether those under way have to be done before an operation starts."""
        blocks = sum(each.asked.size for each in self._under_way) + len(operation.tiles)
        return bool(self._under_way) and (blocks > _MOST_BLOCKS or self.brings(operation))

    def move(self, taken: Taken) -> BlockMove:
        """What there is to ask for the blocks of an operation."""
        operation, places = taken.operation, taken.places
        assert isinstance(operation, OffChip)
        tiles, law = operation.tiles, self._law(operation)
        lines = (tiles.cols, tiles.rows) if self._turned else (tiles.rows, tiles.cols)
        rows, columns = (np.array(line, dtype=np.int64) for line in lines)
        first = int(columns[0]) if (np.diff(columns) == 1).all() else -1
        moved = Moved(
            rows=rows,
            columns=Columns(columns, first),
            takes=flat(places["takes"]),
            gives=flat(places["gives"]),
            arrivals=flat(places["arrivals"]),
            launch_cycles=self._launch,
            sent_flits=law.sent_flits,
            there_cycles=law.there_cycles,
            come_flits=law.come_flits,
            through_port=not self._edge.at_tiles,
        )
        return BlockMove(taken, operation, moved, law)

    def start(self, of: BlockMove, *, told: bool) -> None:
        """Ask for the blocks of an operation, which is under way then.

        Args:
            of: The operation.
            told: Whether somebody is told of it when it is done.
        """
        moved, way_cycles = of.moved, self._channels.way_cycles
        asked = np.empty((len(moved.rows), len(moved.columns.indices)), dtype=np.int32)
        fault = _ask(moved, way_cycles, self._state, self._scratch, asked)
        engines = engine_ends(self._state.swapaxes(0, 1), self._launch) if told else None
        self._under_way.append(UnderWay(of, asked, engines, fault))
        self._come.update(of.operation.arrivals)

    def requests(self) -> Requests:
        """Those that are under way."""
        channels, moved = self._channels, [each.of.moved for each in self._under_way]
        tiles = [np.ix_(each.rows, each.columns.indices) for each in moved]
        sizes = [each.asked.size for each in self._under_way]
        ends = np.cumsum(sizes).tolist()
        return Requests(
            law=np.repeat(np.arange(len(sizes)), sizes),
            laws=np.array([_figures(each.of.law) for each in self._under_way], dtype=np.int64),
            number=np.concatenate([channels.number[at].ravel() for at in tiles]),
            way=np.concatenate([channels.way_cycles[at].ravel() for at in tiles]),
            parts=[slice(end - size, end) for end, size in zip(ends, sizes, strict=True)],
        )

    def finish(self, requests: Requests, tell: Tell) -> Fault | None:
        """Have the channels serve what is under way; the first fault.

        Args:
            requests: `requests` says which these are.
            tell: Told of each operation that somebody is told of: its number, the operation and
                when engines were free, shape (engines, rows, columns).
        """
        under_way, self._under_way = self._under_way, []
        self._come.clear()
        fault: Fault | None = None
        for each, come in zip(under_way, self._serve(under_way, requests), strict=True):
            of = each.of
            full = _write(of.moved, self._channels.answered, self._state, self._scratch, come)
            fault = fault or of.taken.fault(each.fault or full)
            if each.engines is not None:
                tell(of.taken.number, of.operation, each.engines)
        return fault

    def _serve(self, under_way: list[UnderWay], requests: Requests) -> list[Times]:
        """When answers could be written at the tiles, of each operation as its requests."""
        law, laws, number, way, parts = requests
        asked = np.concatenate([each.asked.ravel() for each in under_way])
        # A tile with a channel of its own asks in the order of the program.
        order = np.arange(len(asked)) if self._edge.at_tiles else np.argsort(asked, kind="stable")
        come = np.empty(len(asked), dtype=np.int32)
        _answer(order, asked, law, laws, number, way, self._channels, come)
        return [
            come[part].reshape(each.asked.shape)
            for part, each in zip(parts, under_way, strict=True)
        ]

    def _law(self, operation: OffChip) -> OffChipLaw:
        make = load_law if operation.loads else store_law
        return make(self._timing, self._edge, operation.flits)


@lru_cache(64)  # kernels of a chip have them in common
def _places(edge: Edge, turned: bool) -> tuple[Times, Indices]:
    """How far from each tile its channel is, and which one that is; shape (rows, columns)."""
    tiles = [[(row, col) for col in range(edge.cols)] for row in range(edge.rows)]
    hops = np.array([[edge.hops(tile) for tile in line] for line in tiles], dtype=np.int32)
    number = np.array([[edge.channel(tile) for tile in line] for line in tiles])
    if turned:
        hops, number = hops.T, number.T
    return np.ascontiguousarray(hops), np.ascontiguousarray(number)


def _meet(one: TileSet, other: TileSet) -> bool:
    """Whether tiles are in both."""
    rows, cols = {*one.rows} & {*other.rows}, {*one.cols} & {*other.cols}
    return bool(rows and cols)


def _figures(law: OffChipLaw) -> tuple[int, ...]:
    """What channels know of a law, in the order in which `_answer` reads it."""
    return (
        law.sent_flits, law.asked_cycles, law.latency_parts, law.served_parts, law.moved_parts,
        law.back_cycles,
    )  # fmt: skip


@compiled
def _ask(moved: Moved, way_cycles: Times, state: Times, scratch: Times, asked: Times) -> int:
    """Send a request of each tile; when it is at its channel, and the fault."""
    columns, size, fault = moved.columns, len(moved.columns.indices), 0
    for i in range(len(moved.rows)):
        row = state[moved.rows[i]]
        units, missing = take(scratch, row, moved.takes, columns, Spare.UNITS)
        free = read(row[Engine.TRANSFER], columns, scratch[Spare.FREE])
        for j in range(size):
            start = max(free[j], np.int32(units[j] + moved.launch_cycles))
            free[j] = start + moved.sent_flits
            way = way_cycles[moved.rows[i], columns.indices[j]]
            asked[i, j] = start + moved.there_cycles + way
        full = give(row, moved.gives, columns, free)
        leave(row, columns, free, moved.launch_cycles)
        fault = fault or missing or full
    return fault


@compiled
def _answer(
    order: Indices,
    asked: Times,
    law: Indices,
    laws: NDArray[np.int64],
    number: Indices,
    way: Times,
    channels: Channels,
    come: Times,
) -> None:
    """Serve requests in an order; when each answer could be written at its tile."""
    for k in order:
        which = number[k]
        sent, asking, latency, served, moved, back = laws[law[k]]
        at, channels.since[which], channels.until[which] = through_port(
            asked[k], channels.since[which], channels.until[which], sent
        )
        channels.until[which] += asking
        begun = max(at * PARTS_OF_A_CYCLE + latency, channels.served[which])
        channels.served[which] = begun + served
        come[k] = -(-(begun + moved) // PARTS_OF_A_CYCLE) + back + way[k]


@compiled
def _write(moved: Moved, answered: Times, state: Times, scratch: Times, come: Times) -> int:
    """Write answers at the tiles; the fault."""
    columns, size, fault = moved.columns, len(moved.columns.indices), 0
    times = scratch[Spare.TIMES][:size]
    for i in range(len(moved.rows)):
        row, written = state[moved.rows[i]], come[i]
        if moved.through_port:
            through_ports(scratch, row, columns, come[i], moved.come_flits, times)
            written = times
        else:
            last = answered[moved.rows[i]]
            for j in range(size):
                last[columns.indices[j]] = max(last[columns.indices[j]], come[i, j])
        full = give(row, moved.arrivals, columns, written)
        fault = fault or full
    return fault


forget_stale(_ask)
forget_stale(_answer)
forget_stale(_write)
