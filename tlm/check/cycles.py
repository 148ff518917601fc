"""Who gives the unit that an operation waits for, and whether the giver waits in turn.

The search for a cycle is among operations, not tiles: it finds every cyclic wait, and may name one
where tiles differ. `at` decides.
"""

from collections import deque
from collections.abc import Collection, Iterator
from functools import cached_property

from tlm.program import Program, Reduce, Send, TileOperation, Work, root_lines, within_tiles

#: Rows and columns of a set of tiles; their product may be larger than the set.
_Places = tuple[Collection[int], Collection[int]]


class Waits:
    """Which operations of a program may wait for which."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def giver(self, token: str, tile: tuple[int, int], waits: int, owed: int) -> int | None:
        """The operation that gives a tile's unit for one that waits; None if none does.

        It is from that one on, and after ``owed`` more, which go to operations that waited before.
        """
        for at in self._givers.get(token, ()):
            if at >= waits and self._nodes[at].gives_at(token, tile):
                if owed == 0:
                    return at
                owed -= 1
        return None

    def cycle(self, waits: int, giver: int) -> list[int] | None:
        """Operations of which each may wait for the next, from ``waits`` by ``giver`` to it."""
        if giver == waits:
            return [waits, waits]
        came_from = {giver: waits}
        queue = deque([giver])
        while queue:
            at = queue.popleft()
            for before in self._awaited(at):
                if before == waits:
                    return _path(came_from, at, waits)
                if before not in came_from:
                    came_from[before] = at
                    queue.append(before)
        return None

    @cached_property
    def _nodes(self) -> list["_Node"]:
        return [_Node(operation) for operation in map(within_tiles, self._program.build())]

    @cached_property
    def _givers(self) -> dict[str, list[int]]:
        givers: dict[str, list[int]] = {}
        for at, node in enumerate(self._nodes):
            for name in node.gives:
                givers.setdefault(name, []).append(at)
        return givers

    def _awaited(self, number: int) -> Iterator[int]:
        """Operations that one may wait for: by its engine's order, or for a token."""
        own = self._nodes[number]
        for at, other in enumerate(self._nodes[:number]):
            if other.engine == own.engine and _meet(own.near, other.near):
                yield at
        for name, where in own.takes:
            for at in self._givers.get(name, ()):
                if _meet(where, self._nodes[at].gives[name]):
                    yield at


class _Node:
    """What an operation needs and gives, and where."""

    def __init__(self, operation: TileOperation) -> None:
        self.engine = operation.engine if isinstance(operation, Work) else None
        self.near, far = _sides(operation)
        self._operation = operation
        self.takes = [(name, self.near) for name in operation.takes]
        self.gives = {name: self.near for name in operation.gives}
        if not isinstance(operation, Work):
            self.takes += [(name, far) for name in operation.slots]
            self.gives |= {name: far for name in operation.arrivals}

    def gives_at(self, token: str, tile: tuple[int, int]) -> bool:
        """Whether a token is given at a tile."""
        rows, cols = self.gives[token]
        operation = self._operation
        if tile[0] not in rows or tile[1] not in cols:
            return False
        at_root = (token in operation.gives) != isinstance(operation, Reduce)
        if isinstance(operation, Work | Send) or not at_root:
            return True
        lines, places = root_lines(operation)
        line, place = tile if operation.along == "row" else tile[::-1]
        return bool(places[lines.index(line)] == place)


def _meet(one: _Places, other: _Places) -> bool:
    return not (_disjoint(one[0], other[0]) or _disjoint(one[1], other[1]))


def _disjoint(one: Collection[int], other: Collection[int]) -> bool:
    """Whether nothing is in both; ends at the first that is."""
    fewer, more = sorted((one, other), key=len)
    return not any(place in more for place in fewer)


def _path(came_from: dict[int, int], last: int, first: int) -> list[int]:
    path = [last]
    while path[-1] != first:
        path.append(came_from[path[-1]])
    return [*path[::-1], first]


def _sides(operation: TileOperation) -> tuple[_Places, _Places]:
    """Tiles whose engine is used, and those at the other end."""
    if isinstance(operation, Work):
        return (operation.tiles.rows, operation.tiles.cols), ((), ())
    if isinstance(operation, Send):
        targets = (frozenset(operation.to_rows.tolist()), frozenset(operation.to_cols.tolist()))
        return (operation.tiles.rows, operation.tiles.cols), targets
    lines, places = root_lines(operation)
    roots: _Places = (lines, frozenset(places.tolist()))
    ends: _Places = (lines, operation.segment)
    if operation.along == "column":
        roots, ends = roots[::-1], ends[::-1]
    return (ends, roots) if isinstance(operation, Reduce) else (roots, ends)
