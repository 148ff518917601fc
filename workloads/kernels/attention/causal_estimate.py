"""Cycles of FlatAttention with a causal mask, roughly, of many groups and blocks at once.

It is what engines and channels have to do, as if each went on without waiting for another, and one
block's way through all of them. That puts plans in order; cycles are told by the closed form.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.interconnect.transfer_times import multicast_cycles_over, reduction_cycles_over
from tlm.offchip.times import served_cycles
from workloads.kernels.attention.flat_plan import FlatPlan, brought_blocks, most_groups
from workloads.kernels.attention.plan import Cut, flits


class Tried(NamedTuple):
    """Plans to try: each figure is an array with one place for each of them.

    Attributes:
        cut: Of rows and keys.
        group: Rows and columns of tiles.
        seen: Blocks of keys that a block of rows sees, the mean of a head's.
        paired: The same of two, an early and a late one: the most.
    """

    cut: Cut
    group: tuple[Any, Any]
    seen: Any
    paired: Any

    def some(self, which: NDArray[np.int64]) -> "Tried":
        """Those of some numbers."""
        cut, (down, across) = self.cut, self.group
        rows, keys, q_blocks, kv_blocks = (each[which] for each in cut[:4])
        one = Cut(rows, keys, q_blocks, kv_blocks, across[which], cut.turns, cut.length)
        return Tried(one, (down[which], across[which]), self.seen[which], self.paired[which])


class _Work(NamedTuple):
    """Of a group with the most work."""

    groups: Any  # that the grid has
    streams: Any
    items: Any  # blocks of keys of all its streams
    masked: Any  # blocks of a stream that are masked
    masks: Any  # masks that are brought
    loads: Any  # blocks of keys that are brought


def rough_cycles(problem: FlatPlan, tried: Tried) -> Any:
    """Roughly the cycles of plans of a problem, whose own cut and group do not matter."""
    place, shape, cut, work = problem.place, problem.shape, tried.cut, _work(problem, tried)
    after, depth, v_depth = place.after_vector or place.matrix, shape.qk_depth, shape.v_depth
    matrix = place.matrix.gemm_cycles_over(cut.rows, np.array(depth), cut.keys)
    matrix = matrix + after.gemm_cycles_over(cut.rows, cut.keys, np.array(v_depth))
    wide, column, deep = (
        place.vector.pass_cycles_over(cut.rows, each)
        for each in (cut.keys, np.array(1), np.array(v_depth))
    )
    # What `core.softmax_cycles` says, and twice a block what comes together.
    softmax = 6 * wide + 9 * column + deep + 2 * _meeting(problem, tried, column)
    vector = work.items * softmax - work.streams * (6 * column + deep)
    vector = vector + 2 * work.streams * work.masked * wide
    served, first, last = _channel(problem, tried, work)
    if cut.turns == 1:
        return work.items * matrix + vector + served + first
    worked = np.maximum(work.items * matrix, vector) + matrix
    return np.maximum(worked + first + last, served + matrix + softmax)


def _work(problem: FlatPlan, tried: Tried) -> _Work:
    shape, (cut, (down, across), seen, paired) = problem.shape, tried
    groups = most_groups(problem.place, tried.group)
    streams = ceil_div(shape.heads * cut.q_blocks, groups)
    # Streams are whole heads, or early and late ones go together; of an odd number one is late.
    together = streams // 2 * paired + streams % 2 * cut.kv_blocks
    items = np.where(streams % cut.q_blocks == 0, streams * seen, together)
    masked = np.minimum(seen, down * cut.rows / (shape.sharers * across * cut.keys) + 1)
    states = np.minimum(min(cut.turns, problem.heads), streams)
    # Streams of one pattern after the other need its masks once, all of a single one once and for
    # all; others take turns with their own.
    same = np.where(masked < 1.01, 1, masked * ceil_div(streams, states))
    masks = np.where(cut.q_blocks == 1, same, streams * np.maximum(masked, 1))
    loads = brought_blocks(cut, streams, states) * items / (streams * cut.kv_blocks)
    return _Work(groups, streams, items, masked, masks, loads)


def _meeting(problem: FlatPlan, tried: Tried, column: Any) -> Any:
    """Until a column of each tile has come together along a row and gone back."""
    timing, across = problem.place.timing, tried.group[1]
    length, hops = flits(problem, "total", tried.cut.rows, tried.cut.keys), across - 1
    spread = multicast_cycles_over(timing, hops, length)
    if problem.method == "network":
        both = reduction_cycles_over(timing, hops, length) + spread
    elif problem.method == "sequential":
        both = 2 * (hops * length + spread) + hops * column
    else:
        stages = np.ceil(np.log2(across))
        both = stages * (2 * (spread - hops * timing.hop_cycles) + column)
        both = both + 2 * hops * timing.hop_cycles
    return np.where(across > 1, both, 0)


def _channel(problem: FlatPlan, tried: Tried, work: _Work) -> tuple[Any, Any, Any]:
    """For which a channel is busy: in all, before the first block is there, and with the results.

    All at the edge are equally, but for masks: the busiest counts. Of those at tiles it is that of
    a tile that loads keys.
    """
    edge, timing, (down, across) = problem.place.offchip, problem.place.timing, tried.group
    if edge is None:
        return 0, 0, 0
    q, k, v, o, mask, unseen = (
        served_cycles(timing, edge, flits(problem, name, tried.cut.rows, tried.cut.keys))
        for name in ("q", "k", "v", "o", "mask", "unseen")
    )
    share = work.groups / edge.channels
    rows, cols, every = share * down, share * across, share * down * across
    if edge.at_tiles:
        rows = cols = every = 1
    masks = _mask_tiles(problem, tried) * mask + every * unseen
    served = work.loads * cols * (k + v) + work.streams * rows * (q + o) + work.masks * masks
    return served, rows * q + cols * k + masks, rows * o


def _mask_tiles(problem: FlatPlan, tried: Tried) -> Any:
    """Tiles that bring a mask from the busiest channel, of all groups: those on its diagonal."""
    place, cut, (down, across) = problem.place, tried.cut, tried.group
    edge = place.offchip
    assert edge is not None  # or there were no channel
    if edge.at_tiles:
        return 1
    columns, tokens = place.cols / edge.channels, cut.rows / problem.shape.sharers
    part = np.minimum(1, max(1.0, columns) * (cut.keys + tokens) / (down * tokens))
    return place.rows * np.where(down * across > 1, part, columns)
