"""Times of messages by which software sums up and spreads blocks along lines, as recurrences.

Everything begins at 0 and has shape (roots, candidates): each root of the lines by itself, and each
of several lengths of the block. Links between tiles are taken to be in nobody's way; ports of
tiles, buffers, credits, engines and interfaces are not. Credits go over the same network, unless
``credits`` is the timing of another.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.tiles.timing import FREE, QueueTiming
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines

RECEIVE_BUFFERS = 2
"""Of a tile, for the messages that come to it in turn."""
_LONG_AGO = -(2**40)
_Roots = int | tuple[int, ...]


def tree_gather(
    reduction: Reduction, timing: NocTiming, credits: NocTiming | None = None
) -> tuple[Any, Any]:
    """When the last message has come to the root of a tree, and when it is added.

    A tile adds what comes when it has its own. It has two buffers, and says far away that one is
    free again. Of two messages that come at a time, the later one is behind the other in its port.
    """
    lines, flits = reduction.lines, reduction.flits
    way = tree_ways(lines, reduction.root, timing, flits)
    known = timing if credits is None else credits
    credit = tree_ways(lines, reduction.root, known, 1) - known.launch_cycles
    added, come = [np.zeros_like(way)], np.zeros_like(way)
    for number, (senders, step) in enumerate(rounds_of(lines.length)):
        takers = senders - step
        leave = added[-1][:, senders]
        if number >= RECEIVE_BUFFERS:
            free = added[number + 1 - RECEIVE_BUFFERS][:, takers]
            leave = np.maximum(leave, free + credit[:, senders])
        comes = leave + way[:, senders]
        if number:
            before, comes = _one_port(come[:, takers], comes, flits)
            own = np.maximum(added[-2][:, takers], before)
            added[-1][:, takers] = own + reduction.combine_cycles
            come[:, takers] = before
        now = added[-1].copy()
        now[:, takers] = np.maximum(now[:, takers], comes) + reduction.combine_cycles
        come[:, takers] = np.maximum(come[:, takers], comes)
        added.append(now)
    return come[:, 0], added[-1][:, 0]


def sequential_gather(
    reduction: Reduction, timing: NocTiming, credits: NocTiming | None = None
) -> tuple[Any, Any]:
    """When the last of the messages to one root has come, and when it is added.

    The root has two buffers, which it tells its senders of in their order. Its port takes a flit a
    cycle: of the first two messages the nearer one's first.
    """
    lines, roots, flits = reduction.lines, _roots(reduction.root), reduction.flits
    hops = _hops_to_others(lines, roots)
    way = _ways(timing, hops, flits)
    known = timing if credits is None else credits
    credit = _ways(known, hops, 1) - known.launch_cycles
    come = way.copy()
    if way.shape[1] > 1:
        come[:, 0], come[:, 1] = _one_port(way[:, 0], way[:, 1], flits)
    added = np.zeros_like(come)
    done: Any = np.zeros_like(come[:, 0]) if way.shape[1] else np.zeros((len(roots), 1), np.int64)
    for number in range(way.shape[1]):
        if number >= RECEIVE_BUFFERS:
            starts = added[:, number - RECEIVE_BUFFERS] + credit[:, number]
            port = come[:, number - 1] + flits
            come[:, number] = np.maximum(starts + way[:, number], port)
        done = np.maximum(done, come[:, number]) + reduction.combine_cycles
        added[:, number] = done
    return come.max(axis=1, initial=0), done


def tree_spread(
    lines: Lines, root: _Roots, flits: Any, timing: NocTiming, queues: QueueTiming = FREE
) -> Any:
    """When a block has come to all tiles of a tree: a tile sends to one after the other.

    It says that it has the block still, which is work of its own, before it sends it again.
    """
    way = tree_ways(lines, root, timing, flits)
    hold = flits + queues.launch_cycles + queues.least_work_cycles
    here, last = np.zeros_like(way), np.zeros_like(way[:, 0])
    for takers, step in reversed(rounds_of(lines.length)):
        senders = takers - step
        here[:, takers] = here[:, senders] + way[:, takers]
        last = np.maximum(last, here[:, takers].max(axis=1))
        here[:, senders] += hold
    return last


def gather_behind_spread(reduction: Reduction, senders: Sequence[int], timing: NocTiming) -> int:
    """When a tree's sums are there if tiles first send a block on along lines across it.

    From when the root of each of those lines has sent its own, with all parts made before. Tiles
    that send in the last round of the block send late, the others as soon as they have their parts.

    Args:
        reduction: The sums, of which each line has a root.
        senders: By place of the lines, the place along the line across there of who sends first.
        timing: Of the network.
    """
    roots, combine = np.array(reduction.root), reduction.combine_cycles
    rows, cols = len(roots), len(senders)
    free = np.full((rows, cols), _LONG_AGO)
    column, late = _tree_places(np.array(senders), rows), np.zeros((cols, rows), dtype=np.int64)
    rounds = rounds_of(rows)
    for takers, step in reversed(rounds[1:]):
        way = _head_cycles(column, takers, step, timing)
        late[:, takers] = late[:, takers - step] + way
    for takers, step in rounds[:1]:
        free[column[:, takers - step], np.arange(cols)[:, None]] = late[:, takers - step]
    row, done = _tree_places(roots, cols), np.full((rows, cols), _LONG_AGO)
    free = np.take_along_axis(free, row, axis=1)
    for sending, step in rounds_of(cols):
        way = _head_cycles(row, sending, step, timing) + reduction.flits
        come = np.maximum(done[:, sending], free[:, sending]) + way
        takers = sending - step
        done[:, takers] = np.maximum(done[:, takers], come) + combine
    return max(0, int(done[:, 0].max()))


def _tree_places(roots: Any, length: int) -> Any:
    """Places of the tiles of lines in the order of their trees: shape (lines, tiles)."""
    return (roots[:, None] + np.arange(length)) % length


def _head_cycles(places: Any, takers: Any, step: int, timing: NocTiming) -> Any:
    """Of a message of a round of trees, but for its flits: shape (lines, messages)."""
    hops = np.abs(places[:, takers] - places[:, takers - step])
    one = arrival_cycles(timing, 1, 0)
    return one + timing.head_cycles(hops) - timing.head_cycles(1)


def sequential_spread(
    lines: Lines, root: _Roots, flits: int, timing: NocTiming, queues: QueueTiming = FREE
) -> Any:
    """When a block has come to the last of the others, to each of which the root sends it.

    Its interface has a few transfers at a time, and passes a flit a cycle.
    """
    way = _ways(timing, _hops_to_others(lines, _roots(root)), flits)
    starts: list[int] = []
    for number in range(way.shape[1]):
        start = starts[-1] + flits if number else 0
        if number >= queues.outstanding:
            start = max(start, starts[-queues.outstanding] + queues.launch_cycles + flits)
        starts.append(start)
    return (np.array(starts)[:, None] + way).max(axis=1)


def rounds_of(length: int) -> list[tuple[Any, int]]:
    """Who sends in each round of a tree, by number from the root, and to how many before."""
    steps = [1 << n for n in range((length - 1).bit_length())]
    return [(np.arange(step, length, 2 * step), step) for step in steps]


def tree_ways(lines: Lines, root: _Roots, timing: NocTiming, flits: Any) -> Any:
    """Cycles of a message of each tile's in a tree: shape (roots, tiles, candidates)."""
    length, roots = lines.length, _roots(root)
    places = (roots[:, None] + np.arange(length)) % length
    hops = np.zeros_like(places)
    for senders, step in rounds_of(length):
        hops[:, senders] = lines.hops(places[:, senders], places[:, senders - step])
    return _ways(timing, hops, flits)


def _one_port(first: Any, second: Any, flits: Any) -> tuple[Any, Any]:
    """When two messages have come through a port that takes one of them after the other."""
    behind = np.maximum(first, second + flits), np.maximum(second, first + flits)
    in_order = first <= second
    return np.where(in_order, first, behind[0]), np.where(in_order, behind[1], second)


def _roots(root: _Roots) -> Any:
    return np.array([root] if isinstance(root, int) else sorted(set(root)))


def _hops_to_others(lines: Lines, roots: Any) -> Any:
    """Links between each root and the other places, in their order: shape (roots, others)."""
    places = np.arange(lines.length)
    others = np.array([places[places != root] for root in roots])
    return lines.hops(others, np.broadcast_to(roots[:, None], others.shape))


def _ways(timing: NocTiming, hops: Any, flits: Any) -> Any:
    """Cycles of messages over some links, which arrive one by one: a last axis of candidates."""
    one = np.atleast_1d(arrival_cycles(timing, 1, flits))
    # Where channels are locked a request and an acknowledge go that way before.
    farther = timing.head_cycles(hops) - timing.head_cycles(1)
    return one + farther[..., None]
