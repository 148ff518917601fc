"""Who waits for whom among sends and the work between them.

Which unit an operation takes depends on the program alone, not on times. So a copy of the run's
state goes through the operations in program order. What is given there is no time yet but the
number of a unit, as a time below all others; who takes it waits for that unit.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.tiles import TileIndex, give_units, take_each
from tlm.engines.lt.state import EMPTY, TileSlot, Times
from tlm.engines.lt.tokens import Place
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.unicast_network import TRANSFER_COLUMNS, Crossing, Table, Waits, waits_of
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Send, Work

_FIRST = int(EMPTY) - 1
"""Stands for unit 0; units behind it are below."""
_Numbers = NDArray[np.int64]


class Graph:
    """Rows of a network, and their waits, from the state of a run.

    Args:
        times: The state as the tiles lie, shape (slots, rows, columns); stays as it is.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
    """

    def __init__(self, times: Times, timing: NocTiming, launch_cycles: int) -> None:
        # As it lies: what is compiled for the state is for the copy, too.
        self._times = times.copy(order="K")
        self._timing, self._launch_cycles = timing, launch_cycles
        self._waits: list[_Numbers] = [np.empty((3, 0), dtype=np.int64)]

    def of(self, together: Sequence[Taken]) -> tuple[Table, Waits]:
        """A row for each tile of each operation, as they stand in the program; and the waits."""
        sizes = [len(each.operation.near) for each in together]
        rows = np.zeros((sum(sizes), TRANSFER_COLUMNS), dtype=np.int64)
        first = 0
        for taken, size in zip(together, sizes, strict=True):
            self._enter(taken, rows[first : first + size], first)
            first += size
        unit, who, behind = np.concatenate(self._waits, axis=1)
        return rows, waits_of(unit, who, behind, len(rows))

    def _enter(self, taken: Taken, rows: Table, first: int) -> None:
        """Fill in the rows of an operation, the first of which has a number."""
        operation, places = taken.operation, taken.places
        here = operation.near.index
        rows[:, Crossing.ROW], rows[:, Crossing.COL] = _ends(here)
        engine, launch = self._times[operation.engine][here].ravel(), 0
        rows[:, Crossing.FREE] = engine
        if isinstance(operation, Send):
            launch = self._launch_cycles
            there = operation.far.index
            rows[:, Crossing.TO_ROW], rows[:, Crossing.TO_COL] = _ends(there)
            rows[:, Crossing.FLITS] = operation.flits
            rows[:, Crossing.BEFORE] = self._times[TileSlot.LEFT][here].ravel()
            away = np.abs(rows[:, :2] - rows[:, 2:4]).sum(axis=1)
            known = launch + credit_cycles_over(self._timing, away)
            self._take(rows, first, places["slots"], there, known)
        else:
            assert isinstance(operation, Work)
            rows[:, Crossing.WORKER] = 1 + operation.engine
            rows[:, Crossing.FLITS] = np.ravel(operation.cycles)
        self._take(rows, first, places["takes"], here, np.full(len(rows), launch))
        units = 2 * np.arange(first, first + len(rows))
        give_units(self._times, places["gives"], here, _FIRST - units)
        if isinstance(operation, Send):
            give_units(self._times, places["arrivals"], operation.far.index, _FIRST - units - 1)

    def _take(
        self, rows: Table, first: int, places: Sequence[Place], tiles: TileIndex, behind: _Numbers
    ) -> None:
        """Take units: rows are ready so many cycles behind those known, and wait for others."""
        each, _ = take_each(self._times, places, tiles)
        for times in each:
            known = times > _FIRST
            ready = np.where(known, times + behind, 0)
            rows[:, Crossing.READY] = np.maximum(rows[:, Crossing.READY], ready)
            who = np.flatnonzero(~known)
            self._waits.append(np.stack([_FIRST - times[who], first + who, behind[who]]))


def _ends(tiles: TileIndex) -> tuple[_Numbers, _Numbers]:
    """Rows and columns of some tiles, one after the other."""
    rows, cols = np.broadcast_arrays(*tiles)
    return rows.ravel(), cols.ravel()
