"""The plan of FlatAttention with a causal mask: the fastest of the groups and blocks worth a try.

The largest group and the largest blocks, which are right where all keys are seen, leave little out:
blocks of keys have to be smaller than what the rows of a block see. Smaller groups read more. So
groups are tried down to a quarter of their rows and columns, and all blocks that fit. Of those
whose engines and channels would be done first the closed form says which is the fastest.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.offchip.times import load_law
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import FlatPlan, needed_bytes
from workloads.kernels.attention.plan import Cut, flits
from workloads.kernels.attention.shape import Block, seen_blocks
from workloads.kernels.parts.found import Found

#: Plans of which the closed form decides.
_TRIED = 4
#: By what rows and columns of the largest group are divided.
_SMALLER = 1, 2, 4
#: Passes over a block of scores, and by a mask.
_PASSES, _MASKING = 6, 2


def fastest_causal(
    problem: FlatPlan, cuts: Callable[[FlatPlan], Cut], *, fixed: bool
) -> Found[FlatPlan]:
    """The fastest plan of a problem, whose own cut does not matter.

    Args:
        problem: With the largest group and the most streams under way.
        cuts: The blocks to try in a group: rows along the first axis, keys along the second.
        fixed: The group is the only one.

    Raises:
        InputError: if no block fits.
    """
    tried: list[tuple[float, int, FlatPlan]] = []
    smallest, room = 2**62, problem.place.tile_bytes
    for one in _groups(problem, fixed=fixed):
        cut = cuts(one)
        needed = needed_bytes(one, cut)
        smallest = min(smallest, int(needed.min()))
        least = np.where(needed <= room, _least_cycles(one, cut), np.inf)
        for at in np.argsort(least, axis=None, kind="stable")[:_TRIED].tolist():
            row, col = divmod(at, least.shape[1])
            if least[row, col] < np.inf:
                tried.append((float(least[row, col]), len(tried), _cut(one, cut, row, col)))
    if not tried:
        raise InputError(
            f"--shape: a single row takes {smallest} bytes of a tile's memory; allowed: {room}"
        )
    plans = [plan for *_, plan in sorted(tried, key=lambda each: each[:2])[:_TRIED]]
    found = [Found(plan, flat_attention_cycles(plan, plan.place.timing)) for plan in plans]
    return min(found, key=lambda each: each.cycles)


def _groups(problem: FlatPlan, *, fixed: bool) -> Iterator[FlatPlan]:
    (rows, cols), smaller = problem.group, (1,) if fixed else _SMALLER
    for down in smaller:
        for across in smaller:
            if rows % down == 0 and cols % across == 0:
                yield replace(problem, group=(rows // down, cols // across))


def _cut(problem: FlatPlan, cut: Cut, row: int, col: int) -> FlatPlan:
    shape = problem.shape
    block = Block(int(cut.rows[row, 0]), int(cut.keys[col]), shape.qk_depth, shape.v_depth)
    blocks = int(cut.q_blocks[row, 0]), int(cut.kv_blocks[col])
    return replace(problem, block=block, q_blocks=blocks[0], kv_blocks=blocks[1])


def _least_cycles(problem: FlatPlan, cut: Cut) -> Any:
    """For which the engines of a tile are busy, or the channels if all are equally."""
    place, shape, (down, across) = problem.place, problem.shape, problem.group
    streams = ceil_div(shape.heads * cut.q_blocks, problem.most_groups)
    seen = seen_blocks(shape, down * cut.rows, across * cut.keys, cut.q_blocks, cut.length)
    masked = np.minimum(seen, down * cut.rows / (shape.sharers * across * cut.keys) + 1)
    after, depth, v_depth = place.after_vector or place.matrix, shape.qk_depth, shape.v_depth
    matrix = place.matrix.gemm_cycles_over(cut.rows, np.array(depth), cut.keys)
    matrix = matrix + after.gemm_cycles_over(cut.rows, cut.keys, np.array(v_depth))
    wide = place.vector.pass_cycles_over(cut.rows, cut.keys)
    vector = _PASSES * wide + place.vector.pass_cycles_over(cut.rows, np.array(v_depth))
    vector = seen * vector + _MASKING * masked * wide
    both = np.maximum if cut.turns > 1 else np.add
    worked = streams * both(seen * matrix, vector)
    edge = place.offchip
    if edge is None:
        return worked
    q, k, v, o = (
        load_law(place.timing, edge, flits(problem, name, cut.rows, cut.keys)).served_cycles
        for name in ("q", "k", "v", "o")
    )
    served = streams * (seen * across * (k + v) + down * (q + o))
    return np.maximum(worked, served * problem.most_groups / edge.channels)
