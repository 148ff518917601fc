"""Compiled packets of multicasts that meet, for the loosely-timed engine: link by link, in time.

A multicast's packets go one after the other. Each lies in the buffer of every router on its way
until all its branches have left it. Behind it in the buffer lie as many others as find room. The
branch to the tile leaves when it is given the ejection port. The one to the next router leaves when
it is given the link, and the buffer behind has room for all of the packet. Links and ports serve in
order of asking. So a port that two multicasts share
holds up both trees, packet by packet, and a wait goes back to the roots buffer by buffer.

A block of off-chip memory is a tree with one destination. So is the request for it, or the block
that is stored: when all of it has come to the router of its channel, the channel's answer is next
there. Their packets need no room for all of themselves: the first flit's is enough.

Nothing here is flit by flit. A packet at the front of a buffer is one event, whose time is known
when the events before it are done. What it occupies is a maximum and a sum.

A buffer's number is five times its router's, plus the direction in which packets come into it
(`MeshPort`). ``nodes`` has a record for each router, its columns named below.
"""

from enum import IntEnum
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, merged, prepare
from tlm.engines.lt.port import through_port
from tlm.engines.lt.state import FROM_THE_START
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
TreeTable = Annotated[NDArray[np.int64], types.int64[:, ::1]]
NodeTable = Annotated[NDArray[np.int32], types.int32[:, ::1]]
QueueTable = Annotated[NDArray[np.int32], types.int32[:, :, ::1]]

BUFFERS = len(MeshPort)


class Block(IntEnum):
    """Of each direction of a router: the link that goes there, and the buffer of what comes so."""

    LINK = 0  # when the link is free
    ASKED = 1  # since when what passes asks for it
    ASKED_LOCALLY = 2  # the same of what comes from the tile
    LEFT = 3  # cycle in which the first packet's last flit leaves the buffer, as far as it is known
    OPEN = 4  # branches of the packet that have no link yet
    TREE = 5  # whose packet it is
    FLITS = 6  # how long it is
    AT = 7  # when it is at the front of the buffer
    AFTER = 8  # the buffer of the next event, plus 1
    HELD = 9  # packets in the buffer, or coming, that have not got all their links
    NEWEST = 10  # where the last one stands in the buffer's queue


_BLOCK = len(Block)


class EjectionPort(IntEnum):
    """Of a router, behind the blocks of four directions and of the tile: its ejection port."""

    FREE = BUFFERS * _BLOCK  # when it is free
    BUSY = FREE + 1  # since when it has been busy without a pause before that


class Place(IntEnum):
    """Of each packet in a buffer's queue, and of those that have left it."""

    TREE = 0  # whose it is
    FLITS = 1  # how long it is
    COMES = 2  # when its first flit is sent to the buffer
    LEFT = 3  # cycle in which its last flit leaves; known of those that have all their links


PLACES = 8
"""Of a buffer's queue: the packets in it, which are no more than that, and the last that left."""
PLACE_COLUMNS = len(Place)
QUEUE_NUMBERS = BUFFERS * PLACES * PLACE_COLUMNS
"""Of a router."""
NODE_COLUMNS = EjectionPort.BUSY + 1
PORT_COLUMNS = slice(EjectionPort.FREE, NODE_COLUMNS)
_NOBODY = np.int32(2**31 - 1)


class Wheel(IntEnum):
    """The wheel of events.

    A wheel and no heap (`tlm.heap`): most events are few cycles ahead, and those of a cycle are
    done in the order in which they were entered. A buffer has at most one, which bears its number.
    """

    CLOCK = 0  # the last cycle done
    WAITING = 1  # how many events wait
    EVENTS = 2  # of each cycle of a turn its first and last event, as their buffers plus 1


_TURN = 256
WHEEL_SIZE = Wheel.EVENTS + 2 * _TURN


class Tree(IntEnum):
    """Columns of a tree."""

    BASE = 0  # router of place 0 on its line
    STEP = 1  # from place to place
    ROOT = 2  # place of the root
    FIRST = 3  # place of the first destination
    LAST = 4
    STRIDE = 5
    FLITS = 6
    READY = 7  # when its tokens are there; of an answer how long after the end of its request
    PACKET = 8  # flits of its longest packet
    OPERATION = 9  # row of ``arrivals`` and ``owed``
    NEXT = 10  # the next tree of the same root; `NONE`, `OVER`
    START = 11
    SENT = 12  # flits
    END = 13  # when its root is free for the next one
    ROOM = 14  # most flits for which its packets need room before they go on
    ANSWER = 15  # the tree that answers it, or `NONE`
    COME = 16  # flits of one that is answered which have come


TREE_COLUMNS = len(Tree)
NONE, OVER = -1, -2
"""No tree is next: this one is under way, or has left."""


class Router(NamedTuple):
    """What packets need to know of the router, in cycles but for the depth."""

    hop: int
    ejection: int
    depth: int  # flits of a buffer
    gap: int  # from a flit's leaving the buffer behind to a packet that needs its place
    returns: int  # from a flit's leaving a buffer to the next one's coming in
    following: int  # from a last flit's leaving the root's buffer to the next one's being in front


class Network(NamedTuple):
    """The routers, and the packets on their way."""

    router: Router
    nodes: NodeTable  # shape (routers, `NODE_COLUMNS`)
    queues: QueueTable  # shape (buffers, `PLACES`, `PLACE_COLUMNS`)
    trees: TreeTable  # shape (trees, `TREE_COLUMNS`)
    wheel: Numbers  # shape (`WHEEL_SIZE`,), at first zeros
    arrivals: NodeTable  # shape (operations, routers): when what came to a tile was written
    owed: Numbers  # shape (operations,): how many packets have still to come to a tile
    answers: Numbers  # shape (columns,): a channel's last answer, or `NONE`
    cols: int  # of the grid


def router_of(timing: NocTiming) -> Router:
    """What packets need to know of a router."""
    return Router(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        depth=timing.input_places,
        gap=timing.return_cycles,
        returns=timing.return_cycles,
        following=max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.input_places),
    )


def fresh_nodes(count: int) -> NodeTable:
    """Records of routers in which nothing has been."""
    nodes = np.zeros((count, NODE_COLUMNS), dtype=np.int32)
    blocks = nodes[:, : EjectionPort.FREE].reshape(count, BUFFERS, _BLOCK)
    blocks[:, :, [Block.LINK, Block.LEFT]] = FROM_THE_START
    blocks[:, :, [Block.ASKED, Block.ASKED_LOCALLY]] = _NOBODY
    return nodes


def fresh_queues(count: int) -> QueueTable:
    """Queues of the buffers of routers in which nothing has been."""
    queues = np.zeros((count * BUFFERS, PLACES, PLACE_COLUMNS), dtype=np.int32)
    queues[:, :, Place.LEFT] = FROM_THE_START
    return queues


@compiled
def begin(network: Network, k: int, free: int) -> None:
    """Start a tree whose root is free since some time."""
    tree = network.trees[k]
    tree[Tree.START], tree[Tree.SENT] = max(tree[Tree.READY], free), 0
    if network.wheel[Wheel.WAITING] == 0 or tree[Tree.START] <= network.wheel[Wheel.CLOCK]:
        network.wheel[Wheel.CLOCK] = tree[Tree.START] - 1
    _offer(network, k)


@compiled
def run(network: Network, operation: int) -> None:
    """Send packets of the trees begun until those of one operation have all come."""
    quiet = 0
    while network.owed[operation]:
        if quiet == _TURN:
            network.wheel[Wheel.CLOCK] = _first_event(network) - 1
        network.wheel[Wheel.CLOCK] += 1
        place = Wheel.EVENTS + 2 * (network.wheel[Wheel.CLOCK] & (_TURN - 1))
        event = network.wheel[place]
        network.wheel[place] = 0
        quiet += 1
        while event:
            buffer = event - 1
            number, side = divmod(buffer, BUFFERS)
            block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
            event = block[Block.AFTER]
            network.wheel[Wheel.WAITING] -= 1
            if block[Block.AT] > network.wheel[Wheel.CLOCK]:  # some turns ahead
                _enter(network, number, side, block[Block.AT])
            else:
                quiet = 0
                _at_front(network, number, side)


@compiled
def _first_event(network: Network) -> int:
    """The cycle of the first event."""
    first = int(_NOBODY)
    for turn in range(_TURN):
        event = network.wheel[Wheel.EVENTS + 2 * turn]
        while event:
            number, side = divmod(event - 1, BUFFERS)
            first = min(first, network.nodes[number, side * _BLOCK + Block.AT])
            event = network.nodes[number, side * _BLOCK + Block.AFTER]
    return first


@merged
def _enter(network: Network, number: int, side: int, time: int) -> None:
    """Have a packet at the front of a buffer at some time."""
    network.nodes[number, side * _BLOCK + Block.AT] = time
    network.nodes[number, side * _BLOCK + Block.AFTER] = 0
    place = Wheel.EVENTS + 2 * (time & (_TURN - 1))
    event = number * BUFFERS + side + 1
    if network.wheel[place] == 0:
        network.wheel[place] = event
    else:
        before, other = divmod(network.wheel[place + 1] - 1, BUFFERS)
        network.nodes[before, other * _BLOCK + Block.AFTER] = event
    network.wheel[place + 1] = event
    network.wheel[Wheel.WAITING] += 1


@compiled
def _offer(network: Network, k: int) -> None:
    """Bring the next packet of a tree to the front of its root's buffer."""
    tree = network.trees[k]
    number = tree[Tree.BASE] + tree[Tree.ROOT] * tree[Tree.STEP]
    own = network.nodes[number, MeshPort.LOCAL * _BLOCK : (MeshPort.LOCAL + 1) * _BLOCK]
    left = own[Block.LEFT]
    flits = min(tree[Tree.PACKET], tree[Tree.FLITS] - tree[Tree.SENT])
    tree[Tree.SENT] += flits
    if tree[Tree.SENT] == tree[Tree.FLITS]:
        # The tail goes in where the flit left that was before it by as many as the buffer holds.
        tree[Tree.END] = max(
            tree[Tree.START] + tree[Tree.FLITS],
            _room(network, number, MeshPort.LOCAL, flits) + network.router.returns + 1,
        )
    _put(network, number, MeshPort.LOCAL, k, flits, tree[Tree.START])
    _to_front(network, number, MeshPort.LOCAL, left + network.router.following)


@merged
def _room(network: Network, number: int, side: int, flits: int) -> int:
    """Cycle in which the flit leaves a buffer whose place the last one of a packet takes.

    `_NOBODY` if it is not known yet.
    """
    queue = network.queues[number * BUFFERS + side]
    block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    back, beside = 0, flits
    place = queue[block[Block.NEWEST]]
    while beside + place[Place.FLITS] <= network.router.depth and back < PLACES - 1:
        back += 1
        beside += place[Place.FLITS]
        place = queue[(block[Block.NEWEST] - back) % PLACES]
    if back < block[Block.HELD]:
        return int(_NOBODY)
    # Of more packets than the queue has places for, the first has to leave.
    return int(place[Place.LEFT] - min(network.router.depth - beside, place[Place.FLITS] - 1))


@merged
def _put(network: Network, number: int, side: int, k: int, flits: int, comes: int) -> None:
    """Put a packet at the end of a buffer's queue."""
    block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    queue = network.queues[number * BUFFERS + side]
    block[Block.NEWEST] = (block[Block.NEWEST] + 1) % PLACES
    block[Block.HELD] += 1
    place = queue[block[Block.NEWEST]]
    place[Place.TREE], place[Place.FLITS], place[Place.COMES] = k, flits, comes


@merged
def _to_front(network: Network, number: int, side: int, free: int) -> None:
    """Bring the first packet of a buffer's queue to its front, which is free since some time."""
    block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    queue = network.queues[number * BUFFERS + side]
    place = queue[(block[Block.NEWEST] - block[Block.HELD] + 1) % PLACES]
    block[Block.TREE], block[Block.FLITS] = place[Place.TREE], place[Place.FLITS]
    _enter(network, number, side, max(place[Place.COMES], free))


@merged
def _leave(network: Network, number: int, side: int) -> None:
    """Have a packet leave the front of a buffer, all of whose branches have their links."""
    block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    queue = network.queues[number * BUFFERS + side]
    place = queue[(block[Block.NEWEST] - block[Block.HELD] + 1) % PLACES]
    place[Place.LEFT] = block[Block.LEFT]
    block[Block.HELD] -= 1
    if block[Block.HELD] > 0:
        _to_front(network, number, side, block[Block.LEFT] + 1 - network.router.hop)


@merged
def _at_front(network: Network, number: int, side: int) -> None:
    """A packet has come to the front of a buffer: ask for the port and for links."""
    node, block = network.nodes[number], network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    tree, time, flits = network.trees[block[Block.TREE]], block[Block.AT], block[Block.FLITS]
    place = (number - tree[Tree.BASE]) // tree[Tree.STEP]
    first, last = tree[Tree.FIRST], tree[Tree.LAST]
    block[Block.LEFT] = FROM_THE_START
    if first <= place <= last and (place - first) % tree[Tree.STRIDE] == 0:
        come, node[EjectionPort.BUSY], node[EjectionPort.FREE] = through_port(
            time + network.router.ejection + flits,
            node[EjectionPort.BUSY],
            node[EjectionPort.FREE],
            flits,
        )
        network.arrivals[tree[Tree.OPERATION], number] = come
        network.owed[tree[Tree.OPERATION]] -= 1
        block[Block.LEFT] = come - 1
        if tree[Tree.ANSWER] != NONE:
            tree[Tree.COME] += flits
            if tree[Tree.COME] == tree[Tree.FLITS]:
                _answer(network, tree[Tree.ANSWER], come)
    along_row = tree[Tree.STEP] == 1
    forward = MeshPort.EAST if along_row else MeshPort.SOUTH
    backward = MeshPort.WEST if along_row else MeshPort.NORTH
    asked = Block.ASKED_LOCALLY if side == MeshPort.LOCAL else Block.ASKED
    up = place < last and side in (MeshPort.LOCAL, forward)
    down = place > first and side in (MeshPort.LOCAL, backward)
    block[Block.OPEN] = int(up) + int(down)
    if block[Block.OPEN] == 0:
        _leave(network, number, side)
        if side == MeshPort.LOCAL:  # it goes to its root alone
            _returned(network, block[Block.TREE], block[Block.LEFT])
        else:
            _settle(network, number - _distance(side, network.cols), side)
    if up:
        node[forward * _BLOCK + asked] = time + network.router.hop
    if down:
        node[backward * _BLOCK + asked] = time + network.router.hop
    if up:
        _settle(network, number, forward)
    if down:
        _settle(network, number, backward)


@merged
def _settle(network: Network, number: int, out: int) -> None:
    """Give a link to who asks for it, if it is known when there is room behind it.

    If a buffer's last branch has got its link, it is known when there will be room in that, and so
    on towards the root.
    """
    behind_by = _distance(out, network.cols)
    while True:
        link = network.nodes[number, out * _BLOCK : (out + 1) * _BLOCK]
        behind = network.nodes[number + behind_by, out * _BLOCK : (out + 1) * _BLOCK]
        asked = min(link[Block.ASKED], link[Block.ASKED_LOCALLY])
        if asked == _NOBODY:
            return
        side = out if asked == link[Block.ASKED] else MeshPort.LOCAL
        block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
        flits = block[Block.FLITS]
        needed = min(flits, network.trees[block[Block.TREE], Tree.ROOM])
        room = _room(network, number + behind_by, out, needed)
        if room == _NOBODY:
            return
        link[Block.ASKED if side == out else Block.ASKED_LOCALLY] = _NOBODY
        time = max(asked, link[Block.LINK], room + network.router.gap)
        link[Block.LINK] = time + flits
        _put(network, number + behind_by, out, block[Block.TREE], flits, time)
        if behind[Block.HELD] == 1:
            free = behind[Block.LEFT] + 1 - network.router.hop
            _to_front(network, number + behind_by, out, free)
        block[Block.LEFT] = max(block[Block.LEFT], time + flits - 1)
        block[Block.OPEN] -= 1
        if block[Block.OPEN] != 0:
            return
        _leave(network, number, side)
        if side == MeshPort.LOCAL:
            _next_packet(network, block[Block.TREE])
            return
        number -= behind_by


@compiled
def _returned(network: Network, k: int, left: int) -> None:
    """Go on behind a packet to the root itself, which has left its buffer in a cycle."""
    tree = network.trees[k]
    # Of a packet that is longer than the buffer the tail waits for its own flits, too.
    room = left - network.router.depth + network.router.returns + 1
    tree[Tree.END] = max(tree[Tree.END], room)
    _next_packet(network, k)


@compiled
def _answer(network: Network, k: int, come: int) -> None:
    """Have a channel answer what has come to it, behind its other answers."""
    answer = network.trees[k]
    answer[Tree.READY] += come
    channel = answer[Tree.BASE]  # that of its column
    last, network.answers[channel] = network.answers[channel], k
    if last != NONE and network.trees[last, Tree.NEXT] == NONE:
        network.trees[last, Tree.NEXT] = k
        return
    free = answer[Tree.READY] if last == NONE else network.trees[last, Tree.END]
    answer[Tree.START], answer[Tree.SENT] = max(answer[Tree.READY], free), 0
    _offer(network, k)


@compiled
def _next_packet(network: Network, k: int) -> None:
    """Go on with a tree whose packet has left the root, or with the next one there."""
    tree = network.trees[k]
    if tree[Tree.SENT] < tree[Tree.FLITS]:
        _offer(network, k)
    elif tree[Tree.NEXT] == NONE:
        tree[Tree.NEXT] = OVER
    else:
        following = network.trees[tree[Tree.NEXT]]
        following[Tree.START], following[Tree.SENT] = max(following[Tree.READY], tree[Tree.END]), 0
        _offer(network, tree[Tree.NEXT])


@merged
def _distance(direction: int, cols: int) -> int:
    """From a router's number to that of the next one in a direction."""
    if direction == MeshPort.EAST or direction == MeshPort.WEST:
        return 1 if direction == MeshPort.EAST else -1
    return -cols if direction == MeshPort.NORTH else cols


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(begin, run)
