"""Sends whose transfers share links, for the loosely-timed engine, with the sends behind them.

Sends are under way together if none of them takes what another one gives, and nothing but sends
stands between them in the program. Their units are taken when they are taken up. Then all packets
go through the network (`tlm.interconnect.unicast_packets`), behind those of sends before.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.tiles import (
    Cycles,
    give_units,
    leave_tiles,
    missing_units,
    take_units,
)
from tlm.engines.lt.memory import check_shared_memory
from tlm.engines.lt.state import TileSlot, Times, engine_ends
from tlm.engines.lt.tokens import Fault
from tlm.interconnect import unicast_packets
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.unicast_packets import PORTS, Crossing, OutputLink, Table
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.program.operations import Engine, Operation, Send

Note = Callable[..., object]
"""Told of a send: its number, itself, when engines are free, and when tiles were written to."""
MOST_HOPS = 2**27
"""A run's packets are followed over so many links, half a minute's work; later ones are not."""
_MOST_WAITING = 2**20
"""Transfers under way together."""
_NOBODY = -1
Form = tuple[TileSet, bytes, bytes]
"""Of a send: its tiles, and the rows and columns that they send to."""


class SharedLinks:
    """The links of the grid, as sends have left them, and the sends that are under way.

    Args:
        program: What is run.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        times: State of the run as the tiles lie, shape (slots, rows, columns).
        memory_bytes: The run may take so many; None: what the machine has to spare.
    """

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        launch_cycles: int,
        times: Times,
        memory_bytes: int | None,
    ) -> None:
        self._program, self._memory_bytes = program, memory_bytes
        self._timing, self._launch_cycles, self._times = timing, launch_cycles, times
        self._router = unicast_packets.router_of(timing, program.cols, launch_cycles)
        self._hops_left = MOST_HOPS if timing.link_interval_cycles == 1 else 0
        self._ways: Table | None = None
        self._under_way: list[tuple[Taken, Table]] = []

    def follows(self, sends: Sequence[Operation]) -> bool:
        """Whether sends that stand together are to be done here: transfers of one share links.

        Raises:
            InputError: if there is no memory for that.
        """
        forms = tuple(map(_form, sends))
        uses = [link_use(*each) for each in forms]
        hops = sum(crossed for crossed, _ in uses)
        if hops > self._hops_left:
            return False
        alone = max(most for _, most in uses) < 2 and not links_meet(forms, self._timing.y_first)
        if alone and not ports_meet(forms):
            return False
        self._hops_left -= hops
        if self._ways is None:
            transfers = sum(len(each.near) for each in sends)
            shortest = min(each.flits for each in sends)
            packets = unicast_packets.packets_in_buffer(self._router, transfers, shortest)
            check_shared_memory(self._program, transfers, packets, self._memory_bytes)
            unicast_packets.ready()
            self._ways = unicast_packets.fresh_ways(self._program.rows * self._program.cols)
        return True

    def _waits(self, taken: Taken) -> bool:
        """Whether a send has to wait until those under way are done."""
        if not self._under_way:
            return False
        places = [*taken.places["takes"]], [*taken.places["slots"]]
        given = {
            slot
            for each, _ in self._under_way
            for field in ("gives", "arrivals")
            for slot, depth in each.places[field]
            if depth == 0
        }
        if any(depth == 0 and slot in given for slot, depth in (*places[0], *places[1])):
            return True
        send = taken.operation
        if sum(len(table) for _, table in self._under_way) + len(send.near) > _MOST_WAITING:
            return True
        ends = send.near.index, send.far.index
        return any(map(missing_units, [self._times] * 2, places, ends))

    def start(self, taken: Taken, note: Note | None = None) -> Fault | None:
        """Take the units of a send, which is under way then; before, finish those it waits for."""
        fault = self.finish(note) if self._waits(taken) else None
        send = taken.operation
        assert isinstance(send, Send)
        here, there = send.near.index, send.far.index
        table = np.zeros((len(send.near), unicast_packets.TRANSFER_COLUMNS), dtype=np.int64)
        ends = *np.broadcast_arrays(*here), *np.broadcast_arrays(*there)
        for column, places in enumerate(ends):  # the first four columns of a transfer
            table[:, column] = places.ravel()
        away = np.abs(table[:, :2] - table[:, 2:4]).sum(axis=1)
        units, missing = take_units(self._times, taken.places["takes"], here)
        slots, unfree = take_units(self._times, taken.places["slots"], there)
        known = np.maximum(units.ravel(), slots.ravel() + credit_cycles_over(self._timing, away))
        table[:, Crossing.READY] = known + self._launch_cycles
        table[:, Crossing.FLITS] = send.flits
        table[:, Crossing.FREE] = self._times[Engine.TRANSFER][here].ravel()
        table[:, Crossing.BEFORE] = self._times[TileSlot.LEFT][here].ravel()
        self._under_way.append((taken, table))
        return fault or taken.fault(missing or unfree)

    def finish(self, note: Note | None = None) -> Fault | None:
        """Bring the transfers under way to their ends, and give their units.

        ``note`` is told of each send: when engines are free, and when something came to tiles last.
        """
        under_way, self._under_way = self._under_way, []
        transfers = np.concatenate([table for _, table in under_way])
        self._carry(transfers)
        fault, first = None, 0
        for taken, table in under_way:
            done = transfers[first : first + len(table)]
            first += len(table)
            fault = fault or self._give(taken, done, note)
        return fault

    def _carry(self, transfers: Table) -> None:
        """Send the transfers on their way, which find the ports as the run has left them."""
        assert self._ways is not None
        ports = self._ways[MeshPort.LOCAL :: PORTS]
        shape = self._times[TileSlot.PORT].shape
        ends = transfers[:, Crossing.TO_ROW], transfers[:, Crossing.TO_COL]
        # Of a port the state knows when flits are written.
        for column, slot in ((OutputLink.SINCE, TileSlot.BUSY), (OutputLink.UNTIL, TileSlot.PORT)):
            ports[:, column] = self._times[slot].ravel().astype(np.int64) - self._router.ejection
        unicast_packets.carry(unicast_packets.network_of(self._router, transfers, self._ways))
        for column, slot in ((OutputLink.SINCE, TileSlot.BUSY), (OutputLink.UNTIL, TileSlot.PORT)):
            busy = ports[:, column].reshape(shape)[ends]
            self._times[slot][ends] = busy + self._router.ejection

    def _give(self, taken: Taken, done: Table, note: Note | None) -> Fault | None:
        """Give the units of a send that is done."""
        here, there = taken.operation.near.index, taken.operation.far.index
        free: Cycles = done[:, Crossing.FREE].reshape(np.broadcast(*here).shape)
        come: Cycles = done[:, Crossing.COME].reshape(np.broadcast(*there).shape)
        before = done[:, Crossing.BEFORE].reshape(free.shape)
        leave_tiles(self._times, here, free, before, self._launch_cycles)
        over = give_units(self._times, taken.places["gives"], here, free)
        full = give_units(self._times, taken.places["arrivals"], there, come)
        if note is not None:
            arrived = self._times[TileSlot.PORT].copy()
            arrived[there] = come
            ends = engine_ends(self._times, self._launch_cycles)
            note(taken.number, taken.operation, ends, arrived)
        return taken.fault(over or full)


def _form(send: Operation) -> Form:
    assert isinstance(send, Send)
    return send.tiles, send.to_rows.tobytes(), send.to_cols.tobytes()


@lru_cache(2**12)  # loops send the same way again and again
def link_use(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> tuple[int, int]:
    """Links that the transfers of a send cross in all, and how many cross the busiest of them.

    Destinations differ. So transfers that turn share a link only with others of their line.
    """
    (by_row, most_by_row), (by_col, most_by_col) = (
        _hops(tiles.rows, to_rows),
        _hops(tiles.cols, to_cols),
    )
    hops = by_row * len(tiles.cols) + by_col * len(tiles.rows)
    return hops, max(most_by_row, most_by_col)


@lru_cache(2**10)
def links_meet(sends: tuple[Form, ...], y_first: bool) -> bool:
    """Whether transfers of different tiles cross a link, of sends that each cross it once.

    Those of one tile follow each other anyway.
    """
    if len(sends) < 2:
        return False
    reached = [_reach(*each) for each in sends]
    rows, cols = (max(each[axis] for each in reached) for axis in range(2))
    senders = np.full((len(MeshPort), rows * cols), _NOBODY)
    return any(_mark(senders, cols, each, y_first) for each in sends)


@lru_cache(2**10)
def ports_meet(sends: tuple[Form, ...]) -> bool:
    """Whether what other tiles send may come to a tile before what stands before it in the program.

    A tile sends one after the other: what it sends last comes last, as a rule.
    """
    reached = [_reach(*each) for each in sends]
    rows, cols = (max(each[axis] for each in reached) for axis in range(2))
    sent = np.zeros(rows * cols, dtype=np.int64)
    come = np.full(rows * cols, _NOBODY)
    for send in sends:
        here, there = (ends[0] * cols + ends[1] for ends in _ends(*send))
        if (sent[here] <= come[there]).any():
            return True
        come[there] = sent[here]
        sent[here] += 1
    return False


def _reach(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> tuple[int, int]:
    """Rows and columns of a grid that has both ends of all transfers."""
    ends = ((tiles.rows, to_rows), (tiles.cols, to_cols))
    rows, cols = (
        1 + max(int(np.frombuffer(there, dtype=np.int64).max()), *here) for here, there in ends
    )
    return rows, cols


def _mark(senders: NDArray[np.int64], cols: int, send: Form, y_first: bool) -> bool:
    """Note who sends over links, by direction and the tile they leave; whether others do, too."""
    here, there = _ends(*send)
    away = there - here
    sources, place = here[0] * cols + here[1], here.copy()
    for axis in (0, 1) if y_first else (1, 0):
        steps, toward = np.abs(away[axis]), np.sign(away[axis])
        for step in range(int(steps.max(initial=0))):
            on = steps > step
            link = 2 * axis + (toward[on] > 0), place[0, on] * cols + place[1, on]
            before = senders[link]
            if ((before != _NOBODY) & (before != sources[on])).any():
                return True
            senders[link] = sources[on]
            place[axis, on] += toward[on]
    return False


def _ends(
    tiles: TileSet, to_rows: bytes, to_cols: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the sources of a send's transfers, and of their targets."""
    targets = (np.frombuffer(each, dtype=np.int64) for each in (to_rows, to_cols))
    here, there = (
        np.stack(np.meshgrid(*lines, indexing="ij")).reshape(2, -1)
        for lines in ((tiles.rows, tiles.cols), targets)
    )
    return here, there


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
