"""Rings laid on a line of tiles.

A cyclic shift moves every block one place along a ring. How the ring lies on the line decides how
far a block travels: in the natural order the last tile sends across the whole line; interleaved, no
tile sends farther than two hops.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tlm.program import Indices


@dataclass(frozen=True)
class Ring:
    """A cycle through all tiles of a line.

    Attributes:
        position: Shape (size,): the place of each tile on the ring.
    """

    position: Indices

    @classmethod
    @lru_cache(64)
    def natural(cls, size: int) -> "Ring":
        """The ring in the order of the line: one edge of ``size - 1`` hops (Cannon's method)."""
        return cls(np.arange(size))

    @classmethod
    @lru_cache(64)
    def interleaved(cls, size: int) -> "Ring":
        """With no edge longer than two hops: up the even tiles, and down the odd ones.

        WaferLLM's Algorithm 1 says the same tile by tile.
        """
        tile = np.arange(size)
        return cls(np.where(tile % 2 == 0, tile // 2, size - 1 - tile // 2))

    @property
    def size(self) -> int:
        """Number of tiles."""
        return len(self.position)

    def neighbours(self, step: int) -> Indices:
        """Shape (size,): the tile ``step`` places further along the ring from each tile."""
        tile_at = np.argsort(self.position)
        return tile_at[(self.position + step) % self.size]

    @cached_property
    def hops(self) -> Indices:
        """Shape (size,): length of the edge to the next tile of the ring from each tile."""
        hops: Indices = np.abs(self.neighbours(1) - np.arange(self.size))
        return hops

    @cached_property
    def mean_hops(self) -> float:
        """Mean length of an edge."""
        return float(self.hops.mean())

    @cached_property
    def longest_hops(self) -> int:
        """Length of the longest edge."""
        return int(self.hops.max())


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
