"""Collectives between dies as messages that the dies' software sends.

A group is a rectangle of dies. All-gather and all-reduce go dimension by dimension, along lines. On
a line every die passes what it has got from one neighbour on to the other, both ways, block by
block. No link then carries more than the farthest die has to get.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tlm.dies.links import DieMesh
from tlm.dies.messages import MessagePlan, Messages
from tlm.errors import InputError, choose, hold_least
from tlm.interconnect.packets import TileSet

_MOST_PIECES = 2**24
#: Messages that a die has to have got, by its number.
_Got = dict[int, list[int]]


class Dealt(NamedTuple):
    """How an all-to-all is dealt out.

    Attributes:
        sent: Of each die of the group, row by row, what it sends, over the mean; none: all alike.
        got: The same of what it gets.
        piece: Units that a die sends to one before it turns to the next; 0: all that it has.
    """

    sent: tuple[float, ...] = ()
    got: tuple[float, ...] = ()
    piece: int = 0


WHOLE = Dealt()


def all_to_all(mesh: DieMesh, group: TileSet, size: int, dealt: Dealt = WHOLE) -> Messages:
    """Every die sends ``size`` to every other: first to the next one, last to the one before.

    Where shares differ, ``size`` is that of dies of the mean, and others are rounded up. In pieces
    a die turns to every other as often, with as much of its message each time.

    Raises:
        InputError: if these are too many.
    """
    dies = np.array(group.nodes(mesh.cols))
    count = len(dies)
    place = np.tile(np.arange(count), count - 1)
    to = (place + np.repeat(np.arange(1, count), count)) % count
    units = np.full(len(place), size)
    if dealt.sent or dealt.got:
        sent, got = (np.array(each or [1.0] * count) for each in (dealt.sent, dealt.got))
        units = np.maximum(1, np.ceil(size * sent[place] * got[to])).astype(np.int64)
    turns = -(-size // dealt.piece) if dealt.piece else 1
    if turns * len(units) > _MOST_PIECES:
        least = -(-size * len(units) // _MOST_PIECES)
        raise InputError(
            f"--piece-bytes: found {dealt.piece}; allowed for {len(units)} messages of {size} "
            f"bytes: {least} or more"
        )
    each, more = np.divmod(units, turns)
    pieces = each + (np.arange(turns)[:, None] < more)
    _, sent_then = np.nonzero(pieces)
    ends = dies[place[sent_then]], dies[to[sent_then]]
    return Messages(*ends, pieces[pieces > 0], *np.zeros((2, 0), dtype=np.int64))


def all_gather(mesh: DieMesh, group: TileSet, size: int) -> Messages:
    """Every die has a block of ``size``; in the end each has all of them."""
    plan = MessagePlan()
    got: _Got = {die: [] for die in group.nodes(mesh.cols)}
    _gather(plan, _rows(mesh, group), size, got)
    _gather(plan, _columns(mesh, group), size * len(group.cols), got)
    return plan.messages()


def all_reduce(mesh: DieMesh, group: TileSet, size: int) -> Messages:
    """Every die has ``size``; in the end each has the sum. Cycles of adding are not counted.

    The sums are scattered along rows and then columns, and gathered the other way round; parts are
    rounded up.
    """
    plan = MessagePlan()
    got: _Got = {die: [] for die in group.nodes(mesh.cols)}
    per_row = -(-size // len(group.cols))
    per_die = -(-per_row // len(group.rows))
    _scatter(plan, _rows(mesh, group), per_row, got)
    _scatter(plan, _columns(mesh, group), per_die, got)
    _gather(plan, _columns(mesh, group), per_die, got)
    _gather(plan, _rows(mesh, group), per_row, got)
    return plan.messages()


def hand_over(mesh: DieMesh, group: TileSet, size: int) -> Messages:
    """Every die sends ``size`` to the die at its place in the next group.

    The mesh is cut into groups like the given one, the first; they form a pipeline, row by row.
    """
    rows, cols = len(group.rows), len(group.cols)
    first = group.rows[0] == group.cols[0] == 0
    if not first or mesh.rows % rows or mesh.cols % cols or mesh.dies == rows * cols:
        raise InputError(
            f"--group: found {rows}x{cols} dies from {group.rows[0]},{group.cols[0]} on; allowed: "
            f"the first of equal groups that cut the {mesh.rows}x{mesh.cols} mesh into a pipeline"
        )
    corners = [(r, c) for r in range(0, mesh.rows, rows) for c in range(0, mesh.cols, cols)]
    plan = MessagePlan()
    for (row, col), (to_row, to_col) in zip(corners[:-1], corners[1:], strict=True):
        for i in range(rows):
            for j in range(cols):
                source = (row + i) * mesh.cols + col + j
                plan.send(source, (to_row + i) * mesh.cols + to_col + j, size)
    return plan.messages()


COLLECTIVES: dict[str, Callable[[DieMesh, TileSet, int], Messages]] = {
    "all-to-all": all_to_all,
    "all-gather": all_gather,
    "all-reduce": all_reduce,
    "hand-over": hand_over,
}


def collective(
    name: str, mesh: DieMesh, group: TileSet, size: int, dealt: Dealt = WHOLE
) -> Messages:
    """Messages of a collective of a group.

    Args:
        name: One of `COLLECTIVES`.
        mesh: The dies.
        group: Those that take part; of a hand-over the first group.
        size: Units: of all-to-all each message, of all-gather each die's block, of all-reduce the
            whole, of a hand-over each die's.
        dealt: How an all-to-all is dealt out.

    Raises:
        InputError: as `check_collective`, and for a hand-over between groups that are none.
    """
    check_collective(name, mesh, group, size)
    if dealt != WHOLE:
        return all_to_all(mesh, group, size, dealt)
    return COLLECTIVES[name](mesh, group, size)


def check_collective(name: str, mesh: DieMesh, group: TileSet, size: int) -> None:
    """Hold that there is such a collective.

    Raises:
        InputError: for an unknown name, a size below 1 or so large that times leave 64 bits, or a
            group of one die.
    """
    choose("collective", name, list(COLLECTIVES))
    largest = largest_size(mesh)
    hold_least("--bytes", size, 1)
    if size > largest:
        raise InputError(f"--bytes: found {size}; allowed: 1 to {largest}")
    if len(group) < 2 and name != "hand-over":
        raise InputError(f"--group: found {len(group)} die; {name} needs 2 or more")


def largest_size(mesh: DieMesh) -> int:
    """Such that all messages, one behind the other at the slowest rate, take below 2**62 ticks.

    A die sends less than four times ``size`` for each die.
    """
    slowest = max(mesh.ticks_per_unit, mesh.port_ticks_per_unit)
    return int(2**62 // (4 * mesh.dies**2 * slowest))


def _rows(mesh: DieMesh, group: TileSet) -> list[list[int]]:
    return [[row * mesh.cols + col for col in group.cols] for row in group.rows]


def _columns(mesh: DieMesh, group: TileSet) -> list[list[int]]:
    return [[row * mesh.cols + col for row in group.rows] for col in group.cols]


def _gather(plan: MessagePlan, lines: list[list[int]], size: int, got: _Got) -> None:
    """Along each line all dies get the blocks of all. What a die has got grows by what comes."""
    before = {die: list(numbers) for die, numbers in got.items()}
    for line in lines:
        for way in (line, line[::-1]):
            came: dict[tuple[int, int], int] = {}
            for step in range(1, len(way)):
                for place in range(step, len(way)):
                    owner, source, target = place - step, way[place - 1], way[place]
                    after = before[source] if step == 1 else [came[owner, place - 1]]
                    came[owner, place] = plan.send(source, target, size, after)
                    got[target].append(came[owner, place])


def _scatter(plan: MessagePlan, lines: list[list[int]], size: int, got: _Got) -> None:
    """Along each line every die gets the sum of its part: from both ends, added on the way."""
    before = {die: list(numbers) for die, numbers in got.items()}
    for line in lines:
        for way in (line, line[::-1]):
            for owner in range(len(way) - 1, 0, -1):
                carried: list[int] = []
                for place in range(owner):
                    after = before[way[place]] + carried
                    carried = [plan.send(way[place], way[place + 1], size, after)]
                got[way[owner]] += carried
