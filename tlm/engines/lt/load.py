"""The law of loads and stores at level lt: a latency, and a bandwidth that a channel's tiles share.

A channel serves blocks in the order of the program, and of the tiles within an operation: they
wait for each other at the port of its router and for its bandwidth. The network is its zero-load
law, with the ejection port of the tile as for any transfer. A channel at the tile itself answers
beside that port.
"""

from typing import NamedTuple

import numpy as np

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.port import through_port, through_ports
from tlm.engines.lt.queue import give, take
from tlm.engines.lt.state import EMPTY, Columns, Indices, Spare, Times, read, write_back
from tlm.engines.lt.tokens import Places, flat
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import PARTS_OF_A_CYCLE
from tlm.offchip.edge import Edge
from tlm.offchip.times import OffChipLaw, load_law, store_law
from tlm.program.operations import Engine, OffChip


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
    latency_parts: int  # of a cycle, as the channel counts
    asked_cycles: int
    served_parts: int
    moved_parts: int
    back_cycles: int
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


class OffChipTimes:
    """The channels' times, and what moves blocks.

    Args:
        timing: Constants of the network.
        edge: The channels.
        launch_cycles: From the start of a transfer to its first flit.
        turned: Whether rows and columns of the state have changed places.
    """

    def __init__(self, timing: NocTiming, edge: Edge, launch_cycles: int, *, turned: bool) -> None:
        self._timing, self._edge, self._launch = timing, edge, launch_cycles
        self._turned = turned
        tiles = [[(row, col) for col in range(edge.cols)] for row in range(edge.rows)]
        hops = np.array([[edge.hops(tile) for tile in line] for line in tiles], dtype=np.int32)
        number = np.array([[edge.channel(tile) for tile in line] for line in tiles])
        self._farthest = int(hops.max())
        way, number = (np.ascontiguousarray(a.T if turned else a) for a in (hops, number))
        way *= np.int32(timing.hop_cycles)
        since, until, served = np.zeros((3, edge.channels), dtype=np.int64)
        self._channels = Channels(way, number, since, until, served, np.zeros_like(way))
        self._scratch = np.zeros((len(Spare), way.shape[1]), dtype=np.int32)
        self._scratch[Spare.NEVER] = EMPTY

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
        served = len(tiles) * (law.served_cycles + law.sent_flits)
        return law.alone_cycles(self._farthest) + served + self._launch

    def access(self, operation: OffChip, state: Times, places: Places) -> int:
        """Move the blocks of an operation; the fault of a token's queue, 0 if there is none.

        ``places``: of its tokens' units, by field.
        """
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
            latency_parts=law.latency_parts,
            asked_cycles=law.asked_cycles,
            served_parts=law.served_parts,
            moved_parts=law.moved_parts,
            back_cycles=law.back_cycles,
            come_flits=law.come_flits,
            through_port=not self._edge.at_tiles,
        )
        return _access(moved, self._channels, state, self._scratch)

    def _law(self, operation: OffChip) -> OffChipLaw:
        make = load_law if operation.loads else store_law
        return make(self._timing, self._edge, operation.flits)


@compiled
def _access(moved: Moved, channels: Channels, state: Times, scratch: Times) -> int:
    """Move a block of each tile; the fault."""
    columns, size, fault = moved.columns, len(moved.columns.indices), 0
    starts, come = scratch[Spare.STARTS][:size], scratch[Spare.COME][:size]
    times = scratch[Spare.TIMES][:size]
    for number in moved.rows:
        row = state[number]
        units, missing = take(scratch, row, moved.takes, columns, Spare.UNITS)
        free = read(row[Engine.TRANSFER], columns, scratch[Spare.FREE])
        for j in range(size):
            starts[j] = max(free[j], np.int32(units[j] + moved.launch_cycles))
            free[j] = starts[j] + moved.sent_flits
        write_back(row[Engine.TRANSFER], columns, free)
        full = give(row, moved.gives, columns, free)
        for j in range(size):
            come[j] = _serve(moved, channels, number, columns.indices[j], starts[j])
        written = come
        if moved.through_port:
            through_ports(scratch, row, columns, come, moved.come_flits, times)
            written = times
        else:
            last = channels.answered[number]
            for j in range(size):
                last[columns.indices[j]] = max(last[columns.indices[j]], come[j])
        full = give(row, moved.arrivals, columns, written) or full
        fault = fault or missing or full
    return fault


@compiled
def _serve(moved: Moved, channels: Channels, row: int, column: int, start: int) -> int:
    """When a channel's answer to a tile could be written."""
    way, which = channels.way_cycles[row, column], channels.number[row, column]
    asked, channels.since[which], channels.until[which] = through_port(
        start + moved.there_cycles + way,
        channels.since[which],
        channels.until[which],
        moved.sent_flits,
    )
    channels.until[which] += moved.asked_cycles
    begun = max(asked * PARTS_OF_A_CYCLE + moved.latency_parts, channels.served[which])
    channels.served[which] = begun + moved.served_parts
    ended = -(-(begun + moved.moved_parts) // PARTS_OF_A_CYCLE)
    return int(ended + moved.back_cycles + way)


forget_stale(_access)
