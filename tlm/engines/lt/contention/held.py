"""Operations that the loosely-timed engine holds, to see which multicasts are under way together.

A multicast goes into the network as soon as nothing before it in the program can still change when
it starts. So multicasts wait here, and work behind them, until a transfer needs what they give.
What tiles send to themselves goes with them: it takes their ports.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from tlm.engines.lt.compile import TOKENS
from tlm.engines.lt.tokens import Fault, Places
from tlm.interconnect.packets import TileSet
from tlm.program.operations import Along, Multicast, Operation, Send, Work


@dataclass(frozen=True, slots=True)
class Taken:
    """An operation taken up: its number in the program, and where its units lie, by field."""

    number: int
    operation: Operation
    places: Places

    def fault(self, slot: int) -> Fault | None:
        """What is wrong with a queue, if it is not 0."""
        return (self.number, self.operation, slot) if slot else None


class Held:
    """Operations taken up and not done, in program order.

    Args:
        most: Lines of all that are held; 0: none is.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lines = most, 0
        self._waiting: deque[Taken] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def holds(self, operation: Operation) -> bool:
        """Whether an operation is to be held."""
        if may_meet(operation):
            return _line_count(operation) <= self._most
        return bool(self._waiting) and isinstance(operation, Work)

    def before(self, operation: Operation) -> int:
        """How many of those held have to be done before an operation is taken up."""
        count = self._in_excess(operation)
        if isinstance(operation, Work):
            return count
        if not self.holds(operation):
            return len(self)
        needed = {*operation.takes, *operation.slots}
        for behind, taken in enumerate(reversed(self._waiting)):
            if _may_change(taken.operation, needed):
                return max(count, len(self) - behind)
        return count

    def _in_excess(self, operation: Operation) -> int:
        """How many of the first have to go to make room for an operation."""
        count, lines = 0, self._lines + _line_count(operation)
        for taken in self._waiting:
            if lines <= self._most:
                break
            count += 1
            lines -= _line_count(taken.operation)
        return count

    def append(self, taken: Taken) -> None:
        """Hold an operation."""
        self._lines += _line_count(taken.operation)
        self._waiting.append(kept(taken))

    def first(self) -> Taken:
        """The first of those held, which is held no more."""
        taken = self._waiting.popleft()
        self._lines -= _line_count(taken.operation)
        return taken

    def multicasts(self) -> list[Taken]:
        """Multicasts held, and what tiles send to themselves."""
        return [taken for taken in self._waiting if may_meet(taken.operation)]


def kept(taken: Taken) -> Taken:
    """An operation that can wait: who made its cycles may write others there."""
    operation = taken.operation
    if not isinstance(operation, Work) or not isinstance(operation.cycles, np.ndarray):
        return taken
    if not operation.cycles.flags.writeable:
        return taken
    return replace(taken, operation=replace(operation, cycles=operation.cycles.copy()))


def _line_count(operation: Operation) -> int:
    """How many multicasts `lines_of` makes of an operation; what it does not take counts as one."""
    if not isinstance(operation, Send) or not _returns(operation):
        return 1
    return min(len(operation.tiles.rows), len(operation.tiles.cols))


def lines_of(operation: Operation) -> list[Multicast]:
    """What tiles send to themselves as multicasts, one for each row or column; multicasts alone."""
    if isinstance(operation, Multicast):
        return [operation]
    assert isinstance(operation, Send)
    rows, cols = operation.tiles.rows, operation.tiles.cols
    named = {name: getattr(operation, name) for name in ("label", *TOKENS)}
    along: Along = "column" if len(rows) < len(cols) else "row"
    return [
        Multicast(
            TileSet(line, cols) if along == "column" else TileSet(rows, line),
            along,
            line,
            operation.flits,
            **named,
        )
        for line in _each(rows if along == "column" else cols)
    ]


def _each(lines: range) -> list[range]:
    """Lines one by one."""
    return [range(line, line + 1) for line in lines]


def _returns(send: Send) -> bool:
    """Whether each tile sends to itself."""
    tiles = send.tiles
    return [*send.to_rows] == [*tiles.rows] and [*send.to_cols] == [*tiles.cols]


def may_meet(operation: Operation) -> bool:
    """Whether an operation is a multicast whose packets others may hold up.

    One to the root itself leaves by its ejection port, as those of others that come there; so does
    what tiles send to themselves.
    """
    if isinstance(operation, Send):
        return _returns(operation)
    return isinstance(operation, Multicast) and (operation.forks or operation.returns)


def meet(one: Operation, other: Operation) -> bool:
    """Whether two operations that may meet others may have flits at the same tile."""
    a, b = _reached(one), _reached(other)
    return all(x[0] <= y[-1] and y[0] <= x[-1] for x, y in ((a.rows, b.rows), (a.cols, b.cols)))


def _may_change(held: Operation, needed: set[str]) -> bool:
    """Whether an operation held may still take or give units of what another one needs.

    Multicasts take theirs in program order, whatever comes of it later.
    """
    own = held.takes if isinstance(held, Work) else ()
    return not needed.isdisjoint((*own, *held.gives, *held.arrivals))


def _reached(multicast: Operation) -> TileSet:
    """A rectangle around all tiles in which an operation has flits."""
    if isinstance(multicast, Send):
        return multicast.tiles
    assert isinstance(multicast, Multicast)
    lines, places = multicast.root_lines
    segment = multicast.segment
    low, high = min(int(places.min()), segment[0]), max(int(places.max()), segment[-1])
    return TileSet(*multicast.on_grid(lines, range(low, high + 1)))
