"""Cycles of work that differ from tile to tile, and how long the computing engines have worked."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.state import Times
from tlm.interconnect.packets import TileSet
from tlm.program.operations import COMPUTING, Ends, Engine, Work

TABLES = 8


class CycleTables:
    """Tables that the compiled steps read, a few at a time.

    An array that cannot be written is read in once, however many operations bring it. If rows and
    columns of the tiles are ``turned``, those of the arrays and of what comes out are not.

    Attributes:
        values: Shape (tables, rows, columns); only what is in use has been written.
    """

    def __init__(self, rows: int, cols: int, *, turned: bool) -> None:
        self._turned = turned
        self.values: Times = np.empty((TABLES, rows, cols), dtype=np.int32)
        self._held: list[tuple[Work, int]] = []
        self._numbers: dict[tuple[int, TileSet], int] = {}
        self._busy = np.zeros((len(COMPUTING), rows, cols), dtype=np.int64)
        self._busy_cycles: Counter[tuple[Engine, TileSet]] = Counter()
        self._busy_tables: Counter[tuple[Engine, int]] = Counter()

    @property
    def full(self) -> bool:
        """Whether there is no room for another."""
        return len(self._held) == TABLES

    def put(self, work: Work) -> tuple[int, int]:
        """Number of the table of some work, -1 if its cycles are one number, and the longest."""
        if isinstance(work.cycles, int):
            self._busy_cycles[work.engine, work.tiles] += work.cycles
            return -1, work.cycles
        number, longest = self._number(work, work.cycles)
        self._busy_tables[work.engine, number] += 1
        return number, longest

    def _number(self, work: Work, cycles: NDArray[np.int64]) -> tuple[int, int]:
        key = (id(cycles), work.tiles)
        number = self._numbers.get(key, len(self._held))
        if number == len(self._held):
            self.values[number][work.near.part] = cycles.T if self._turned else cycles
            self._held.append((work, int(cycles.max())))
            if not cycles.flags.writeable:
                self._numbers[key] = number
        return number, self._held[number][1]

    def clear(self) -> None:
        """Forget the tables, whose work is done."""
        for (engine, number), times in self._busy_tables.items():
            part = self._held[number][0].near.part
            if engine in COMPUTING:
                self._busy[engine][part] += self.values[number][part] * times
        self._busy_tables.clear()
        self._held.clear()
        self._numbers.clear()

    def busy_cycles(self) -> NDArray[np.int64]:
        """Cycles that each tile's matrix and vector engines have worked, as the tiles lie.

        Shape (2, rows, columns).
        """
        self.clear()
        for (engine, tiles), cycles in self._busy_cycles.items():
            if engine in COMPUTING:
                self._busy[engine][Ends.of(tiles).part] += cycles
        self._busy_cycles.clear()
        return self._busy.transpose(0, 2, 1) if self._turned else self._busy
