"""Dimension-ordered routes by their definition: a way from tile to tile, and unions of such ways.

What rtl/noc/tree_route.sv and rtl/noc/reduce_route.sv decide from masks is held against this.
"""

from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, product
from typing import NamedTuple

PORTS = 5
LOCAL, NORTH, EAST, SOUTH, WEST = range(PORTS)
Tile = tuple[int, int]
Tiles = frozenset[Tile]
_FACING = {NORTH: SOUTH, EAST: WEST, SOUTH: NORTH, WEST: EAST}
_STEPS = {NORTH: (-1, 0), EAST: (0, 1), SOUTH: (1, 0), WEST: (0, -1)}


class Hop(NamedTuple):
    """A router on a way, the port by which the way enters and that by which it leaves."""

    at: Tile
    came_by: int
    leaves_by: int


@dataclass(frozen=True, slots=True)
class Routes:
    """Routes of a mesh.

    Attributes:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        y_first: Along the column first.
        loopback: A sender among the destinations of its multicast gets a copy.
    """

    rows: int
    cols: int
    y_first: bool = False
    loopback: bool = True

    def tiles(self) -> list[Tile]:
        """All tiles, by row and column."""
        return list(product(range(self.rows), range(self.cols)))

    def ports_at(self, at: Tile) -> list[int]:
        """Ports of this router that lead anywhere."""
        return [LOCAL, *(port for port in _STEPS if _neighbour(at, port) in self.tiles())]

    def path(self, start: Tile, end: Tile) -> list[Hop]:
        """The way from a tile to a tile."""
        hops, at, came_by = [], start, LOCAL
        while at != end:
            leaves_by = self._towards(at, end)
            hops.append(Hop(at, came_by, leaves_by))
            at, came_by = _neighbour(at, leaves_by), _FACING[leaves_by]
        return [*hops, Hop(at, came_by, LOCAL)]

    def unicast(self, tile: Tile, at: Tile, came_by: int) -> frozenset[int] | None:
        """Output of a unicast that entered by this port; None if none ever does."""
        return self._outputs(frozenset({tile}), at, came_by)

    def multicast(self, tiles: Tiles, at: Tile, came_by: int) -> frozenset[int] | None:
        """Outputs of a multicast that entered by this port; None if none ever does."""
        if came_by == LOCAL and not self.loopback and tiles == {at}:
            return frozenset()
        return self._outputs(
            tiles if self.loopback or came_by != LOCAL else tiles - {at}, at, came_by
        )

    def meeting(self, marked: Tiles, root: Tile, at: Tile) -> tuple[frozenset[int], int | None]:
        """Inputs by which operands come, and the output by which their result leaves."""
        hops = [hop for hop in _ways_to(self, marked, root) if hop.at == at]
        outputs = {hop.leaves_by for hop in hops}
        assert len(outputs) <= 1, f"ways to {root} part at {at}"
        return frozenset(hop.came_by for hop in hops), next(iter(outputs), None)

    def _outputs(self, tiles: Tiles, at: Tile, came_by: int) -> frozenset[int] | None:
        """The same from whichever source, or the header could not tell."""
        ways = _forks(self, tiles).get((at, came_by), set())
        assert len(ways) <= 1, f"outputs at {at} by {came_by} depend on the source: {ways}"
        return next(iter(ways), None)

    def _towards(self, at: Tile, end: Tile) -> int:
        along_col = NORTH if end[0] < at[0] else SOUTH
        along_row = WEST if end[1] < at[1] else EAST
        if self.y_first:
            return along_col if end[0] != at[0] else along_row
        return along_row if end[1] != at[1] else along_col


def subsets(size: int) -> list[frozenset[int]]:
    """All sets of indices below ``size`` that are not empty."""
    chosen = chain.from_iterable(combinations(range(size), n) for n in range(1, size + 1))
    return [frozenset(indices) for indices in chosen]


def bits(indices: frozenset[int]) -> int:
    """A mask with these bits set."""
    return sum(1 << index for index in indices)


def _neighbour(at: Tile, port: int) -> Tile:
    return at[0] + _STEPS[port][0], at[1] + _STEPS[port][1]


@cache
def _ways_to(routes: Routes, marked: Tiles, root: Tile) -> list[Hop]:
    return [hop for tile in marked for hop in routes.path(tile, root)]


@cache
def _forks(routes: Routes, tiles: Tiles) -> dict[tuple[Tile, int], set[frozenset[int]]]:
    """Sets of outputs that any source's tree to these tiles has, by router and input."""
    found: dict[tuple[Tile, int], set[frozenset[int]]] = {}
    for source in routes.tiles():
        tree: dict[tuple[Tile, int], set[int]] = {}
        for tile in tiles:
            for hop in routes.path(source, tile):
                tree.setdefault((hop.at, hop.came_by), set()).add(hop.leaves_by)
        for where, outputs in tree.items():
            found.setdefault(where, set()).add(frozenset(outputs))
    return found
