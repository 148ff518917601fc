"""Who gives the unit that an operation waits for, and whether the giver waits in turn.

The search for a cycle is among operations, not tiles: it finds every cyclic wait, and may name one
where tiles differ. `at` decides.
"""

from collections import deque
from collections.abc import Collection, Iterator
from functools import cached_property

from tlm.program import Program
from tlm.program.operations import Ends, Operation

#: Rows and columns of a set of tiles; their product may be larger than the set.
_Places = tuple[Collection[int], Collection[int]]


class WaitSearch:
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
        return [_Node(operation.within_tiles()) for operation in self._program.built()]

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

    def __init__(self, operation: Operation) -> None:
        self.engine = operation.engine
        self.near, far = _places(operation.near), _places(operation.far)
        self._operation = operation
        self.takes = [(name, self.near) for name in operation.takes]
        self.takes += [(name, far) for name in operation.slots]
        self.gives = dict.fromkeys(operation.gives, self.near)
        self.gives |= dict.fromkeys(operation.arrivals, far)

    def gives_at(self, token: str, tile: tuple[int, int]) -> bool:
        """Whether a token is given at a tile."""
        operation = self._operation
        return tile in (operation.near if token in operation.gives else operation.far)


def _places(ends: Ends) -> _Places:
    return (
        ends.rows if isinstance(ends.rows, range) else frozenset(ends.rows.tolist()),
        ends.cols if isinstance(ends.cols, range) else frozenset(ends.cols.tolist()),
    )


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
