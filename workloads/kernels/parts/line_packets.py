"""Packets on a line of tiles: of multicasts, and of blocks that tiles send themselves.

A packet of a multicast leaves a buffer by the tile's ejection port and by the next link. It lies
there until it has left by both, and holds up what comes behind it, of its own tree and of others.
Links and ports serve in the order in which they are asked. A packet at the front of a buffer is one
event: what it occupies is known when the events before it are done.

Ways are the links up and down a line; the third one is the tile's own, into its router.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import internal

Table = Annotated[NDArray[np.int64], types.int64[:, ::1]]
Times = Annotated[NDArray[np.int64], types.int64[:, :, ::1]]
_Queues = Annotated[NDArray[np.int64], types.int64[:, :, :, ::1]]

NEVER = 2**60
NOBODY = -1
UP, DOWN, HERE = range(3)
_SENT, _OWN = range(2)

# Rows of `Packets.table`. Behind some of them come those of the other ways.
READY = 0  # when the first packet in a buffer is at its front, if it has not asked for its ways
LINK = 3  # when the link up or down to a tile is free
ASKED = 5  # when the packet that goes on asks for the link up or down from a tile
ASKED_HERE = 7  # the same of the tile's own packet
HELD = 9  # packets in a buffer, but for a tile's own one
OPEN = 12  # links that the first one has not got
LEAVES = 15  # the cycle of its last flit, as far as it is known
PORT = 18  # when a tile's ejection port is free
TAKEN, TAKEN_UNTIL = 19, 20  # by a sum that is under way
TREE = 21  # whose blocks come to a tile
LOW, HIGH = 22, 23  # the first tile and the last one of that tree
_ROWS = 24

# Fields of a packet in a buffer.
ROOT = 0  # the tile that has sent it
FLITS = 1
STEP = 2  # whose block it is the end of; -1: of none
COMES = 3  # when its first flit goes to the buffer
_FIELDS = 4


class Router(NamedTuple):
    """Cycles, and flits: see `NocTiming`."""

    hop: int
    ejection: int
    packet: int
    returns: int
    places: int
    combines: bool  # partial sums: they come in packets


class Packets(NamedTuple):
    """Packets on their way.

    Attributes:
        router: What they need to know of the router.
        table: Of tiles; shape (rows named above, tiles).
        queue: Packets in buffers, the first one first; shape (3, packets, 4, tiles).
        gone: Cycles of last flits that have left, the last one first; shape (3, packets, tiles).
        come: When multicast blocks (0) and own ones (1) have come; shape (2, steps, tiles).
    """

    router: Router
    table: Table
    queue: _Queues
    gone: Times
    come: Times


def no_packets(
    router: Router, steps: int, tree: NDArray[np.int64], ends: NDArray[np.int64]
) -> Packets:
    """A line before anything is sent.

    Args:
        router: Its router.
        steps: How many blocks of each kind come to a tile.
        tree: Whose blocks come to a tile, shape (tiles,).
        ends: The first tile and the last one of a tree, shape (trees, 2).
    """
    packets, size = max(1, router.places // router.packet), len(tree)
    table = np.zeros((_ROWS, size), dtype=np.int64)
    table[[*range(READY, READY + 3), *range(ASKED, HELD)]] = NEVER
    table[TREE], table[LOW], table[HIGH] = tree, *ends[tree].T
    return Packets(
        router,
        table,
        np.zeros((3, packets, _FIELDS, size), dtype=np.int64),
        np.full((3, packets, size), -router.places - router.hop),
        np.full((2, steps, size), NEVER),
    )


@internal
def send(packets: Packets, root: int, flits: int, step: int) -> None:
    """Have a packet at the front of its root's buffer leave by the port, and ask for its links.

    ``step``: whose block it is the end of; -1: of none.
    """
    table, queue = packets.table, packets.queue
    time = table[READY + HERE, root]
    table[READY + HERE, root] = NEVER
    queue[HERE, 0, ROOT, root], queue[HERE, 0, FLITS, root] = root, flits
    queue[HERE, 0, STEP, root] = step
    table[LEAVES + HERE, root] = eject(packets, _SENT, root, time, flits, step)
    up, down = root < table[HIGH, root], root > table[LOW, root]
    table[OPEN + HERE, root] = int(up) + int(down)
    if up:
        table[ASKED_HERE + UP, root] = time + packets.router.hop
    if down:
        table[ASKED_HERE + DOWN, root] = time + packets.router.hop


@internal
def send_own(packets: Packets, tile: int, flits: int, step: int) -> int:
    """Have a tile's block for itself leave by its port; the cycle of its last flit."""
    time = packets.table[READY + HERE, tile]
    packets.table[READY + HERE, tile] = NEVER
    last = eject(packets, _OWN, tile, time, flits, step)
    leave(packets, HERE, tile, last)
    return last


@internal
def pass_on(packets: Packets, way: int, tile: int) -> int:
    """Have the first packet in the buffer behind a link ask for the port and for the next link.

    Returns:
        The root whose own packet has left its buffer by that; -1: none has.
    """
    table, queue = packets.table, packets.queue
    time, onward = table[READY + way, tile], 1 if way == UP else -1
    table[READY + way, tile] = NEVER
    root, step = queue[way, 0, ROOT, tile], queue[way, 0, STEP, tile]
    table[LEAVES + way, tile] = time
    if table[TREE, tile] == table[TREE, root]:
        flits = queue[way, 0, FLITS, tile]
        table[LEAVES + way, tile] = eject(packets, _SENT, tile, time, flits, step)
    if tile == table[HIGH if way == UP else LOW, root]:
        _leave_buffer(packets, way, tile)
        return grant(packets, way, tile - onward)
    table[OPEN + way, tile] = 1
    table[ASKED + way, tile] = time + packets.router.hop
    return grant(packets, way, tile)


@internal
def grant(packets: Packets, way: int, tile: int) -> int:
    """Give the link that goes up or down from a tile to who asks first, if there is room.

    If a packet leaves its buffer by it, there is room in that, and so on towards the root.

    Returns:
        The root whose own packet has left its buffer by that; -1: none has.
    """
    table, queue = packets.table, packets.queue
    onward = 1 if way == UP else -1
    while 0 <= tile < table.shape[1]:
        there, source, asks = tile + onward, way, ASKED + way
        if table[ASKED_HERE + way, tile] < table[asks, tile]:
            source, asks = HERE, ASKED_HERE + way
        asked = table[asks, tile]
        if asked == NEVER:
            return NOBODY
        flits = queue[source, 0, FLITS, tile]
        free = room(packets, way, there, flits)
        if free == NEVER:
            return NOBODY
        table[asks, tile] = NEVER
        time = max(asked, table[LINK + way, there], free + packets.router.returns)
        table[LINK + way, there] = time + flits
        last = table[HELD + way, there]
        for field in range(COMES):
            queue[way, last, field, there] = queue[source, 0, field, tile]
        queue[way, last, COMES, there] = time
        table[HELD + way, there] += 1
        if last == 0:
            _to_the_front(packets, way, there, packets.gone[way, 0, there])
        table[LEAVES + source, tile] = max(table[LEAVES + source, tile], time + flits - 1)
        table[OPEN + source, tile] -= 1
        if table[OPEN + source, tile]:
            return NOBODY
        if source == HERE:
            return tile
        _leave_buffer(packets, way, tile)
        tile -= onward
    return NOBODY


@internal
def ends_block(packets: Packets, way: int, tile: int) -> bool:
    """Whether with the first packet behind a link a block has come to its tile."""
    root = packets.queue[way, 0, ROOT, tile]
    here = packets.table[TREE, tile] == packets.table[TREE, root]
    return bool(here and packets.queue[way, 0, STEP, tile] != NOBODY)


@internal
def leave(packets: Packets, way: int, tile: int, time: int) -> None:
    """Have a packet leave a buffer, its last flit in a cycle."""
    gone = packets.gone
    for number in range(gone.shape[1] - 1, 0, -1):
        gone[way, number, tile] = gone[way, number - 1, tile]
    gone[way, 0, tile] = time


@internal
def _leave_buffer(packets: Packets, way: int, tile: int) -> None:
    """Have the first packet leave the buffer behind a link: the next one comes to its front."""
    table, queue = packets.table, packets.queue
    left = table[LEAVES + way, tile]
    leave(packets, way, tile, left)
    table[HELD + way, tile] -= 1
    for number in range(table[HELD + way, tile]):
        for field in range(_FIELDS):
            queue[way, number, field, tile] = queue[way, number + 1, field, tile]
    if table[HELD + way, tile]:
        _to_the_front(packets, way, tile, left)


@internal
def _to_the_front(packets: Packets, way: int, tile: int, left: int) -> None:
    """Bring a packet to the front of a buffer that the last flit before it leaves in a cycle."""
    comes = packets.queue[way, 0, COMES, tile]
    packets.table[READY + way, tile] = max(comes, left + 1 - packets.router.hop)


@internal
def room(packets: Packets, way: int, tile: int, flits: int) -> int:
    """Cycle in which the flit leaves a buffer whose place the last one of a packet takes.

    `NEVER` if it is not known yet.
    """
    router, most = packets.router, packets.gone.shape[1]
    held = packets.table[HELD + way, tile]
    if held >= most:
        return NEVER
    beside = flits + (most - 1) * router.packet
    left = packets.gone[way, most - 1 - held, tile]
    return int(left - min(router.places - beside, router.packet - 1))


@internal
def eject(packets: Packets, kind: int, tile: int, asks: int, flits: int, step: int) -> int:
    """Have a packet leave by a tile's port: before a sum that comes later, or behind it.

    A sum of the network comes in packets, which take turns with those of multicasts.

    Args:
        packets: All of them.
        kind: 0: of a multicast; 1: of the tile's own block.
        tile: Which one.
        asks: When the packet asks for the port.
        flits: Of it.
        step: Whose block it is the end of; -1: of none.

    Returns:
        The cycle of its last flit.
    """
    table, router = packets.table, packets.router
    time, until = max(asks, table[PORT, tile]), table[TAKEN_UNTIL, tile]
    if time + flits > table[TAKEN, tile] and time < until:
        if router.combines and flits <= router.packet:
            table[TAKEN_UNTIL, tile] += flits
            flits += router.packet
        else:
            time = until
    table[PORT, tile] = time + flits
    come = time + flits + router.ejection
    if step != NOBODY:
        packets.come[kind, step, tile] = come
    return int(come - 1)


@internal
def take_port(packets: Packets, tile: int, asks: int, flits: int) -> int:
    """Have a sum leave by a tile's port that asks for it later than now; when it has."""
    table = packets.table
    begin = max(asks, table[PORT, tile], table[TAKEN_UNTIL, tile])
    if begin > table[TAKEN_UNTIL, tile]:
        table[TAKEN, tile] = begin
    table[TAKEN_UNTIL, tile] = begin + flits
    return int(begin + flits)
