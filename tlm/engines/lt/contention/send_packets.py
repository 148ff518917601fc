"""Compiled transfers along a line of tiles that share its links, for the loosely-timed engine.

A transfer is one packet, which takes link after link and keeps each until its tail has crossed. If
its head waits, its flits fill the buffers behind it, and its tail holds what links it has not left.
So a link is free when as many flits have gone on ahead as do not fit into the buffers between. Of
two that ask for a link, one from the tile and one from the link before, they take turns.

Nothing here is flit by flit: events are that a head has come, and that a tail has left.

Of earlier sends a link knows since when it is busy, and until when: who is through before passes.
"""

from enum import IntEnum
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, merged, prepare
from tlm.heap import pop, push
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
Table = Annotated[NDArray[np.int64], types.int64[:, ::1]]
LinkTimes = Annotated[NDArray[np.int64], types.int64[:, :, :, ::1]]

_NOBODY = -1


class LinePlace(IntEnum):
    """Rows of a line's places."""

    OWNER = 0  # whose the link from here is
    LEAVES = 1  # when its tail has left
    OWN = 2  # who waits for it, from the tile
    FRONT = 3  # the same from the buffer
    WON = 4  # whether who came from the buffer won last
    FIRST = 5  # where the buffer's first packet stands in its queue
    HELD = 6  # packets in it
    STILL = 7  # how many of them have not begun to leave
    QUEUE = 8  # the first row of it


class Busy(IntEnum):
    """Rows of a direction's links."""

    SINCE = 0
    UNTIL = 1


class Happens(IntEnum):
    """Kinds of events; at one time they come in this order."""

    HEAD = 0  # a head is there, or a source begins
    TAIL = 1  # a tail has left a link
    EJECTED = 2  # a packet has left a buffer for the tile
    BEGUN = 3  # one has begun to leave
    AGAIN = 4  # a link is free that earlier sends had


_KINDS = 2**3
_NUMBERS = 2**28  # more than places and sources of a line; times are below 2**31


class Length(NamedTuple):
    """What transfers of some length need to know of the router, in cycles and flits."""

    hop: int
    ejection: int
    fit: int  # whole packets that a buffer holds; behind them one comes in while one leaves
    most: int  # packets in a buffer's queue
    room: int  # cycles that a buffer lets those behind it go earlier
    flits: int
    reach: int  # links behind its head that a packet is spread over
    returns: int  # from a flit's leaving a buffer to the next one's coming in


class Transfers(NamedTuple):
    """Transfers of some lines, of the same sources and targets on each."""

    lines: Numbers  # rows or columns
    places: Numbers  # of the sources
    targets: Numbers
    starts: Table  # shape (lines, sources)
    come: Table  # the same; becomes when transfers that move have come
    free: Table  # the same; is raised where sources are held
    # Shape (lines of the grid, 2, 2, places): of both directions since when, and until when links
    # are busy.
    links: LinkTimes


class Room(NamedTuple):
    """Room to work in on a line."""

    line: Table  # shape (rows of `LinePlace`, places)
    heads: Numbers  # of each source twice the place its head goes to, and 1 more if it is there
    events: Numbers  # a heap


class OneWay(NamedTuple):
    """A line's transfers that go one way."""

    length: Length
    step: int  # from place to place
    places: Numbers
    targets: Numbers
    come: Numbers
    free: Numbers
    busy: Table
    line: Table
    heads: Numbers
    events: Numbers


def length_of(timing: NocTiming, flits: int, sources: int) -> Length:
    """What transfers of some length, one of each source on a line, need to know of a router."""
    depth = timing.fifo_depth + timing.output_depth
    fit = max(1, min(depth // flits, sources))
    return Length(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        fit=fit,
        most=fit + 2,
        room=depth - timing.return_cycles,
        flits=flits,
        reach=(flits - 1) // depth,
        returns=timing.return_cycles,
    )


def room_of(length: Length, places: int, sources: int) -> Room:
    """Room in which `cross` works on lines of so many places and sources.

    Of each place at most one event of each of four kinds is to come, and a `Happens.BEGUN` for each
    whole packet that its buffer holds.
    """
    most_events = (4 + length.fit) * places
    return Room(
        line=np.empty((LinePlace.QUEUE + length.most, places), dtype=np.int64),
        heads=np.empty(sources, dtype=np.int64),
        events=np.empty(1 + most_events, dtype=np.int64),
    )


@compiled
def cross(length: Length, transfers: Transfers, room: Room) -> None:
    """Bring transfers over the links of their lines."""
    for k in range(len(transfers.lines)):
        for side in range(2):
            way = OneWay(
                length,
                1 - 2 * side,
                transfers.places,
                transfers.targets,
                transfers.come[k],
                transfers.free[k],
                transfers.links[transfers.lines[k], side],
                room.line,
                room.heads,
                room.events,
            )
            _one_way(way, transfers.starts[k])


@merged
def _one_way(way: OneWay, starts: Numbers) -> None:
    """Bring those transfers of a line over its links that go one way."""
    way.line[:] = _NOBODY
    way.line[LinePlace.FIRST], way.line[LinePlace.HELD], way.line[LinePlace.STILL] = 0, 0, 0
    way.heads[:] = _NOBODY
    way.events[0] = 0
    for s in range(len(way.places)):
        if (way.targets[s] - way.places[s]) * way.step > 0:
            _enter(way, starts[s], Happens.HEAD, s)
    for place in range(way.busy.shape[1]):
        if way.busy[Busy.UNTIL, place] > 0:  # as earlier sends have left it
            _enter(way, way.busy[Busy.UNTIL, place], Happens.AGAIN, place)
    while way.events[0] > 0:
        key = pop(way.events)
        number, rest = key % _NUMBERS, key // _NUMBERS
        kind, time = rest % _KINDS, rest // _KINDS
        place = number
        if kind == Happens.HEAD:
            if way.heads[number] < 0:  # it begins
                place = way.places[number]
                way.line[LinePlace.OWN, place] = number
            else:
                place = way.heads[number] // 2
                way.heads[number] |= 1
                _ask(way, place, time)
        elif kind == Happens.TAIL:
            owner = way.line[LinePlace.OWNER, place]
            way.line[LinePlace.OWNER, place] = _NOBODY
            way.busy[Busy.UNTIL, place] = max(way.busy[Busy.UNTIL, place], time)
            if way.places[owner] != place:
                _leave(way, place, time)
        elif kind == Happens.EJECTED:
            _leave(way, place, time)
        elif kind == Happens.BEGUN:
            way.line[LinePlace.STILL, place] -= 1
            place -= way.step
        _grant(way, place, time)


@merged
def _ask(way: OneWay, place: int, time: int) -> None:
    """Let the first packet of a buffer, if its head is there, ask for the link or the port."""
    if way.line[LinePlace.HELD, place] == 0 or way.line[LinePlace.FRONT, place] >= 0:
        return
    who = way.line[LinePlace.QUEUE + way.line[LinePlace.FIRST, place], place]
    if way.heads[who] != 2 * place + 1:
        return
    way.line[LinePlace.FRONT, place] = who
    if way.targets[who] != place:
        return
    way.come[who] = time + way.length.ejection + way.length.flits
    _enter(way, time + way.length.returns, Happens.BEGUN, place)
    _enter(way, time + way.length.flits, Happens.EJECTED, place)
    _advance(way, who, place, time + way.length.ejection)
    behind = min(way.length.reach, abs(place - way.places[who]))
    for j in range(1, behind + 1):
        link = place - j * way.step
        _enter(way, way.line[LinePlace.LEAVES, link], Happens.TAIL, link)


@merged
def _leave(way: OneWay, place: int, time: int) -> None:
    """Take the first packet out of a buffer."""
    way.line[LinePlace.FIRST, place] = (way.line[LinePlace.FIRST, place] + 1) % way.length.most
    way.line[LinePlace.FRONT, place] = _NOBODY
    way.line[LinePlace.HELD, place] -= 1
    _ask(way, place, time)


@merged
def _grant(way: OneWay, place: int, time: int) -> None:
    """Give a link, if it is free, to one who asks for it and has room behind it."""
    if not 0 <= place < way.busy.shape[1] or way.line[LinePlace.OWNER, place] >= 0:
        return
    ahead = time + way.length.flits <= way.busy[Busy.SINCE, place]
    if way.busy[Busy.UNTIL, place] > time and not ahead:
        return
    flits, beyond = way.length.flits, place + way.step
    own, front = way.line[LinePlace.OWN, place], way.line[LinePlace.FRONT, place]
    passes = front >= 0 and way.targets[front] != place
    if not passes and own < 0:
        return
    if way.line[LinePlace.STILL, beyond] == way.length.fit:
        return
    passes = passes and (own < 0 or way.line[LinePlace.WON, place] == 0)
    who = front if passes else own
    way.line[LinePlace.WON, place] = int(passes)
    if passes:
        _enter(way, time + way.length.returns, Happens.BEGUN, place)
    else:
        way.line[LinePlace.OWN, place] = _NOBODY
    way.line[LinePlace.OWNER, place], way.line[LinePlace.LEAVES, place] = who, time + flits
    if time > way.busy[Busy.UNTIL, place]:
        way.busy[Busy.SINCE, place] = time
    _advance(way, who, place, time + way.length.hop)
    left = place - way.length.reach * way.step
    if abs(place - way.places[who]) >= way.length.reach:
        _enter(way, way.line[LinePlace.LEAVES, left], Happens.TAIL, left)
    last = (way.line[LinePlace.FIRST, beyond] + way.line[LinePlace.HELD, beyond]) % way.length.most
    way.line[LinePlace.QUEUE + last, beyond] = who
    way.line[LinePlace.HELD, beyond] += 1
    way.line[LinePlace.STILL, beyond] += 1
    way.heads[who] = 2 * beyond
    _enter(way, time + way.length.hop, Happens.HEAD, who)


@merged
def _advance(way: OneWay, who: int, place: int, time: int) -> None:
    """Hold the links, and the source, over which a packet's flits are spread."""
    away = abs(place - way.places[who])
    for j in range(1, way.length.reach + 1):
        leaves = time + way.length.flits - j * way.length.room
        if j > away:
            way.free[who] = max(way.free[who], leaves)
            return
        link = place - j * way.step
        way.line[LinePlace.LEAVES, link] = max(way.line[LinePlace.LEAVES, link], leaves)


@merged
def _enter(way: OneWay, time: int, kind: int, number: int) -> None:
    """Enter an event in the heap; of one time heads come before tails."""
    push(way.events, (time * _KINDS + kind) * _NUMBERS + number)


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(cross)
