"""Compiled unicasts that share links, for the loosely-timed engine: each on its way over the grid.

A transfer is one packet, which takes link after link and keeps each until its tail has crossed. If
its head waits, its flits fill the buffers behind it, and its tail holds what links it has not left.
So a link is free when as many flits have gone on ahead as do not fit into the buffers between. Of
those that ask for a link or a port, the next one in turn gets it. Who is behind another packet in
a buffer waits until that one's tail has left. A tile's transfers go one after the other.

Nothing here is flit by flit: events are that a head has come, and that a tail has left.

Of earlier sends a link or a port knows since when it is busy, and until when: who is through before
passes.

A buffer's number is five times its router's, plus the port by which packets come in; that of a
link, or of the port to the tile, likewise with the one by which they leave (`MeshPort`).
"""

from enum import IntEnum
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, merged, prepare
from tlm.heap import pop, push
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
Table = Annotated[NDArray[np.int64], types.int64[:, ::1]]

PORTS = len(MeshPort)
_NOBODY = -1


class Crossing(IntEnum):
    """Columns of a transfer."""

    ROW = 0  # of its source
    COL = 1
    TO_ROW = 2
    TO_COL = 3
    FLITS = 4
    READY = 5  # when its units are there
    NEXT = 6  # the next one of its source, or none
    FREE = 7  # when it has left its source: with the first of a source when that is free before
    BEFORE = 8  # when the one before it has left its source
    COME = 9  # when it has come
    BUFFER = 10  # where its head is, or goes to
    HOPS = 11  # links that its head has crossed, or is crossing
    THERE = 12  # whether its head is there


TRANSFER_COLUMNS = len(Crossing)


class OutputLink(IntEnum):
    """Columns of a link, or of a port to a tile."""

    OWNER = 0  # whose it is
    FROM = 1  # the buffer that its flits leave
    LEAVES = 2  # when its tail has left
    WON = 3  # by which port the last one came
    SINCE = 4  # since when it is busy,
    UNTIL = 5  # and until when, as far as tails have left
    ASKED = 6  # when it was last looked at
    AWAITED = 7  # until when those wait that ask while earlier sends have it
    SETTLED = 8  # whether it is known when its tail leaves


WAY_COLUMNS = len(OutputLink)


class InputBuffer(IntEnum):
    """Columns of a buffer."""

    FIRST = 0  # where its first packet stands in its queue
    HELD = 1  # packets in it
    STILL = 2  # flits of those that have not begun to leave
    BEGINS = 3  # where the first of these stands in the queue
    FRONT = 4  # who asks from it, or has begun to leave
    WANTS = 5  # the link, or port, that is asked for
    LOAD = 6  # flits of all packets in it
    DEFERS = 7  # a link whose packet cannot leave it until there is room here
    LEAVING = 8  # the link, or port, by which the first packet leaves
    QUEUE = 9  # the first place of the queue


BUFFER_COLUMNS = len(InputBuffer)


class _Happens(IntEnum):
    """Kinds of events; at one time they come in this order."""

    HEAD = 0  # a head is there, or a source begins
    TAIL = 1  # a tail has left a link
    BEGUN = 2  # a packet has begun to leave a buffer
    AGAIN = 3  # a link is free that earlier sends had
    CHOICE = 4  # who asks for a link may get it


_KINDS = 2**3
_NUMBERS = 2**28  # more than buffers and transfers; times are below 2**31


class UnicastRouter(NamedTuple):
    """What packets need to know of the routers, in cycles and flits."""

    hop: int
    ejection: int
    depth: int  # flits of buffers at a hop
    returns: int  # from a flit's leaving a buffer to the next one's coming in
    columns_first: int  # whether packets go along the column first
    cols: int  # of the grid
    launch: int  # from a transfer's start to its first flit; two of a tile are under way


class UnicastNetwork(NamedTuple):
    """The routers, and the transfers on their way."""

    router: UnicastRouter
    transfers: Table  # shape (transfers, `TRANSFER_COLUMNS`)
    ways: Table  # shape (links and ports, `WAY_COLUMNS`)
    buffers: Table  # shape (buffers, `InputBuffer.QUEUE` and places of a queue)
    events: Numbers  # a heap


def router_of(timing: NocTiming, cols: int, launch_cycles: int) -> UnicastRouter:
    """What packets need to know of a router, and of the tiles' interfaces."""
    return UnicastRouter(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        depth=timing.input_places + timing.output_depth,
        returns=timing.return_cycles,
        columns_first=int(timing.y_first),
        cols=cols,
        launch=launch_cycles,
    )


def fresh_ways(routers: int) -> Table:
    """Links and ports that nothing has crossed."""
    ways = np.zeros((routers * PORTS, WAY_COLUMNS), dtype=np.int64)
    ways[:, [OutputLink.OWNER, OutputLink.ASKED]] = _NOBODY
    ways[:, OutputLink.WON] = PORTS - 1
    return ways


def packets_in_buffer(router: UnicastRouter, transfers: int, flits: int) -> int:
    """Most packets in a buffer, of so many transfers that have so many flits or more.

    Beside those that are in it as a whole some may leave it, come in, or have left it while a
    credit returns.
    """
    return min(router.depth // flits + 1, transfers) + 3 + router.returns


def network_of(router: UnicastRouter, transfers: Table, ways: Table) -> UnicastNetwork:
    """A network with some transfers to carry, whose ``NEXT`` is filled in here."""
    node = transfers[:, Crossing.ROW] * router.cols + transfers[:, Crossing.COL]
    order = np.argsort(node, kind="stable")
    transfers[:, Crossing.NEXT] = _NOBODY
    same = node[order[1:]] == node[order[:-1]]
    transfers[order[:-1][same], Crossing.NEXT] = order[1:][same]
    places = packets_in_buffer(router, len(transfers), int(transfers[:, Crossing.FLITS].min()))
    buffers = np.zeros((len(ways), InputBuffer.QUEUE + places), dtype=np.int64)
    nobody = InputBuffer.FRONT, InputBuffer.WANTS, InputBuffer.DEFERS, InputBuffer.LEAVING
    buffers[:, nobody] = _NOBODY
    most_events = len(transfers) + len(ways) * (4 + places)
    return UnicastNetwork(
        router, transfers, ways, buffers, np.empty(1 + most_events, dtype=np.int64)
    )


@compiled
def carry(network: UnicastNetwork) -> None:
    """Bring all transfers to their ends."""
    transfers, events = network.transfers, network.events
    events[0] = 0
    for k in range(len(transfers)):
        transfers[k, Crossing.THERE] = 1
    for k in range(len(transfers)):
        following = transfers[k, Crossing.NEXT]
        if following >= 0:
            transfers[following, Crossing.THERE] = 0
    for k in range(len(transfers)):
        if transfers[k, Crossing.THERE]:
            _begin(network, k, transfers[k, Crossing.FREE], 0)
    while events[0] > 0:
        key = pop(events)
        number, rest = key % _NUMBERS, key // _NUMBERS
        kind, time = rest % _KINDS, rest // _KINDS
        if kind == _Happens.HEAD:
            buffer = transfers[number, Crossing.BUFFER]
            if transfers[number, Crossing.HOPS] == 0:
                _put(network, buffer, number)
            transfers[number, Crossing.THERE] = 1
            _ask(network, buffer, time)
        elif kind == _Happens.TAIL:
            way = network.ways[number]
            way[OutputLink.OWNER] = _NOBODY
            way[OutputLink.UNTIL] = max(way[OutputLink.UNTIL], time)
            _leave(network, way[OutputLink.FROM], time)
            _look(network, number, time)
        elif kind == _Happens.BEGUN:
            buffer = network.buffers[number]
            who = buffer[InputBuffer.QUEUE + buffer[InputBuffer.BEGINS]]
            buffer[InputBuffer.BEGINS] = (buffer[InputBuffer.BEGINS] + 1) % _places(network)
            buffer[InputBuffer.STILL] -= transfers[who, Crossing.FLITS]
            _look(network, _into(network, number), time)
        elif kind == _Happens.AGAIN:
            _look(network, number, time)
        else:
            _choose(network, number, time)


@merged
def _places(network: UnicastNetwork) -> int:
    """Places of a buffer's queue."""
    return int(network.buffers.shape[1]) - InputBuffer.QUEUE


@merged
def _begin(network: UnicastNetwork, k: int, free: int, time: int) -> None:
    """Have a transfer begin when its source is free and its units are there; no event is over."""
    transfer = network.transfers[k]
    start = max(transfer[Crossing.READY], free)
    node = transfer[Crossing.ROW] * network.router.cols + transfer[Crossing.COL]
    transfer[Crossing.BUFFER], transfer[Crossing.HOPS] = node * PORTS + MeshPort.LOCAL, 0
    transfer[Crossing.THERE] = 0
    transfer[Crossing.FREE] = start + transfer[Crossing.FLITS]
    _enter(network, max(start, time), _Happens.HEAD, k)


@merged
def _put(network: UnicastNetwork, number: int, k: int) -> None:
    """Put a packet at the end of a buffer's queue."""
    buffer = network.buffers[number]
    last = (buffer[InputBuffer.FIRST] + buffer[InputBuffer.HELD]) % _places(network)
    buffer[InputBuffer.QUEUE + last] = k
    buffer[InputBuffer.HELD] += 1
    buffer[InputBuffer.STILL] += network.transfers[k, Crossing.FLITS]
    buffer[InputBuffer.LOAD] += network.transfers[k, Crossing.FLITS]


@merged
def _ask(network: UnicastNetwork, number: int, time: int) -> None:
    """Let the first packet of a buffer, if its head is there, ask for its link or the port."""
    buffer = network.buffers[number]
    if buffer[InputBuffer.HELD] == 0 or buffer[InputBuffer.FRONT] >= 0:
        return
    who = buffer[InputBuffer.QUEUE + buffer[InputBuffer.FIRST]]
    transfer = network.transfers[who]
    if transfer[Crossing.BUFFER] != number or transfer[Crossing.THERE] == 0:
        return
    buffer[InputBuffer.FRONT] = who
    buffer[InputBuffer.WANTS] = _way(network, who, transfer[Crossing.HOPS])
    _look(network, buffer[InputBuffer.WANTS], time)


@merged
def _leave(network: UnicastNetwork, number: int, time: int) -> None:
    """Take the first packet out of a buffer."""
    buffer = network.buffers[number]
    who = buffer[InputBuffer.QUEUE + buffer[InputBuffer.FIRST]]
    buffer[InputBuffer.LOAD] -= network.transfers[who, Crossing.FLITS]
    buffer[InputBuffer.FIRST] = (buffer[InputBuffer.FIRST] + 1) % _places(network)
    buffer[InputBuffer.FRONT] = buffer[InputBuffer.LEAVING] = _NOBODY
    buffer[InputBuffer.HELD] -= 1
    _ask(network, number, time)


@merged
def _look(network: UnicastNetwork, number: int, time: int) -> None:
    """Have it chosen who gets a link, when all that happens now has happened."""
    way = network.ways[number]
    if way[OutputLink.ASKED] != time:
        way[OutputLink.ASKED] = time
        _enter(network, time, _Happens.CHOICE, number)


@merged
def _choose(network: UnicastNetwork, number: int, time: int) -> None:
    """Give a link, if it is free, to the next one who asks for it and has room behind it."""
    way, (node, out) = network.ways[number], divmod(number, PORTS)
    way[OutputLink.ASKED] = _NOBODY
    if way[OutputLink.OWNER] >= 0:
        return
    behind = _behind(network, node, out)
    still = 0 if out == MeshPort.LOCAL else network.buffers[behind, InputBuffer.STILL]
    for turn in range(PORTS):
        side = (way[OutputLink.WON] + 1 + turn) % PORTS
        buffer = network.buffers[node * PORTS + side]
        if buffer[InputBuffer.WANTS] != number:
            continue
        who = buffer[InputBuffer.FRONT]
        flits = network.transfers[who, Crossing.FLITS]
        if still >= network.router.depth:
            continue
        if way[OutputLink.UNTIL] > time and time + flits > way[OutputLink.SINCE]:
            if way[OutputLink.AWAITED] < way[OutputLink.UNTIL]:
                way[OutputLink.AWAITED] = way[OutputLink.UNTIL]
                _enter(network, way[OutputLink.UNTIL], _Happens.AGAIN, number)
            continue
        way[OutputLink.WON] = side
        _give(network, number, who, time)
        return


@merged
def _give(network: UnicastNetwork, number: int, who: int, time: int) -> None:
    """Give a link, or the port, to a packet."""
    way, (node, out) = network.ways[number], divmod(number, PORTS)
    transfer, router = network.transfers[who], network.router
    here, hops, flits = transfer[Crossing.BUFFER], transfer[Crossing.HOPS], transfer[Crossing.FLITS]
    reach = (flits - 1) // router.depth  # links behind its head that it is spread over
    network.buffers[here, InputBuffer.WANTS] = _NOBODY
    network.buffers[here, InputBuffer.LEAVING] = number
    way[OutputLink.SETTLED] = 0
    _enter(network, time + router.returns, _Happens.BEGUN, here)
    way[OutputLink.OWNER], way[OutputLink.FROM], way[OutputLink.LEAVES] = who, here, time + flits
    if time > way[OutputLink.UNTIL]:
        way[OutputLink.SINCE] = time
    if out == MeshPort.LOCAL:
        transfer[Crossing.COME] = time + router.ejection + flits
        _clear(network, number, time + flits, time)
        _advance(network, who, reach, time + router.ejection)
        for j in range(1, min(reach, hops) + 1):
            left = _way(network, who, hops - j)
            _clear(network, left, network.ways[left, OutputLink.LEAVES], time)
    else:
        behind = _behind(network, node, out)
        load = network.buffers[behind, InputBuffer.LOAD]
        _put(network, behind, who)
        _advance(network, who, reach, time + router.hop)
        if hops >= reach:
            left = _way(network, who, hops - reach)
            fits = load + flits - reach * router.depth <= router.depth
            if fits or network.buffers[behind, InputBuffer.DEFERS] >= 0:
                _clear(network, left, network.ways[left, OutputLink.LEAVES], time)
            else:
                network.buffers[behind, InputBuffer.DEFERS] = left
                ahead = network.buffers[behind, InputBuffer.LEAVING]
                if ahead >= 0 and network.ways[ahead, OutputLink.SETTLED]:
                    _clear_behind(network, behind, network.ways[ahead, OutputLink.LEAVES], time)
        transfer[Crossing.BUFFER], transfer[Crossing.HOPS] = behind, hops + 1
        transfer[Crossing.THERE] = 0
        _enter(network, time + router.hop, _Happens.HEAD, who)
    known = hops == reach or (out == MeshPort.LOCAL and hops < reach)
    if known and transfer[Crossing.NEXT] >= 0:
        free = transfer[Crossing.FREE]
        network.transfers[transfer[Crossing.NEXT], Crossing.BEFORE] = free
        launched = transfer[Crossing.BEFORE] + router.launch
        _begin(network, transfer[Crossing.NEXT], max(free, launched), time)


@merged
def _clear(network: UnicastNetwork, number: int, leaves: int, time: int) -> None:
    """Have a tail leave a link, or a port, and tails behind it that have room then."""
    leaves = _settle(network, number, leaves, time)
    _clear_behind(network, network.ways[number, OutputLink.FROM], leaves, time)


@merged
def _settle(network: UnicastNetwork, number: int, leaves: int, time: int) -> int:
    """Have a tail leave a link, or a port, not before now; when that is."""
    leaves = max(leaves, time)
    way = network.ways[number]
    way[OutputLink.LEAVES], way[OutputLink.SETTLED] = leaves, 1
    _enter(network, leaves, _Happens.TAIL, number)
    return leaves


@merged
def _clear_behind(network: UnicastNetwork, from_buffer: int, leaves: int, time: int) -> None:
    """Have tails leave links that have room when the first packet of a buffer has left it.

    What cannot leave its links before there is room leaves the last of them when of the packet
    ahead no more is in the buffer than fits beside it.
    """
    depth = network.router.depth
    while True:
        buffer = network.buffers[from_buffer]
        number = buffer[InputBuffer.DEFERS]
        if number < 0:
            return
        first = buffer[InputBuffer.QUEUE + buffer[InputBuffer.FIRST]]
        flits = network.transfers[network.ways[number, OutputLink.OWNER], Crossing.FLITS]
        over = flits - (flits - 1) // depth * depth
        others = buffer[InputBuffer.LOAD] - network.transfers[first, Crossing.FLITS] - flits
        if others + over > depth:
            return
        buffer[InputBuffer.DEFERS] = _NOBODY
        leaves = max(network.ways[number, OutputLink.LEAVES], leaves - (depth - over - others))
        leaves = _settle(network, number, leaves, time)
        from_buffer = network.ways[number, OutputLink.FROM]


@merged
def _advance(network: UnicastNetwork, who: int, reach: int, time: int) -> None:
    """Hold the links, and the source, over which a packet's flits are spread."""
    transfer = network.transfers[who]
    room = network.router.depth - network.router.returns
    for j in range(1, reach + 2):
        leaves = time + transfer[Crossing.FLITS] - j * room
        if j > transfer[Crossing.HOPS]:
            transfer[Crossing.FREE] = max(transfer[Crossing.FREE], leaves)
            return
        link = network.ways[_way(network, who, transfer[Crossing.HOPS] - j)]
        # Links are counted from a flit's leaving the buffer before them, not from its coming.
        link[OutputLink.LEAVES] = max(link[OutputLink.LEAVES], leaves - network.router.hop)


@merged
def _way(network: UnicastNetwork, k: int, hops: int) -> int:
    """The link that a transfer takes behind so many others, or the port at its end."""
    transfer, cols = network.transfers[k], network.router.cols
    row, col = transfer[Crossing.ROW], transfer[Crossing.COL]
    down, right = transfer[Crossing.TO_ROW] - row, transfer[Crossing.TO_COL] - col
    if network.router.columns_first:
        vertical = min(hops, abs(down))
        horizontal = hops - vertical
        along_row = hops >= abs(down)
    else:
        horizontal = min(hops, abs(right))
        vertical = hops - horizontal
        along_row = hops < abs(right)
    node = (row + (vertical if down > 0 else -vertical)) * cols
    node += col + (horizontal if right > 0 else -horizontal)
    if hops == abs(down) + abs(right):
        return int(node * PORTS + MeshPort.LOCAL)
    if along_row:
        return int(node * PORTS + (MeshPort.EAST if right > 0 else MeshPort.WEST))
    return int(node * PORTS + (MeshPort.SOUTH if down > 0 else MeshPort.NORTH))


@merged
def _behind(network: UnicastNetwork, node: int, out: int) -> int:
    """The buffer behind a link."""
    cols = network.router.cols
    if out == MeshPort.EAST:
        return (node + 1) * PORTS + MeshPort.WEST
    if out == MeshPort.WEST:
        return (node - 1) * PORTS + MeshPort.EAST
    if out == MeshPort.SOUTH:
        return (node + cols) * PORTS + MeshPort.NORTH
    if out == MeshPort.NORTH:
        return (node - cols) * PORTS + MeshPort.SOUTH
    return node * PORTS + MeshPort.LOCAL


@merged
def _into(network: UnicastNetwork, buffer: int) -> int:
    """The link into a buffer; of a tile's own, into which none leads, the port to the tile."""
    node, side = divmod(buffer, PORTS)
    # The ways between two routers are each other's mirror images.
    return _behind(network, node, side)


@merged
def _enter(network: UnicastNetwork, time: int, kind: int, number: int) -> None:
    """Enter an event in the heap; of one time heads come before tails."""
    push(network.events, (time * _KINDS + kind) * _NUMBERS + number)


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(carry)
