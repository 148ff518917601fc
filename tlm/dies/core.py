"""Compiled packets on a mesh of dies: link occupancy, arbitration and credits, event by event.

Packets go along the row first. An input is a queue of packets; the first one asks for its output
from the moment its head is there. An output takes the next asking input in turn (round-robin) when
it is free, the input's last packet has left, and the next die has room for the whole packet.
"""

from enum import IntEnum
from heapq import heappop, heappush

from tlm.compiled import address, allocating, compiled, inlined
from tlm.dies.state import NONE, PORTS, Event, Message, Packet, Place, Port, State


class Kind(IntEnum):
    """What an event is."""

    HEAD = 0  # the head of a packet has come to an input
    FREE = 1  # an output or an input of a die is free
    CREDIT = 2  # an output hears that there is room for so many units more
    MESSAGE = 3  # a message may be sent


KINDS = len(Kind)


@allocating
def run(s: State) -> None:
    """Run messages to their delivery.

    The heap is one of tuples: times have 62 bits, so that no number holds a time and the order in
    which events came up, which equal times keep.
    """
    heap = [(0, 0, 0, 0) for _ in range(0)]  # of this type, and empty
    events, count, number = s.events, s.event_count, 0
    _begin(s)
    while True:
        for k in range(count[0]):
            time, name, what = events[k, Event.TIME], events[k, Event.NAME], events[k, Event.WHAT]
            heappush(heap, (time, number, name, what))
            number += 1
        if not heap:
            break
        now, _, name, what = heappop(heap)
        count[0] = 0
        _happen(s, now, name, what)


@compiled
def _begin(s: State) -> None:
    """Messages that wait for nothing may be sent."""
    for message in range(len(s.messages)):
        if s.messages[message, Message.WAITS] == 0:
            _may_be_sent(s, message)


@compiled
def _happen(s: State, now: int, name: int, what: int) -> None:
    """An event, and the packets that go on at its die."""
    kind, place = name % KINDS, address(name // KINDS)
    if kind == Kind.HEAD:
        _append(s, place, what)
    elif kind == Kind.CREDIT:
        s.places[place, Place.ROOM] += what
    elif kind == Kind.MESSAGE:
        first = s.messages[what, Message.FIRST_PACKET]
        for packet in range(first, first + s.messages[what, Message.MISSING]):
            _append(s, place, packet)
    die = place - place % PORTS
    for output in range(die, die + PORTS):
        if s.places[output, Place.OUTPUT_FREE] <= now:
            source = _next_input(s, die, output, now)
            if source != NONE:
                _send(s, now, source, output)


@inlined
def _come_up(s: State, time: int, kind: Kind, place: int, what: int) -> None:
    """Note an event."""
    event = s.event_count[0]
    s.events[event, Event.TIME] = time
    s.events[event, Event.NAME] = place * KINDS + kind
    s.events[event, Event.WHAT] = what
    s.event_count[0] += 1


@inlined
def _may_be_sent(s: State, message: int) -> None:
    place = s.messages[message, Message.SOURCE] * PORTS
    _come_up(s, s.messages[message, Message.SENT], Kind.MESSAGE, place, message)


@inlined
def _append(s: State, place: int, packet: int) -> None:
    """Put a packet at the end of an input's queue."""
    if s.places[place, Place.FIRST] == NONE:
        _show(s, place, packet)
    else:
        s.packets[s.places[place, Place.LAST], Packet.NEXT] = packet
    s.places[place, Place.LAST] = packet


@inlined
def _show(s: State, place: int, packet: int) -> None:
    """A packet is the first of an input's queue."""
    s.places[place, Place.FIRST] = packet
    s.places[place, Place.WANTED] = _output(s, place // PORTS, packet)


@inlined
def _output(s: State, die: int, packet: int) -> int:
    """The port by which a packet leaves a die."""
    cols = s.law.cols
    target = s.messages[s.packets[packet, Packet.MESSAGE], Message.TARGET]
    col, to_col = die % cols, target % cols
    if to_col != col:
        return Port.EAST if to_col > col else Port.WEST
    row, to_row = die // cols, target // cols
    if to_row != row:
        return Port.SOUTH if to_row > row else Port.NORTH
    return Port.DIE


@inlined
def _next_input(s: State, die: int, output: int, now: int) -> int:
    """The input of a die whose packet leaves by an output, or NONE."""
    out, turn = output - die, s.places[output, Place.TURN]
    for k in range(PORTS):
        source = die + address(turn + k) % PORTS
        if s.places[source, Place.WANTED] == out and s.places[source, Place.INPUT_FREE] <= now:
            units = _packet_units(s, s.places[source, Place.FIRST])
            if out == Port.DIE or s.places[output, Place.ROOM] >= units:
                return source
    return NONE


@inlined
def _packet_units(s: State, packet: int) -> int:
    """Units of a packet: the last of a message takes what is left."""
    message, most = s.packets[packet, Packet.MESSAGE], s.law.packet_units
    before = (packet - s.messages[message, Message.FIRST_PACKET]) * most
    units: int = min(most, s.messages[message, Message.UNITS] - before)
    return units


@inlined
def _send(s: State, now: int, source: int, output: int) -> None:
    """The first packet of an input leaves by an output."""
    law, packet = s.law, address(s.places[source, Place.FIRST])
    from_die, to_die = source % PORTS == Port.DIE, output % PORTS == Port.DIE
    units = _packet_units(s, packet)
    following = s.packets[packet, Packet.NEXT]
    s.packets[packet, Packet.NEXT] = NONE
    if following != NONE:
        _show(s, source, following)
    else:
        s.places[source, Place.FIRST] = s.places[source, Place.WANTED] = NONE
    # Where a die's port and a link differ, the packet's tail goes at the slower's pace, and the
    # faster port is free for another packet before.
    port_free = now + units * law.port_ticks_per_unit
    left = now + units * law.ticks_per_unit
    if from_die or to_die:
        left = max(left, port_free)
    s.places[output, Place.TURN] = source % PORTS + 1
    s.places[source, Place.INPUT_FREE] = port_free if from_die else left
    s.places[output, Place.OUTPUT_FREE] = port_free if to_die else left
    s.places[output, Place.UNITS] += units
    _come_up(s, left, Kind.FREE, output, 0)
    if (from_die or to_die) and port_free < left:
        _come_up(s, port_free, Kind.FREE, output, 0)
    if not from_die:
        _come_up(s, left + law.credit_ticks, Kind.CREDIT, _across(s, source), units)
    if to_die:
        _arrive(s, s.packets[packet, Packet.MESSAGE], left + law.ejection_ticks)
    else:
        s.places[output, Place.ROOM] -= units
        _come_up(s, now + law.hop_ticks, Kind.HEAD, _across(s, output), packet)


@inlined
def _across(s: State, place: int) -> int:
    """The input at the other end of an output's link, or the output at that of an input's."""
    die, port = place // PORTS, place % PORTS
    if port == Port.NORTH:
        return (die - s.law.cols) * PORTS + Port.SOUTH
    if port == Port.EAST:
        return (die + 1) * PORTS + Port.WEST
    if port == Port.SOUTH:
        return (die + s.law.cols) * PORTS + Port.NORTH
    return (die - 1) * PORTS + Port.EAST


@inlined
def _arrive(s: State, message: int, now: int) -> None:
    """A packet of a message has arrived; behind the last one those that wait for it may be sent."""
    table = s.messages
    table[message, Message.ARRIVED] = max(table[message, Message.ARRIVED], now)
    table[message, Message.MISSING] -= 1
    if table[message, Message.MISSING] > 0:
        return
    for k in range(table[message, Message.FIRST_FOLLOWER], table[message, Message.FOLLOWERS_END]):
        follower, arrived = s.followers[k], table[message, Message.ARRIVED]
        table[follower, Message.SENT] = max(table[follower, Message.SENT], arrived)
        table[follower, Message.WAITS] -= 1
        if table[follower, Message.WAITS] == 0:
            _may_be_sent(s, follower)
