"""Random traffic that presses a mesh: all kinds of packets, bursts, and overlaps on purpose.

Reductions obey `tlm.interconnect.ordering`: a scene has one family of groups, whose trees share no
link; within a group every tile issues the reductions in the same order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calibration.routers.rtl_mesh import RtlMesh
from tlm.interconnect.ordering import Link, check_reductions, tree_links
from tlm.interconnect.packets import REDUCTIONS, Packets, ReductionGoal, TileSet

Item = tuple[int, int, TileSet | ReductionGoal, int]
#: The tiles of a group, and the nodes to which it may reduce.
Group = tuple[TileSet, list[int]]

_LONG_FLITS = 64
_OVERLAP_CYCLES = 50


def _rows(mesh: RtlMesh, rng: np.random.Generator) -> list[Group]:
    """A group a row, some with every second tile only; roots anywhere in the row."""
    lines = [range(0, mesh.cols, int(rng.integers(1, 3))) for _ in range(mesh.rows)]
    return [
        (TileSet(range(row, row + 1), line), [row * mesh.cols + col for col in range(mesh.cols)])
        for row, line in enumerate(lines)
    ]


def _columns(mesh: RtlMesh, rng: np.random.Generator) -> list[Group]:
    """The same by columns."""
    lines = [range(0, mesh.rows, int(rng.integers(1, 3))) for _ in range(mesh.cols)]
    return [
        (TileSet(line, range(col, col + 1)), [row * mesh.cols + col for row in range(mesh.rows)])
        for col, line in enumerate(lines)
    ]


def _everyone(mesh: RtlMesh, rng: np.random.Generator) -> list[Group]:
    """All tiles, to any root."""
    return [(TileSet(range(mesh.rows), range(mesh.cols)), list(range(mesh.rows * mesh.cols)))]


def _quarters(mesh: RtlMesh, rng: np.random.Generator) -> list[Group]:
    """Up to four rectangles that leave no tile out, with roots inside."""
    groups = []
    for rows in _halves(mesh.rows):
        for cols in _halves(mesh.cols):
            where = TileSet(rows, cols)
            groups.append((where, where.nodes(mesh.cols)))
    return groups


def _halves(size: int) -> list[range]:
    return [half for half in (range(size // 2), range(size // 2, size)) if len(half)]


def _apart(mesh: RtlMesh, rng: np.random.Generator) -> list[Group]:
    """Strided groups with roots anywhere, drawn until no more fit beside the others."""
    groups: list[Group] = []
    taken: set[Link] = set()
    for _ in range(40):
        where = TileSet(_span(mesh.rows, rng), _span(mesh.cols, rng))
        roots = rng.integers(mesh.rows * mesh.cols, size=rng.integers(1, 4)).tolist()
        trees = [tree_links(where, root, mesh.cols, y_first=mesh.y_first) for root in roots]
        links = set().union(*trees)
        # The first one leaves room for others.
        if not links & taken and (groups or len(links) < mesh.rows * mesh.cols):
            groups.append((where, roots))
            taken |= links
    return groups or _everyone(mesh, rng)


Family = Callable[[RtlMesh, np.random.Generator], list[Group]]
FAMILIES: dict[str, Family] = {
    "rows": _rows,
    "columns": _columns,
    "everyone": _everyone,
    "quarters": _quarters,
    "apart": _apart,
}


def _span(size: int, rng: np.random.Generator) -> range:
    """Places on a side: one, some next to each other, or every second or third."""
    first, last = sorted(rng.integers(0, size, 2).tolist())
    return range(first, last + 1, int(rng.integers(1, 4)))


@dataclass(frozen=True, slots=True)
class Scene:
    """Traffic of about ``packets`` packets, ``rate`` a node a cycle; all follows from the seed."""

    mesh: RtlMesh
    packets: int
    rate: float
    family: str
    seed: int

    def draw(self) -> Packets:
        """The packets, with as many operands as the last reduction needs."""
        rng = np.random.default_rng(self.seed)
        events = _Events(self.mesh, FAMILIES[self.family](self.mesh, rng), rng)
        items: list[Item] = []
        per_cycle = self.rate * self.mesh.rows * self.mesh.cols
        while len(items) < self.packets:
            items += events.draw(int(len(items) / per_cycle))
        drawn = Packets.of(items)
        check_reductions(drawn, self.mesh.cols, y_first=self.mesh.y_first)
        return drawn


class _Events:
    """What happens next: a few packets that belong together."""

    def __init__(self, mesh: RtlMesh, groups: list[Group], rng: np.random.Generator) -> None:
        self._mesh, self._groups, self._rng = mesh, groups, rng
        self._nodes = mesh.rows * mesh.cols
        self._kinds = (
            self._unicast, self._multicast, self._reduction, self._overlap, self._burst, self._siege
        )  # fmt: skip
        # A reduction brings many packets: as many by number would leave little else.
        reductions = 2 / np.mean([len(where) for where, _ in groups])
        weights = np.array([8, 3, 2 * reductions, 0.4, 0.2, 1 / self._nodes])
        self._edges = np.cumsum(weights / weights.sum())

    def draw(self, cycle: int) -> list[Item]:
        """Packets of one event at about a cycle."""
        kind = int(np.searchsorted(self._edges[:-1], self._rng.random(), side="right"))
        return list(self._kinds[kind](cycle))

    def _node(self) -> int:
        return int(self._rng.integers(self._nodes))

    def _flits(self) -> int:
        return int(self._rng.integers(1, self._mesh.fifo_depth + 1))

    def _unicast(self, cycle: int) -> Iterator[Item]:
        longest = _LONG_FLITS if self._rng.random() < 0.03 else 20
        to = TileSet.tile(*divmod(self._node(), self._mesh.cols))
        yield cycle, self._node(), to, int(self._rng.integers(1, longest + 1))

    def _multicast(self, cycle: int) -> Iterator[Item]:
        rows, cols = _span(self._mesh.rows, self._rng), _span(self._mesh.cols, self._rng)
        shape = self._rng.integers(4)
        if shape == 0:
            rows, cols = rows[:1], range(self._mesh.cols)
        elif shape == 1:
            rows, cols = range(self._mesh.rows), cols[:1]
        yield cycle, self._node(), TileSet(rows, cols), self._flits()

    def _reduction(self, cycle: int) -> Iterator[Item]:
        yield from self._operands(cycle, *self._group_and_root())

    def _group_and_root(self) -> tuple[TileSet, int]:
        where, roots = self._groups[self._rng.integers(len(self._groups))]
        return where, roots[self._rng.integers(len(roots))]

    def _operands(self, cycle: int, where: TileSet, root: int) -> Iterator[Item]:
        goal = ReductionGoal(where, root, REDUCTIONS[int(self._rng.integers(2))])
        flits = self._flits()
        spread = self._rng.integers(0, int(self._rng.choice([1, 8, 60])), len(where)).tolist()
        for node, late in zip(where.nodes(self._mesh.cols), spread, strict=True):
            yield cycle + late, node, goal, flits

    def _overlap(self, cycle: int) -> Iterator[Item]:
        """Two full-length multicasts from both ends of a row, to the row or to all tiles."""
        mesh = self._mesh
        row = int(self._rng.integers(mesh.rows))
        rows = range(row, row + 1) if self._rng.random() < 0.5 else range(mesh.rows)
        where = TileSet(rows, range(mesh.cols))
        after = int(self._rng.integers(_OVERLAP_CYCLES))
        yield cycle, row * mesh.cols, where, mesh.fifo_depth
        yield cycle + after, (row + 1) * mesh.cols - 1, where, mesh.fifo_depth

    def _burst(self, cycle: int) -> Iterator[Item]:
        """Short packets to one tile, of one source or of many."""
        to = TileSet.tile(*divmod(self._node(), self._mesh.cols))
        source, alone = self._node(), self._rng.random() < 0.5
        for _ in range(12):
            yield cycle, source if alone else self._node(), to, int(self._rng.integers(1, 4))

    def _siege(self, cycle: int) -> Iterator[Item]:
        """All tiles send to a root, itself too, and a reduction comes there in between."""
        where, root = self._group_and_root()
        to = TileSet.tile(*divmod(root, self._mesh.cols))
        for turn in range(4):
            if turn == 1:
                yield from self._operands(cycle, where, root)
            for node in range(self._nodes):
                yield cycle, node, to, int(self._rng.integers(1, 4))
