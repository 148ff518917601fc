"""What compiled multicasts that meet are made of: routers, buffers, trees, and who waits.

A buffer's number is five times its router's, plus the direction in which packets come into it
(`MeshPort`). ``nodes`` has a record for each router, its columns named below.

A row of the trees may also be work of a tile's engine, or what a tile adds to a reduction. Any row
may wait for units that others give. By what it waits for, and by its place in its engine's queue,
the rows are a graph. So all of them come in order of time (`multicast_packets`).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.engines.lt.state import FROM_THE_START
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.unicast_network import Waits, waits_of
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


BLOCK = len(Block)


class EjectionPort(IntEnum):
    """Of a router, behind the blocks of four directions and of the tile: its ejection port."""

    FREE = BUFFERS * BLOCK  # when it is free
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
NOBODY = np.int32(2**31 - 1)
"""No time: nobody asks, or it is not known yet."""


class Wheel(IntEnum):
    """The wheel of events.

    A wheel and no heap (`tlm.heap`): most events are few cycles ahead, and those of a cycle are
    done in the order in which they were entered. A buffer has at most one, which bears its number.
    """

    CLOCK = 0  # the last cycle done
    WAITING = 1  # how many events wait
    EVENTS = 2  # of each cycle of a turn its first and last event, as their buffers plus 1


TURN = 256
WHEEL_SIZE = Wheel.EVENTS + 2 * TURN


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
    FREE = 17  # when the engine of its root is free for it
    BEFORE = 18  # when the one before it has left its root
    WAITS = 19  # for so many others
    JOB = 20  # a `Job`


class Job(IntEnum):
    """What a row of the trees is."""

    TREE = 0
    ANSWER = 1  # a tree that a channel sends
    WORK = 2  # of a tile's engine, for as many cycles as flits
    OPERAND = 3  # what a tile adds to a reduction, whose number is its `Tree.ANSWER`


TREE_COLUMNS = len(Tree)
NONE, OVER = -1, -2
"""No tree is next: this one is under way, or has left."""


class Sum(IntEnum):
    """Columns of a reduction on one line, whose law is `tlm.engines.lt.reduce`."""

    FIRST = 0  # the first of its operands,
    STEP = 1  # and from one to the next
    COUNT = 2
    PLACE = 3  # of the first operand on the line,
    STRIDE = 4  # and from one to the next
    ROOT = 5  # place of the root,
    NODE = 6  # and its router
    ROW = 7  # of ``arrivals``
    LACKS = 8  # operands that have not begun
    LATENCY = 9  # from its last operand's coming to the root, to its arrival
    LAW = 10  # behind it as `tlm.engines.lt.reduce.Combining` has it


SUM_COLUMNS = Sum.LAW + 4


class Router(NamedTuple):
    """What packets need to know of the router, in cycles but for the depth."""

    hop: int
    ejection: int
    depth: int  # flits of a buffer
    gap: int  # from a flit's leaving the buffer behind to a packet that needs its place
    returns: int  # from a flit's leaving a buffer to the next one's coming in
    following: int  # from a last flit's leaving the root's buffer to the next one's being in front
    launch: int  # from a transfer's start to its first flit; two of a tile are under way


class TreeGraph(NamedTuple):
    """Who waits for whom.

    Row k of the trees gives unit k when its engine is free. What comes to a tile is a unit, too:
    behind those of all rows, in the order of ``arrivals``.
    """

    waits: Waits
    due: NodeTable  # as ``arrivals``: packets that have still to come
    ready: Numbers  # rows that wait for nobody any more, behind their number
    sums: TreeTable  # shape (reductions, `SUM_COLUMNS`)
    spare: NodeTable  # shape (2, operands of a reduction)
    places: Numbers  # shape (operands of a reduction,)


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
    served: Numbers  # shape (columns,): until when it has what it was asked for before
    graph: TreeGraph
    cols: int  # of the grid


def no_graph() -> TreeGraph:
    """Of trees that wait only for those before them."""
    none = np.zeros(0, dtype=np.int64)
    nodes, rows = (np.zeros((0, 0), dtype=dtype) for dtype in (np.int32, np.int64))
    return TreeGraph(
        waits_of(none, none, none, 0), nodes, np.zeros(1, dtype=np.int64), rows, nodes, none
    )


def router_of(timing: NocTiming, launch_cycles: int = 0) -> Router:
    """What packets need to know of a router."""
    return Router(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        depth=timing.input_places,
        gap=timing.return_cycles,
        returns=timing.return_cycles,
        following=max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.input_places),
        launch=launch_cycles,
    )


def fresh_nodes(count: int) -> NodeTable:
    """Records of routers in which nothing has been."""
    nodes = np.zeros((count, NODE_COLUMNS), dtype=np.int32)
    blocks = nodes[:, : EjectionPort.FREE].reshape(count, BUFFERS, BLOCK)
    blocks[:, :, [Block.LINK, Block.LEFT]] = FROM_THE_START
    blocks[:, :, [Block.ASKED, Block.ASKED_LOCALLY]] = NOBODY
    return nodes


def fresh_queues(count: int) -> QueueTable:
    """Queues of the buffers of routers in which nothing has been."""
    queues = np.zeros((count * BUFFERS, PLACES, PLACE_COLUMNS), dtype=np.int32)
    queues[:, :, Place.LEFT] = FROM_THE_START
    return queues


def fill(rows: TreeTable, columns: Mapping[Tree, int | Numbers]) -> None:
    """Set some columns of rows."""
    for column, values in columns.items():
        rows[:, column] = values
