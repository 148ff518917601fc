"""Events of a mesh of dies in the order of their times, compiled: queues side by side.

Most events come up some fixed time ahead: those of one kind in the order of their times. So a few
queues whose times only grow hold nearly all of them, and the next event is the first of one. That
is twice as fast as a heap. Events that fit no queue, of packets of many sizes, are left to a heap.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled, merged

NEVER = 2**63 - 1
NOBODY = -1
_QUEUES = 4
_LEAST_PLACES = 1024


class _Event(IntEnum):
    """Columns of an event that waits."""

    TIME = 0
    NUMBER = 1  # in the order in which events came up
    NAME = 2
    WHAT = 3
    NEXT = 4  # place of the event behind it in its queue, or of the next free place


class _Queue(IntEnum):
    """Columns of a queue."""

    TIME = 0  # of the first event, or `NEVER`
    NUMBER = 1
    FIRST = 2  # its place, or `NOBODY`
    LAST = 3
    LAST_TIME = 4


class _Field(IntEnum):
    """Numbers of all queues."""

    FREE = 0  # the first free place, or `NOBODY`
    COUNT = 1  # of events that have come up


class Queues(NamedTuple):
    """Events that wait, but for those in a heap.

    Attributes:
        events: Shape (places, len(_Event)).
        queues: Shape (_QUEUES, len(_Queue)).
        fields: Shape (len(_Field),).
    """

    events: NDArray[np.int64]
    queues: NDArray[np.int64]
    fields: NDArray[np.int64]


def new_queues() -> Queues:
    """Without events, or places for any."""
    queues = np.zeros((_QUEUES, len(_Queue)), dtype=np.int64)
    queues[:, _Queue.TIME] = queues[:, _Queue.NUMBER] = NEVER
    queues[:, _Queue.FIRST] = NOBODY
    fields = np.array([NOBODY, 0])
    return Queues(np.zeros((0, len(_Event)), dtype=np.int64), queues, fields)


@merged
def is_full(queues: Queues) -> bool:
    """Whether there is no place for another event."""
    return bool(queues.fields[_Field.FREE] == NOBODY)


@allocating
def grown(queues: Queues) -> Queues:
    """The same, if full, with twice as many places."""
    before = len(queues.events)
    events = np.zeros((max(2 * before, _LEAST_PLACES), queues.events.shape[1]), dtype=np.int64)
    events[:before] = queues.events
    for place in range(before, len(events)):
        events[place, _Event.NEXT] = place + 1
    events[-1, _Event.NEXT] = NOBODY
    queues.fields[_Field.FREE] = before
    return Queues(events, queues.queues, queues.fields)


@merged
def push(queues: Queues, time: int, name: int, what: int) -> bool:
    """Enter an event, for which there is a place; not if it fits no queue. It is counted then."""
    events, rows, fields = queues.events, queues.queues, queues.fields
    at = fields[_Field.FREE]
    fields[_Field.FREE] = events[at, _Event.NEXT]
    events[at, _Event.TIME], events[at, _Event.NUMBER] = time, fields[_Field.COUNT]
    events[at, _Event.NAME], events[at, _Event.WHAT] = name, what
    events[at, _Event.NEXT] = NOBODY
    fields[_Field.COUNT] += 1
    for queue in range(_QUEUES):
        if rows[queue, _Queue.FIRST] == NOBODY:
            _lead(queues, queue, at)
            rows[queue, _Queue.LAST], rows[queue, _Queue.LAST_TIME] = at, time
            return True
        if rows[queue, _Queue.LAST_TIME] <= time:
            events[rows[queue, _Queue.LAST], _Event.NEXT] = at
            rows[queue, _Queue.LAST], rows[queue, _Queue.LAST_TIME] = at, time
            return True
    events[at, _Event.NEXT] = fields[_Field.FREE]
    fields[_Field.FREE] = at
    return False


@compiled
def _lead(queues: Queues, queue: int, at: int) -> None:
    """The event of a place is the first of a queue."""
    queues.queues[queue, _Queue.FIRST] = at
    queues.queues[queue, _Queue.TIME] = queues.events[at, _Event.TIME]
    queues.queues[queue, _Queue.NUMBER] = queues.events[at, _Event.NUMBER]


@merged
def earliest(queues: Queues) -> int:
    """The queue whose first event is the next one of all, or `NOBODY`."""
    rows, first, time, number = queues.queues, NOBODY, NEVER, NEVER
    for queue in range(_QUEUES):
        own, came = rows[queue, _Queue.TIME], rows[queue, _Queue.NUMBER]
        sooner = (own < time) | ((own == time) & (came < number))  # no branch: it would be guessed
        first = queue if sooner else first
        time = own if sooner else time
        number = came if sooner else number
    return first


@merged
def is_before(queues: Queues, queue: int, time: int, number: int) -> bool:
    """Whether an event comes before the first one of a queue; it does if that is `NOBODY`."""
    if queue == NOBODY:
        return True
    first = queues.queues[queue, _Queue.TIME]
    return bool(time < first or (time == first and number < queues.queues[queue, _Queue.NUMBER]))


@merged
def pop(queues: Queues, queue: int) -> tuple[int, int, int]:
    """Time, name and object of the first event of a queue, which leaves."""
    events, rows, fields = queues.events, queues.queues, queues.fields
    at, time = rows[queue, _Queue.FIRST], rows[queue, _Queue.TIME]
    behind = events[at, _Event.NEXT]
    if behind == NOBODY:
        rows[queue, _Queue.FIRST] = NOBODY
        rows[queue, _Queue.TIME] = rows[queue, _Queue.NUMBER] = NEVER
    else:
        _lead(queues, queue, behind)
    events[at, _Event.NEXT] = fields[_Field.FREE]
    fields[_Field.FREE] = at
    return time, events[at, _Event.NAME], events[at, _Event.WHAT]


@merged
def last_number(queues: Queues) -> int:
    """That of the event which was counted last."""
    return int(queues.fields[_Field.COUNT]) - 1
