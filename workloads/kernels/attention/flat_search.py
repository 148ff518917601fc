"""The plan of FlatAttention: the largest blocks that the tiles have room for."""

from collections.abc import Iterator, Sequence

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError, choose
from workloads.kernels.attention.core import AttentionShape, Block, filled_keys
from workloads.kernels.attention.flat_attention import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_closed_form import flat_candidate_cycles
from workloads.kernels.attention.plan import Cut
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place


def plan_flats(
    shapes: Sequence[AttentionShape],
    place: Place,
    method: str = "network",
    schedule: str = "async",
    operands: str = "network",
) -> list[Found[FlatPlan]]:
    """`plan_flat`, with the cycles, of problems that differ in their keys alone.

    Args:
        shapes: The problems.
        place: The grid.
        method: How parts of rows come together.
        schedule: One of `SCHEDULES`.
        operands: How slices are sent to many.
    """
    plans = [plan_flat(shape, place, method, schedule, operands=operands) for shape in shapes]
    cut = Cut(*np.array([plan.cut for plan in plans]).T)
    cycles = flat_candidate_cycles(plans[0], cut, place.timing)
    return [Found(plan, round(each)) for plan, each in zip(plans, cycles.tolist(), strict=True)]


def plan_flat(
    shape: AttentionShape,
    place: Place,
    method: str = "network",
    schedule: str = "async",
    unit: float | None = None,
    operands: str = "network",
) -> FlatPlan:
    """Plan attention: blocks as large as the memory of a tile allows, the keys cut first.

    Args:
        shape: The problem.
        place: The grid.
        method: How parts of rows come together.
        schedule: One of `SCHEDULES`.
        unit: Of a score; by default one over the root of the depth, by 16.
        operands: How slices are sent to many.

    Raises:
        InputError: for an unknown name, or if no block fits.
    """
    choose("schedule", schedule, SCHEDULES)
    unit = shape.qk_depth**-0.5 / 16 if unit is None else unit
    exponent = Factor.of_exponent(unit)
    rows, keys = ceil_div(shape.rows, place.rows), ceil_div(shape.kv_length, place.cols)
    q_blocks = kv_blocks = 1
    while True:
        cut = _keys_of_a_block(shape, place, ceil_div(keys, kv_blocks))
        blocks = ceil_div(shape.kv_length, cut * place.cols)
        block = Block(ceil_div(rows, q_blocks), cut, shape.qk_depth, shape.v_depth)
        plan = FlatPlan(place, shape, block, q_blocks, blocks, method, schedule, exponent, operands)
        if plan.tile_bytes <= place.tile_bytes:
            return plan
        if block.keys >= block.rows and kv_blocks < keys:
            kv_blocks = _next_cut(shape, place.cols, keys, kv_blocks)
        elif block.rows > 1:
            q_blocks *= 2
        else:
            raise InputError(
                f"--shape: a single row takes {plan.tile_bytes} bytes of a tile's memory; allowed: "
                f"{place.tile_bytes}"
            )


def _keys_of_a_block(shape: AttentionShape, place: Place, keys: int) -> int:
    """Whole words of them, but for a few that need no padding: a mask would cost more."""
    filled = filled_keys(place, keys)
    few = filled % keys == 0 and shape.kv_length % (keys * place.cols) == 0
    return keys if few else filled


def _next_cut(shape: AttentionShape, cols: int, keys: int, cut: int) -> int:
    """More blocks of keys of a column: without padding, if up to three times as many allow it.

    Else at least twice as many. No block is padding alone.
    """

    def more(least: int, most: int) -> Iterator[int]:
        numbers = range(least, most + 1)
        return (n for n in numbers if ceil_div(keys, ceil_div(keys, n)) == n)

    whole = (n for n in more(cut + 1, min(3 * cut, keys)) if shape.kv_length % (n * cols) == 0)
    return next(whole, None) or next(more(min(2 * cut, keys), keys))
