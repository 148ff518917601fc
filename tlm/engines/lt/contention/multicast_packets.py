"""Compiled packets of multicasts that meet, for the loosely-timed engine: link by link, in time.

A multicast's packets go one after the other. Each lies in the buffer of every router on its way
until all its branches have left it: the one to the tile when the ejection port has been given to
it, the one to the next router when the link has been and the buffer behind has room for all of the
packet. Links and ports serve in order of asking. So a port that two multicasts share holds up both
trees, packet by packet, and a wait goes back to the roots buffer by buffer.

Nothing here is flit by flit: a packet at the front of a buffer is one event, at a time that is
known when the events before it are done; what it occupies is a maximum and a sum.

A buffer's number is five times its router's, plus the direction in which packets come into it
(`EAST`...), or `LOCAL`. ``nodes`` has a record for each router, its columns named below.
"""

from functools import cache
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, prepare
from tlm.engines.lt.port import through_port
from tlm.engines.lt.state import FROM_THE_START
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
Trees = Annotated[NDArray[np.int64], types.int64[:, ::1]]
Node = Annotated[NDArray[np.int32], types.int32[::1]]
Nodes = Annotated[NDArray[np.int32], types.int32[:, ::1]]

EAST, WEST, SOUTH, NORTH, LOCAL = range(5)
BUFFERS = 5

# A router's record has a block for each direction: the link that goes there, and the buffer of what
# comes that way; one for the tile's buffer; and the ejection port.
_LINK = 0  # when the link is free
_ASKED = 1  # since when what passes asks for it
_ASKED_LOCALLY = 2  # the same of what comes from the tile
_LEFT = 3  # the cycle in which the last flit of the packet left the buffer, as far as it is known
_OPEN = 4  # branches of the packet that have no link yet; `_COMING`
_TREE = 5  # whose packet it is
_FLITS = 6  # how long it is
_AT = 7  # when it is at the front of the buffer
_AFTER = 8  # the buffer of the next event, plus 1
_BLOCK = 9
_PORT = BUFFERS * _BLOCK  # when the port is free
_BUSY = _PORT + 1  # since when it has been busy without a pause before that
NODE_COLUMNS = _BUSY + 1
PORT_COLUMNS = slice(_PORT, _BUSY + 1)
_COMING = -1
_NOBODY = np.int32(2**31 - 1)

# The wheel: the last cycle done, how many events wait, and of each cycle of a turn the first and
# the last of its events, as the buffers they are at plus 1.
_CLOCK, _WAITING, _EVENTS = range(3)
_TURN = 256
WHEEL_SIZE = _EVENTS + 2 * _TURN

(
    BASE,  # router of place 0 on its line
    STEP,  # from place to place
    ROOT,  # place of the root
    FIRST,  # place of the first destination
    LAST,
    STRIDE,
    FLITS,
    READY,  # when its tokens are there
    OPERATION,  # row of ``arrivals`` and ``owed``
    NEXT,  # the next tree of the same root; `NONE`, `OVER`
    START,
    SENT,  # flits
    END,  # when its root is free for the next one
) = range(13)
TREE_COLUMNS = 13
NONE, OVER = -1, -2
"""No tree is next: this one is under way, or has left."""


class Router(NamedTuple):
    """What packets need to know of the router, in cycles but for the depth."""

    hop: int
    ejection: int
    depth: int  # flits of a buffer
    gap: int  # from the last flit's leaving the buffer behind to the start of a full packet
    returns: int  # from a flit's leaving a buffer to the next one's coming in
    following: int  # from a last flit's leaving the root's buffer to the next one's being in front


class Network(NamedTuple):
    """The routers, and the packets on their way."""

    router: Router
    nodes: Nodes  # shape (routers, `NODE_COLUMNS`)
    trees: Trees  # shape (trees, `TREE_COLUMNS`)
    wheel: Numbers  # shape (`WHEEL_SIZE`,), at first zeros
    arrivals: Nodes  # shape (operations, routers): when what has come to a tile has been written
    owed: Numbers  # shape (operations,): how many packets have still to come to a tile
    cols: int  # of the grid


def router_of(timing: NocTiming) -> Router:
    """What packets need to know of a router."""
    return Router(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        depth=timing.fifo_depth,
        gap=1 + timing.multicast_gap_cycles - timing.hop_cycles,
        returns=timing.return_cycles,
        following=max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.fifo_depth),
    )


def fresh_nodes(count: int) -> Nodes:
    """Records of routers in which nothing has been."""
    nodes = np.zeros((count, NODE_COLUMNS), dtype=np.int32)
    blocks = nodes[:, :_PORT].reshape(count, BUFFERS, _BLOCK)
    blocks[:, :, [_LINK, _LEFT]] = FROM_THE_START
    blocks[:, :, [_ASKED, _ASKED_LOCALLY]] = _NOBODY
    return nodes


@compiled
def begin(network: Network, k: int, free: int) -> None:
    """Start a tree whose root is free since some time."""
    tree = network.trees[k]
    tree[START] = max(tree[READY], free)
    tree[SENT] = 0
    if network.wheel[_WAITING] == 0 or tree[START] <= network.wheel[_CLOCK]:
        network.wheel[_CLOCK] = tree[START] - 1
    _offer(network, k)


@compiled
def run(network: Network, operation: int) -> None:
    """Send packets of the trees begun until those of one operation have all come."""
    quiet = 0
    while network.owed[operation]:
        if quiet == _TURN:
            network.wheel[_CLOCK] = _first_event(network) - 1
        network.wheel[_CLOCK] += 1
        place = _EVENTS + 2 * (network.wheel[_CLOCK] & (_TURN - 1))
        event = network.wheel[place]
        network.wheel[place] = 0
        quiet += 1
        while event:
            buffer = event - 1
            number, side = divmod(buffer, BUFFERS)
            block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
            event = block[_AFTER]
            network.wheel[_WAITING] -= 1
            if block[_AT] > network.wheel[_CLOCK]:  # some turns ahead
                _enter(network, number, side, block[_AT])
            else:
                quiet = 0
                _at_front(network, number, side)


@compiled
def _first_event(network: Network) -> int:
    """The cycle of the first event."""
    first = int(_NOBODY)
    for turn in range(_TURN):
        event = network.wheel[_EVENTS + 2 * turn]
        while event:
            number, side = divmod(event - 1, BUFFERS)
            first = min(first, network.nodes[number, side * _BLOCK + _AT])
            event = network.nodes[number, side * _BLOCK + _AFTER]
    return first


@compiled
def _enter(network: Network, number: int, side: int, time: int) -> None:
    """Have a packet at the front of a buffer at some time."""
    network.nodes[number, side * _BLOCK + _AT] = time
    network.nodes[number, side * _BLOCK + _AFTER] = 0
    place = _EVENTS + 2 * (time & (_TURN - 1))
    event = number * BUFFERS + side + 1
    if network.wheel[place] == 0:
        network.wheel[place] = event
    else:
        before, other = divmod(network.wheel[place + 1] - 1, BUFFERS)
        network.nodes[before, other * _BLOCK + _AFTER] = event
    network.wheel[place + 1] = event
    network.wheel[_WAITING] += 1


@compiled
def _offer(network: Network, k: int) -> None:
    """Bring the next packet of a tree to the front of its root's buffer."""
    tree = network.trees[k]
    number = tree[BASE] + tree[ROOT] * tree[STEP]
    own = network.nodes[number, LOCAL * _BLOCK : (LOCAL + 1) * _BLOCK]
    left = own[_LEFT]
    flits = min(network.router.depth, tree[FLITS] - tree[SENT])
    tree[SENT] += flits
    if tree[SENT] == tree[FLITS]:
        # The tail goes in where the flit left that was before it by as many as the buffer holds.
        tree[END] = max(
            tree[START] + tree[FLITS],
            left - (network.router.depth - flits) + network.router.returns + 1,
        )
    own[_TREE], own[_FLITS] = k, flits
    _enter(network, number, LOCAL, max(tree[START], left + network.router.following))


@compiled
def _at_front(network: Network, number: int, side: int) -> None:
    """A packet has come to the front of a buffer: ask for the port and for links."""
    node, block = network.nodes[number], network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    tree, time = network.trees[block[_TREE]], block[_AT]
    place = (number - tree[BASE]) // tree[STEP]
    first, last = tree[FIRST], tree[LAST]
    block[_LEFT] = FROM_THE_START
    if first <= place <= last and (place - first) % tree[STRIDE] == 0:
        come = _through_port(node, time + network.router.ejection + block[_FLITS], block[_FLITS])
        network.arrivals[tree[OPERATION], number] = come
        network.owed[tree[OPERATION]] -= 1
        block[_LEFT] = come - 1
    forward = EAST if tree[STEP] == 1 else SOUTH
    asked = _ASKED_LOCALLY if side == LOCAL else _ASKED
    up = place < last and side in (LOCAL, forward)
    down = place > first and side in (LOCAL, forward + 1)
    block[_OPEN] = int(up) + int(down)
    if block[_OPEN] == 0:
        _settle(network, number - _distance(side, network.cols), side)
    if up:
        node[forward * _BLOCK + asked] = time + network.router.hop
    if down:
        node[(forward + 1) * _BLOCK + asked] = time + network.router.hop
    if up:
        _settle(network, number, forward)
    if down:
        _settle(network, number, forward + 1)


@compiled
def _through_port(node: Node, come: int, flits: int) -> int:
    """When a packet has gone through the ejection port, if it could have at ``come``."""
    time, node[_BUSY], node[_PORT] = through_port(come, node[_BUSY], node[_PORT], flits)
    return int(time)


@compiled
def _settle(network: Network, number: int, out: int) -> None:
    """Give a link to who asks for it, if it is known when there is room behind it.

    If a buffer's last branch has got its link, it is known when there will be room in that, and so
    on towards the root.
    """
    behind_by = _distance(out, network.cols)
    while True:
        link = network.nodes[number, out * _BLOCK : (out + 1) * _BLOCK]
        behind = network.nodes[number + behind_by, out * _BLOCK : (out + 1) * _BLOCK]
        asked = min(link[_ASKED], link[_ASKED_LOCALLY])
        if asked == _NOBODY or behind[_OPEN] != 0:
            return
        side = out if asked == link[_ASKED] else LOCAL
        link[_ASKED if side == out else _ASKED_LOCALLY] = _NOBODY
        block = network.nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
        flits, left = block[_FLITS], behind[_LEFT]
        time = max(asked, link[_LINK], left - (network.router.depth - flits) + network.router.gap)
        link[_LINK] = time + flits
        behind[_OPEN], behind[_TREE], behind[_FLITS] = _COMING, block[_TREE], flits
        _enter(network, number + behind_by, out, max(time, left + 1 - network.router.hop))
        block[_LEFT] = max(block[_LEFT], time + flits - 1)
        block[_OPEN] -= 1
        if block[_OPEN] != 0:
            return
        if side == LOCAL:
            _next_packet(network, block[_TREE])
            return
        number -= behind_by


@compiled
def _next_packet(network: Network, k: int) -> None:
    """Go on with a tree whose packet has left the root, or with the next one there."""
    tree = network.trees[k]
    if tree[SENT] < tree[FLITS]:
        _offer(network, k)
    elif tree[NEXT] == NONE:
        tree[NEXT] = OVER
    else:
        following = network.trees[tree[NEXT]]
        following[START], following[SENT] = max(following[READY], tree[END]), 0
        _offer(network, tree[NEXT])


@compiled
def _distance(direction: int, cols: int) -> int:
    """From a router's number to that of the next one in a direction."""
    step = 1 if direction < SOUTH else cols
    return step if direction & 1 == 0 else -step


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(begin, run)
