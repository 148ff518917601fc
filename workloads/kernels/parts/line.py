"""Lines of tiles that all do the same: rows or columns of a grid, and messages along them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Along, Multicast, Reduce, Relay, Roots, Send
from tlm.program.operations import Tile

#: A message between places on a line: from, to.
Message = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lines:
    """Parallel lines.

    Attributes:
        along: Whether they are rows or columns.
        lines: Which rows or columns.
        length: Places on each: 0 to ``length`` - 1.
        first: Column, or row, of place 0.
    """

    along: Along
    lines: range
    length: int
    first: int = 0

    def tiles(self, places: range) -> TileSet:
        """The tiles at some places of all lines."""
        at = range(places.start + self.first, places.stop + self.first, places.step)
        return TileSet(self.lines, at) if self.along == "row" else TileSet(at, self.lines)

    def send(self, sources: range, targets: list[int], flits: int, **names: Any) -> Send:
        """Every line's tile at each of the sources sends to the target at the same index."""
        stay, to = np.array(self.lines), np.array(targets) + self.first
        pair = (stay, to) if self.along == "row" else (to, stay)
        return Send(self.tiles(sources), *pair, flits, **names)

    def multicast(self, root: int | tuple[int, ...], flits: int, **names: Any) -> Multicast:
        """The root of every line, at one place or at one a line, sends to the whole line."""
        return Multicast(self._roots(root), self.along, self._segment, flits, **names)

    def reduce(self, root: int | tuple[int, ...], flits: int, **names: Any) -> Reduce:
        """Every line is combined into its root."""
        return Reduce(self._roots(root), self.along, self._segment, flits, **names)

    def relay(self, root: int, members: range, flits: int, **names: Any) -> Relay:
        """Every line's places stream sums to the one of them that is the root."""
        first = self.first
        segment = range(members.start + first, members.stop + first, members.step)
        return Relay(self._roots(root), self.along, segment, flits, **names)

    def runs(self, places: Iterable[int]) -> Iterator[range]:
        """Rising places as ranges, each of tiles that one operation can name."""
        return even_runs(places)

    def hops(self, here: Any, there: Any) -> Any:
        """Links between places: numbers, or arrays of one shape."""
        return np.abs(here - there)

    @property
    def _segment(self) -> range:
        return range(self.first, self.first + self.length)

    def _roots(self, root: int | tuple[int, ...]) -> TileSet | Roots:
        if isinstance(root, int):
            return self.tiles(range(root, root + 1))
        return Roots(self.lines, np.array(root) + self.first)


@dataclass(frozen=True, slots=True)
class Path(Lines):
    """One line of tiles that lie anywhere on the grid; along it go messages alone.

    Attributes:
        order: The tiles by their places.
    """

    order: tuple[Tile, ...] = ()

    @classmethod
    def of(cls, order: Iterable[Tile]) -> Self:
        """The line of some tiles, in their order."""
        tiles = tuple(order)
        return cls("row", range(1), len(tiles), order=tiles)

    def tiles(self, places: range) -> TileSet:
        """The tile at the only place."""
        (place,) = places
        return TileSet.tile(*self.order[place])

    def send(self, sources: range, targets: list[int], flits: int, **names: Any) -> Send:
        """The tile at the only source sends to the one at the only target."""
        (target,) = targets
        row, col = self.order[target]
        return Send(self.tiles(sources), np.array([row]), np.array([col]), flits, **names)

    def runs(self, places: Iterable[int]) -> Iterator[range]:
        """Each by itself."""
        return (range(place, place + 1) for place in places)

    def hops(self, here: Any, there: Any) -> Any:
        """See `Lines`."""
        tiles = np.array(self.order)
        return np.abs(tiles[here] - tiles[there]).sum(axis=-1)

    def _roots(self, root: int | tuple[int, ...]) -> TileSet | Roots:
        raise InputError(f"path of {self.length} tiles: found a tree of routers; allowed: messages")


def even_runs(places: Iterable[int]) -> Iterator[range]:
    """Rising places as evenly spaced ranges, each as long as it can be."""
    run: list[int] = []
    for place in places:
        if len(run) >= 2 and place - run[-1] != run[1] - run[0]:
            yield _as_range(run)
            run = []
        run.append(place)
    if run:
        yield _as_range(run)


def _as_range(run: list[int]) -> range:
    step = run[1] - run[0] if len(run) > 1 else 1
    return range(run[0], run[-1] + 1, step)


# Stages of messages by which a line's parts are combined at a root


def chain(length: int, root: int, members: list[int] | None = None) -> list[list[Message]]:
    """From both ends inwards, each tile adding its part: as many stages as the longer side has.

    Of the last stage the message of the shorter side comes first. ``members`` are the places that
    take part, all by default; ``root`` is one of them.
    """
    members = list(range(length)) if members is None else members
    middle, last = members.index(root), len(members) - 1
    sides = sorted([(middle, -1), (last - middle, 1)])
    return [
        [
            (members[middle + way * distance], members[middle + way * (distance - 1)])
            for length, way in sides
            if distance <= length
        ]
        for distance in range(sides[1][0], 0, -1)
    ]


def tree(length: int, root: int) -> list[list[Message]]:
    """A binomial tree: in each round half of the tiles that still have a part send it on."""
    order = [root, *range(root + 1, length), *range(root)]
    rounds, step = [], 1
    while step < length:
        senders = range(step, length, 2 * step)
        rounds.append([(order[index], order[index - step]) for index in senders])
        step *= 2
    return rounds


def sequential(length: int, root: int) -> list[list[Message]]:
    """Every tile sends to the root, which adds one part after the other."""
    return [[(place, root)] for place in range(length) if place != root]


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a K-tree: groups of the members that are left, each with a root in its middle."""

    groups: list[list[int]]

    @property
    def roots(self) -> list[int]:
        """The members that are left for the next level."""
        return [group[len(group) // 2] for group in self.groups]

    @property
    def stages(self) -> list[list[Message]]:
        """Chains in all groups at once, the last stages together."""
        chains = [chain(0, group[len(group) // 2], group) for group in self.groups]
        longest = max(map(len, chains))
        stages: list[list[Message]] = [[] for _ in range(longest)]
        for own in chains:
            for index, stage in enumerate(own, longest - len(own)):
                stages[index] += stage
        return stages


def k_tree(length: int, groups: tuple[int, ...]) -> list[Level]:
    """A tree over a line (WaferLLM, section 6.2).

    Args:
        length: Tiles of the line.
        groups: How many groups each level but the last has; the last is one group. Groups are as
            equal as they can be. One number is WaferLLM's two-level tree.

    Raises:
        InputError: if a level has more groups than members, or none.
    """
    members = list(range(length))
    levels = []
    for count in (*groups, 1):
        if not 1 <= count <= len(members):
            raise InputError(
                f"--groups: found {count} groups of {len(members)}; allowed: 1 to {len(members)}"
            )
        bounds = np.linspace(0, len(members), count + 1).round().astype(int).tolist()
        pairs = zip(bounds, bounds[1:], strict=False)
        level = Level([members[first:last] for first, last in pairs])
        levels.append(level)
        members = level.roots
    return levels


def default_groups(length: int) -> tuple[int, ...]:
    """Groups of a two-level tree: about the square root, and odd, for a root in the middle."""
    root = max(1, round(length**0.5))
    return (min(root + (root + 1) % 2, length),)
