"""Compiled transfers along a line of tiles that share its links, for the loosely-timed engine.

A transfer is one packet, which takes link after link and keeps each until its tail has crossed. If
its head waits, its flits fill the buffers behind it, and its tail holds what links it has not left.
So a link is free when as many flits have gone on ahead as do not fit into the buffers between. Of
two that ask for a link, one from the tile and one from the link before, they take turns.

Nothing here is flit by flit: events are that a head has come, and that a tail has left.

Of earlier sends a link knows since when it is busy, and until when: who is through before passes.
"""

from functools import cache
from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, prepare
from tlm.heap import pop, push
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
Lines = Annotated[NDArray[np.int64], types.int64[:, ::1]]
Links = Annotated[NDArray[np.int64], types.int64[:, :, :, ::1]]

# Of a line's places: whose the link is, when its tail has left, who waits from the tile and from
# the buffer, who won last; where the buffer's first packet stands in its queue, how many there are,
# how many of them have not begun to leave, and the queue.
_OWNER, _LEAVES, _OWN, _FRONT, _WON, _FIRST, _HELD, _STILL, _QUEUE = range(9)
_NOBODY = -1
_SINCE, _UNTIL = range(2)
_HEAD, _TAIL, _EJECTED, _BEGUN, _AGAIN = range(5)
_KINDS = 2**3
_NUMBERS = 2**28  # more than places and sources of a line; times are below 2**31
_HOP, _EJECTION, _FIT, _MOST, _ROOM, _FLITS, _REACH, _RETURN, _STEP = range(9)


def law_of(timing: NocTiming, flits: int) -> NDArray[np.int64]:
    """What transfers of some length need to know of the router."""
    depth = timing.fifo_depth + timing.output_depth
    room = depth - timing.return_cycles
    # How many whole packets a buffer holds; behind them one comes in while one leaves.
    fit, reach = max(1, depth // flits), (flits - 1) // depth
    law = [timing.hop_cycles, timing.ejection_cycles, fit, fit + 2, room, flits, reach]
    law += [timing.return_cycles, 0]
    return np.array(law, dtype=np.int64)


def room_of(law: NDArray[np.int64], places: int, sources: int) -> list[NDArray[np.int64]]:
    """Room in which `cross` works on lines of so many places and sources.

    Of each place at most one event of each of four kinds is to come, and a `_BEGUN` for each whole
    packet that its buffer holds.
    """
    most_events = (4 + int(law[_FIT])) * places
    return [
        np.empty((_QUEUE + law[_MOST], places), dtype=np.int64),
        np.empty(sources, dtype=np.int64),
        np.empty(1 + most_events, dtype=np.int64),
    ]


@compiled
def cross(
    law: Numbers,
    lines: Numbers,
    places: Numbers,
    targets: Numbers,
    starts: Lines,
    come: Lines,
    free: Lines,
    links: Links,
    line: Lines,
    heads: Numbers,
    events: Numbers,
) -> None:
    """Bring transfers over the links of some lines.

    Args:
        law: As `law_of` gives it.
        lines: Rows or columns.
        places: Of the sources on each.
        targets: Of each source.
        starts: Shape (lines, sources).
        come: The same; becomes when transfers that move have come.
        free: The same; is raised where sources are held.
        links: Shape (lines of the grid, 2, 2, places): of both directions since when, and until
            when links are busy.
        line: Room, as `room_of` gives it, for places; likewise
        heads: for sources: twice the place that a head goes to, and 1 more when it is there;
        events: for a heap.
    """
    for k in range(len(lines)):
        for side in range(2):
            law[_STEP] = 1 - 2 * side
            _one_way(
                law,
                places,
                targets,
                starts[k],
                come[k],
                free[k],
                links[lines[k], side],
                line,
                heads,
                events,
            )


@compiled
def _one_way(
    law: Numbers,
    places: Numbers,
    targets: Numbers,
    starts: Numbers,
    come: Numbers,
    free: Numbers,
    busy: Lines,
    line: Lines,
    heads: Numbers,
    events: Numbers,
) -> None:
    """Bring those transfers of a line over its links that go one way."""
    step = law[_STEP]
    line[:] = _NOBODY
    line[_FIRST], line[_HELD], line[_STILL] = 0, 0, 0
    heads[:] = _NOBODY
    events[0] = 0
    for s in range(len(places)):
        if (targets[s] - places[s]) * step > 0:
            _enter(events, starts[s], _HEAD, s)
    for place in range(busy.shape[1]):
        if busy[_UNTIL, place] > 0:  # as earlier sends have left it
            _enter(events, busy[_UNTIL, place], _AGAIN, place)
    while events[0] > 0:
        key = pop(events)
        number, rest = key % _NUMBERS, key // _NUMBERS
        kind, time = rest % _KINDS, rest // _KINDS
        place = number
        if kind == _HEAD:
            if heads[number] < 0:  # it begins
                place = places[number]
                line[_OWN, place] = number
            else:
                place = heads[number] // 2
                heads[number] |= 1
                _ask(law, places, targets, come, free, line, heads, events, place, time)
        elif kind == _TAIL:
            owner = line[_OWNER, place]
            line[_OWNER, place] = _NOBODY
            busy[_UNTIL, place] = max(busy[_UNTIL, place], time)
            if places[owner] != place:
                _leave(law, places, targets, come, free, busy, line, heads, events, place, time)
        elif kind == _EJECTED:
            _leave(law, places, targets, come, free, busy, line, heads, events, place, time)
        elif kind == _BEGUN:
            line[_STILL, place] -= 1
            place -= step
        _grant(law, places, targets, free, busy, line, heads, events, place, time)


@compiled
def _ask(
    law: Numbers,
    places: Numbers,
    targets: Numbers,
    come: Numbers,
    free: Numbers,
    line: Lines,
    heads: Numbers,
    events: Numbers,
    place: int,
    time: int,
) -> None:
    """Let the first packet of a buffer, if its head is there, ask for the link or the port."""
    if line[_HELD, place] == 0 or line[_FRONT, place] >= 0:
        return
    who = line[_QUEUE + line[_FIRST, place], place]
    if heads[who] != 2 * place + 1:
        return
    line[_FRONT, place] = who
    if targets[who] != place:
        return
    come[who] = time + law[_EJECTION] + law[_FLITS]
    _enter(events, time + law[_RETURN], _BEGUN, place)
    _enter(events, time + law[_FLITS], _EJECTED, place)
    _advance(law, places, free, line, who, place, time + law[_EJECTION])
    behind = min(law[_REACH], abs(place - places[who]))
    for j in range(1, behind + 1):
        link = place - j * law[_STEP]
        _enter(events, line[_LEAVES, link], _TAIL, link)


@compiled
def _leave(
    law: Numbers,
    places: Numbers,
    targets: Numbers,
    come: Numbers,
    free: Numbers,
    busy: Lines,
    line: Lines,
    heads: Numbers,
    events: Numbers,
    place: int,
    time: int,
) -> None:
    """Take the first packet out of a buffer."""
    line[_FIRST, place] = (line[_FIRST, place] + 1) % law[_MOST]
    line[_FRONT, place] = _NOBODY
    line[_HELD, place] -= 1
    _ask(law, places, targets, come, free, line, heads, events, place, time)


@compiled
def _grant(
    law: Numbers,
    places: Numbers,
    targets: Numbers,
    free: Numbers,
    busy: Lines,
    line: Lines,
    heads: Numbers,
    events: Numbers,
    place: int,
    time: int,
) -> None:
    """Give a link, if it is free, to one who asks for it and has room behind it."""
    if not 0 <= place < busy.shape[1] or line[_OWNER, place] >= 0:
        return
    ahead = time + law[_FLITS] <= busy[_SINCE, place]
    if busy[_UNTIL, place] > time and not ahead:
        return
    flits, beyond = law[_FLITS], place + law[_STEP]
    own, front = line[_OWN, place], line[_FRONT, place]
    passes = front >= 0 and targets[front] != place
    if not passes and own < 0:
        return
    if line[_STILL, beyond] == law[_FIT]:
        return
    passes = passes and (own < 0 or line[_WON, place] == 0)
    who = front if passes else own
    line[_WON, place] = int(passes)
    if passes:
        _enter(events, time + law[_RETURN], _BEGUN, place)
    else:
        line[_OWN, place] = _NOBODY
    line[_OWNER, place], line[_LEAVES, place] = who, time + flits
    if time > busy[_UNTIL, place]:
        busy[_SINCE, place] = time
    _advance(law, places, free, line, who, place, time + law[_HOP])
    left = place - law[_REACH] * law[_STEP]
    if abs(place - places[who]) >= law[_REACH]:
        _enter(events, line[_LEAVES, left], _TAIL, left)
    last = (line[_FIRST, beyond] + line[_HELD, beyond]) % law[_MOST]
    line[_QUEUE + last, beyond] = who
    line[_HELD, beyond] += 1
    line[_STILL, beyond] += 1
    heads[who] = 2 * beyond
    _enter(events, time + law[_HOP], _HEAD, who)


@compiled
def _advance(
    law: Numbers, places: Numbers, free: Numbers, line: Lines, who: int, place: int, time: int
) -> None:
    """Hold the links, and the source, over which a packet's flits are spread."""
    away = abs(place - places[who])
    for j in range(1, law[_REACH] + 1):
        leaves = time + law[_FLITS] - j * law[_ROOM]
        if j > away:
            free[who] = max(free[who], leaves)
            return
        link = place - j * law[_STEP]
        line[_LEAVES, link] = max(line[_LEAVES, link], leaves)


@compiled
def _enter(events: Numbers, time: int, kind: int, number: int) -> None:
    """Enter an event in the heap; of one time heads come before tails."""
    push(events, (time * _KINDS + kind) * _NUMBERS + number)


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(cross)
