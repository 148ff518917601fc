"""The plan of FlatAttention with a causal mask: the fastest of the groups and blocks worth a try.

The largest group and the largest blocks, which are right where all keys are seen, leave little out:
blocks of keys have to be smaller than what the rows of a block see. Smaller groups read more. So
groups are tried down to a quarter of their rows and columns, and all blocks that fit. Of those
that look fastest (`workloads.kernels.attention.causal_estimate`) the closed form tells which is.

All of them are in one table, as serving looks for a plan of every length that it meets.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tlm.errors import InputError
from workloads.kernels.attention.causal_estimate import Tried, rough_cycles
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import FlatPlan, needed_bytes
from workloads.kernels.attention.plan import Cut
from workloads.kernels.attention.shape import Block, seen_blocks
from workloads.kernels.parts.found import Found

#: Plans of which the closed form decides.
_TOLD = 4
#: By what rows and columns of the largest group are divided.
_SMALLER = 1, 2, 4

_Cuts = Callable[[FlatPlan, tuple[int, int]], Cut]


def fastest_causal(problem: FlatPlan, cuts: _Cuts, *, fixed: bool) -> Found[FlatPlan]:
    """The fastest plan of a problem, whose own cut does not matter.

    Args:
        problem: With the largest group and the most streams under way.
        cuts: The blocks to try in a group: rows along the first axis, keys along the second.
        fixed: The group is the only one.

    Raises:
        InputError: if no block fits.
    """
    tried, room = _tried(problem, cuts, fixed=fixed), problem.place.tile_bytes
    needed = needed_bytes(problem, tried.cut, tried.group)
    fits = needed <= room
    if not fits.any():
        raise InputError(
            f"--shape: a single row takes {needed.min()} bytes of a tile's memory; allowed: {room}"
        )
    rough = np.where(fits, rough_cycles(problem, tried), np.inf)
    best = np.argsort(rough, kind="stable")[: min(_TOLD, int(fits.sum()))]
    plans = [_plan(problem, tried, at) for at in best.tolist()]
    found = [Found(plan, flat_attention_cycles(plan, plan.place.timing)) for plan in plans]
    return min(found, key=lambda each: each.cycles)


def _tried(problem: FlatPlan, cuts: _Cuts, *, fixed: bool) -> Tried:
    (rows, cols), smaller = problem.group, (1,) if fixed else _SMALLER
    parts = []
    for down in (rows // part for part in smaller if rows % part == 0):
        for across in (cols // part for part in smaller if cols % part == 0):
            cut = cuts(problem, (down, across))
            span = down * cut.rows, across * cut.keys
            seen = seen_blocks(problem.shape, *span, cut.q_blocks, cut.length)
            figures = *seen, cut.rows, cut.keys, cut.q_blocks, cut.kv_blocks, down, across
            part = np.empty((len(figures), len(cut.rows), len(cut.keys)))
            for at, figure in enumerate(figures):
                part[at] = figure
            parts.append(part.reshape(len(figures), -1))
    columns = np.concatenate(parts, axis=1)
    high, keys, q_blocks, kv_blocks, down, across = columns[2:].astype(np.int64)
    more = across, problem.cut.turns, problem.shape.kv_length
    return Tried(Cut(high, keys, q_blocks, kv_blocks, *more), (down, across), *columns[:2])


def _plan(problem: FlatPlan, tried: Tried, at: int) -> FlatPlan:
    shape = problem.shape
    rows, keys, q_blocks, kv_blocks = (int(each[at]) for each in tried.cut[:4])
    down, across = (int(each[at]) for each in tried.group)
    block = Block(rows, keys, shape.qk_depth, shape.v_depth)
    return replace(
        problem, block=block, q_blocks=q_blocks, kv_blocks=kv_blocks, group=(down, across)
    )
