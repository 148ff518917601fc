"""Messages that share links, in closed forms: when each has come, and when its sender is free.

What a message waits for is the network's law, not that of a kernel: a link that another one has, or
holds while it is blocked itself; room in a buffer; its turn at a port. So packets are followed from
link to link as at level `lt` (`tlm.interconnect.unicast_packets`), a few events for each that they
cross, whatever their length. Work between messages goes with them: a tile may be far ahead of
another, so that their messages meet in another order than that of the program.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect import unicast_packets
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.unicast_network import (
    TRANSFER_COLUMNS,
    Crossing,
    Table,
    Waits,
    fresh_ways,
    network_of,
    router_of,
    waits_of,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine

_Numbers = NDArray[np.int64]


def follows(timing: NocTiming) -> bool:
    """Whether packets of a network can be followed: not if channels are locked, or links slow."""
    return not timing.locks and timing.link_interval_cycles == 1


class MessageLinks:
    """The links of a rectangle of tiles, as messages have left them.

    Args:
        rows: Rows of tiles.
        cols: Columns.
        timing: Of a network that `follows`.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming) -> None:
        unicast_packets.ready()
        self._router = router_of(timing, cols, timing.launch_cycles)
        self._ways = fresh_ways(rows * cols)

    def carry(
        self, ends: _Numbers, flits: _Numbers, ready: _Numbers | int, free: _Numbers | int
    ) -> tuple[_Numbers, _Numbers]:
        """When interfaces are free behind messages, and when these have come, shape (messages,).

        Args:
            ends: Shape (messages, 4): rows and columns of who sends, and of who takes. Those of a
                tile go in this order.
            flits: Their lengths.
            ready: When their first flits may leave.
            free: When their interfaces are free for the first of each.
        """
        table = np.zeros((len(ends), TRANSFER_COLUMNS), dtype=np.int64)
        table[:, : Crossing.FLITS] = ends
        table[:, Crossing.FLITS] = flits
        table[:, Crossing.READY] = ready
        table[:, Crossing.FREE] = free
        self.carry_rows(table, None)
        return table[:, Crossing.FREE], table[:, Crossing.COME]

    def carry_rows(self, rows: Table, waits: Waits | None) -> None:
        """Carry messages as the network has them, and work between them."""
        unicast_packets.carry(network_of(self._router, rows, self._ways, waits))


class Messages(NamedTuple):
    """Messages of each of some tiles to one of them, which has room for it.

    Attributes:
        taker: Shape (tiles,): number of who takes what a tile sends.
        ends: Shape (tiles, 4): rows and columns of both.
        credit: Shape (tiles,): from the taker's freeing of a buffer to the knowledge of it.
        launch: From a message's start to its first flit.
        flits: Of each.
    """

    taker: _Numbers
    ends: _Numbers
    credit: _Numbers
    launch: int
    flits: int

    @classmethod
    def of(cls, tiles: _Numbers, taker: _Numbers, flits: int, timing: NocTiming) -> "Messages":
        """Those of tiles with some rows and columns, shape (tiles, 2)."""
        credit = credit_cycles_over(timing, np.abs(tiles - tiles[taker]).sum(axis=1))
        ends = np.concatenate([tiles, tiles[taker]], axis=1)
        return cls(taker, ends, credit, timing.launch_cycles, flits)

    def at_takers(self, units: _Numbers) -> _Numbers:
        """What comes to each tile, of what comes from each."""
        there = np.empty_like(units)
        there[self.taker] = units
        return there


class Graph:
    """Messages, and work of tiles between them, that wait for each other's units.

    A unit is a number, which `times` turns into a cycle once all have been carried. Queues of an
    engine are in the order in which work, or messages, are entered.

    Args:
        rows: Rows of tiles.
        cols: Columns.
        timing: Of a network that `follows`.
        free: When the interface of each tile that sends is free at first.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming, free: int) -> None:
        self._links, self._free = MessageLinks(rows, cols, timing), free
        self._rows: list[_Numbers] = []
        self._waits: list[_Numbers] = [np.empty((3, 0), dtype=np.int64)]
        self._count, self._workers = 0, len(Engine)
        self._times: _Numbers | None = None

    def known(self, tiles: _Numbers, times: _Numbers) -> _Numbers:
        """Units of tiles, shape (tiles, 2), that are there at known times."""
        self._workers += 1
        return self._enter(tiles, times, self._workers, ())

    def answers(self, ends: _Numbers, flits: int, ready: _Numbers, packet: int) -> _Numbers:
        """Units when blocks of off-chip memory have come, each channel's in this order.

        Args:
            ends: Shape (blocks, 4): rows and columns of channels' routers and of tiles.
            flits: Of each.
            ready: When the first flit of each may leave its channel.
            packet: Flits of a packet, between which others may go.
        """
        begins = np.arange(0, flits, packet)
        sizes = np.tile(np.minimum(packet, flits - begins), len(ends))
        left = self._enter(np.repeat(ends, len(begins), axis=0), sizes, 0, ())
        rows = self._rows[-1]
        rows[:, Crossing.READY], rows[:, Crossing.FREE] = (ready[:, None] + begins).ravel(), 0
        return left[len(begins) - 1 :: len(begins)] + 1

    def work(
        self, engine: Engine, tiles: _Numbers, cycles: int, waits: Sequence[_Numbers]
    ) -> _Numbers:
        """Units at the end of some work, which takes others: shape (tiles,)."""
        return self._enter(tiles, cycles, 1 + engine, [(units, 0) for units in waits])

    def send(
        self,
        messages: Messages,
        there: Sequence[_Numbers],
        room: Sequence[_Numbers],
        senders: _Numbers | slice = slice(None),
    ) -> tuple[_Numbers, _Numbers]:
        """Units when messages have left, and when they have come: shape (senders,) each.

        Args:
            messages: Those that tiles send.
            there: Units of all tiles, which a sender has before it sends;
            room: and those that a taker has.
            senders: Numbers of the tiles that do.
        """
        known = messages.credit[senders] + messages.launch
        waits: list[tuple[_Numbers, _Numbers | int]]
        waits = [(units[senders], messages.launch) for units in there]
        waits += [(units[messages.taker[senders]], known) for units in room]
        left = self._enter(messages.ends[senders], messages.flits, 0, waits)
        return left, left + 1

    def _enter(
        self,
        tiles: _Numbers,
        size: _Numbers | int,
        worker: int,
        waits: Sequence[tuple[_Numbers, _Numbers | int]],
    ) -> _Numbers:
        rows = np.zeros((len(tiles), TRANSFER_COLUMNS), dtype=np.int64)
        rows[:, : tiles.shape[1]] = tiles
        rows[:, Crossing.FLITS], rows[:, Crossing.WORKER] = size, worker
        rows[:, Crossing.FREE] = 0 if worker else self._free
        numbers = self._count + np.arange(len(rows))
        for units, cycles in waits:
            behind = np.broadcast_to(cycles, units.shape)
            self._waits.append(np.stack([units, numbers, behind]))
        self._rows.append(rows)
        self._count += len(rows)
        return 2 * numbers

    def times(self, units: _Numbers) -> _Numbers:
        """When units are there; nothing can be entered any more."""
        if self._times is None:
            rows = np.concatenate(self._rows)
            unit, who, behind = np.concatenate(self._waits, axis=1)
            self._links.carry_rows(rows, waits_of(unit, who, behind, 2 * len(rows)))
            self._times = rows[:, [Crossing.FREE, Crossing.COME]].reshape(-1)
        return self._times[units]
