"""Multicasts along lines of tiles, each of which sends itself blocks as well: step by step.

A block that a tile sends to itself leaves by its ejection port as one packet. Packets of a
multicast take turns with such blocks there, in the order in which they ask. One that waits lies in
its buffer until it has left by the port and by the next link. It holds up what comes behind it, of
its own tree and of others. So a block at any tile holds up multicasts at all of them. Partial sums
go between such blocks, and hold them up.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import Numbers, allocating, compiled, forget_stale, inlined
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming

_FOLLOWED_STEPS = 64
"""The others go on at the pace of the last ones."""
_NEVER = 2**60
_NOBODY = -1
_OWN, _SUM, _SENT = range(3)
_UP, _DOWN, _HERE = range(3)


class LineSteps(NamedTuple):
    """Steps in which roots multicast blocks, every tile sends itself one, and all multiply.

    Attributes:
        sent: Flits of a block that is multicast.
        own: Flits of a tile's own block.
        own_first: Whether a root sends its own block first.
        buffers: Blocks of either kind for which a tile has room.
        product: Cycles of a step's product.
        depth: Steps of a pass, behind which tiles send their partial sums; 0: they have none.
        summed: Flits of a partial sum.
        combine: Cycles to add one, and to put the whole sum in its place.
        in_network: Whether routers combine them.
    """

    sent: int
    own: int
    own_first: bool
    buffers: int
    product: int
    depth: int = 0
    summed: int = 0
    combine: int = 0
    in_network: bool = False


class LineTiles(NamedTuple):
    """Tiles on one line, or on several side by side, which are numbered line after line.

    Attributes:
        tree: Whose blocks come to a tile; shape (tiles,).
        ends: The first tile and the last one of a tree; shape (trees, 2).
        stride: From each to the next one.
        parent: To which tile a partial sum goes; -1: here it is whole; shape (tiles,).
        away: Links to that one; shape (tiles,).
        first: Where those of which a tile is the parent begin in ``children``; shape (tiles + 1,).
        children: In the order in which their sums are added.
        behind: Whose sum has to be added before there is a buffer for a tile's own; -1: no one's.
    """

    tree: NDArray[np.int64]
    ends: NDArray[np.int64]
    stride: int
    parent: NDArray[np.int64]
    away: NDArray[np.int64]
    first: NDArray[np.int64]
    children: NDArray[np.int64]
    behind: NDArray[np.int64]


def one_line(count: int) -> LineTiles:
    """A line of one tree whose tiles sum up nothing."""
    none, zeros = np.full(count, _NOBODY), np.zeros(count + 1, dtype=np.int64)
    ends = np.array([[0, count - 1]])
    return LineTiles(zeros[:-1], ends, 1, none, zeros[:-1], zeros, none[:0], none)


class _Packet(IntEnum):
    """Of a packet in a buffer."""

    ROOT = 0  # the tile that has sent it
    FLITS = 1
    STEP = 2  # whose block it is the end of; -1: of none
    COMES = 3  # when its first flit goes to the buffer


_PACKET = len(_Packet)


class _Router(NamedTuple):
    """Cycles, and flits: see `NocTiming`."""

    hop: int
    ejection: int
    launch: int
    packet: int
    returns: int
    places: int
    following: int  # from a last flit's leaving a tile's buffer to the next one's being in front
    credit: int  # of a tile to itself
    buffer: int  # into which a whole operand of a reduction goes
    reduced: int  # a hop of it
    result: int  # from the meeting of a reduction's operands to its leaving the port
    operands: int  # of a packet of it
    tail: int  # of its last flits


class _Tiles(NamedTuple):
    """What tiles do, by step or not, and by tile.

    Attributes:
        come: When multicast blocks (0) and own ones (1) have come; shape (2, steps, tiles).
        ends: When products have ended; shape (steps, tiles).
        rid: When partial sums have left; shape (passes, tiles).
        done: How many products have ended.
        turn: Three of each step: what a tile sends next.
        start: When it begins to.
        ready: When a tile's next packet is in front (2), or the first one in the buffers behind
            links up (0) and down (1) to it, if it has not asked for its ways; shape (3, tiles).
        left: Flits of a block of which packets have gone.
        engine: When the transfer engine is free.
        port: When the ejection port is.
        taken: Since when (0) and until when (1) a sum that is under way does; shape (2, tiles).
        link: When the links up (0) and down (1) to a tile are; shape (2, tiles).
        asked: When the packet that goes on (0), or that of the tile itself (1), asks for the link
            that goes up (0) and down (1) from it; shape (2, 2, tiles).
        queue: Packets in the buffers behind links, the first one first; shape (2, tiles, packets,
            fields of `_Packet`).
        held: How many; shape (2, tiles).
        open: Ways that the first one, and that of the tile itself (2), has not got; shape (3,
            tiles).
        leaves: The cycle of its last flit, as far as it is known; shape (3, tiles).
        gone: Those of the packets before, the last one first; shape (3, tiles, packets).
        got: When partial sums have come to the tile's parent; shape (passes, tiles).
        added: When they have been added there; shape (passes, tiles).
        counted: How many sums of its children a tile has added.
        vector: When the vector engine is free.
        beside: Whether tiles of other lines may send sooner than was known; shape (1,).
    """

    come: NDArray[np.int64]
    ends: NDArray[np.int64]
    rid: NDArray[np.int64]
    done: NDArray[np.int64]
    turn: NDArray[np.int64]
    start: NDArray[np.int64]
    ready: NDArray[np.int64]
    left: NDArray[np.int64]
    engine: NDArray[np.int64]
    port: NDArray[np.int64]
    taken: NDArray[np.int64]
    link: NDArray[np.int64]
    asked: NDArray[np.int64]
    queue: NDArray[np.int64]
    held: NDArray[np.int64]
    open: NDArray[np.int64]
    leaves: NDArray[np.int64]
    gone: NDArray[np.int64]
    got: NDArray[np.int64]
    added: NDArray[np.int64]
    counted: NDArray[np.int64]
    vector: NDArray[np.int64]
    beside: NDArray[np.int64]


def line_cycles(
    steps: LineSteps, tiles: LineTiles, roots: NDArray[np.int64], timing: NocTiming
) -> int:
    """Cycles until the last product, or until the last sum is in its place.

    Args:
        steps: What each step takes.
        tiles: The tiles.
        roots: From which tile a block is multicast to each tree in a step, shape (steps, trees);
            -1: from none.
        timing: Of the network.
    """
    router = _Router(
        timing.hop_cycles, timing.ejection_cycles, timing.launch_cycles, timing.packet_bound,
        timing.return_cycles, timing.input_places,
        max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.input_places),
        credit_cycles(timing, 0), timing.fifo_depth, timing.hop_cycles + timing.reduce_cycles,
        *_reduction_cycles(steps, timing),
    )  # fmt: skip
    count, followed = len(roots), min(len(roots), _FOLLOWED_STEPS)
    if 0 < steps.depth < followed:
        followed -= followed % steps.depth
    half = followed // 2
    if 0 < steps.depth <= half:
        half -= half % steps.depth
    now = _followed(steps, tiles, roots[:followed], router)
    ends = now.ends.max(axis=1)
    last = max(ends[-1], now.vector.max())
    pace = (ends[-1] - ends[half - 1]) / (followed - half) if followed < count else 0
    cycles: int = round(last + (count - followed) * pace)
    return cycles


def _reduction_cycles(steps: LineSteps, timing: NocTiming) -> tuple[int, int, int]:
    """The last fields of `_Router`."""
    if not steps.in_network:
        return 0, 0, 0
    result = timing.reduction_cycles(1, steps.summed) - timing.hop_cycles - timing.reduce_cycles
    interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
    packet = timing.results_cycles(timing.fifo_depth, interval) + interval
    flits = (steps.summed - timing.fifo_depth - 1) % timing.fifo_depth + 1
    return result + 1, packet, timing.results_cycles(flits, interval) + timing.hop_cycles + 2


@allocating
def _followed(  # type: ignore[no-untyped-def]  # arrays
    steps: LineSteps, tiles: LineTiles, roots, router: _Router
) -> _Tiles:
    """What tiles have done when all of it is done."""
    count, size = len(roots), len(tiles.tree)
    passes = count // steps.depth + 1 if steps.depth else 1
    packets = max(1, router.places // router.packet)
    now = _Tiles(
        np.full((2, count, size), _NEVER),
        np.full((count, size), _NEVER),
        np.full((passes, size), _NEVER),
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.full((3, size), _NEVER),
        np.zeros(size, dtype=np.int64),
        np.full(size, router.launch),
        np.zeros(size, dtype=np.int64),
        np.zeros((2, size), dtype=np.int64),
        np.zeros((2, size), dtype=np.int64),
        np.full((2, 2, size), _NEVER),
        np.zeros((2, size, packets, _PACKET), dtype=np.int64),
        np.zeros((2, size), dtype=np.int64),
        np.zeros((3, size), dtype=np.int64),
        np.zeros((3, size), dtype=np.int64),
        np.full((3, size, packets), -router.places - router.hop),
        np.full((passes, size), _NEVER),
        np.full((passes, size), _NEVER),
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    for tile in range(size):
        if roots[0, tiles.tree[tile]] == _NOBODY:
            now.come[0, :, tile] = 0
        if steps.own == 0:
            now.come[1, :, tile] = 0
    for tile in range(size):
        _settle(now, steps, tiles, roots, tile, router)
    # Lines beside each other meet in sums alone.
    groups = len(tiles.ends) if tiles.stride == 1 else 1
    soonest = np.empty((2, groups), dtype=np.int64)
    for group in range(groups):
        _look(now, tiles, soonest, group)
    while True:
        group = int(soonest[0].argmin())
        if soonest[0, group] == _NEVER:
            return now
        way, tile = divmod(soonest[1, group], size)
        kind = _kind(steps, now.turn[tile])
        if way != _HERE:
            _pass_on(now, steps, tiles, roots, way, tile, router)
        elif kind == _OWN:
            _send_own(now, steps, tile, router)
            _go_on(now, steps, tiles, roots, tile, router)
        elif kind == _SENT:
            _send_packet(now, steps, tiles, roots, tile, router)
        elif steps.in_network:
            _reduce(now, steps, tiles, tile, router)
            now.beside[0] = 1
            for number in range(tiles.first[tile], tiles.first[tile + 1]):
                _go_on(now, steps, tiles, roots, tiles.children[number], router)
            _go_on(now, steps, tiles, roots, tile, router)
        else:
            _send_sum(now, steps, tiles, tile, router)
            now.beside[0] = 1
            _go_on(now, steps, tiles, roots, tiles.parent[tile], router)
            _go_on(now, steps, tiles, roots, tile, router)
        if now.beside[0]:
            now.beside[0] = 0
            for group in range(groups):
                _look(now, tiles, soonest, group)
        else:
            _look(now, tiles, soonest, group)


@compiled
def _look(now: _Tiles, tiles: LineTiles, soonest: Numbers[Any], group: int) -> None:
    """Find the next event on a line of tiles: when it is, and its place in ``ready``."""
    size = len(tiles.tree)
    first, last = 0, size - 1
    if tiles.stride == 1:
        first, last = tiles.ends[group]
    soonest[0, group] = _NEVER
    for way in range(3):
        for tile in range(first, last + 1):
            if now.ready[way, tile] < soonest[0, group]:
                soonest[0, group], soonest[1, group] = now.ready[way, tile], way * size + tile


@inlined
def _kind(steps: LineSteps, turn: int) -> int:
    """What a tile sends in a turn."""
    kind = turn % 3
    return kind if steps.own_first else 2 - kind


@inlined
def _ended(now: _Tiles, steps: LineSteps, turn: int) -> int:
    """The last step of the pass whose partial sums are sent in a turn; -1: of none."""
    step = turn // 3 - 2
    if steps.depth == 0 or step < 0 or step >= len(now.ends):
        return -1
    return step if (step + 1) % steps.depth == 0 or step + 1 == len(now.ends) else -1


@compiled
def _go_on(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], tile: int, router: _Router
) -> None:
    """Have a tile multiply and add; find out when it, and who waits for it, sends what is next."""
    before = now.done[tile]
    _multiply(now, steps, tile)
    if not steps.in_network and _add(now, steps, tiles, tile):
        _multiply(now, steps, tile)
        now.beside[0] = 1
        for number in range(tiles.first[tile], tiles.first[tile + 1]):
            _settle(now, steps, tiles, roots, tiles.children[number], router)
    _settle(now, steps, tiles, roots, tile, router)
    if now.done[tile] > before:
        first, last = tiles.ends[tiles.tree[tile]]
        for other in range(first, last + 1, tiles.stride):
            if now.ready[_HERE, other] == _NEVER and _kind(steps, now.turn[other]) == _SENT:
                _settle(now, steps, tiles, roots, other, router)


@compiled
def _multiply(now: _Tiles, steps: LineSteps, tile: int) -> None:
    """Work on all that has come to a tile."""
    while now.done[tile] < len(now.ends):
        step = now.done[tile]
        begin = max(now.come[0, step, tile], now.come[1, step, tile])
        if steps.depth and step % steps.depth == 0 and step >= 2 * steps.depth:
            begin = max(begin, now.rid[step // steps.depth - 2, tile])
        if begin == _NEVER:
            break
        before = now.ends[step - 1, tile] if step else 0
        now.ends[step, tile] = max(begin, before) + steps.product
        now.done[tile] += 1


@compiled
def _settle(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], tile: int, router: _Router
) -> None:
    """Find out when a tile asks for what it sends next."""
    if now.left[tile] or now.open[_HERE, tile]:
        return
    _turn(now, steps, tiles, roots, tile)
    now.ready[_HERE, tile] = _NEVER
    step, kind = now.turn[tile] // 3, _kind(steps, now.turn[tile])
    if step >= len(now.ends) + 2:
        return
    before, known = step - steps.buffers, 0
    if kind == _SUM:
        known = _sum_known(now, steps, tiles, tile, router)
    elif before >= 0 and kind == _OWN:
        known = now.ends[before, tile] + router.credit + router.launch
    elif before >= 0:
        first, last = tiles.ends[tiles.tree[tile]]
        for other in range(first, last + 1, tiles.stride):
            credit = router.credit + router.hop * abs(other - tile)
            known = max(known, now.ends[before, other] + credit + router.launch)
    now.start[tile] = min(_NEVER, max(now.engine[tile], known))
    if now.start[tile] == _NEVER:
        return
    now.ready[_HERE, tile] = max(now.start[tile], now.gone[_HERE, tile, 0] + router.following)
    if kind == _SUM and steps.in_network:
        _meet(now, steps, tiles, tile, router)


@compiled
def _turn(now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], tile: int) -> None:
    """Find the next turn in which a tile sends anything."""
    count = len(now.ends)
    while now.turn[tile] < 3 * (count + 2):
        step, kind = now.turn[tile] // 3, _kind(steps, now.turn[tile])
        if kind == _SUM and _ended(now, steps, now.turn[tile]) >= 0:
            if steps.in_network or tiles.parent[tile] != _NOBODY:
                return
        elif step < count:
            if kind == _OWN and steps.own:
                return
            if kind == _SENT and roots[step, tiles.tree[tile]] == tile:
                return
        now.turn[tile] += 1


@inlined
def _leave(now: _Tiles, way: int, tile: int, time: int) -> None:
    """Have a packet leave a buffer, its last flit in a cycle."""
    for number in range(now.gone.shape[2] - 1, 0, -1):
        now.gone[way, tile, number] = now.gone[way, tile, number - 1]
    now.gone[way, tile, 0] = time


@inlined
def _room(now: _Tiles, way: int, tile: int, flits: int, router: _Router) -> int:
    """Cycle in which the flit leaves a buffer whose place the last one of a packet takes.

    `_NEVER` if it is not known yet.
    """
    packets = now.gone.shape[2]
    held = now.held[way, tile] if way != _HERE else 0
    if held >= packets:
        return _NEVER
    beside = flits + (packets - 1) * router.packet
    left = now.gone[way, tile, packets - 1 - held]
    return int(left - min(router.places - beside, router.packet - 1))


@inlined
def _pass_port(
    now: _Tiles, steps: LineSteps, tile: int, asks: int, flits: int, router: _Router
) -> None:
    """Have a packet leave by a tile's port: before a sum that comes later, or behind it.

    A sum of the network comes in packets, which take turns with those of multicasts.
    """
    time = max(asks, now.port[tile])
    if time + flits > now.taken[0, tile] and time < now.taken[1, tile]:
        if steps.in_network and flits <= router.packet:
            now.taken[1, tile] += flits
            flits += router.packet
        else:
            time = now.taken[1, tile]
    now.port[tile] = time + flits


@inlined
def _take_port(now: _Tiles, tile: int, asks: int, flits: int) -> int:
    """Have a sum leave by a tile's port that asks for it later than now; when it has."""
    begin = max(asks, now.port[tile], now.taken[1, tile])
    if begin > now.taken[1, tile]:
        now.taken[0, tile] = begin
    now.taken[1, tile] = begin + flits
    return int(now.taken[1, tile])


@compiled
def _send_own(now: _Tiles, steps: LineSteps, tile: int, router: _Router) -> None:
    """Send a tile's block through its port."""
    _pass_port(now, steps, tile, now.ready[_HERE, tile], steps.own, router)
    come = now.port[tile] + router.ejection
    now.come[1, now.turn[tile] // 3, tile] = come
    room = come - router.places + router.returns
    now.engine[tile] = max(now.start[tile] + steps.own, room)
    _leave(now, _HERE, tile, come - 1)
    now.ready[_HERE, tile] = _NEVER
    now.turn[tile] += 1


@compiled
def _send_packet(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], root: int,
    router: _Router,
) -> None:  # fmt: skip
    """Bring a packet of a block to the front of its root's buffer: it asks for its ways."""
    time = now.ready[_HERE, root]
    now.ready[_HERE, root] = _NEVER
    if now.left[root] == 0:
        now.left[root] = steps.sent
    flits = min(router.packet, now.left[root])
    now.left[root] -= flits
    last = now.left[root] == 0
    if last:
        room = _room(now, _HERE, root, flits, router) + router.returns + 1
        now.engine[root] = max(now.start[root] + steps.sent, room)
    step, (low, high) = now.turn[root] // 3, tiles.ends[tiles.tree[root]]
    now.leaves[_HERE, root] = _eject(now, steps, root, time, flits, step if last else -1, router)
    up, down = root < high, root > low
    now.open[_HERE, root] = int(up) + int(down)
    if up:
        now.asked[_UP, 1, root] = time + router.hop
    if down:
        now.asked[_DOWN, 1, root] = time + router.hop
    if not up and not down:
        _left_root(now, steps, tiles, roots, root, router)
    if up:
        _grant(now, steps, tiles, roots, _UP, root, router)
    if down:
        _grant(now, steps, tiles, roots, _DOWN, root, router)
    if last:
        _go_on(now, steps, tiles, roots, root, router)


@compiled
def _pass_on(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], way: int, tile: int,
    router: _Router,
) -> None:  # fmt: skip
    """Have the first packet in the buffer behind a link ask for the port and for the next link."""
    time, packet = now.ready[way, tile], now.queue[way, tile, 0]
    now.ready[way, tile] = _NEVER
    flits, step, tree = (
        packet[_Packet.FLITS],
        packet[_Packet.STEP],
        tiles.tree[packet[_Packet.ROOT]],
    )
    low, high = tiles.ends[tree]
    now.leaves[way, tile] = time
    if tiles.tree[tile] == tree:
        now.leaves[way, tile] = _eject(now, steps, tile, time, flits, step, router)
    if tile == (high if way == _UP else low):
        _leave_buffer(now, way, tile, router)
        _grant(now, steps, tiles, roots, way, tile - 1 if way == _UP else tile + 1, router)
    else:
        now.open[way, tile] = 1
        now.asked[way, 0, tile] = time + router.hop
        _grant(now, steps, tiles, roots, way, tile, router)
    if step >= 0 and tiles.tree[tile] == tree:
        _go_on(now, steps, tiles, roots, tile, router)


@compiled
def _eject(
    now: _Tiles, steps: LineSteps, tile: int, time: int, flits: int, step: int, router: _Router
) -> int:
    """Have a packet leave by a tile's port; the cycle of its last flit.

    ``step``: whose block it is the end of.
    """
    _pass_port(now, steps, tile, time, flits, router)
    come = now.port[tile] + router.ejection
    if step >= 0:
        now.come[0, step, tile] = come
    return int(come - 1)


@compiled
def _grant(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], way: int, tile: int,
    router: _Router,
) -> None:  # fmt: skip
    """Give the link that goes up (0) or down (1) from a tile to who asks first, if there is room.

    If a packet leaves its buffer by it, there is room in that, and so on towards the root.
    """
    onward = 1 if way == _UP else -1
    while 0 <= tile < len(tiles.tree):
        there = tile + onward
        local = int(now.asked[way, 1, tile] < now.asked[way, 0, tile])
        asked = now.asked[way, local, tile]
        if asked == _NEVER:
            return
        source = _HERE if local else way
        flits, step, root = _first(now, tiles, source, tile)
        if local:
            sent = steps.sent - now.left[tile]
            flits = sent % router.packet if sent % router.packet else router.packet
            step = now.turn[tile] // 3 if now.left[tile] == 0 else -1
        room = _room(now, way, there, flits, router)
        if room == _NEVER:
            return
        now.asked[way, local, tile] = _NEVER
        time = max(asked, now.link[way, there], room + router.returns)
        now.link[way, there] = time + flits
        packet = now.queue[way, there, now.held[way, there]]
        packet[_Packet.ROOT], packet[_Packet.FLITS] = root, flits
        packet[_Packet.STEP], packet[_Packet.COMES] = step, time
        now.held[way, there] += 1
        if now.held[way, there] == 1:
            now.ready[way, there] = max(time, now.gone[way, there, 0] + 1 - router.hop)
        now.leaves[source, tile] = max(now.leaves[source, tile], time + flits - 1)
        now.open[source, tile] -= 1
        if now.open[source, tile]:
            return
        if local:
            _left_root(now, steps, tiles, roots, tile, router)
            return
        _leave_buffer(now, way, tile, router)
        tile -= onward


@inlined
def _first(now: _Tiles, tiles: LineTiles, way: int, tile: int) -> tuple[int, int, int]:
    """Flits, step and root of the first packet in a buffer; a tile is its own root."""
    if way == _HERE:
        return 0, 0, tile
    packet = now.queue[way, tile, 0]
    return packet[_Packet.FLITS], packet[_Packet.STEP], packet[_Packet.ROOT]


@compiled
def _leave_buffer(now: _Tiles, way: int, tile: int, router: _Router) -> None:
    """Have the first packet leave the buffer behind a link: the next one comes to its front."""
    _leave(now, way, tile, now.leaves[way, tile])
    now.held[way, tile] -= 1
    for number in range(now.held[way, tile]):
        for field in range(_PACKET):
            now.queue[way, tile, number, field] = now.queue[way, tile, number + 1, field]
    if now.held[way, tile]:
        comes = now.queue[way, tile, 0, _Packet.COMES]
        now.ready[way, tile] = max(comes, now.leaves[way, tile] + 1 - router.hop)


@compiled
def _left_root(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, roots: Numbers[Any], root: int,
    router: _Router,
) -> None:  # fmt: skip
    """Go on behind a packet that has left its root's buffer."""
    _leave(now, _HERE, root, now.leaves[_HERE, root])
    if now.left[root]:
        now.ready[_HERE, root] = now.leaves[_HERE, root] + router.following
    else:
        now.turn[root] += 1
        _settle(now, steps, tiles, roots, root, router)


@compiled
def _sum_known(now: _Tiles, steps: LineSteps, tiles: LineTiles, tile: int, router: _Router) -> int:
    """When a tile has what it adds to a sum, and room for that where it goes."""
    step = _ended(now, steps, now.turn[tile])
    known = now.ends[step, tile]
    if not steps.in_network:
        number = step // steps.depth
        end, behind = tiles.first[tile + 1], tiles.behind[tile]
        if end > tiles.first[tile]:
            known = max(known, now.added[number, tiles.children[end - 1]])
        if behind != _NOBODY:
            credit = router.credit + router.hop * tiles.away[tile]
            known = max(known, now.added[number, behind] + credit)
    return int(known + router.launch)


@compiled
def _send_sum(now: _Tiles, steps: LineSteps, tiles: LineTiles, tile: int, router: _Router) -> None:
    """Send a tile's partial sum to its parent, through that one's port."""
    parent, number = tiles.parent[tile], _ended(now, steps, now.turn[tile]) // steps.depth
    asks = now.ready[_HERE, tile] + router.hop * tiles.away[tile]
    come = _take_port(now, parent, asks, steps.summed)
    now.got[number, tile] = come + router.ejection
    buffered = router.places * (tiles.away[tile] + 1)
    held = come - buffered if steps.summed > buffered else 0
    now.engine[tile] = max(now.ready[_HERE, tile] + steps.summed, held)
    now.rid[number, tile] = now.engine[tile]
    now.ready[_HERE, tile] = _NEVER
    now.turn[tile] += 1


@compiled
def _add(now: _Tiles, steps: LineSteps, tiles: LineTiles, tile: int) -> bool:
    """Have a tile add what has come from its children, in their order; whether there is any."""
    first, end = tiles.first[tile], tiles.first[tile + 1]
    before = now.counted[tile]
    while end > first:
        number, place = divmod(now.counted[tile], end - first)
        if number == len(now.got):
            break
        step, child = (
            min((number + 1) * steps.depth, len(now.ends)) - 1,
            tiles.children[first + place],
        )
        if now.got[number, child] == _NEVER or now.done[tile] <= step:
            break
        begin = max(now.got[number, child], now.ends[step, tile])
        now.vector[tile] = max(now.vector[tile], begin) + steps.combine
        now.added[number, child] = now.vector[tile]
        now.counted[tile] += 1
        if place + 1 == end - first and tiles.parent[tile] == _NOBODY:
            now.vector[tile] += steps.combine
            now.rid[number, tile] = now.vector[tile]
    return bool(now.counted[tile] > before)


@compiled
def _meet(now: _Tiles, steps: LineSteps, tiles: LineTiles, tile: int, router: _Router) -> None:
    """Have the root of a sum ask for it when the last operand is ready; the others wait for it."""
    root = tile if tiles.parent[tile] == _NOBODY else tiles.parent[tile]
    latest = _start_of_sum(now, root, now.turn[tile])
    for number in range(tiles.first[root], tiles.first[root + 1]):
        child = tiles.children[number]
        start = _start_of_sum(now, child, now.turn[tile])
        latest = max(latest, min(_NEVER, start + router.reduced * tiles.away[child]))
    now.ready[_HERE, tile] = _NEVER
    if latest < _NEVER:
        now.ready[_HERE, root] = latest
        now.beside[0] = 1


@inlined
def _start_of_sum(now: _Tiles, tile: int, turn: int) -> int:
    """When a tile begins to send in a turn, if that has come."""
    here = now.turn[tile] == turn and now.left[tile] == 0
    return now.start[tile] if here else _NEVER


@compiled
def _reduce(now: _Tiles, steps: LineSteps, tiles: LineTiles, root: int, router: _Router) -> None:
    """Combine the partial sums of a root and of its children in the network."""
    number, result = _ended(now, steps, now.turn[root]) // steps.depth, now.ready[_HERE, root]
    asks = result + router.result - router.ejection - steps.summed
    come = _take_port(now, root, asks, steps.summed) + router.ejection
    now.vector[root] = max(now.vector[root], come) + steps.combine
    first, end = tiles.first[root], tiles.first[root + 1]
    for at in range(first - 1, end):
        tile = root if at < first else tiles.children[at]
        left = now.start[tile] + steps.summed
        if steps.summed > router.buffer:
            left = max(left, _held(now, steps, tiles, root, tile, result, router))
        now.rid[number, tile] = left
    for at in range(first - 1, end):
        tile = root if at < first else tiles.children[at]
        now.engine[tile], now.ready[_HERE, tile] = now.rid[number, tile], _NEVER
        now.turn[tile] += 1


@compiled
def _held(
    now: _Tiles, steps: LineSteps, tiles: LineTiles, root: int, tile: int, result: int,
    router: _Router,
) -> int:  # fmt: skip
    """When the tail of an operand that is longer than a buffer has gone into its tile's buffer.

    Each packet leaves when the one before it has left the next router. So an operand waits for
    those that it meets within so many hops as there are packets ahead of its tail.
    """
    away, ahead = tiles.away[tile], (steps.summed - router.buffer - 1) // router.buffer
    latest = result
    if away > ahead:
        latest = 0
        for at in range(tiles.first[root], tiles.first[root + 1]):
            other = tiles.children[at]
            if (other < root) == (tile < root) and tiles.away[other] >= away - ahead:
                latest = max(latest, now.start[other] + router.reduced * tiles.away[other])
    near = min(ahead, away)
    packets = ahead * router.operands + (ahead - near) * router.reduced
    return int(latest + packets - (away - near) * router.reduced + router.tail)


forget_stale(_followed)
