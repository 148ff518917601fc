"""Operations that wait until blocks of off-chip memory have come.

Meanwhile other tiles ask for their next blocks. A channel serves them in between: what a tile waits
for does not keep those from asking that wait for nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.contention.held import Taken, kept
from tlm.interconnect.packets import TileSet
from tlm.program.operations import Ends, Engine, OffChip


class Behind:
    """They wait in the order of the program.

    Args:
        rows: Rows of the state.
        cols: Its columns.
        turned: Whether rows and columns of tiles have changed places in it.

    Attributes:
        operations: How many wait, but for parts of those of which others are under way.
    """

    def __init__(self, rows: int, cols: int, *, turned: bool) -> None:
        self._busy = np.zeros((cols, rows) if turned else (rows, cols), dtype=bool)
        self._waiting: list[Taken] = []
        self.operations = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def append(self, taken: Taken) -> None:
        """Have an operation wait."""
        operation = taken.operation
        if operation.engine is Engine.TRANSFER:
            self._busy[operation.near.part] = True
        self.operations += not isinstance(operation, OffChip)
        self._waiting.append(kept(taken))

    def all(self) -> list[Taken]:
        """All of them, which wait no more."""
        waiting, self._waiting = self._waiting, []
        self._busy[:] = False
        self.operations = 0
        return waiting

    def change(self, operation: OffChip) -> bool:
        """Whether one that waits takes or gives what an operation does, at one of its tiles."""
        needed = {*operation.takes, *operation.gives, *operation.arrivals}
        for other in (taken.operation for taken in self._waiting):
            if isinstance(other, OffChip):
                continue  # of other tiles, or else before it at each
            near, far = (*other.takes, *other.gives), (*other.slots, *other.arrivals)
            if not needed.isdisjoint(near) and _meet(other.near, operation.tiles):
                return True
            if not needed.isdisjoint(far) and _meet(other.far, operation.tiles):
                return True
        return False

    def split(self, operation: OffChip) -> tuple[list[OffChip], list[OffChip]]:
        """Parts at tiles that may ask at once, and at those with a transfer that waits."""
        if not self._waiting:
            return [operation], []
        tiles = operation.tiles
        busy = self._busy[np.ix_(tiles.rows, tiles.cols)]
        if not busy.any():
            return [operation], []
        free, later = (
            [replace(operation, tiles=part) for part in _parts(tiles, mask)]
            for mask in (~busy, busy)
        )
        return free, later


def _meet(ends: Ends, tiles: TileSet) -> bool:
    """Whether an operation has an end at one of some tiles."""
    rows, cols = (np.isin(*pair) for pair in ((ends.rows, tiles.rows), (ends.cols, tiles.cols)))
    return bool((rows & cols).any() if ends.paired else rows.any() and cols.any())


def _parts(tiles: TileSet, mask: NDArray[np.bool_]) -> Iterator[TileSet]:
    """Rectangles that the tiles of a mask are: shape (rows, columns)."""
    rows, cols = tiles.rows, tiles.cols
    for top, bottom in _runs(np.r_[True, (mask[1:] != mask[:-1]).any(axis=1)]):
        line = mask[top]
        for first, last in _runs(np.r_[True, line[1:] != line[:-1]]):
            if line[first]:
                yield TileSet(rows[top:bottom], cols[first:last])


def _runs(begins: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First places of runs, and those after their last, of where they begin."""
    ends = [*np.flatnonzero(begins).tolist(), len(begins)]
    return list(zip(ends[:-1], ends[1:], strict=True))
