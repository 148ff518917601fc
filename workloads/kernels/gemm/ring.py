"""Rings laid on a line of tiles.

A cyclic shift moves every block one place along a ring. How the ring lies on the line decides how
far a block travels: in the natural order the last tile sends across the whole line; interleaved, no
tile sends farther than two hops.
"""

from dataclasses import dataclass

import numpy as np

from tlm.program import Indices


def interleave(index: int, size: int) -> tuple[int, int]:
    """Whom tile ``index`` of a line of ``size`` sends to and receives from (WaferLLM, Algorithm 1).

    Even tiles pass blocks up the line two by two, odd ones back down, and the ends turn around. A
    line of one tile sends to itself.
    """
    if size == 1:
        return 0, 0
    up, down = min(index + 2, size - 1), max(index - 2, 0)
    send, receive = (up, down) if index % 2 == 0 else (down, up)
    if index == 0:
        receive = 1
    if index == size - 1:
        if size % 2 == 0:
            receive = size - 2
        else:
            send = size - 2
    return send, receive


@dataclass(frozen=True, slots=True)
class Ring:
    """A cycle through all tiles of a line.

    Attributes:
        position: Shape (size,): the place of each tile on the ring.
    """

    position: Indices

    @classmethod
    def natural(cls, size: int) -> "Ring":
        """The ring in the order of the line: one edge of ``size - 1`` hops (Cannon's method)."""
        return cls(np.arange(size))

    @classmethod
    def interleaved(cls, size: int) -> "Ring":
        """The ring of `interleave`: no edge longer than two hops."""
        position = np.zeros(size, dtype=np.int64)
        tile = 0
        for place in range(size):
            position[tile] = place
            tile = interleave(tile, size)[0]
        return cls(position)

    @property
    def size(self) -> int:
        """Number of tiles."""
        return len(self.position)

    def neighbours(self, step: int) -> Indices:
        """Shape (size,): the tile ``step`` places further along the ring from each tile."""
        tile_at = np.argsort(self.position)
        return tile_at[(self.position + step) % self.size]

    @property
    def longest_hops(self) -> int:
        """Length of the longest edge."""
        return int(np.abs(self.neighbours(1) - np.arange(self.size)).max())


@dataclass(frozen=True, slots=True)
class Rings:
    """Rings of a grid: the same one on every row, and the same one on every column.

    Attributes:
        across: Of a row's tiles.
        down: Of a column's.
    """

    across: Ring
    down: Ring

    @classmethod
    def natural(cls, rows: int, cols: int) -> "Rings":
        """In the order of the lines."""
        return cls(Ring.natural(cols), Ring.natural(rows))

    @classmethod
    def interleaved(cls, rows: int, cols: int) -> "Rings":
        """With no edge longer than two hops."""
        return cls(Ring.interleaved(cols), Ring.interleaved(rows))
