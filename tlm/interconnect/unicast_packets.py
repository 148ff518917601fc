"""Compiled unicasts that share links, for the loosely-timed engine: each on its way over the grid.

A transfer is one packet, which takes link after link and keeps each until its tail has crossed. If
its head waits, its flits fill the buffers behind it, and its tail holds what links it has not left.
So a link is free when as many flits have gone on ahead as do not fit into the buffers between. Of
those that ask for a link or a port, the next one in turn gets it. Who is behind another packet in
a buffer waits until that one's tail has left. A tile's transfers go one after the other.

Nothing here is flit by flit: events are that a head has come, and that a tail has left. Work takes
no event: when it ends is known when the last of what it waits for is.

Of earlier sends a link or a port knows since when it is busy, and until when: who is through before
passes.
"""

from enum import IntEnum
from functools import cache

from tlm.compiled import compiled, merged, prepare
from tlm.heap import pop, push
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.unicast_network import (
    NOBODY,
    PORTS,
    Crossing,
    InputBuffer,
    OutputLink,
    UnicastNetwork,
)


class _Happens(IntEnum):
    """Kinds of events; at one time they come in this order."""

    HEAD = 0  # a head is there, or a source begins
    TAIL = 1  # a tail has left a link
    BEGUN = 2  # a packet has begun to leave a buffer
    AGAIN = 3  # a link is free that earlier sends had
    CHOICE = 4  # who asks for a link may get it


_KINDS = 2**3
_NUMBERS = 2**28  # more than buffers and transfers; times are below 2**31


@compiled
def carry(network: UnicastNetwork) -> None:
    """Bring all transfers to their ends."""
    transfers, events = network.transfers, network.events
    events[0] = network.ready[0] = 0
    for k in range(len(transfers)):
        if transfers[k, Crossing.WAITS] == 0:
            _make_ready(network, k)
    _begin_ready(network, 0)
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
            way[OutputLink.OWNER] = NOBODY
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
def _make_ready(network: UnicastNetwork, k: int) -> None:
    """Note that a transfer, or work, waits for nobody any more."""
    network.ready[0] += 1
    network.ready[network.ready[0]] = k


@merged
def _end_wait(network: UnicastNetwork, k: int) -> None:
    """Have a transfer, or work, wait for one less."""
    network.transfers[k, Crossing.WAITS] -= 1
    if network.transfers[k, Crossing.WAITS] == 0:
        _make_ready(network, k)


@merged
def _give_unit(network: UnicastNetwork, unit: int, at: int) -> None:
    """Tell those who wait for a unit when it is there."""
    waits = network.waits
    for n in range(waits.first[unit], waits.first[unit + 1]):
        transfer = network.transfers[waits.who[n]]
        transfer[Crossing.READY] = max(transfer[Crossing.READY], at + waits.cycles[n])
        _end_wait(network, waits.who[n])


@compiled
def _begin_ready(network: UnicastNetwork, time: int) -> None:
    """Have those begin that wait for nobody any more; work ends, and others wait no more for it."""
    while network.ready[0] > 0:
        k = network.ready[network.ready[0]]
        network.ready[0] -= 1
        transfer = network.transfers[k]
        start = max(transfer[Crossing.READY], transfer[Crossing.FREE])
        transfer[Crossing.FREE] = start + transfer[Crossing.FLITS]
        if transfer[Crossing.WORKER] == 0:
            node = transfer[Crossing.ROW] * network.router.cols + transfer[Crossing.COL]
            transfer[Crossing.BUFFER], transfer[Crossing.HOPS] = node * PORTS + MeshPort.LOCAL, 0
            transfer[Crossing.THERE] = 0
            _enter(network, max(start, time), _Happens.HEAD, k)
            continue
        following = transfer[Crossing.NEXT]
        if following >= 0:
            network.transfers[following, Crossing.FREE] = transfer[Crossing.FREE]
            _end_wait(network, following)
        _give_unit(network, 2 * k, transfer[Crossing.FREE])


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
    buffer[InputBuffer.FRONT] = buffer[InputBuffer.LEAVING] = NOBODY
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
    """Give a link, if it is free, to the next one who asks for it, when there is room behind it."""
    way, (node, out) = network.ways[number], divmod(number, PORTS)
    way[OutputLink.ASKED] = NOBODY
    if way[OutputLink.OWNER] >= 0:
        return
    behind, router = _behind(network, node, out), network.router
    full = out != MeshPort.LOCAL and network.buffers[behind, InputBuffer.STILL] >= router.depth
    if full and router.late_lock:
        return
    for turn in range(PORTS):
        side = (way[OutputLink.WON] + 1 + turn) % PORTS
        buffer = network.buffers[node * PORTS + side]
        if buffer[InputBuffer.WANTS] != number or way[OutputLink.CHOSEN] not in (NOBODY, side):
            continue
        who = buffer[InputBuffer.FRONT]
        flits = network.transfers[who, Crossing.FLITS]
        if way[OutputLink.UNTIL] > time and time + flits > way[OutputLink.SINCE]:
            if way[OutputLink.AWAITED] < way[OutputLink.UNTIL]:
                way[OutputLink.AWAITED] = way[OutputLink.UNTIL]
                _enter(network, way[OutputLink.UNTIL], _Happens.AGAIN, number)
            continue
        way[OutputLink.CHOSEN] = side if full else NOBODY
        if not full:
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
    network.buffers[here, InputBuffer.WANTS] = NOBODY
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
                _clear_stuck(network, behind, time)
        transfer[Crossing.BUFFER], transfer[Crossing.HOPS] = behind, hops + 1
        transfer[Crossing.THERE] = 0
        for j in range(1, min(reach, hops) + 1):
            _clear_stuck(network, network.ways[_way(network, who, hops - j), OutputLink.FROM], time)
        _enter(network, time + router.hop, _Happens.HEAD, who)
    if hops == 0:
        transfer[Crossing.FREE] = max(transfer[Crossing.FREE], transfer[Crossing.ROOM])
    known = hops == reach or (out == MeshPort.LOCAL and hops < reach)
    if known:
        free, following = transfer[Crossing.FREE], transfer[Crossing.NEXT]
        if following >= 0:
            launched = transfer[Crossing.BEFORE] + router.launch
            network.transfers[following, Crossing.BEFORE] = free
            network.transfers[following, Crossing.FREE] = max(free, launched)
            _end_wait(network, following)
        _give_unit(network, 2 * who, free)
    if out == MeshPort.LOCAL:
        _give_unit(network, 2 * who + 1, transfer[Crossing.COME])
    _begin_ready(network, time)


@merged
def _clear(network: UnicastNetwork, number: int, leaves: int, time: int) -> None:
    """Have a tail leave a link, or a port, and tails behind it that have room then."""
    leaves = _settle(network, number, leaves, time)
    _clear_behind(network, network.ways[number, OutputLink.FROM], leaves, 0, time)


@merged
def _clear_stuck(network: UnicastNetwork, from_buffer: int, time: int) -> None:
    """Have tails leave links that have room behind as much of a packet as has not gone on.

    What is ahead of a buffer holds some of the packet that leaves it, also if its head waits.
    """
    buffer, cols = network.buffers[from_buffer], network.router.cols
    ahead = buffer[InputBuffer.LEAVING]
    if buffer[InputBuffer.DEFERS] < 0 or ahead < 0:
        return
    way, stays = network.ways[ahead], 0
    if not way[OutputLink.SETTLED]:
        who = way[OutputLink.OWNER]
        transfer = network.transfers[who]
        deferred = network.buffers[transfer[Crossing.BUFFER], InputBuffer.DEFERS]
        if deferred >= 0 and network.ways[deferred, OutputLink.OWNER] == who:
            return
        row, col = divmod(from_buffer // PORTS, cols)
        crossed = abs(row - transfer[Crossing.ROW]) + abs(col - transfer[Crossing.COL])
        gone = network.router.depth * (transfer[Crossing.HOPS] - crossed)
        stays = max(0, transfer[Crossing.FLITS] - gone)
    _clear_behind(network, from_buffer, way[OutputLink.LEAVES], stays, time)


@merged
def _settle(network: UnicastNetwork, number: int, leaves: int, time: int) -> int:
    """Have a tail leave a link, or a port, not before now; when that is."""
    leaves = max(leaves, time)
    way, router = network.ways[number], network.router
    way[OutputLink.LEAVES], way[OutputLink.SETTLED] = leaves, 1
    following = network.transfers[way[OutputLink.OWNER], Crossing.NEXT]
    if way[OutputLink.FROM] % PORTS == MeshPort.LOCAL and following >= 0:
        flits = network.transfers[following, Crossing.FLITS]
        if flits + network.transfers[way[OutputLink.OWNER], Crossing.FLITS] > router.depth:
            room = leaves + router.hop + router.returns + flits - router.depth
            network.transfers[following, Crossing.ROOM] = room
    _enter(network, leaves, _Happens.TAIL, number)
    return leaves


@merged
def _clear_behind(
    network: UnicastNetwork, from_buffer: int, leaves: int, stays: int, time: int
) -> None:
    """Have tails leave links that have room when the first packet of a buffer has left it.

    ``stays``: flits of that one that do not leave it yet.

    What cannot leave its links before there is room leaves the last of them when of the packet
    ahead no more is in the buffer than fits beside it, and the room has come back to where it is.
    """
    depth = network.router.depth
    while True:
        buffer = network.buffers[from_buffer]
        number = buffer[InputBuffer.DEFERS]
        if number < 0:
            return
        first = buffer[InputBuffer.QUEUE + buffer[InputBuffer.FIRST]]
        flits = network.transfers[network.ways[number, OutputLink.OWNER], Crossing.FLITS]
        reach = (flits - 1) // depth
        over = flits - reach * depth
        others = buffer[InputBuffer.LOAD] - network.transfers[first, Crossing.FLITS] - flits
        room = depth - over - others
        if room < stays:
            return
        buffer[InputBuffer.DEFERS] = NOBODY
        leaves += (reach + 1) * network.router.returns - room
        leaves = max(network.ways[number, OutputLink.LEAVES], leaves)
        leaves = _settle(network, number, leaves, time)
        from_buffer, stays = network.ways[number, OutputLink.FROM], 0


@merged
def _advance(network: UnicastNetwork, who: int, reach: int, time: int) -> None:
    """Hold the links, and the source, over which a packet's flits are spread."""
    transfer = network.transfers[who]
    room = network.router.depth - network.router.returns
    for j in range(1, reach + 1):
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
