"""Collective transfers on a mesh as packets: who sends to whom, and over how many links."""

from dataclasses import dataclass

from tlm.errors import InputError, choose
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.traffic import parse_rectangle
from tlm.interconnect.zero_load import NocTiming

COLLECTIVES = (
    "unicast", "multicast", "reduce", "seq-multicast", "tree-multicast", "seq-reduce", "tree-reduce"
)  # fmt: skip
_MOST_FLITS = 2**20
#: A message: sender, receiver.
_Message = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """A transfer of ``flits`` payload flits from a root to a group's tiles, or from them to it.

    A root inside the group has its data already.

    - ``unicast``: a message to each other tile of the group, farthest first.
    - ``multicast``: one message, which the routers copy.
    - ``reduce``: a message from each tile of the group, which the routers combine on the way; a
      root inside the group brings its own without using a link.
    - ``seq-multicast``: a message to each other tile in the order of the node numbers, as software
      does it; ``seq-reduce``: one from each other tile, all offered together, to the root.
    - ``tree-multicast``: a binomial tree in rounds, far messages first: in each round every tile
      that has the data sends them to one that has not. ``tree-reduce``: the same backwards. A
      round begins when the last message of the one before has come. Cycles of adding are not
      counted.

    Attributes:
        kind: One of `COLLECTIVES`.
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        root: Row and column of the root.
        group: The other side.
        flits: Payload flits; of multicasts and reductions cut into packets of ``bound_flits``.
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
        check_transfer(self.root, self.group, self.flits)

    def rounds(self) -> list[Packets]:
        """Packets round by round, queued in cycle 0 of the round; all but trees have one."""
        if self.kind in ("multicast", "reduce"):
            parts = cut(self.flits, self.bound_flits)
            root = self._node(self.root)
            goal: TileSet | ReductionGoal = self.group
            sources = [root]
            if self.kind == "reduce":
                goal, sources = ReductionGoal(self.group, root), self.group.nodes(self.cols)
            return [Packets.of((0, node, goal, part) for node in sources for part in parts)]
        return [
            Packets.of(
                (0, self._node(source), TileSet.tile(*target), self.flits)
                for source, target in messages
            )
            for messages in self._rounds()
        ]

    @property
    def messages(self) -> int:
        """Transfers that tiles issue."""
        if self.kind == "multicast":
            return 1
        return len(self.group) if self.kind == "reduce" else len(self._others())

    @property
    def flit_hops(self) -> int:
        """Flits times links crossed, over all packets."""
        if self.kind in ("multicast", "reduce"):
            return self.flits * self._tree_links()
        return self.flits * sum(hops(*message) for part in self._rounds() for message in part)

    def zero_load_cycles(self, timing: NocTiming) -> int:
        """Cycles by the closed forms: tiles send back to back, and links are in nobody's way."""
        farthest = max(hops(self.root, tile) for tile in self.group)
        if self.kind == "reduce":
            return timing.reduction_cycles(farthest, self.flits)
        if self.kind == "multicast" and len(self.group) > 1:
            return timing.multicast_cycles(farthest, self.flits)
        if self.kind == "multicast":  # goes as unicast packets
            return timing.unicast_cycles(farthest, self.flits)
        rounds = self._rounds()
        return sum(self._round_cycles(part, timing) for part in rounds) + len(rounds) - 1

    def _round_cycles(self, messages: list[_Message], timing: NocTiming) -> int:
        """The senders' ports, or the root's, pass a flit a cycle."""
        if self.kind == "seq-reduce":
            heads = sorted(timing.head_cycles(hops(*message)) for message in messages)
            free = 0
            for head in heads:
                free = max(free, head) + self.flits
            return free - 1
        before: dict[tuple[int, int], int] = {}
        finish = 0
        for message in messages:
            waits = before.get(message[0], 0)
            before[message[0]] = waits + self.flits
            finish = max(finish, waits + timing.unicast_cycles(hops(*message), self.flits))
        return finish

    def _rounds(self) -> list[list[_Message]]:
        """Messages of the collectives in software."""
        others = self._others()
        if self.kind.startswith("tree"):
            rounds = _binomial([self.root, *self._after_root(others)])
            if self.kind == "tree-multicast":
                return rounds
            return [[(there, here) for here, there in part] for part in reversed(rounds)]
        if self.kind == "seq-reduce":
            return [[(tile, self.root) for tile in others]]
        if self.kind == "unicast":
            others.sort(key=lambda tile: hops(self.root, tile), reverse=True)
        return [[(self.root, tile) for tile in others]]

    def _others(self) -> list[tuple[int, int]]:
        return [tile for tile in self.group if tile != self.root]

    def _after_root(self, others: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The others in order, from the one that follows the root on and around the end."""
        following = [tile for tile in others if tile > self.root]
        return following + others[: len(others) - len(following)]

    def _node(self, tile: tuple[int, int]) -> int:
        return tile[0] * self.cols + tile[1]

    def _tree_links(self) -> int:
        """Links of the X-first tree between the root and the group."""
        (row, col), rows, cols = self.root, self.group.rows, self.group.cols
        along_row = max(cols[-1] - col, 0) + max(col - cols[0], 0)
        along_column = max(rows[-1] - row, 0) + max(row - rows[0], 0)
        if self.kind == "reduce":  # each row to the root's column, which gathers them
            return along_row * len(rows) + along_column
        return along_row + along_column * len(cols)


def _binomial(tiles: list[tuple[int, int]]) -> list[list[_Message]]:
    """Rounds in which the first of some tiles reaches all: from half of the way on, halving."""
    step = 1 << (len(tiles) - 1).bit_length()
    rounds = []
    while step > 1:
        step //= 2
        senders = range(0, len(tiles) - step, 2 * step)
        rounds.append([(tiles[index], tiles[index + step]) for index in senders])
    return rounds


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
