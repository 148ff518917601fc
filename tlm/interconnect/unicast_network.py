"""What compiled unicasts that share links are made of: transfers, links, buffers, and who waits.

A buffer's number is five times its router's, plus the port by which packets come in; that of a
link, or of the port to the tile, likewise with the one by which they leave (`MeshPort`).

A row of the transfers may also be work of a tile's engine, which takes no link. A transfer or work
may wait for units that others give: by what it waits for, and by its place in an engine's queue,
the rows are a graph. So all of them come in order of time (`unicast_packets`).
"""

from enum import IntEnum
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.interconnect.lines import MeshPort
from tlm.interconnect.zero_load import NocTiming

Numbers = Annotated[NDArray[np.int64], types.int64[::1]]
Table = Annotated[NDArray[np.int64], types.int64[:, ::1]]

PORTS = len(MeshPort)
NOBODY = -1


class Crossing(IntEnum):
    """Columns of a transfer, or of work."""

    ROW = 0  # of its source
    COL = 1
    TO_ROW = 2
    TO_COL = 3
    FLITS = 4  # or cycles of work
    READY = 5  # when its units are there
    NEXT = 6  # the next one of its source's engine, or none
    FREE = 7  # when it has left its source: with the first of a source when that is free before
    BEFORE = 8  # when the one before it has left its source
    COME = 9  # when it has come
    BUFFER = 10  # where its head is, or goes to
    HOPS = 11  # links that its head has crossed, or is crossing
    THERE = 12  # whether its head is there
    WORKER = 13  # 0 of a transfer; of work, one more than the number of the engine
    WAITS = 14  # for so many others
    ROOM = 15  # it leaves its source no earlier: until then the one before has the places


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
    CHOSEN = 9  # the port by which who gets it comes, once there is room behind it


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


class UnicastRouter(NamedTuple):
    """What packets need to know of the routers, in cycles and flits."""

    hop: int
    ejection: int
    depth: int  # flits of buffers at a hop
    returns: int  # from a flit's leaving a buffer to the next one's coming in
    columns_first: int  # whether packets go along the column first
    cols: int  # of the grid
    late_lock: int  # whether a link is a packet's only once there is room behind it
    launch: int  # from a transfer's start to its first flit; two of a tile are under way


class Waits(NamedTuple):
    """Who waits for units. Those that leave with transfer k have number 2k, those that come 2k + 1.

    Units of work have 2k.
    """

    first: Numbers  # shape (units + 1,): who waits for a unit begins there in the next two,
    who: Numbers  # shape (waits,): the transfer or work,
    cycles: Numbers  # shape (waits,): and when it may begin behind that


class UnicastNetwork(NamedTuple):
    """The routers, and the transfers on their way."""

    router: UnicastRouter
    transfers: Table  # shape (transfers, `TRANSFER_COLUMNS`)
    ways: Table  # shape (links and ports, `WAY_COLUMNS`)
    buffers: Table  # shape (buffers, `InputBuffer.QUEUE` and places of a queue)
    events: Numbers  # a heap
    waits: Waits
    ready: Numbers  # those that wait for nobody any more, behind their number


def router_of(timing: NocTiming, cols: int, launch_cycles: int) -> UnicastRouter:
    """What packets need to know of a router, and of the tiles' interfaces."""
    return UnicastRouter(
        hop=timing.hop_cycles,
        ejection=timing.ejection_cycles,
        depth=timing.input_places + timing.output_depth,
        returns=timing.return_cycles,
        columns_first=int(timing.y_first),
        cols=cols,
        late_lock=int(timing.lock_on_transfer),
        launch=launch_cycles,
    )


def fresh_ways(routers: int) -> Table:
    """Links and ports that nothing has crossed."""
    ways = np.zeros((routers * PORTS, WAY_COLUMNS), dtype=np.int64)
    ways[:, [OutputLink.OWNER, OutputLink.ASKED, OutputLink.CHOSEN]] = NOBODY
    ways[:, OutputLink.WON] = PORTS - 1
    return ways


def packets_in_buffer(router: UnicastRouter, transfers: int, flits: int) -> int:
    """Most packets in a buffer, of so many transfers that have so many flits or more.

    Beside those that are in it as a whole some may leave it, come in, or have left it while a
    credit returns.
    """
    return min(router.depth // flits + 1, transfers) + 3 + router.returns


def waits_of(
    units: NDArray[np.int64], who: NDArray[np.int64], cycles: NDArray[np.int64], count: int
) -> Waits:
    """Who waits for which of so many units, and how long behind: shape (waits,) each."""
    order = np.argsort(units, kind="stable")
    first = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(units, minlength=count), out=first[1:])
    return Waits(first, who[order], cycles[order])


def network_of(
    router: UnicastRouter, transfers: Table, ways: Table, waits: Waits | None = None
) -> UnicastNetwork:
    """A network with some transfers to carry, whose ``NEXT`` and ``WAITS`` are filled in here."""
    if waits is None:
        nobody = np.empty(0, dtype=np.int64)
        waits = waits_of(nobody, nobody, nobody, 2 * len(transfers))
    node = transfers[:, Crossing.ROW] * router.cols + transfers[:, Crossing.COL]
    worker = transfers[:, Crossing.WORKER]
    queue = node * (1 + int(worker.max(initial=0))) + worker
    order = np.argsort(queue, kind="stable")
    same = queue[order[1:]] == queue[order[:-1]]
    transfers[:, Crossing.NEXT] = NOBODY
    transfers[order[:-1][same], Crossing.NEXT] = order[1:][same]
    transfers[:, Crossing.WAITS] = np.bincount(waits.who, minlength=len(transfers))
    transfers[order[1:][same], Crossing.WAITS] += 1
    shortest = int(transfers[worker == 0, Crossing.FLITS].min())
    places = packets_in_buffer(router, len(transfers), shortest)
    buffers = np.zeros((len(ways), InputBuffer.QUEUE + places), dtype=np.int64)
    empty = InputBuffer.FRONT, InputBuffer.WANTS, InputBuffer.DEFERS, InputBuffer.LEAVING
    buffers[:, empty] = NOBODY
    most_events = len(transfers) + len(ways) * (4 + places)
    events, ready = (np.zeros(1 + most, dtype=np.int64) for most in (most_events, len(transfers)))
    return UnicastNetwork(router, transfers, ways, buffers, events, waits, ready)
