"""Collective transfers that routers carry alone: who sends to whom, and over how many links.

Those of tiles that send on what has come are programs (`workloads.kernels.parts.software`).
"""

from dataclasses import dataclass

from tlm.errors import InputError, choose
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.traffic import parse_rectangle
from tlm.interconnect.zero_load import NocTiming

COLLECTIVES = ("unicast", "multicast", "reduce")
_MOST_FLITS = 2**20


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """A transfer of ``flits`` payload flits from a root to a group's tiles, or from them to it.

    A root inside the group has its data already.

    - ``unicast``: a message to each other tile of the group, farthest first.
    - ``multicast``: one message, which the routers copy.
    - ``reduce``: a message from each tile of the group, which the routers combine on the way; a
      root inside the group brings its own without using a link.

    Attributes:
        kind: One of `COLLECTIVES`.
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        root: Row and column of the root.
        group: The other side.
        flits: Payload flits; of multicasts and reductions cut into packets of ``bound_flits``.
        bound_flits: Packet bound of the network.
        y_first: Whether packets go along the column first.
    """

    kind: str
    rows: int
    cols: int
    root: tuple[int, int]
    group: TileSet
    flits: int
    bound_flits: int
    y_first: bool = False

    def __post_init__(self) -> None:
        choose("collective", self.kind, COLLECTIVES)
        check_transfer(self.root, self.group, self.flits)

    def packets(self) -> Packets:
        """All packets, queued in cycle 0."""
        root = self._node(self.root)
        if self.kind == "unicast":
            others = sorted(self._others(), key=lambda tile: hops(self.root, tile), reverse=True)
            return Packets.of((0, root, TileSet.tile(*tile), self.flits) for tile in others)
        goal: TileSet | ReductionGoal = self.group
        sources = [root]
        if self.kind == "reduce":
            goal, sources = ReductionGoal(self.group, root), self.group.nodes(self.cols)
        parts = cut(self.flits, self.bound_flits)
        return Packets.of((0, node, goal, part) for node in sources for part in parts)

    @property
    def messages(self) -> int:
        """Transfers that tiles issue."""
        if self.kind == "multicast":
            return 1
        return len(self.group) if self.kind == "reduce" else len(self._others())

    @property
    def flit_hops(self) -> int:
        """Flits times links crossed, over all packets."""
        if self.kind == "unicast":
            return self.flits * sum(hops(self.root, tile) for tile in self.group)
        return self.flits * self._tree_links()

    def zero_load_cycles(self, timing: NocTiming) -> int:
        """Cycles by the closed forms: tiles send back to back, and links are in nobody's way."""
        ways = sorted((hops(self.root, tile) for tile in self._others()), reverse=True)
        farthest = max(hops(self.root, tile) for tile in self.group)
        if self.kind == "reduce":
            return timing.reduction_cycles(farthest, self.flits)
        if self.kind == "multicast" and len(self.group) > 1:
            return timing.multicast_cycles(farthest, self.flits)
        if self.kind == "multicast":  # goes as unicast packets
            return timing.unicast_cycles(farthest, self.flits)
        return max(
            number * self.flits + timing.unicast_cycles(way, self.flits)
            for number, way in enumerate(ways)
        )

    def _others(self) -> list[tuple[int, int]]:
        return [tile for tile in self.group if tile != self.root]

    def _node(self, tile: tuple[int, int]) -> int:
        return tile[0] * self.cols + tile[1]

    def _tree_links(self) -> int:
        """Links of the tree between the root and the group."""
        (row, col), rows, cols = self.root, self.group.rows, self.group.cols
        along_row = max(cols[-1] - col, 0) + max(col - cols[0], 0)
        along_column = max(rows[-1] - row, 0) + max(row - rows[0], 0)
        # X-first operands go along each row to the root's column, which gathers them; a multicast
        # goes so the other way if it is Y-first.
        if (self.kind == "reduce") != self.y_first:
            return along_row * len(rows) + along_column
        return along_row + along_column * len(cols)


def check_transfer(root: tuple[int, int], group: TileSet, flits: int) -> None:
    """Hold that there is something to send, and somebody to whom.

    Raises:
        InputError: if not.
    """
    if not 1 <= flits <= _MOST_FLITS:
        raise InputError(f"--flits: found {flits}; allowed: 1 to {_MOST_FLITS}")
    if not any(tile != root for tile in group):
        raise InputError("--group: holds no tile but the source")


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
