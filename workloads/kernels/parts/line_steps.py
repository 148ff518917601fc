"""Multicasts along lines of tiles, each of which sends itself blocks as well: step by step.

A block that a tile sends to itself leaves by its ejection port as one packet. Packets of a
multicast take turns with such blocks there, in the order in which they ask, and hold up what comes
behind them (`line_packets`). So a block at any tile holds up multicasts at all of them. Partial
sums go between such blocks, and hold them up.

Here is what tiles do: in which turn each sends what, when it multiplies, and when it adds.
"""

from functools import cache

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
    Router,
    ends_block,
    grant,
    leave,
    no_packets,
    pass_on,
    room,
    send,
    send_own,
)
from workloads.kernels.parts.line_state import (
    ASKS,
    AWAY,
    BEHIND,
    CHANGED,
    CHILDREN,
    DONE,
    END,
    ENDS,
    ENGINE,
    FIRST,
    FROM,
    GROUP_ROWS,
    LEFT,
    OWN,
    PARENT,
    PLACE,
    RID,
    ROWS,
    SENT,
    SOONEST,
    START,
    SUM,
    TIMES,
    TO,
    TURN,
    VECTOR,
    Line,
    LineLaws,
    LineSteps,
    LineTiles,
    ended,
    kind_of,
    look_at_all,
)
from workloads.kernels.parts.line_sums import add_sums, meet, reduce_sums, send_sum, sum_known

_FOLLOWED_STEPS = 64
"""The others go on at the pace of the last ones."""


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
    ends = line.times[ENDS, :followed].max(axis=1)
    last = max(ends[-1], line.table[VECTOR].max())
    pace = (ends[-1] - ends[half - 1]) / (followed - half) if followed < count else 0
    cycles: int = round(last + (count - followed) * pace)
    return cycles


def _line(steps: LineSteps, tiles: LineTiles, roots: NDArray[np.int64], timing: NocTiming) -> Line:
    """A line before anything is sent."""
    router = Router(
        timing.hop_cycles, timing.ejection_cycles, timing.packet_bound, timing.return_cycles,
        timing.input_places, steps.in_network,
    )  # fmt: skip
    laws = LineLaws(
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
    table = np.zeros((ROWS, size), dtype=np.int64)
    table[ENGINE], table[ASKS] = laws.launch, 1
    table[PARENT], table[AWAY], table[BEHIND] = tiles.parent, tiles.away, tiles.behind
    table[FIRST], table[END] = tiles.first[:-1], tiles.first[1:]
    table[CHILDREN, : len(tiles.children)] = tiles.children
    lines = tiles.ends.T if tiles.stride == 1 else [[0], [size - 1]]
    groups = np.ones((GROUP_ROWS, len(lines[0])), dtype=np.int64)
    groups[FROM], groups[TO] = lines
    times = np.full((TIMES, count + 1, size), NEVER)
    return Line(
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
    """The last fields of `LineLaws`."""
    if not steps.in_network:
        return 0, 0, 0
    result = timing.reduction_cycles(1, steps.summed) - timing.hop_cycles - timing.reduce_cycles
    interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
    packet = timing.results_cycles(timing.fifo_depth, interval) + interval
    flits = (steps.summed - timing.fifo_depth - 1) % timing.fifo_depth + 1
    return result + 1, packet, timing.results_cycles(flits, interval) + timing.hop_cycles + 2


@compiled
def _follow(line: Line) -> None:
    """Have tiles do all that they have to."""
    steps, table, groups = line.steps, line.table, line.groups
    size = table.shape[1]
    while True:
        _settle(line)
        group = _next_group(line)
        if groups[SOONEST, group] == NEVER:
            return
        groups[CHANGED, group] = 1
        way, tile = groups[PLACE, group] // size, groups[PLACE, group] % size
        kind = kind_of(steps, table[TURN, tile])
        if way != HERE:
            ended = ends_block(line.packets, way, tile)
            _left_root(line, pass_on(line.packets, way, tile))
            if ended:
                _go_on(line, tile)
        elif kind == OWN:
            _send_own(line, tile)
            _go_on(line, tile)
        elif kind == SENT:
            if _send_packet(line, tile):
                _go_on(line, tile)
        elif steps.in_network:
            reduce_sums(line, tile)
            look_at_all(line)
            for number in range(table[FIRST, tile], table[END, tile]):
                _go_on(line, table[CHILDREN, number])
            _go_on(line, tile)
        else:
            send_sum(line, tile)
            look_at_all(line)
            _go_on(line, table[PARENT, tile])
            _go_on(line, tile)


@internal
def _next_group(line: Line) -> int:
    """The line with the next event."""
    groups, ready, size = line.groups, line.packets.table, line.table.shape[1]
    found = 0
    for group in range(groups.shape[1]):
        if groups[CHANGED, group]:
            soonest = NEVER
            for way in range(3):
                for tile in range(groups[FROM, group], groups[TO, group] + 1):
                    if ready[READY + way, tile] < soonest:
                        soonest = ready[READY + way, tile]
                        groups[PLACE, group] = way * size + tile
            groups[SOONEST, group], groups[CHANGED, group] = soonest, 0
        if groups[SOONEST, group] < groups[SOONEST, found]:
            found = group
    return found


@internal
def _go_on(line: Line, tile: int) -> None:
    """Have a tile multiply and add: it, and who waits for it, may send what is next."""
    table, packets = line.table, line.packets.table
    before = table[DONE, tile]
    _multiply(line, tile)
    if not line.steps.in_network and add_sums(line, tile):
        _multiply(line, tile)
        look_at_all(line)
        for number in range(table[FIRST, tile], table[END, tile]):
            table[ASKS, table[CHILDREN, number]] = 1
    table[ASKS, tile] = 1
    if table[DONE, tile] > before:
        for other in range(packets[LOW, tile], packets[HIGH, tile] + 1, line.stride):
            waits = packets[READY + HERE, other] == NEVER
            if waits and kind_of(line.steps, table[TURN, other]) == SENT:
                table[ASKS, other] = 1


@internal
def _multiply(line: Line, tile: int) -> None:
    """Work on all that has come to a tile."""
    come, times, depth = line.packets.come, line.times, line.steps.depth
    for step in range(line.table[DONE, tile], len(line.roots)):
        begin = max(come[0, step, tile], come[1, step, tile])
        if depth and step % depth == 0 and step >= 2 * depth:
            begin = max(begin, times[RID, step // depth - 2, tile])
        if begin == NEVER:
            break
        before = times[ENDS, step - 1, tile] if step else 0
        times[ENDS, step, tile] = max(begin, before) + line.steps.product
        line.table[DONE, tile] += 1


@internal
def _settle(line: Line) -> None:
    """Find out when tiles ask for what they send next."""
    for group in range(line.groups.shape[1]):
        if line.groups[CHANGED, group]:
            for tile in range(line.groups[FROM, group], line.groups[TO, group] + 1):
                if line.table[ASKS, tile]:
                    line.table[ASKS, tile] = 0
                    _settle_tile(line, tile)


@internal
def _settle_tile(line: Line, tile: int) -> None:
    """The same of one tile."""
    table, packets, steps = line.table, line.packets.table, line.steps
    if table[LEFT, tile] or packets[OPEN + HERE, tile]:
        return
    _turn(line, tile)
    packets[READY + HERE, tile] = NEVER
    step, kind = table[TURN, tile] // 3, kind_of(steps, table[TURN, tile])
    if step >= len(line.roots) + 2:
        return
    before, known = step - steps.buffers, 0
    credit = line.laws.credit + line.laws.launch
    if kind == SUM:
        known = sum_known(line, tile)
    elif before >= 0 and kind == OWN:
        known = line.times[ENDS, before, tile] + credit
    elif before >= 0:
        for other in range(packets[LOW, tile], packets[HIGH, tile] + 1, line.stride):
            hops = line.packets.router.hop * abs(other - tile)
            known = max(known, line.times[ENDS, before, other] + credit + hops)
    start = min(NEVER, max(table[ENGINE, tile], known))
    table[START, tile] = start
    if start == NEVER:
        return
    free = line.packets.gone[HERE, 0, tile] + line.laws.following
    packets[READY + HERE, tile] = max(start, free)
    if kind == SUM and steps.in_network:
        meet(line, tile)


@internal
def _turn(line: Line, tile: int) -> None:
    """Find the next turn in which a tile sends anything."""
    table, steps, count = line.table, line.steps, len(line.roots)
    while table[TURN, tile] < 3 * (count + 2):
        step, kind = table[TURN, tile] // 3, kind_of(steps, table[TURN, tile])
        if kind == SUM:
            sends = steps.in_network or table[PARENT, tile] != NOBODY
            if sends and ended(line, table[TURN, tile]) >= 0:
                return
        elif step < count:
            if kind == OWN and steps.own:
                return
            if kind == SENT and line.roots[step, tile] == tile:
                return
        table[TURN, tile] += 1


@internal
def _send_own(line: Line, tile: int) -> None:
    """Send a tile's block through its port."""
    table, own, router = line.table, line.steps.own, line.packets.router
    last = send_own(line.packets, tile, own, table[TURN, tile] // 3)
    free = last + 1 - router.places + router.returns
    table[ENGINE, tile] = max(table[START, tile] + own, free)
    table[TURN, tile] += 1


@internal
def _send_packet(line: Line, root: int) -> bool:
    """Send a packet of a block to a root's tree; whether it is the last one."""
    table, packets, sent = line.table, line.packets, line.steps.sent
    if table[LEFT, root] == 0:
        table[LEFT, root] = sent
    flits = min(packets.router.packet, table[LEFT, root])
    table[LEFT, root] -= flits
    last = table[LEFT, root] == 0
    if last:
        free = room(packets, HERE, root, flits) + packets.router.returns + 1
        table[ENGINE, root] = max(table[START, root] + sent, free)
    send(packets, root, flits, table[TURN, root] // 3 if last else NOBODY)
    if packets.table[OPEN + HERE, root] == 0:
        _left_root(line, root)
    for way in range(HERE):
        if packets.table[ASKED_HERE + way, root] < NEVER:
            _left_root(line, grant(packets, way, root))
    return bool(last)


@internal
def _left_root(line: Line, root: int) -> None:
    """Go on behind a packet that has left its root's buffer, if one has."""
    if root == NOBODY:
        return
    table, left = line.table, line.packets.table[LEAVES + HERE, root]
    leave(line.packets, HERE, root, left)
    if table[LEFT, root]:
        line.packets.table[READY + HERE, root] = left + line.laws.following
    else:
        table[TURN, root] += 1
        table[ASKS, root] = 1


@cache
def _ready() -> None:
    """Compile, or load what was compiled."""
    prepare(_follow)
