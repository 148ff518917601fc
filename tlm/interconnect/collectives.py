"""Collective transfers on a mesh as packets: who sends to whom, and over how many links."""

from dataclasses import dataclass

from tlm.errors import InputError, choose
from tlm.interconnect.packets import Packets, TileSet, cut
from tlm.interconnect.traffic import parse_rectangle
from tlm.interconnect.zero_load import NocTiming

COLLECTIVES = ("unicast", "multicast", "seq-multicast")
_MOST_FLITS = 2**20


@dataclass(frozen=True, slots=True)
class Collective:
    """A transfer of ``flits`` payload flits from a root to the tiles of a group.

    A root inside the group has its data already. ``unicast`` is one message to each other tile of
    the group, farthest first; ``seq-multicast`` the same in the order of the node numbers, as
    software does it; ``multicast`` one message that the routers copy.

    Attributes:
        kind: One of `COLLECTIVES`.
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        root: Row and column of the source.
        group: The destinations.
        flits: Payload flits; a multicast is cut into packets no longer than ``bound_flits``.
        bound_flits: Packet bound of the network.
    """

    kind: str
    rows: int
    cols: int
    root: tuple[int, int]
    group: TileSet
    flits: int
    bound_flits: int

    def __post_init__(self) -> None:
        choose("collective", self.kind, COLLECTIVES)
        if not 1 <= self.flits <= _MOST_FLITS:
            raise InputError(f"--flits: found {self.flits}; allowed: 1 to {_MOST_FLITS}")
        if not self._targets():
            raise InputError("--group: holds no tile but the source")

    def packets(self) -> Packets:
        """All packets, queued at the root in cycle 0."""
        row, col = self.root
        sends = self._transfers()
        return Packets.of((0, row * self.cols + col, where, flits) for where, flits in sends)

    @property
    def messages(self) -> int:
        """Transfers that the root issues."""
        return 1 if self.kind == "multicast" else len(self._targets())

    @property
    def flit_hops(self) -> int:
        """Flits times links crossed, over all packets."""
        return sum(flits * self._links(where) for where, flits in self._transfers())

    def zero_load_cycles(self, timing: NocTiming) -> int:
        """Cycles by the closed forms: the root sends back to back, nothing is in the way."""
        if self.kind == "multicast":
            hops = max(map(self._hops, self.group_tiles()))
            if len(self.group) == 1:  # goes as unicast packets
                return timing.unicast_cycles(hops, self.flits)
            return timing.multicast_cycles(hops, self.flits)
        finish = 0
        for index, target in enumerate(self._targets()):
            last = index * self.flits + timing.unicast_cycles(self._hops(target), self.flits)
            finish = max(finish, last)
        return finish

    def group_tiles(self) -> list[tuple[int, int]]:
        """Row and column of every tile of the group."""
        return [(row, col) for row in self.group.rows for col in self.group.cols]

    def _targets(self) -> list[tuple[int, int]]:
        tiles = [tile for tile in self.group_tiles() if tile != self.root]
        if self.kind == "unicast":
            tiles.sort(key=self._hops, reverse=True)
        return tiles

    def _transfers(self) -> list[tuple[TileSet, int]]:
        if self.kind == "multicast":
            return [(self.group, part) for part in cut(self.flits, self.bound_flits)]
        return [(TileSet.tile(*tile), self.flits) for tile in self._targets()]

    def _hops(self, tile: tuple[int, int]) -> int:
        return abs(tile[0] - self.root[0]) + abs(tile[1] - self.root[1])

    def _links(self, where: TileSet) -> int:
        """Links of the X-first tree from the root to a set of tiles."""
        row, col = self.root
        along_row = max(where.cols[-1] - col, 0) + max(col - where.cols[0], 0)
        along_column = max(where.rows[-1] - row, 0) + max(row - where.rows[0], 0)
        return along_row + along_column * len(where.cols)


def group_tiles(text: str, root: tuple[int, int], rows: int, cols: int) -> TileSet:
    """Tiles from ``row``, ``column`` (of the root), ``all`` or ``r0:r1,c0:c1``.

    Raises:
        InputError: for any other text, or a rectangle outside the mesh.
    """
    if text == "row":
        return TileSet(range(root[0], root[0] + 1), range(cols))
    if text == "column":
        return TileSet(range(rows), range(root[1], root[1] + 1))
    if text == "all":
        return TileSet(range(rows), range(cols))
    return parse_rectangle(text, rows, cols)
