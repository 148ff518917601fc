"""Messages between dies: who sends how much to whom, and after which others."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the order in which each die sends those that it may send at the same time.

    Attributes:
        source: Shape (messages,): number of the die (row * columns + column).
        target: Shape (messages,): the same of the destination, another die.
        units: Shape (messages,): size.
        before: Shape (dependencies,): a message that must have arrived ...
        after: Shape (dependencies,): ... before this one may be sent, a later one.
    """

    source: Int64s
    target: Int64s
    units: Int64s
    before: Int64s
    after: Int64s

    def __len__(self) -> int:
        """Number of messages."""
        return len(self.source)


@dataclass(slots=True)
class MessagePlan:
    """Messages while they are being put together."""

    _rows: list[tuple[int, int, int]] = field(default_factory=list)
    _order: list[tuple[int, int]] = field(default_factory=list)

    def send(self, source: int, target: int, units: int, after: list[int] | None = None) -> int:
        """Add a message; its number, by which others can wait for it."""
        number = len(self._rows)
        self._rows.append((source, target, units))
        self._order += [(before, number) for before in after or ()]
        return number

    def messages(self) -> Messages:
        """All messages."""
        rows = np.array(self._rows, dtype=np.int64).reshape(len(self._rows), 3)
        order = np.array(self._order, dtype=np.int64).reshape(len(self._order), 2)
        columns = (np.ascontiguousarray(column) for column in (*rows.T, *order.T))
        return Messages(*columns)
