"""Cycles of FlatAttention with a causal mask, roughly, of many groups and blocks at once.

It is what engines and channels have to do, as if each went on without waiting for another, and one
block's way through all of them. That puts plans in order; cycles are told by the closed form.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, forget_stale
from tlm.compute.vector_unit import pass_cycles
from tlm.interconnect.transfer_times import multicast_cycles_over, reduction_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.times import served_cycles
from workloads.kernels.attention.flat_memory import brought_blocks
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.plan import NAMES, Widths, flits_of, widths
from workloads.kernels.attention.shape import SAMPLES

_Cycles = NDArray[np.float64]
_Counts = NDArray[np.int64]
_Q, _K, _V, _O, _MASK, _UNSEEN, _TOTAL = range(len(NAMES))
_BY_ROWS = _Q, _O, _UNSEEN, _TOTAL


class _Problem(NamedTuple):
    """What plans have in common.

    Attributes:
        rows: Rows of tiles of the grid.
        cols: Columns.
        heads: Problems of their own.
        sharers: Rows of a token.
        turns: Blocks under way at a time.
        states: Streams under way, at most.
        channels: Of off-chip memory; 0: there is none.
        at_tiles: Whether each tile has one of its own.
        lanes: Elements of a word of the vector engine.
        pipeline_cycles: Cycles of a pass beyond one a word.
        v_depth: Columns of V.
    """

    rows: int
    cols: int
    heads: int
    sharers: int
    turns: int
    states: int
    channels: int
    at_tiles: bool
    lanes: int
    pipeline_cycles: int
    v_depth: int


class _Laws(NamedTuple):
    """What engines, network and memory say of each plan, or of sizes that plans have.

    Attributes:
        matrix: Cycles of the products of a block, shape (plans,).
        served: For which a channel is busy with each of `NAMES`, shape (blocks, plans).
        totals: Flits of an element a row, shape (plans,).
        met: Until so many of them have come together and gone back, without what engines add,
            shape (columns of a group, flits).
        added: Columns that an engine adds meanwhile, shape (columns of a group,).
    """

    matrix: _Counts
    served: _Cycles
    totals: _Counts
    met: _Cycles
    added: _Cycles


def roughly_fastest(problem: FlatPlan, cuts: _Counts, count: int) -> _Counts:
    """Plans of a problem that look fastest, from the fastest on.

    Args:
        problem: The problem, whose own cut and group do not matter.
        cuts: Of the plans, as `flat_cuts.causal_cuts` has them; shape (8, plans).
        count: How many.

    Returns:
        Their columns of ``cuts``; fewer if there are not as many.
    """
    place, shape, edge, (rows, keys) = problem.place, problem.shape, problem.place.offchip, cuts[:2]
    after, depth, v_depth = place.after_vector or place.matrix, shape.qk_depth, shape.v_depth
    matrix = place.matrix.gemm_cycles_over(rows, depth, keys)
    matrix = matrix + after.gemm_cycles_over(rows, keys, v_depth)
    lengths, most, most_total = _lengths(widths(problem), rows, keys)
    served = np.zeros(lengths.shape)
    if edge is not None:
        served = served_cycles(place.timing, edge, lengths, most)
    met, added = _meetings(
        place.timing, problem.method, place.cols, 1 << int(most_total).bit_length()
    )
    channels = 0 if edge is None else edge.channels
    states = min(problem.turns, problem.heads)
    common = _Problem(
        place.rows, place.cols, shape.heads, shape.sharers, problem.turns, states, channels,
        edge is not None and edge.at_tiles, place.vector.lanes, place.vector.pipeline_cycles,
        shape.v_depth,
    )  # fmt: skip
    laws = _Laws(matrix, served, lengths[_TOTAL], met, added)
    found: _Counts = _fastest(common, cuts, laws, count)
    return found


@allocating
def _lengths(of: Widths, rows: _Counts, keys: _Counts) -> tuple[_Counts, int, int]:
    """Flits of each of `NAMES`, shape (blocks, plans); the most of all, and of ``total``."""
    found = np.empty((len(NAMES), len(rows)), dtype=np.int64)
    for block in range(len(NAMES)):
        by_rows = block in _BY_ROWS
        for plan in range(len(rows)):
            if by_rows and plan and rows[plan] == rows[plan - 1]:
                found[block, plan] = found[block, plan - 1]
            else:
                found[block, plan] = flits_of(of, block, rows[plan], keys[plan])
    return found, found.max(), found[_TOTAL].max()


@allocating
def _fastest(problem: _Problem, cuts: _Counts, laws: _Laws, count: int) -> _Counts:
    """Of equally fast ones the first of `cuts` first."""
    cycles = _rough(problem, cuts, laws)
    found = np.empty((cuts.shape[0], min(count, len(cycles))), dtype=np.int64)
    for place in range(found.shape[1]):  # several times as fast as sorting all
        least = cycles.argmin()
        found[:, place] = cuts[:, least]
        cycles[least] = np.inf
    return found


@lru_cache(256)
def _meetings(timing: NocTiming, method: str, cols: int, lengths: int) -> tuple[_Cycles, _Cycles]:
    """Until a column of each tile has come together along a row and gone back: see `_Laws.met`."""
    across, length = np.arange(cols + 1)[:, None], np.arange(lengths)
    hops = np.maximum(across - 1, 0)
    spread = multicast_cycles_over(timing, hops, length)
    stages = np.ceil(np.log2(np.maximum(across, 1)))
    added: Any = 0 * hops
    if method == "network":
        met = reduction_cycles_over(timing, hops, length) + spread
    elif method == "sequential":
        met, added = 2 * (hops * length + spread), hops
    else:
        met = stages * 2 * (spread - hops * timing.hop_cycles) + 2 * hops * timing.hop_cycles
        added = stages
    alone = across < 2
    return np.where(alone, 0.0, met), np.where(alone, 0.0, added)[:, 0]


@allocating
def _rough(problem: _Problem, cuts: _Counts, laws: _Laws) -> _Cycles:
    """Of each plan."""
    cycles = np.empty(cuts.shape[1])
    for plan in range(cuts.shape[1]):
        rows, keys, q_blocks, kv_blocks = cuts[0, plan], cuts[1, plan], cuts[2, plan], cuts[3, plan]
        down, across, seen, paired = (
            cuts[4, plan], cuts[5, plan], cuts[6, plan] / SAMPLES, cuts[7, plan],
        )  # fmt: skip
        groups = (problem.rows // down) * (problem.cols // across)
        # Of a group with the most work: streams, and blocks of keys of all of them. Streams are
        # whole heads, or early and late ones go together; of an odd number one is late.
        streams = -(-problem.heads * q_blocks // groups)
        items = streams * seen
        if streams % q_blocks:
            items = float(streams // 2 * paired + streams % 2 * kv_blocks)
        # Blocks of a stream that are masked, masks that are brought, and blocks of keys. Streams of
        # one pattern after the other need its masks once, all of a single one once and for all;
        # others take turns with their own.
        masked = min(seen, down * rows / (problem.sharers * across * keys) + 1)
        states = min(problem.states, streams)
        masks = streams * max(masked, 1.0)
        if q_blocks == 1:
            masks = 1.0 if masked < 1.01 else masked * -(-streams // states)
        brought = brought_blocks(q_blocks, kv_blocks, streams, states)
        loads = brought * items / (streams * kv_blocks)
        # What `core.softmax_cycles` says, and twice a block what comes together.
        lanes, behind = problem.lanes, problem.pipeline_cycles
        wide, column = pass_cycles(lanes, behind, rows, keys), pass_cycles(lanes, behind, rows, 1)
        deep = pass_cycles(lanes, behind, rows, problem.v_depth)
        meeting = laws.met[across, laws.totals[plan]] + laws.added[across] * column
        softmax = 6 * wide + 9 * column + deep + 2 * meeting
        vector = items * softmax - streams * (6 * column + deep)
        vector = vector + 2 * streams * masked * wide
        # For which a channel is busy: in all, before the first block is there, and with the
        # results. All at the edge are equally, but for masks: the busiest counts. Of those at
        # tiles it is that of a tile that loads keys.
        served = first = last = 0.0
        if problem.channels:
            share = groups / problem.channels
            of_rows, of_cols, every = share * down, share * across, share * down * across
            mask_tiles = _mask_tiles(problem, rows, keys, down, across)
            if problem.at_tiles:
                of_rows = of_cols = every = mask_tiles = 1.0
            q, k, v, o, mask, unseen = (
                laws.served[_Q, plan], laws.served[_K, plan], laws.served[_V, plan],
                laws.served[_O, plan], laws.served[_MASK, plan], laws.served[_UNSEEN, plan],
            )  # fmt: skip
            brings = mask_tiles * mask + every * unseen
            served = loads * of_cols * (k + v) + streams * of_rows * (q + o) + masks * brings
            first, last = of_rows * q + of_cols * k + brings, of_rows * o
        matrix = laws.matrix[plan]
        if problem.turns == 1:
            cycles[plan] = items * matrix + vector + served + first
        else:
            worked = max(items * matrix, vector) + matrix
            cycles[plan] = max(worked + first + last, served + matrix + softmax)
    return cycles


@allocating
def _mask_tiles(problem: _Problem, rows: int, keys: int, down: int, across: int) -> float:
    """Tiles that bring a mask from the busiest channel, of all groups: those on its diagonal."""
    columns, tokens = problem.cols / problem.channels, rows / problem.sharers
    if down * across == 1:
        return problem.rows * columns
    return problem.rows * min(1.0, max(1.0, columns) * (keys + tokens) / (down * tokens))


forget_stale(_fastest, _lengths)
