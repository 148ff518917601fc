"""Compiled packets on a mesh of dies: link occupancy, arbitration and credits, event by event.

Packets go along the row first. An input is a queue of packets; the first one asks for its output
from the moment its head is there. An output takes the next asking input in turn (round-robin) when
it is free, the input's last packet has left, and the next die has room for the whole packet.
"""

from enum import IntEnum
from heapq import heappop, heappush

from tlm.compiled import address, allocating, compiled, forget_stale, inlined, lowest, merged
from tlm.dies.queues import (
    NEVER,
    Pushed,
    Queues,
    earliest,
    grown,
    is_before,
    last_number,
    pop,
    push,
)
from tlm.dies.state import (
    NONE,
    PORTS,
    Came,
    Die,
    DieEvent,
    DieMeshState,
    DiePacket,
    DiePlace,
    Message,
)
from tlm.interconnect.lines import MeshPort


class DieEventKind(IntEnum):
    """What an event is."""

    HEAD = 0  # the head of a packet has come to an input
    FREE = 1  # an output or an input of a die is free
    CREDIT = 2  # an output hears that there is room for so many units more
    MESSAGE = 3  # a message may be sent


class _Stop(IntEnum):
    """Why events do not go on by themselves."""

    OTHER = 0  # the next one is not of the queues
    NO_ROOM = 1  # the queues are full
    NO_QUEUE = 2  # the event that came up last of those entered fits none


KINDS = len(DieEventKind)
_ALL = (1 << PORTS) - 1  # a bit for each port
_BITS = 7  # of a port's number, or of `NONE`


@allocating
def run(s: DieMeshState, queues: Queues) -> None:
    """Run messages to their delivery; equal times keep the order in which events came up.

    The heap is one of tuples, not of numbers (`tlm.heap`): times have 62 bits, so that no number
    holds a time and the order in which events came up.

    Args:
        s: The mesh, of whose messages nothing has been sent.
        queues: Without events.
    """
    heap = [(0, 0, 0, 0) for _ in range(0)]  # of this type, and empty
    while True:
        time, number = (heap[0][0], heap[0][1]) if heap else (NEVER, NEVER)
        stop = _go_on(s, queues, time, number)
        if stop == _Stop.NO_ROOM:
            queues = grown(queues)
        elif stop == _Stop.NO_QUEUE:
            event = s.events[s.came_up[Came.ENTERED] - 1]
            time, name, what = event[DieEvent.TIME], event[DieEvent.NAME], event[DieEvent.WHAT]
            heappush(heap, (time, last_number(queues), name, what))
        elif heap:
            now, _, name, what = heappop(heap)
            _happen(s, now, name, what)
        else:
            break


@compiled
def _go_on(s: DieMeshState, queues: Queues, time: int, number: int) -> int:
    """Run events until that of a time and number is the next, or one finds no place.

    Apart from `run`, which makes arrays: where those are made, references are counted, which took
    a quarter of all time.

    Returns:
        A `_Stop`.
    """
    while True:
        for k in range(s.came_up[Came.ENTERED], s.came_up[Came.COUNT]):
            event = s.events[address(k)]
            pushed = push(queues, event[DieEvent.TIME], event[DieEvent.NAME], event[DieEvent.WHAT])
            if pushed == Pushed.NO_ROOM:
                return _Stop.NO_ROOM
            s.came_up[Came.ENTERED] += 1
            if pushed == Pushed.NO_QUEUE:
                return _Stop.NO_QUEUE
        message = _begun(s)
        if message != NONE:
            now, what = 0, message
            name = s.messages[message, Message.SOURCE] * PORTS * KINDS + DieEventKind.MESSAGE
        else:
            queue = earliest(queues)
            if is_before(queues, queue, time, number):
                return _Stop.OTHER
            now, name, what = pop(queues, queue)
        _happen(s, now, name, what)


@merged
def _begun(s: DieMeshState) -> int:
    """The next message that waits for nothing as all begins, or `NONE`."""
    while s.came_up[Came.BEGUN] < len(s.messages):
        message = int(s.came_up[Came.BEGUN])
        s.came_up[Came.BEGUN] += 1
        if s.messages[message, Message.WAITS] == 0:
            return message
    return NONE


@merged
def _happen(s: DieMeshState, now: int, name: int, what: int) -> None:
    """An event, and the packets that go on at its die."""
    s.came_up[Came.COUNT] = s.came_up[Came.ENTERED] = 0
    kind, place = name % KINDS, address(name // KINDS)
    if kind == DieEventKind.HEAD:
        _append(s, place, what)
    elif kind == DieEventKind.CREDIT:
        s.places[place, DiePlace.ROOM] += what
    elif kind == DieEventKind.MESSAGE:
        first = s.messages[what, Message.FIRST_PACKET]
        for packet in range(first, first + s.messages[what, Message.MISSING]):
            _append(s, place, packet)
    die = place - place % PORTS
    ready, asking = _asked(s, die, now)
    while ready:
        output = die + address(lowest(ready))
        ready &= ready - 1
        source = _next_input(s, die, output, asking)
        if source != NONE:
            _send(s, now, source, output)


@inlined
def _asked(s: DieMeshState, die: int, now: int) -> tuple[int, int]:
    """Free outputs of a die that inputs ask for, a bit each, and who asks: a bit for each input.

    There is no branch for each port: whether it is free no processor can guess.
    """
    asked = asking = free = 0
    for port in range(PORTS):
        place = address(die + port)
        wanted = s.places[place, DiePlace.WANTED]
        asks = (wanted != NONE) & (s.places[place, DiePlace.INPUT_FREE] <= now)
        asked |= int(asks) << (wanted & _BITS)
        asking |= int(asks) << (wanted & _BITS) * PORTS + port
        free |= int(s.places[place, DiePlace.OUTPUT_FREE] <= now) << port
    return asked & free, asking


@inlined
def _come_up(s: DieMeshState, time: int, kind: DieEventKind, place: int, what: int) -> None:
    """Note an event."""
    event = s.events[address(s.came_up[Came.COUNT])]
    event[DieEvent.TIME], event[DieEvent.NAME] = time, place * KINDS + kind
    event[DieEvent.WHAT] = what
    s.came_up[Came.COUNT] += 1


@inlined
def _may_be_sent(s: DieMeshState, message: int) -> None:
    place = s.messages[message, Message.SOURCE] * PORTS
    _come_up(s, s.messages[message, Message.SENT], DieEventKind.MESSAGE, place, message)


@inlined
def _append(s: DieMeshState, place: int, packet: int) -> None:
    """Put a packet at the end of an input's queue."""
    if s.places[place, DiePlace.FIRST] == NONE:
        _show(s, place, packet)
    else:
        s.packets[address(s.places[place, DiePlace.LAST]), DiePacket.NEXT] = packet
    s.places[place, DiePlace.LAST] = packet


@inlined
def _show(s: DieMeshState, place: int, packet: int) -> None:
    """A packet is the first of an input's queue."""
    s.places[place, DiePlace.FIRST] = packet
    first = s.packets[address(packet)]
    s.places[place, DiePlace.WANTED] = _output(s, place // PORTS, first[DiePacket.TARGET])
    s.places[place, DiePlace.FIRST_UNITS] = first[DiePacket.UNITS]


@inlined
def _output(s: DieMeshState, die: int, target: int) -> int:
    """The port by which packets to another die, or to this one, leave a die."""
    here, to = s.dies[address(die)], s.dies[address(target)]
    row, to_row, col, to_col = here[Die.ROW], to[Die.ROW], here[Die.COL], to[Die.COL]
    # Chosen without branches, for the same reason as in `_asked`.
    past_row = MeshPort.NORTH if to_row < row else MeshPort.LOCAL
    past_row = MeshPort.SOUTH if to_row > row else past_row
    port = MeshPort.WEST if to_col < col else past_row
    return MeshPort.EAST if to_col > col else port


@inlined
def _next_input(s: DieMeshState, die: int, output: int, asking: int) -> int:
    """The input of a die whose packet leaves by an output, or NONE."""
    out, turn = output - die, s.places[output, DiePlace.TURN]
    asking = asking >> out * PORTS & _ALL
    in_turn = (asking | asking << PORTS) >> turn & _ALL
    while in_turn:
        source = die + address(turn + lowest(in_turn)) % PORTS
        in_turn &= in_turn - 1
        units = s.places[source, DiePlace.FIRST_UNITS]
        if out == MeshPort.LOCAL or s.places[output, DiePlace.ROOM] >= units:
            return source
    return NONE


@inlined
def _send(s: DieMeshState, now: int, source: int, output: int) -> None:
    """The first packet of an input leaves by an output."""
    law, packet = s.law, address(s.places[source, DiePlace.FIRST])
    from_die, to_die = source % PORTS == MeshPort.LOCAL, output % PORTS == MeshPort.LOCAL
    units = s.places[source, DiePlace.FIRST_UNITS]
    following = s.packets[packet, DiePacket.NEXT]
    s.packets[packet, DiePacket.NEXT] = NONE
    if following != NONE:
        _show(s, source, following)
    else:
        s.places[source, DiePlace.FIRST] = s.places[source, DiePlace.WANTED] = NONE
    # Where a die's port and a link differ, the packet's tail goes at the slower's pace, and the
    # faster port is free for another packet before.
    port_free = now + units * law.port_ticks_per_unit
    left = now + units * law.ticks_per_unit
    if from_die or to_die:
        left = max(left, port_free)
    s.places[output, DiePlace.TURN] = source % PORTS + 1
    s.places[source, DiePlace.INPUT_FREE] = port_free if from_die else left
    s.places[output, DiePlace.OUTPUT_FREE] = port_free if to_die else left
    s.places[output, DiePlace.UNITS] += units
    _come_up(s, left, DieEventKind.FREE, output, 0)
    if (from_die or to_die) and port_free < left:
        _come_up(s, port_free, DieEventKind.FREE, output, 0)
    if not from_die:
        _come_up(s, left + law.credit_ticks, DieEventKind.CREDIT, _across(s, source), units)
    if to_die:
        _arrive(s, s.packets[packet, DiePacket.MESSAGE], left + law.ejection_ticks)
    else:
        s.places[output, DiePlace.ROOM] -= units
        _come_up(s, now + law.hop_ticks, DieEventKind.HEAD, _across(s, output), packet)


@inlined
def _across(s: DieMeshState, place: int) -> int:
    """The input at the other end of an output's link, or the output at that of an input's."""
    return address(place + s.across[place % PORTS])


@inlined
def _arrive(s: DieMeshState, message: int, now: int) -> None:
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


forget_stale(run)
