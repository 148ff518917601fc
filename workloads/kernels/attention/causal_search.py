"""The plan of FlatAttention with a causal mask: the fastest of the groups and blocks worth a try.

The largest group and the largest blocks, which are right where all keys are seen, leave little out:
blocks of keys have to be smaller than what the rows of a block see. Smaller groups read more. So
groups are tried down to a quarter of their rows and columns, and all blocks that fit but for tiny
ones. Of those that look fastest (`workloads.kernels.attention.causal_estimate`) the closed form
tells which is.

All of them are in one table, as serving looks for a plan of every length that it meets.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from workloads.kernels.attention.causal_estimate import roughly_fastest
from workloads.kernels.attention.flat_closed_form import cut_cycles
from workloads.kernels.attention.flat_cuts import causal_cuts
from workloads.kernels.attention.flat_memory import cut_bytes
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.shape import Block, filled_keys
from workloads.kernels.parts.found import Found

#: More than any tile has.
_ANY = 2**62
#: Plans of which the closed form decides.
_TOLD = 4
#: By what rows and columns of the largest group are divided.
_DIVIDED = 1, 2, 4
#: Part of the largest block below which none is tried: the estimate takes tiny ones for too fast.
_PART = 256


def fastest_causal(problem: FlatPlan, *, fixed: bool) -> Found[FlatPlan]:
    """The fastest plan of a problem, whose own cut does not matter.

    Args:
        problem: With the largest group and the most streams under way.
        fixed: The group is the only one.

    Raises:
        InputError: if no block fits.
    """
    room = problem.place.tile_bytes
    cuts = _cuts(problem, room, _PART, fixed=fixed)
    if not cuts.shape[1]:
        every = _cuts(problem, _ANY, _ANY, fixed=fixed)
        least = cut_bytes(problem.sizes, *every[:6]).min()
        raise InputError(
            f"--shape: a single row takes {least} bytes of a tile's memory; allowed: {room}"
        )
    told = roughly_fastest(problem, cuts, _TOLD)
    cycles = cut_cycles(problem, told, problem.place.timing).tolist()
    least = min(cycles)
    return Found(_plan(problem, told[:, cycles.index(least)].tolist()), least)


def _cuts(problem: FlatPlan, room: int, part: int, *, fixed: bool) -> NDArray[np.int64]:
    """Plans to try that a tile of some bytes has room for, as `causal_cuts` has them."""
    shape, divided = problem.shape, (1,) if fixed else _DIVIDED
    lines, columns = (_sides(side, divided) for side in problem.group)
    word = filled_keys(problem.place, 1)
    found: NDArray[np.int64] = causal_cuts(
        lines, columns, problem.sizes, shape.sharers, shape.q_length, word, room, part
    )
    return found


@lru_cache(256)
def _sides(side: int, divided: tuple[int, ...]) -> NDArray[np.int64]:
    """Rows or columns of a group, and whole parts of them."""
    return np.array([side // part for part in divided if side % part == 0])


def _plan(problem: FlatPlan, cut: list[int]) -> FlatPlan:
    """The plan of a column of `causal_cuts`."""
    rows, keys, q_blocks, kv_blocks, down, across, *_ = cut
    block = Block(rows, keys, problem.shape.qk_depth, problem.shape.v_depth)
    how = problem.method, problem.schedule, problem.exponent, problem.operands, problem.heads
    group = down, across
    return FlatPlan(problem.place, problem.shape, block, q_blocks, kv_blocks, group, *how)
