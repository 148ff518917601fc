"""Multicasts along lines of tiles, each of which sends itself blocks as well: step by step.

A block that a tile sends to itself leaves by its ejection port as one packet. Packets of a
multicast take turns with such blocks there, in the order in which they ask, and hold up what comes
behind them (`line_packets`). So a block at any tile holds up multicasts at all of them. Partial
sums go between such blocks, and hold them up.

Here is what tiles do: in which turn each sends what, when it multiplies, and when it adds.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, internal, prepare
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.line_packets import (
    ASKED_HERE,
    HERE,
    HIGH,
    LEAVES,
    LOW,
    NEVER,
    NOBODY,
    OPEN,
    READY,
    Packets,
    Router,
    Table,
    Times,
    ends_block,
    grant,
    leave,
    no_packets,
    pass_on,
    room,
    send,
    send_own,
    take_port,
)

_FOLLOWED_STEPS = 64
"""The others go on at the pace of the last ones."""
_OWN, _SUM, _SENT = range(3)

# Rows of `_Line.table`.
_TURN = 0  # three of each step: what a tile sends next
_START = 1  # when it begins to
_LEFT = 2  # flits of a block of which packets have gone
_DONE = 3  # how many products have ended
_ENGINE = 4  # when the transfer engine is free
_VECTOR = 5  # when the vector engine is
_COUNTED = 6  # how many sums of its children a tile has added
_PARENT, _AWAY, _BEHIND = 7, 8, 9  # see `LineTiles`
_FIRST, _END = 10, 11  # where a tile's children begin and end in the next row
_CHILDREN = 12
_ASKS = 13  # whether it has to be found out again when a tile sends what is next
_ROWS = 14

# Of `_Line.times`.
_ENDS = 0  # when products have ended; by step
_RID = 1  # when partial sums have left; by pass
_GOT = 2  # when they have come to the tile's parent
_ADDED = 3  # when they have been added there
_TIMES = 4

# Rows of `_Line.groups`.
_FROM, _TO = 0, 1  # tiles of a line
_SOONEST = 2  # when the next event there is
_PLACE = 3  # which it is: the way and the tile
_CHANGED = 4  # whether that has to be found again
_GROUP_ROWS = 5


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
    none, zeros = np.full(count, NOBODY), np.zeros(count + 1, dtype=np.int64)
    ends = np.array([[0, count - 1]])
    return LineTiles(zeros[:-1], ends, 1, none, zeros[:-1], zeros, none[:0], none)


class _Laws(NamedTuple):
    """Cycles, and flits: see `NocTiming`."""

    launch: int
    following: int  # from a last flit's leaving a tile's buffer to the next one's being in front
    credit: int  # of a tile to itself
    buffer: int  # into which a whole operand of a reduction goes
    reduced: int  # a hop of it
    result: int  # from the meeting of a reduction's operands to its leaving the port
    operands: int  # of a packet of it
    tail: int  # of its last flits


class _Line(NamedTuple):
    """Tiles, what they have done, and packets between them.

    Attributes:
        steps: What each step takes.
        laws: Of the network.
        packets: In it.
        table: Of tiles; shape (rows named above, tiles).
        times: By step or pass; shape (4, steps + 1, tiles).
        roots: From which tile a block is multicast to a tile; shape (steps, tiles).
        stride: From each tile of a tree to the next one.
        groups: Lines that meet in sums alone; shape (rows named above, lines).
    """

    steps: LineSteps
    laws: _Laws
    packets: Packets
    table: Table
    times: Times
    roots: Table
    stride: int
    groups: Table


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
    count, followed = len(roots), min(len(roots), _FOLLOWED_STEPS)
    if 0 < steps.depth < followed:
        followed -= followed % steps.depth
    half = followed // 2
    if 0 < steps.depth <= half:
        half -= half % steps.depth
    _ready()
    line = _line(steps, tiles, roots[:followed], timing)
    _follow(line)
    ends = line.times[_ENDS, :followed].max(axis=1)
    last = max(ends[-1], line.table[_VECTOR].max())
    pace = (ends[-1] - ends[half - 1]) / (followed - half) if followed < count else 0
    cycles: int = round(last + (count - followed) * pace)
    return cycles


def _line(steps: LineSteps, tiles: LineTiles, roots: NDArray[np.int64], timing: NocTiming) -> _Line:
    """A line before anything is sent."""
    router = Router(
        timing.hop_cycles, timing.ejection_cycles, timing.packet_bound, timing.return_cycles,
        timing.input_places, steps.in_network,
    )  # fmt: skip
    laws = _Laws(
        timing.launch_cycles,
        max(1 - timing.hop_cycles, 1 + timing.return_cycles - timing.input_places),
        credit_cycles(timing, 0), timing.fifo_depth, timing.hop_cycles + timing.reduce_cycles,
        *_reduction_cycles(steps, timing),
    )  # fmt: skip
    count, size = len(roots), len(tiles.tree)
    packets = no_packets(router, count, tiles.tree, tiles.ends)
    packets.come[0, :, roots[0, tiles.tree] == NOBODY] = 0
    if steps.own == 0:
        packets.come[1] = 0
    table = np.zeros((_ROWS, size), dtype=np.int64)
    table[_ENGINE], table[_ASKS] = laws.launch, 1
    table[_PARENT], table[_AWAY], table[_BEHIND] = tiles.parent, tiles.away, tiles.behind
    table[_FIRST], table[_END] = tiles.first[:-1], tiles.first[1:]
    table[_CHILDREN, : len(tiles.children)] = tiles.children
    lines = tiles.ends.T if tiles.stride == 1 else [[0], [size - 1]]
    groups = np.ones((_GROUP_ROWS, len(lines[0])), dtype=np.int64)
    groups[_FROM], groups[_TO] = lines
    times = np.full((_TIMES, count + 1, size), NEVER)
    return _Line(
        steps,
        laws,
        packets,
        table,
        times,
        np.ascontiguousarray(roots[:, tiles.tree]),
        tiles.stride,
        groups,
    )


def _reduction_cycles(steps: LineSteps, timing: NocTiming) -> tuple[int, int, int]:
    """The last fields of `_Laws`."""
    if not steps.in_network:
        return 0, 0, 0
    result = timing.reduction_cycles(1, steps.summed) - timing.hop_cycles - timing.reduce_cycles
    interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
    packet = timing.results_cycles(timing.fifo_depth, interval) + interval
    flits = (steps.summed - timing.fifo_depth - 1) % timing.fifo_depth + 1
    return result + 1, packet, timing.results_cycles(flits, interval) + timing.hop_cycles + 2


@compiled
def _follow(line: _Line) -> None:
    """Have tiles do all that they have to."""
    steps, table, groups = line.steps, line.table, line.groups
    size = table.shape[1]
    while True:
        _settle(line)
        group = _next_group(line)
        if groups[_SOONEST, group] == NEVER:
            return
        groups[_CHANGED, group] = 1
        way, tile = groups[_PLACE, group] // size, groups[_PLACE, group] % size
        kind = _kind(steps, table[_TURN, tile])
        if way != HERE:
            ended = ends_block(line.packets, way, tile)
            _left_root(line, pass_on(line.packets, way, tile))
            if ended:
                _go_on(line, tile)
        elif kind == _OWN:
            _send_own(line, tile)
            _go_on(line, tile)
        elif kind == _SENT:
            if _send_packet(line, tile):
                _go_on(line, tile)
        elif steps.in_network:
            _reduce(line, tile)
            _look_at_all(line)
            for number in range(table[_FIRST, tile], table[_END, tile]):
                _go_on(line, table[_CHILDREN, number])
            _go_on(line, tile)
        else:
            _send_sum(line, tile)
            _look_at_all(line)
            _go_on(line, table[_PARENT, tile])
            _go_on(line, tile)


@internal
def _look_at_all(line: _Line) -> None:
    """Have the next event found again on all lines: their tiles may send sooner than was known."""
    for group in range(line.groups.shape[1]):
        line.groups[_CHANGED, group] = 1


@internal
def _next_group(line: _Line) -> int:
    """The line with the next event."""
    groups, ready, size = line.groups, line.packets.table, line.table.shape[1]
    found = 0
    for group in range(groups.shape[1]):
        if groups[_CHANGED, group]:
            soonest = NEVER
            for way in range(3):
                for tile in range(groups[_FROM, group], groups[_TO, group] + 1):
                    if ready[READY + way, tile] < soonest:
                        soonest = ready[READY + way, tile]
                        groups[_PLACE, group] = way * size + tile
            groups[_SOONEST, group], groups[_CHANGED, group] = soonest, 0
        if groups[_SOONEST, group] < groups[_SOONEST, found]:
            found = group
    return found


@internal
def _kind(steps: LineSteps, turn: int) -> int:
    """What a tile sends in a turn."""
    kind = turn % 3
    return kind if steps.own_first else 2 - kind


@internal
def _ended(line: _Line, turn: int) -> int:
    """The last step of the pass whose partial sums are sent in a turn; -1: of none."""
    step, depth, count = turn // 3 - 2, line.steps.depth, len(line.roots)
    if depth == 0 or step < 0 or step >= count:
        return -1
    return step if (step + 1) % depth == 0 or step + 1 == count else -1


@internal
def _go_on(line: _Line, tile: int) -> None:
    """Have a tile multiply and add: it, and who waits for it, may send what is next."""
    table, packets = line.table, line.packets.table
    before = table[_DONE, tile]
    _multiply(line, tile)
    if not line.steps.in_network and _add(line, tile):
        _multiply(line, tile)
        _look_at_all(line)
        for number in range(table[_FIRST, tile], table[_END, tile]):
            table[_ASKS, table[_CHILDREN, number]] = 1
    table[_ASKS, tile] = 1
    if table[_DONE, tile] > before:
        for other in range(packets[LOW, tile], packets[HIGH, tile] + 1, line.stride):
            waits = packets[READY + HERE, other] == NEVER
            if waits and _kind(line.steps, table[_TURN, other]) == _SENT:
                table[_ASKS, other] = 1


@internal
def _multiply(line: _Line, tile: int) -> None:
    """Work on all that has come to a tile."""
    come, times, depth = line.packets.come, line.times, line.steps.depth
    for step in range(line.table[_DONE, tile], len(line.roots)):
        begin = max(come[0, step, tile], come[1, step, tile])
        if depth and step % depth == 0 and step >= 2 * depth:
            begin = max(begin, times[_RID, step // depth - 2, tile])
        if begin == NEVER:
            break
        before = times[_ENDS, step - 1, tile] if step else 0
        times[_ENDS, step, tile] = max(begin, before) + line.steps.product
        line.table[_DONE, tile] += 1


@internal
def _settle(line: _Line) -> None:
    """Find out when tiles ask for what they send next."""
    for group in range(line.groups.shape[1]):
        if line.groups[_CHANGED, group]:
            for tile in range(line.groups[_FROM, group], line.groups[_TO, group] + 1):
                if line.table[_ASKS, tile]:
                    line.table[_ASKS, tile] = 0
                    _settle_tile(line, tile)


@internal
def _settle_tile(line: _Line, tile: int) -> None:
    """The same of one tile."""
    table, packets, steps = line.table, line.packets.table, line.steps
    if table[_LEFT, tile] or packets[OPEN + HERE, tile]:
        return
    _turn(line, tile)
    packets[READY + HERE, tile] = NEVER
    step, kind = table[_TURN, tile] // 3, _kind(steps, table[_TURN, tile])
    if step >= len(line.roots) + 2:
        return
    before, known = step - steps.buffers, 0
    credit = line.laws.credit + line.laws.launch
    if kind == _SUM:
        known = _sum_known(line, tile)
    elif before >= 0 and kind == _OWN:
        known = line.times[_ENDS, before, tile] + credit
    elif before >= 0:
        for other in range(packets[LOW, tile], packets[HIGH, tile] + 1, line.stride):
            hops = line.packets.router.hop * abs(other - tile)
            known = max(known, line.times[_ENDS, before, other] + credit + hops)
    start = min(NEVER, max(table[_ENGINE, tile], known))
    table[_START, tile] = start
    if start == NEVER:
        return
    free = line.packets.gone[HERE, 0, tile] + line.laws.following
    packets[READY + HERE, tile] = max(start, free)
    if kind == _SUM and steps.in_network:
        _meet(line, tile)


@internal
def _turn(line: _Line, tile: int) -> None:
    """Find the next turn in which a tile sends anything."""
    table, steps, count = line.table, line.steps, len(line.roots)
    while table[_TURN, tile] < 3 * (count + 2):
        step, kind = table[_TURN, tile] // 3, _kind(steps, table[_TURN, tile])
        if kind == _SUM:
            sends = steps.in_network or table[_PARENT, tile] != NOBODY
            if sends and _ended(line, table[_TURN, tile]) >= 0:
                return
        elif step < count:
            if kind == _OWN and steps.own:
                return
            if kind == _SENT and line.roots[step, tile] == tile:
                return
        table[_TURN, tile] += 1


@internal
def _send_own(line: _Line, tile: int) -> None:
    """Send a tile's block through its port."""
    table, own, router = line.table, line.steps.own, line.packets.router
    last = send_own(line.packets, tile, own, table[_TURN, tile] // 3)
    free = last + 1 - router.places + router.returns
    table[_ENGINE, tile] = max(table[_START, tile] + own, free)
    table[_TURN, tile] += 1


@internal
def _send_packet(line: _Line, root: int) -> bool:
    """Send a packet of a block to a root's tree; whether it is the last one."""
    table, packets, sent = line.table, line.packets, line.steps.sent
    if table[_LEFT, root] == 0:
        table[_LEFT, root] = sent
    flits = min(packets.router.packet, table[_LEFT, root])
    table[_LEFT, root] -= flits
    last = table[_LEFT, root] == 0
    if last:
        free = room(packets, HERE, root, flits) + packets.router.returns + 1
        table[_ENGINE, root] = max(table[_START, root] + sent, free)
    send(packets, root, flits, table[_TURN, root] // 3 if last else NOBODY)
    if packets.table[OPEN + HERE, root] == 0:
        _left_root(line, root)
    for way in range(HERE):
        if packets.table[ASKED_HERE + way, root] < NEVER:
            _left_root(line, grant(packets, way, root))
    return bool(last)


@internal
def _left_root(line: _Line, root: int) -> None:
    """Go on behind a packet that has left its root's buffer, if one has."""
    if root == NOBODY:
        return
    table, left = line.table, line.packets.table[LEAVES + HERE, root]
    leave(line.packets, HERE, root, left)
    if table[_LEFT, root]:
        line.packets.table[READY + HERE, root] = left + line.laws.following
    else:
        table[_TURN, root] += 1
        table[_ASKS, root] = 1


@internal
def _sum_known(line: _Line, tile: int) -> int:
    """When a tile has what it adds to a sum, and room for that where it goes."""
    table, times, laws = line.table, line.times, line.laws
    step = _ended(line, table[_TURN, tile])
    known = times[_ENDS, step, tile]
    if not line.steps.in_network:
        number = step // line.steps.depth
        end, behind = table[_END, tile], table[_BEHIND, tile]
        if end > table[_FIRST, tile]:
            known = max(known, times[_ADDED, number, table[_CHILDREN, end - 1]])
        if behind != NOBODY:
            credit = laws.credit + line.packets.router.hop * table[_AWAY, tile]
            known = max(known, times[_ADDED, number, behind] + credit)
    return int(known + laws.launch)


@internal
def _send_sum(line: _Line, tile: int) -> None:
    """Send a tile's partial sum to its parent, through that one's port."""
    table, router, summed = line.table, line.packets.router, line.steps.summed
    number, away = _ended(line, table[_TURN, tile]) // line.steps.depth, table[_AWAY, tile]
    ready = line.packets.table[READY + HERE, tile]
    come = take_port(line.packets, table[_PARENT, tile], ready + router.hop * away, summed)
    line.times[_GOT, number, tile] = come + router.ejection
    buffered = router.places * (away + 1)
    left = max(ready + summed, come - buffered if summed > buffered else 0)
    _sent_sum(line, tile, number, left)


@internal
def _sent_sum(line: _Line, tile: int, number: int, left: int) -> None:
    """Go on behind the sum of a pass that leaves a tile in a cycle."""
    line.times[_RID, number, tile], line.table[_ENGINE, tile] = left, left
    line.packets.table[READY + HERE, tile] = NEVER
    line.table[_TURN, tile] += 1


@internal
def _add(line: _Line, tile: int) -> bool:
    """Have a tile add what has come from its children, in their order; whether there is any."""
    table, times, steps = line.table, line.times, line.steps
    first, end = table[_FIRST, tile], table[_END, tile]
    before = table[_COUNTED, tile]
    while end > first:
        number, place = (
            table[_COUNTED, tile] // (end - first),
            table[_COUNTED, tile] % (end - first),
        )
        step = min((number + 1) * steps.depth, len(line.roots)) - 1
        child = table[_CHILDREN, first + place]
        if times[_GOT, number, child] == NEVER or table[_DONE, tile] <= step:
            break
        begin = max(times[_GOT, number, child], times[_ENDS, step, tile])
        table[_VECTOR, tile] = max(table[_VECTOR, tile], begin) + steps.combine
        times[_ADDED, number, child] = table[_VECTOR, tile]
        table[_COUNTED, tile] += 1
        if place + 1 == end - first and table[_PARENT, tile] == NOBODY:
            table[_VECTOR, tile] += steps.combine
            times[_RID, number, tile] = table[_VECTOR, tile]
    return bool(table[_COUNTED, tile] > before)


@internal
def _meet(line: _Line, tile: int) -> None:
    """Have the root of a sum ask for it when the last operand is ready; the others wait for it."""
    table, ready = line.table, line.packets.table
    root = tile if table[_PARENT, tile] == NOBODY else table[_PARENT, tile]
    latest = _start_of_sum(line, root, table[_TURN, tile])
    for number in range(table[_FIRST, root], table[_END, root]):
        child = table[_CHILDREN, number]
        start = _start_of_sum(line, child, table[_TURN, tile])
        latest = max(latest, min(NEVER, start + line.laws.reduced * table[_AWAY, child]))
    ready[READY + HERE, tile] = NEVER
    if latest < NEVER:
        ready[READY + HERE, root] = latest
        _look_at_all(line)


@internal
def _start_of_sum(line: _Line, tile: int, turn: int) -> int:
    """When a tile begins to send in a turn, if that has come."""
    here = line.table[_TURN, tile] == turn and line.table[_LEFT, tile] == 0
    return int(line.table[_START, tile]) if here else NEVER


@internal
def _reduce(line: _Line, root: int) -> None:
    """Combine the partial sums of a root and of its children in the network."""
    table, steps, laws, ejection = line.table, line.steps, line.laws, line.packets.router.ejection
    number = _ended(line, table[_TURN, root]) // steps.depth
    result = line.packets.table[READY + HERE, root]
    asks = result + laws.result - ejection - steps.summed
    come = take_port(line.packets, root, asks, steps.summed) + ejection
    table[_VECTOR, root] = max(table[_VECTOR, root], come) + steps.combine
    first, end = table[_FIRST, root], table[_END, root]
    for at in range(first - 1, end):
        tile = root if at < first else table[_CHILDREN, at]
        left = table[_START, tile] + steps.summed
        if steps.summed > laws.buffer:
            left = max(left, _held(line, root, tile, result))
        _sent_sum(line, tile, number, left)


@internal
def _held(line: _Line, root: int, tile: int, result: int) -> int:
    """When the tail of an operand that is longer than a buffer has gone into its tile's buffer.

    Each packet leaves when the one before it has left the next router. So an operand waits for
    those that it meets within so many hops as there are packets ahead of its tail.
    """
    table, laws = line.table, line.laws
    away, ahead = table[_AWAY, tile], (line.steps.summed - laws.buffer - 1) // laws.buffer
    latest = result
    if away > ahead:
        latest = 0
        for at in range(table[_FIRST, root], table[_END, root]):
            other = table[_CHILDREN, at]
            if (other < root) == (tile < root) and table[_AWAY, other] >= away - ahead:
                start = table[_START, other]
                latest = max(latest, start + laws.reduced * table[_AWAY, other])
    near = min(ahead, away)
    packets = ahead * laws.operands + (ahead - near) * laws.reduced
    return int(latest + packets - (away - near) * laws.reduced + laws.tail)


@cache
def _ready() -> None:
    """Compile, or load what was compiled."""
    prepare(_follow)
