"""Packets and their destinations, as plain arrays that every level reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TileSet:
    """The tiles ``rows`` x ``cols`` of a mesh: a tile, row, column, rectangle or strided set."""

    rows: range
    cols: range

    @classmethod
    def tile(cls, row: int, col: int) -> Self:
        """The set of one tile."""
        return cls(range(row, row + 1), range(col, col + 1))

    def __len__(self) -> int:
        """Number of tiles."""
        return len(self.rows) * len(self.cols)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Row and column of each tile, row by row."""
        return product(self.rows, self.cols)

    def __contains__(self, tile: tuple[int, int]) -> bool:
        """Whether a tile is one of them."""
        return tile[0] in self.rows and tile[1] in self.cols

    def nodes(self, mesh_cols: int) -> list[int]:
        """Node numbers, row by row, on a mesh of ``mesh_cols`` columns."""
        return [row * mesh_cols + col for row, col in self]


class PacketKind(IntEnum):
    """What the network does with a packet.

    From ``SUM`` on it is an operand of a reduction. All of these take the same cycles; of a
    ``SELECT`` one operand comes out, of a ``COLLECT`` operands have no bit in common.
    """

    UNICAST = 0
    MULTICAST = 1
    SUM = 2
    MAXIMUM = 3
    AND = 4
    SELECT = 5
    COLLECT = 6


#: Kinds of reductions.
REDUCTIONS = tuple(kind for kind in PacketKind if kind >= PacketKind.SUM)


@dataclass(frozen=True, slots=True)
class ReductionGoal:
    """A reduction in the network: one packet of each tile of ``operands``, combined on the way.

    ``root`` is the node number of the tile that gets the result, an operand's tile or not; ``kind``
    one of `REDUCTIONS`.
    """

    operands: TileSet
    root: int
    kind: PacketKind = PacketKind.SUM


class Meetings:
    """Which operands meet: the n-th of each source for equal reductions."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ReductionGoal], int] = {}
        self._joints: dict[tuple[ReductionGoal, int], int] = {}

    def joint(self, number: int, source: int, goal: ReductionGoal) -> int:
        """The joint number of operand ``number``: the lowest among those that it meets."""
        turn = self._seen.get((source, goal), 0)
        self._seen[source, goal] = turn + 1
        return self._joints.setdefault((goal, turn), number)


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in the order of their numbers; each field is an array of shape (packets,).

    ``cycle`` is when the packet joins its source's queue; ``source`` a node number (row * columns +
    column); ``kind`` a `PacketKind`. ``row_first, row_first + row_step, ..., row_last`` crossed
    with the columns alike are the destinations, or for an operand of a reduction the tiles that
    bring one, and then ``root`` is the node that gets the result (else -1). ``joint`` is the lowest
    number among the operands of one reduction, by which its result goes; else the packet's own.
    """

    cycle: Int64s
    source: Int64s
    flits: Int64s
    kind: Int64s
    row_first: Int64s
    row_last: Int64s
    row_step: Int64s
    col_first: Int64s
    col_last: Int64s
    col_step: Int64s
    root: Int64s
    joint: Int64s

    @classmethod
    def of(
        cls,
        items: Iterable[tuple[int, int, TileSet | ReductionGoal, int]],
        *,
        first: int = 0,
        meetings: Meetings | None = None,
    ) -> Self:
        """Packets from ``(cycle, source node, destinations, flits)``; to several tiles: multicast.

        In the place of the destinations may stand a `ReductionGoal`: the packet is one of its
        operands. The n-th operands of equal `ReductionGoal`s meet, one of each source.

        Args:
            items: The packets.
            first: Number of the first one.
            meetings: Operands that came before these.

        Raises:
            InputError: for a packet without a destination or without a flit.
        """
        rows = []
        meetings = meetings or Meetings()
        for number, (cycle, source, goal, flits) in enumerate(items, first):
            where = goal.operands if isinstance(goal, ReductionGoal) else goal
            if len(where) == 0 or flits < 1 or cycle < 0:
                raise InputError(
                    f"packet {number}: cycle {cycle}, {len(where)} destinations, {flits} flits; "
                    "a packet needs a cycle of 0 or more, a destination and a flit"
                )
            root, joint = -1, number
            kind = PacketKind.UNICAST if len(where) == 1 else PacketKind.MULTICAST
            if isinstance(goal, ReductionGoal):
                kind = goal.kind
                root, joint = goal.root, meetings.joint(number, source, goal)
            rows.append(
                (cycle, source, flits, kind)
                + (where.rows[0], where.rows[-1], where.rows.step)
                + (where.cols[0], where.cols[-1], where.cols.step)
                + (root, joint)
            )
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(cls.__slots__))
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    def __len__(self) -> int:
        """Number of packets."""
        return len(self.cycle)

    def tiles(self, number: int) -> TileSet:
        """The destination tiles of one packet, or the tiles whose operands meet it."""
        rows, cols = (
            range(int(first[number]), int(last[number]) + 1, int(step[number]))
            for first, last, step in self._lines()
        )
        return TileSet(rows, cols)

    def _lines(self) -> tuple[tuple[Int64s, Int64s, Int64s], ...]:
        """First, last and step of the rows, and of the columns."""
        rows = self.row_first, self.row_last, self.row_step
        return rows, (self.col_first, self.col_last, self.col_step)

    def destination_counts(self, first: int = 0) -> Int64s:
        """Deliveries of each packet, shape (packets,); a reduction's count by its joint number.

        ``first`` is the number of the first packet.
        """
        joint = self.joint == first + np.arange(len(self))
        return np.where(self.reduces, joint, self.tile_counts())

    def tile_counts(self) -> Int64s:
        """Tiles in the set of each packet, shape (packets,)."""
        rows, cols = ((last - first) // step + 1 for first, last, step in self._lines())
        return rows * cols

    def check_on(self, rows: int, cols: int) -> None:
        """Hold that packets fit a mesh, and that operands come from tiles that bring one.

        Raises:
            InputError: naming the first packet that does not.
        """
        inside = (self.source >= 0) & (self.source < rows * cols) & (self.flits >= 1)
        for (first, last, step), size in zip(self._lines(), (rows, cols), strict=True):
            inside &= (first >= 0) & (first <= last) & (last < size) & (step >= 1)
        reduces = self.reduces
        if reduces.any():
            rooted = (self.root >= 0) & (self.root < rows * cols)
            inside &= ~reduces | (rooted & self.from_own_tiles(cols))
        if not inside.all():
            number = int(np.nonzero(~inside)[0][0])
            raise InputError(
                f"packet {number}: found source {self.source[number]}, {self.tiles(number)}, "
                f"{self.flits[number]} flits, root {self.root[number]}; allowed: nodes, tiles and "
                f"roots on the {rows}x{cols} mesh, operands from tiles of their own set"
            )

    def from_own_tiles(self, cols: int) -> NDArray[np.bool_]:
        """Whether a packet's source is one of its tiles on a mesh of ``cols``, shape (packets,)."""
        own = np.ones(len(self), dtype=np.bool_)
        places = np.divmod(self.source, cols)
        for (first, last, step), place in zip(self._lines(), places, strict=True):
            own &= (first <= place) & (place <= last) & ((place - first) % step == 0)
        return own

    @property
    def reduces(self) -> NDArray[np.bool_]:
        """Whether a packet is an operand of a reduction, shape (packets,)."""
        return self.kind >= PacketKind.SUM

    def columns(self) -> list[Int64s]:
        """The arrays in the order of the fields, each of shape (packets,)."""
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What became of a list of packets.

    ``head_injected`` and ``tail_injected`` have shape (packets,): the cycles of the handshakes at
    the source. ``packet``, ``node``, ``head_ejected`` and ``tail_ejected`` have shape
    (deliveries,), sorted by packet and then by node: a multicast is delivered at each destination,
    a reduction once, at its root and under its joint number.
    """

    head_injected: Int64s
    tail_injected: Int64s
    packet: Int64s
    node: Int64s
    head_ejected: Int64s
    tail_ejected: Int64s

    def last_ejected(self) -> Int64s:
        """Cycle of each packet's last tail ejection, shape (packets,); -1 if never delivered."""
        last = np.full(len(self.head_injected), -1, dtype=np.int64)
        np.maximum.at(last, self.packet, self.tail_ejected)
        return last

    def latency_cycles(self) -> Int64s:
        """Last tail ejection minus head injection of each packet, shape (packets,)."""
        return self.last_ejected() - self.head_injected


def cut(flits: int, bound_flits: int) -> list[int]:
    """Lengths of the packets into which a transfer is cut: full ones, and the rest."""
    full, rest = divmod(flits, bound_flits)
    return [bound_flits] * full + ([rest] if rest else [])
