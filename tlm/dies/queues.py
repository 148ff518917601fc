"""Events of a mesh of dies in the order of their times, compiled: queues side by side.

Most events come up some fixed time ahead: those of one kind in the order of their times. So a few
queues whose times only grow hold nearly all of them, and the next event is the first of one. That
is twice as fast as a heap. Packets of other sizes have other times ahead, and queues of their own.
Events that fit no queue, of packets of many sizes, are left to a heap.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import address, allocating, merged

# No literal: for each of these Numba would compile what is called with it once more.
NEVER: int = np.int64(2**63 - 1)  # type: ignore[assignment]  # an int to Numba
NOBODY = -1
_OF_A_SIZE, _MOST = 4, 16  # queues: with more, to look at all takes longer than a heap
_PLACES = 1024  # of a queue at first; a power of two, always


class Pushed(IntEnum):
    """What became of an event."""

    ENTERED = 0
    NO_ROOM = 1  # its queue is full: nothing has changed
    NO_QUEUE = 2  # it fits none; it is counted


class _Event(IntEnum):
    """Columns of an event that waits."""

    TIME = 0
    NUMBER = 1  # in the order in which events came up
    NAME = 2
    WHAT = 3


class _Queue(IntEnum):
    """Columns of a queue. Its events have positions that grow, and places in a ring."""

    TIME = 0  # of the first event, or `NEVER`
    NUMBER = 1
    FIRST = 2  # position of the first event
    END = 3  # and behind the last one
    LAST_TIME = 4  # of the last event; 0 if there is none


class Queues(NamedTuple):
    """Events that wait, but for those in a heap.

    Attributes:
        events: Shape (queues, places, len(_Event)).
        queues: Shape (queues, len(_Queue)).
        came: Shape (1,): how many events have come up.
    """

    events: NDArray[np.int64]
    queues: NDArray[np.int64]
    came: NDArray[np.int64]


def new_queues(sizes: int) -> Queues:
    """Without events, for packets of so many sizes."""
    count = min(_OF_A_SIZE * sizes, _MOST)
    queues = np.zeros((count, len(_Queue)), dtype=np.int64)
    queues[:, [_Queue.TIME, _Queue.NUMBER]] = NEVER
    events = np.zeros((count, _PLACES, len(_Event)), dtype=np.int64)
    return Queues(events, queues, np.zeros(1, dtype=np.int64))


@allocating
def grown(queues: Queues) -> Queues:
    """The same with twice as many places."""
    kinds, places, columns = queues.events.shape
    events = np.zeros((kinds, 2 * places, columns), dtype=np.int64)
    for queue in range(kinds):
        for at in range(queues.queues[queue, _Queue.FIRST], queues.queues[queue, _Queue.END]):
            for column in range(columns):  # a whole row would take Numba seconds to compile
                events[queue, at % (2 * places), column] = queues.events[queue, at % places, column]
    return Queues(events, queues.queues, queues.came)


@merged
def push(queues: Queues, time: int, name: int, what: int) -> int:
    """Enter an event, and count it: what became of it, as in `Pushed`."""
    events, rows, places = queues.events, queues.queues, queues.events.shape[1]
    for number in range(len(rows)):
        queue = address(number)
        if rows[queue, _Queue.LAST_TIME] <= time:
            first, end = rows[queue, _Queue.FIRST], rows[queue, _Queue.END]
            if end - first == places:
                return Pushed.NO_ROOM
            event = events[queue, address(end & places - 1)]
            event[_Event.TIME], event[_Event.NUMBER] = time, queues.came[0]
            event[_Event.NAME], event[_Event.WHAT] = name, what
            if end == first:
                rows[queue, _Queue.TIME], rows[queue, _Queue.NUMBER] = time, queues.came[0]
            rows[queue, _Queue.END], rows[queue, _Queue.LAST_TIME] = end + 1, time
            queues.came[0] += 1
            return Pushed.ENTERED
    queues.came[0] += 1
    return Pushed.NO_QUEUE


@merged
def earliest(queues: Queues) -> int:
    """The queue whose first event is the next one of all, or `NOBODY`."""
    rows, first, time, number = queues.queues, NOBODY, NEVER, NEVER
    for queue in range(len(rows)):
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
    at, places = address(queue), queues.events.shape[1]
    row, ring = queues.queues[at], queues.events[at]
    time, first = row[_Queue.TIME], row[_Queue.FIRST]
    event = ring[address(first & places - 1)]
    row[_Queue.FIRST] = first + 1
    if first + 1 == row[_Queue.END]:
        row[_Queue.TIME] = row[_Queue.NUMBER] = NEVER
        row[_Queue.LAST_TIME] = 0
    else:
        behind = ring[address(first + 1 & places - 1)]
        row[_Queue.TIME], row[_Queue.NUMBER] = behind[_Event.TIME], behind[_Event.NUMBER]
    return time, event[_Event.NAME], event[_Event.WHAT]


@merged
def last_number(queues: Queues) -> int:
    """That of the event which was counted last."""
    return int(queues.came[0]) - 1
