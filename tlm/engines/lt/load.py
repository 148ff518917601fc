"""Loads and stores at level lt: a latency, and a bandwidth that a channel's tiles share.

A channel serves blocks in the order of the program, and of the tiles within an operation: they
wait for each other at the port of its router and for its bandwidth. The network is its zero-load
law, with the ejection port of the tile as for any transfer.
"""

import numpy as np

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.queue import Indices, Times, give, load, store, take_here, through_port
from tlm.engines.lt.tokens import Place
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import OffChipLaw, load_law, store_law
from tlm.program.operations import Load, OffChip

_TRANSFER = 2


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
        channel = np.array([[edge.channel(tile[1]) for tile in line] for line in tiles])
        self._hops = np.ascontiguousarray(hops.T if turned else hops)
        self._channel = np.ascontiguousarray(channel.T if turned else channel)
        # Of each channel: since when its router's port is busy without a pause, and until when, and
        # when it is free itself.
        self._busy_cycles = np.zeros((3, edge.channels), dtype=np.int64)
        self._scratch = np.zeros((5, self._hops.shape[1]), dtype=np.int32)

    def longest_cycles(self, operation: OffChip) -> int:
        """More than an operation can add to any time."""
        law, tiles = self._law(operation), operation.tiles
        served = len(tiles.rows) * len(tiles.cols) * (law.served_cycles + law.sent_flits)
        return law.alone_cycles(int(self._hops.max())) + served + self._launch

    def access(
        self,
        operation: OffChip,
        state: Times,
        takes: list[Place],
        gives: list[Place],
        arrivals: list[Place],
    ) -> int:
        """Move the blocks of an operation; the fault of a token's queue, 0 if there is none."""
        tiles, law = operation.tiles, self._law(operation)
        constants = (
            self._launch,
            law.sent_flits,
            law.there_cycles,
            law.latency_cycles,
            law.served_cycles,
            law.back_cycles,
            self._timing.hop_cycles,
            law.come_flits,
            law.posted,
        )
        lines = (tiles.cols, tiles.rows) if self._turned else (tiles.rows, tiles.cols)
        rows, columns = (np.array(line, dtype=np.int64) for line in lines)
        first = int(columns[0]) if (np.diff(columns) == 1).all() else -1
        return _access(
            state,
            np.array(constants, dtype=np.int64),
            rows,
            columns,
            first,
            _pairs(takes),
            _pairs(gives),
            _pairs(arrivals),
            self._hops,
            self._channel,
            self._busy_cycles,
            self._scratch,
        )

    def _law(self, operation: OffChip) -> OffChipLaw:
        make = load_law if isinstance(operation, Load) else store_law
        return make(self._timing, self._edge, operation.flits)


def _pairs(places: list[Place]) -> Indices:
    return np.array(places, dtype=np.int64).reshape(-1, 2)


@compiled
def _access(
    state: Times,
    law: Indices,
    rows: Indices,
    columns: Indices,
    first: int,
    takes: Indices,
    gives: Indices,
    arrivals: Indices,
    hops: Times,
    channel: Indices,
    busy_cycles: Indices,
    scratch: Times,
) -> int:
    """A block of each tile of some rows and columns."""
    size, fault = len(columns), 0
    times, free, spare = scratch[0][:size], scratch[1][:size], scratch[2][:size]
    left, none = scratch[3][:size], scratch[4][:size]
    launch, sent, there, latency, served, back, per_hop, come_flits, posted = law
    since, until, served_until = busy_cycles
    for number in rows:
        row = state[number]
        load(row[_TRANSFER], columns, first, times)
        missing = take_here(row, takes, columns, first, launch, times, spare)
        for j in range(size):
            free[j] = times[j] + sent
        store(row[_TRANSFER], columns, first, free)
        full = give(row, gives, columns, first, free, spare, left)
        for j in range(size):
            column = columns[j]
            way, which = hops[number, column] * per_hop, channel[number, column]
            asked = times[j] + there + way
            if asked > since[which]:  # else it is through before the port is busy
                if until[which] + sent <= asked:
                    since[which] = asked - sent
                asked = until[which] = max(asked, until[which] + sent)
            begun = max(asked + latency, served_until[which])
            served_until[which] = begun + served
            times[j] = np.int32((asked if posted else begun) + back + way)
            none[j] = 0
        through_port(row, columns, first, times, none, 0, come_flits, times, left)
        full = give(row, arrivals, columns, first, times, spare, left) or full
        fault = fault or missing or full
    return fault


forget_stale(_access)
