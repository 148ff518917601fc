"""Groups of tiles side by side: their lines, and the tiles of their diagonals."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, product
from typing import NamedTuple

from tlm.compiled import law
from tlm.interconnect.packets import TileSet
from workloads.kernels.parts.line import Lines
from workloads.kernels.vector.softmax import diagonal


class Groups(NamedTuple):
    """A rectangle of the groups that a grid is cut into.

    Attributes:
        size: Rows and columns of tiles of a group.
        down: Rows of groups, of the grid's.
        across: Columns of groups.
        first: The row of groups from which those are counted whose roots lie apart.
    """

    size: tuple[int, int]
    down: range
    across: range
    first: int

    @property
    def tiles(self) -> TileSet:
        """All tiles of these groups."""
        (rows, cols), (down, across) = self.size, (self.down, self.across)
        return TileSet(
            range(down.start * rows, down.stop * rows),
            range(across.start * cols, across.stop * cols),
        )

    @property
    def places(self) -> Iterator[tuple[int, int]]:
        """Rows and columns of the tiles of a group."""
        rows, cols = map(range, self.size)
        return product(rows, cols)

    def at(self, row: int, col: int) -> TileSet:
        """The tile at a place of each of them."""
        (rows, cols), (down, across) = self.size, (self.down, self.across)
        return TileSet(
            range(down.start * rows + row, down.stop * rows, rows),
            range(across.start * cols + col, across.stop * cols, cols),
        )

    def lines(self, name: str) -> list[Lines]:
        """Rows of tiles along which slices of ``q`` go, or columns of others; each of a group."""
        tiles, (down, across) = self.tiles, self.size
        if name == "q":
            return [Lines("row", tiles.rows, across, first) for first in tiles.cols[::across]]
        return [Lines("column", tiles.cols, down, first) for first in tiles.rows[::down]]

    def diagonals(self, name: str) -> list[list[int]]:
        """Places of the roots on the lines of each group of a column of groups, or of a row.

        Roots of ``q`` are in other columns of one group than of the next below where columns are
        more than rows: each channel has as many of them as another.
        """
        rows, cols = self.size
        if name != "q":
            return [diagonal(cols, rows)] * len(self.across)
        places, apart = diagonal(rows, cols), self._apart
        asides = [(number - self.first) % apart for number in self.down]
        return [[place + aside for place in places] for aside in asides]

    def line_roots(self, name: str) -> tuple[int, ...]:
        """Their places on all lines, one after the other."""
        return _line_roots(self, name)

    def roots(self, name: str) -> list[TileSet]:
        """Tiles that multicast slices of ``q``, ``k``, ``v`` or the ``mask``: one of each group."""
        tiles, (rows, cols) = self.tiles, self.size
        if name != "q":
            return [self.at(row, col) for col, row in enumerate(self.diagonals(name)[0])]
        # Groups whose roots are in other columns.
        alike = min(self._apart, len(self.down))
        return [
            TileSet(tiles.rows[number * rows + row :: alike * rows], tiles.cols[col::cols])
            for number, places in enumerate(self.diagonals(name)[:alike])
            for row, col in enumerate(places)
        ]

    def with_work(self, number: int, alike: int) -> "Groups":
        """The rows of groups from that of a number on which have the same work as it.

        Args:
            number: Of a group, row after row.
            alike: Groups with the same work from it on.
        """
        (top, left), beside = divmod(number, len(self.across)), len(self.across)
        bottom = top + 1 if left else max(top + 1, (number + alike) // beside)
        return self._replace(down=self.down[top:bottom])

    @property
    def differ(self) -> bool:
        """Whether roots of ``q`` are in other columns of some of them than of others."""
        return differ(*self.size, len(self.down))

    @property
    def _apart(self) -> int:
        return max(1, self.size[1] // self.size[0])


@law
def differ(rows: int, cols: int, down: int) -> bool:
    """`Groups.differ` of so many rows of groups of some rows and columns of tiles."""
    return min(max(1, cols // rows), down) > 1


class PartlySeen(NamedTuple):
    """Tiles that see some of the keys of their block alone, as a mask has it.

    Attributes:
        groups: Where they are.
        places: Of a group's tiles, for each mask.
    """

    groups: Groups
    places: list[list[tuple[int, int]]]

    def of(self, mask: int) -> Iterator[TileSet]:
        """Those of a mask: each place in all groups."""
        return (self.groups.at(*place) for place in self.places[mask])


@lru_cache(1 << 10)  # as plans with the same groups differ in blocks
def _line_roots(groups: Groups, name: str) -> tuple[int, ...]:
    return tuple(chain.from_iterable(groups.diagonals(name)))
