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
from typing import Annotated

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


def law_of(timing: NocTiming) -> Numbers:
    """What packets need to know of the router."""
    return np.array(
        [
            timing.hop_cycles,
            timing.ejection_cycles,
            timing.fifo_depth,
            # From the last flit's leaving the buffer behind to the start of a full packet.
            1 + timing.multicast_gap_cycles - timing.hop_cycles,
            timing.return_cycles,
            # From the last flit's leaving the root's buffer to the next one's being in front there.
            max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.fifo_depth),
        ],
        dtype=np.int64,
    )


def fresh_nodes(count: int) -> Nodes:
    """Records of routers in which nothing has been."""
    nodes = np.zeros((count, NODE_COLUMNS), dtype=np.int32)
    blocks = nodes[:, :_PORT].reshape(count, BUFFERS, _BLOCK)
    blocks[:, :, [_LINK, _LEFT]] = FROM_THE_START
    blocks[:, :, [_ASKED, _ASKED_LOCALLY]] = _NOBODY
    return nodes


@compiled
def begin(law: Numbers, nodes: Nodes, trees: Trees, wheel: Numbers, k: int, free: int) -> None:
    """Start a tree whose root is free since some time."""
    tree = trees[k]
    tree[START] = max(tree[READY], free)
    tree[SENT] = 0
    if wheel[_WAITING] == 0 or tree[START] <= wheel[_CLOCK]:
        wheel[_CLOCK] = tree[START] - 1
    _offer(law, nodes, trees, wheel, k)


@compiled
def run(
    law: Numbers,
    nodes: Nodes,
    trees: Trees,
    cols: int,
    wheel: Numbers,
    arrivals: Nodes,
    owed: Numbers,
    operation: int,
) -> None:
    """Send packets of the trees begun until those of one operation have all come.

    Args:
        law: As `law_of` gives it.
        nodes: Shape (routers, `NODE_COLUMNS`).
        trees: Shape (trees, `TREE_COLUMNS`).
        cols: Columns of the grid.
        wheel: Shape (`WHEEL_SIZE`,), at first zeros.
        arrivals: Shape (operations, routers): when what has come to a tile has been written.
        owed: Shape (operations,): how many packets have still to come to a tile.
        operation: Which one.
    """
    quiet = 0
    while owed[operation]:
        if quiet == _TURN:
            wheel[_CLOCK] = _first_event(nodes, wheel) - 1
        wheel[_CLOCK] += 1
        place = _EVENTS + 2 * (wheel[_CLOCK] & (_TURN - 1))
        event = wheel[place]
        wheel[place] = 0
        quiet += 1
        while event:
            buffer = event - 1
            number, side = divmod(buffer, BUFFERS)
            block = nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
            event = block[_AFTER]
            wheel[_WAITING] -= 1
            if block[_AT] > wheel[_CLOCK]:  # some turns ahead
                _enter(nodes, wheel, number, side, block[_AT])
            else:
                quiet = 0
                _at_front(law, nodes, trees, cols, wheel, arrivals, owed, number, side)


@compiled
def _first_event(nodes: Nodes, wheel: Numbers) -> int:
    """The cycle of the first event."""
    first = int(_NOBODY)
    for turn in range(_TURN):
        event = wheel[_EVENTS + 2 * turn]
        while event:
            number, side = divmod(event - 1, BUFFERS)
            first = min(first, nodes[number, side * _BLOCK + _AT])
            event = nodes[number, side * _BLOCK + _AFTER]
    return first


@compiled
def _enter(nodes: Nodes, wheel: Numbers, number: int, side: int, time: int) -> None:
    """Have a packet at the front of a buffer at some time."""
    nodes[number, side * _BLOCK + _AT] = time
    nodes[number, side * _BLOCK + _AFTER] = 0
    place = _EVENTS + 2 * (time & (_TURN - 1))
    event = number * BUFFERS + side + 1
    if wheel[place] == 0:
        wheel[place] = event
    else:
        before, other = divmod(wheel[place + 1] - 1, BUFFERS)
        nodes[before, other * _BLOCK + _AFTER] = event
    wheel[place + 1] = event
    wheel[_WAITING] += 1


@compiled
def _offer(law: Numbers, nodes: Nodes, trees: Trees, wheel: Numbers, k: int) -> None:
    """Bring the next packet of a tree to the front of its root's buffer."""
    tree = trees[k]
    number = tree[BASE] + tree[ROOT] * tree[STEP]
    own = nodes[number, LOCAL * _BLOCK : (LOCAL + 1) * _BLOCK]
    left = own[_LEFT]
    flits = min(law[2], tree[FLITS] - tree[SENT])
    tree[SENT] += flits
    if tree[SENT] == tree[FLITS]:
        # The tail goes in where the flit left that was before it by as many as the buffer holds.
        tree[END] = max(tree[START] + tree[FLITS], left - (law[2] - flits) + law[4] + 1)
    own[_TREE], own[_FLITS] = k, flits
    _enter(nodes, wheel, number, LOCAL, max(tree[START], left + law[5]))


@compiled
def _at_front(
    law: Numbers,
    nodes: Nodes,
    trees: Trees,
    cols: int,
    wheel: Numbers,
    arrivals: Nodes,
    owed: Numbers,
    number: int,
    side: int,
) -> None:
    """A packet has come to the front of a buffer: ask for the port and for links."""
    node, block = nodes[number], nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
    tree, time = trees[block[_TREE]], block[_AT]
    place = (number - tree[BASE]) // tree[STEP]
    first, last = tree[FIRST], tree[LAST]
    block[_LEFT] = FROM_THE_START
    if first <= place <= last and (place - first) % tree[STRIDE] == 0:
        come = _through_port(node, time + law[1] + block[_FLITS], block[_FLITS])
        arrivals[tree[OPERATION], number] = come
        owed[tree[OPERATION]] -= 1
        block[_LEFT] = come - 1
    forward = EAST if tree[STEP] == 1 else SOUTH
    asked = _ASKED_LOCALLY if side == LOCAL else _ASKED
    up = place < last and side in (LOCAL, forward)
    down = place > first and side in (LOCAL, forward + 1)
    block[_OPEN] = int(up) + int(down)
    if block[_OPEN] == 0:
        _settle(law, nodes, trees, cols, wheel, number - _distance(side, cols), side)
    if up:
        node[forward * _BLOCK + asked] = time + law[0]
    if down:
        node[(forward + 1) * _BLOCK + asked] = time + law[0]
    if up:
        _settle(law, nodes, trees, cols, wheel, number, forward)
    if down:
        _settle(law, nodes, trees, cols, wheel, number, forward + 1)


@compiled
def _through_port(node: Node, come: int, flits: int) -> int:
    """When a packet has gone through the ejection port, if it could have at ``come``."""
    time, node[_BUSY], node[_PORT] = through_port(come, node[_BUSY], node[_PORT], flits)
    return int(time)


@compiled
def _settle(
    law: Numbers, nodes: Nodes, trees: Trees, cols: int, wheel: Numbers, number: int, out: int
) -> None:
    """Give a link to who asks for it, if it is known when there is room behind it.

    If a buffer's last branch has got its link, it is known when there will be room in that, and so
    on towards the root.
    """
    behind_by = _distance(out, cols)
    while True:
        link = nodes[number, out * _BLOCK : (out + 1) * _BLOCK]
        behind = nodes[number + behind_by, out * _BLOCK : (out + 1) * _BLOCK]
        asked = min(link[_ASKED], link[_ASKED_LOCALLY])
        if asked == _NOBODY or behind[_OPEN] != 0:
            return
        side = out if asked == link[_ASKED] else LOCAL
        link[_ASKED if side == out else _ASKED_LOCALLY] = _NOBODY
        block = nodes[number, side * _BLOCK : (side + 1) * _BLOCK]
        flits, left = block[_FLITS], behind[_LEFT]
        time = max(asked, link[_LINK], left - (law[2] - flits) + law[3])
        link[_LINK] = time + flits
        behind[_OPEN], behind[_TREE], behind[_FLITS] = _COMING, block[_TREE], flits
        _enter(nodes, wheel, number + behind_by, out, max(time, left + 1 - law[0]))
        block[_LEFT] = max(block[_LEFT], time + flits - 1)
        block[_OPEN] -= 1
        if block[_OPEN] != 0:
            return
        if side == LOCAL:
            _next_packet(law, nodes, trees, wheel, block[_TREE])
            return
        number -= behind_by


@compiled
def _next_packet(law: Numbers, nodes: Nodes, trees: Trees, wheel: Numbers, k: int) -> None:
    """Go on with a tree whose packet has left the root, or with the next one there."""
    tree = trees[k]
    if tree[SENT] < tree[FLITS]:
        _offer(law, nodes, trees, wheel, k)
    elif tree[NEXT] == NONE:
        tree[NEXT] = OVER
    else:
        following = trees[tree[NEXT]]
        following[START], following[SENT] = max(following[READY], tree[END]), 0
        _offer(law, nodes, trees, wheel, tree[NEXT])


@compiled
def _distance(direction: int, cols: int) -> int:
    """From a router's number to that of the next one in a direction."""
    step = 1 if direction < SOUTH else cols
    return step if direction & 1 == 0 else -step


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(begin, run)
