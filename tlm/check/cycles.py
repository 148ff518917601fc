"""Who gives the unit that an operation waits for, and whether the giver waits in turn.

The search for a cycle is among operations, not tiles: it finds every cyclic wait, and may name one
where tiles differ. `at` decides.
"""

from collections import deque
from collections.abc import Collection, Iterator
from itertools import islice

from tlm.program import Operation, Program, Reduce, Send, Work, root_tiles, segment_of

#: Rows and columns of a set of tiles; their product may be larger than the set.
_Places = tuple[frozenset[int], frozenset[int]]
_NOWHERE: _Places = (frozenset(), frozenset())
_Part = tuple[Collection[int], Collection[int]]


def giver_of(
    program: Program, token: str, tile: tuple[int, int], waits: int, owed: int
) -> int | None:
    """The operation that gives a tile's unit for one that waits; None if none does.

    It is from that one on, and after ``owed`` more, which go to operations that waited before.
    """
    row, col = tile
    for at, operation in islice(enumerate(program.build()), waits, None):
        for name, parts in _gives(operation):
            if name == token and any(row in rows and col in cols for rows, cols in parts):
                if owed == 0:
                    return at
                owed -= 1
    return None


def cycle_through(program: Program, waits: int, giver: int) -> list[int] | None:
    """Operations of which each may wait for the next: from ``waits`` by ``giver`` back to it."""
    if giver == waits:
        return [waits, waits]
    operations = [_Node(operation) for operation in program.build()]
    came_from: dict[int, int] = {giver: waits}
    queue = deque([giver])
    while queue:
        at = queue.popleft()
        for before in _awaited(operations, at):
            if before == waits:
                return _path(came_from, at, waits)
            if before not in came_from:
                came_from[before] = at
                queue.append(before)
    return None


class _Node:
    """What an operation needs and gives, and where."""

    def __init__(self, operation: Operation) -> None:
        self.engine = operation.engine if isinstance(operation, Work) else None
        near, far = _sides(operation)
        self.near, far_places = _product(near), _product(far)
        self.takes = [(name, self.near) for name in operation.takes]
        self.gives = {name: self.near for name in operation.gives}
        if not isinstance(operation, Work):
            self.takes += [(name, far_places) for name in operation.slots]
            self.gives |= {name: far_places for name in operation.arrivals}


def _awaited(operations: list[_Node], number: int) -> Iterator[int]:
    """Operations that one may wait for: by its engine's order, or for a token."""
    own = operations[number]
    for at, other in enumerate(operations):
        in_order = at < number and other.engine == own.engine and _meet(own.near, other.near)
        if in_order or any(
            _meet(where, other.gives.get(name, _NOWHERE)) for name, where in own.takes
        ):
            yield at


def _meet(one: _Places, other: _Places) -> bool:
    return not (one[0].isdisjoint(other[0]) or one[1].isdisjoint(other[1]))


def _path(came_from: dict[int, int], last: int, first: int) -> list[int]:
    path = [last]
    while path[-1] != first:
        path.append(came_from[path[-1]])
    return [*path[::-1], first]


def _gives(operation: Operation) -> Iterator[tuple[str, list[_Part]]]:
    near, far = _sides(operation)
    yield from ((name, near) for name in operation.gives)
    if not isinstance(operation, Work):
        yield from ((name, far) for name in operation.arrivals)


def _sides(operation: Operation) -> tuple[list[_Part], list[_Part]]:
    """Tiles whose engine is used, and those at the other end."""
    if isinstance(operation, Work):
        return [(operation.tiles.rows, operation.tiles.cols)], []
    if isinstance(operation, Send):
        targets = (frozenset(operation.to_rows.tolist()), frozenset(operation.to_cols.tolist()))
        return [(operation.tiles.rows, operation.tiles.cols)], [targets]
    tiles = root_tiles(operation)
    segments = [segment_of(operation, *tile) for tile in tiles]
    roots: list[_Part] = [((row,), (col,)) for row, col in tiles]
    ends: list[_Part] = [(part.rows, part.cols) for part in segments]
    return (ends, roots) if isinstance(operation, Reduce) else (roots, ends)


def _product(parts: list[_Part]) -> _Places:
    rows = frozenset(row for part in parts for row in part[0])
    return rows, frozenset(col for part in parts for col in part[1])
