"""The plan of FlatAttention with a causal mask: the fastest of the groups and blocks worth a try.

The largest group and the largest blocks, which are right where all keys are seen, leave little out:
blocks of keys have to be smaller than what the rows of a block see. Smaller groups read more. So
groups are tried down to a quarter of their rows and columns, and all blocks that fit. Of those
that look fastest (`workloads.kernels.attention.causal_estimate`) the closed form tells which is.

All of them are in one table, as serving looks for a plan of every length that it meets.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from tlm.errors import InputError
from workloads.kernels.attention.causal_estimate import Tried, rough_cycles
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_cuts import causal_cuts
from workloads.kernels.attention.flat_plan import FlatPlan, needed_bytes
from workloads.kernels.attention.plan import Cut
from workloads.kernels.attention.shape import SAMPLES, Block, filled_keys
from workloads.kernels.parts.found import Found

#: Plans of which the closed form decides.
_TOLD = 4
#: By what rows and columns of the largest group are divided.
_SMALLER = 1, 2, 4


def fastest_causal(problem: FlatPlan, *, fixed: bool) -> Found[FlatPlan]:
    """The fastest plan of a problem, whose own cut does not matter.

    Args:
        problem: With the largest group and the most streams under way.
        fixed: The group is the only one.

    Raises:
        InputError: if no block fits.
    """
    tried, room = _tried(problem, fixed=fixed), problem.place.tile_bytes
    needed = needed_bytes(problem, tried.cut, tried.group)
    fits = np.flatnonzero(needed <= room)
    if not len(fits):
        raise InputError(
            f"--shape: a single row takes {needed.min()} bytes of a tile's memory; allowed: {room}"
        )
    tried = tried.some(fits)
    best = np.argsort(rough_cycles(problem, tried), kind="stable")[:_TOLD]
    plans = [_plan(problem, tried, at) for at in best.tolist()]
    found = [Found(plan, flat_attention_cycles(plan, plan.place.timing)) for plan in plans]
    return min(found, key=lambda each: each.cycles)


def _tried(problem: FlatPlan, *, fixed: bool) -> Tried:
    shape, (down, across), smaller = problem.shape, problem.group, (1,) if fixed else _SMALLER
    sizes = [[each // part for part in smaller if each % part == 0] for each in (down, across)]
    lengths = shape.rows, shape.sharers, shape.q_length, shape.kv_length
    groups, word = np.array([*product(*sizes)]), filled_keys(problem.place, 1)
    high, keys, q_blocks, kv_blocks, *group, seen, paired = causal_cuts(groups, *lengths, word)
    cut = Cut(high, keys, q_blocks, kv_blocks, group[1], problem.cut.turns, shape.kv_length)
    return Tried(cut, (group[0], group[1]), seen / SAMPLES, paired)


def _plan(problem: FlatPlan, tried: Tried, at: int) -> FlatPlan:
    shape = problem.shape
    rows, keys, q_blocks, kv_blocks = (int(each[at]) for each in tried.cut[:4])
    down, across = (int(each[at]) for each in tried.group)
    block = Block(rows, keys, shape.qk_depth, shape.v_depth)
    return replace(
        problem, block=block, q_blocks=q_blocks, kv_blocks=kv_blocks, group=(down, across)
    )
