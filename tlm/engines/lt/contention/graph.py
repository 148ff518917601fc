"""Who waits for whom among transfers that share links and the work between them.

Which unit an operation takes depends on the program alone, not on times. So a copy of the run's
state goes through the operations in program order. What is given there is no time yet but the
number of a unit, as a time below all others; who takes it waits for that unit.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.tiles import (
    Cycles,
    TileIndex,
    ends_of,
    give_units,
    leave_tiles,
    take_each,
    take_units,
)
from tlm.engines.lt.state import EMPTY, TileSlot, Times, engine_ends
from tlm.engines.lt.tokens import Fault, Place
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.unicast_network import TRANSFER_COLUMNS, Crossing, Table, Waits, waits_of
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import OffChip, Send, Work

Note = Callable[..., object]
"""Told of a transfer: its number, itself, when engines are free, and when tiles were written to."""
Done = tuple[Cycles, Cycles, Cycles]
"""Of a transfer: when it has left its sources, when those before it had, and when it has come.

One tile after the other.
"""
_FIRST = int(EMPTY) - 1
"""Stands for unit 0; units behind it are below."""
_Numbers = NDArray[np.int64]


class UnitNumbers:
    """Numbers of units, in a copy of the state of a run.

    Args:
        times: The state as the tiles lie, shape (slots, rows, columns); stays as it is.
    """

    def __init__(self, times: Times) -> None:
        # As it lies: what is compiled for the state is for the copy, too.
        self.times = times.copy(order="K")
        self._waits: list[_Numbers] = [np.empty((3, 0), dtype=np.int64)]

    def waits(self, units: int) -> Waits:
        """Who waits for which of so many units."""
        unit, who, behind = np.concatenate(self._waits, axis=1)
        return waits_of(unit, who, behind, units)

    def take(
        self, places: Sequence[Place], tiles: TileIndex, who: _Numbers, behind: _Numbers
    ) -> _Numbers:
        """Take units at some tiles, each for those who begin so many cycles behind them.

        ``who`` and ``behind`` have shape (tiles,), or (tiles, waiting).

        Returns:
            When units that are known let them begin, of that shape; they wait for the others.
        """
        ready = np.zeros(who.shape, dtype=np.int64)
        if not places:
            return ready
        each, _ = take_each(self.times, places, tiles)
        for units in each:
            times = units if who.ndim == 1 else units[:, None] + 0 * who
            known = times > _FIRST
            np.maximum(ready, np.where(known, times + behind, 0), out=ready)
            self._waits.append(np.array([_FIRST - times, who, behind])[:, ~known])
        return ready

    def give(self, places: Sequence[Place], tiles: TileIndex, units: _Numbers) -> None:
        """Give units of some numbers."""
        give_units(self.times, places, tiles, _FIRST - units)


class Graph:
    """Rows of a network, and their waits, from the state of a run.

    Args:
        times: The state as the tiles lie, shape (slots, rows, columns); stays as it is.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
    """

    def __init__(self, times: Times, timing: NocTiming, launch_cycles: int) -> None:
        self._units = UnitNumbers(times)
        self._timing, self._launch_cycles = timing, launch_cycles

    def of(self, together: Sequence[Taken]) -> tuple[Table, Waits]:
        """A row for each tile of each operation, as they stand in the program; and the waits."""
        sizes = [len(each.operation.near) for each in together]
        rows = np.zeros((sum(sizes), TRANSFER_COLUMNS), dtype=np.int64)
        first = 0
        for taken, size in zip(together, sizes, strict=True):
            self._enter(taken, rows[first : first + size], first)
            first += size
        return rows, self._units.waits(2 * len(rows))

    def _enter(self, taken: Taken, rows: Table, first: int) -> None:
        """Fill in the rows of an operation, the first of which has a number."""
        operation, places, times = taken.operation, taken.places, self._units.times
        here, who = operation.near.index, np.arange(first, first + len(rows))
        rows[:, Crossing.ROW], rows[:, Crossing.COL] = ends_of(here)
        rows[:, Crossing.FREE] = times[operation.engine][here].ravel()
        launch = 0
        if isinstance(operation, Send):
            launch = self._launch_cycles
            there = operation.far.index
            rows[:, Crossing.TO_ROW], rows[:, Crossing.TO_COL] = ends_of(there)
            rows[:, Crossing.FLITS] = operation.flits
            rows[:, Crossing.BEFORE] = times[TileSlot.LEFT][here].ravel()
            away = np.abs(rows[:, :2] - rows[:, 2:4]).sum(axis=1)
            known = launch + credit_cycles_over(self._timing, away)
            rows[:, Crossing.READY] = self._units.take(places["slots"], there, who, known)
        else:
            assert isinstance(operation, Work)
            rows[:, Crossing.WORKER] = 1 + operation.engine
            rows[:, Crossing.FLITS] = np.ravel(operation.cycles)
        ready = self._units.take(places["takes"], here, who, np.full(len(rows), launch))
        rows[:, Crossing.READY] = np.maximum(rows[:, Crossing.READY], ready)
        self._units.give(places["gives"], here, 2 * who)
        if isinstance(operation, Send):
            self._units.give(places["arrivals"], operation.far.index, 2 * who + 1)


def end_transfer(
    times: Times, launch_cycles: int, taken: Taken, done: Done, note: Note | None
) -> Fault | None:
    """Take and give the units of a transfer that a network has brought to its end.

    Args:
        times: State of the run as the tiles lie, shape (slots, rows, columns).
        launch_cycles: From the start of a transfer to its first flit.
        taken: The transfer.
        done: When it has left and come.
        note: Told of it: when engines are free, and when something came to tiles last.
    """
    operation, places = taken.operation, taken.places
    here, there = operation.near.index, operation.far.index
    left, before = (each.reshape(np.broadcast(*here).shape) for each in done[:2])
    come = done[2].reshape(np.broadcast(*there).shape)
    missing = take_units(times, places["takes"], here)[1]
    unfree = take_units(times, places["slots"], there)[1]
    leave_tiles(times, here, left, before, launch_cycles)
    over = give_units(times, places["gives"], here, left)
    full = give_units(times, places["arrivals"], there, come)
    if note is not None:
        arrived = times[TileSlot.PORT].copy()
        arrived[there] = come
        if isinstance(operation, OffChip):
            operation = operation.of_flits(operation.sent_flits).within_tiles()
        note(taken.number, operation, engine_ends(times, launch_cycles), arrived)
    return taken.fault(missing or unfree or over or full)
