"""The plan of FlatAttention: the largest blocks that the tiles have room for.

A group is chosen as in FlatAttention, section IV-C: first the slice of a tile, which has to keep
its matrix engine busy and to fit its memory; then the largest group that the scores of a head fill
with such slices. Where that leaves groups without a stream they are larger, of smaller slices.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tlm.compute.base import ceil_div
from tlm.errors import InputError, choose
from workloads.kernels.attention.core import AttentionShape, Block, filled_keys
from workloads.kernels.attention.flat_attention import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place

#: What part of its peak a slice should leave to the matrix engine.
_BUSY = 0.95


def plan_flats(
    shapes: Sequence[AttentionShape],
    place: Place,
    method: str = "network",
    schedule: str = "async",
    operands: str = "network",
    group: tuple[int, int] | None = None,
) -> list[Found[FlatPlan]]:
    """`plan_flat`, with the cycles, of problems that differ in their keys alone."""
    plans = [
        plan_flat(shape, place, method, schedule, operands=operands, group=group)
        for shape in shapes
    ]
    return [Found(plan, flat_attention_cycles(plan, place.timing)) for plan in plans]


def plan_flat(
    shape: AttentionShape,
    place: Place,
    method: str = "network",
    schedule: str = "async",
    unit: float | None = None,
    operands: str = "network",
    group: tuple[int, int] | None = None,
) -> FlatPlan:
    """Plan attention: blocks as large as the memory of a tile allows, the keys cut first.

    Args:
        shape: The problem.
        place: The grid.
        method: How parts of rows come together.
        schedule: One of `SCHEDULES`.
        unit: Of a score; by default one over the root of the depth, by 16.
        operands: How slices are sent to many.
        group: Rows and columns of a group; None: as the slice says.

    Raises:
        InputError: for an unknown name, a group that the grid has no whole number of, or if no
            block fits.
    """
    choose("schedule", schedule, SCHEDULES)
    unit = shape.qk_depth**-0.5 / 16 if unit is None else unit
    exponent = Factor.of_exponent(unit)
    one = Block(1, 1, shape.qk_depth, shape.v_depth)
    how = method, schedule, exponent, operands
    if group is None:
        group = _group(FlatPlan(place, shape, one, 1, 1, (1, 1), *how))
    elif place.rows % group[0] or place.cols % group[1]:
        raise InputError(
            f"--group: found {group[0]}x{group[1]}; allowed: auto, or rows and columns of which "
            f"the grid's {place.rows}x{place.cols} are whole numbers"
        )
    down, across = group
    rows, keys = ceil_div(shape.rows, down), ceil_div(shape.kv_length, across)
    q_blocks = kv_blocks = 1
    while True:
        cut = _keys_of_a_block(shape, place, across, ceil_div(keys, kv_blocks))
        blocks = ceil_div(shape.kv_length, cut * across)
        block = Block(ceil_div(rows, q_blocks), cut, shape.qk_depth, shape.v_depth)
        plan = FlatPlan(place, shape, block, q_blocks, blocks, group, *how)
        if plan.tile_bytes <= place.tile_bytes:
            return plan
        if block.keys >= block.rows and kv_blocks < keys:
            kv_blocks = _next_cut(shape, across, keys, kv_blocks)
        elif block.rows > 1:
            q_blocks *= 2
        else:
            raise InputError(
                f"--shape: a single row takes {plan.tile_bytes} bytes of a tile's memory; allowed: "
                f"{place.tile_bytes}"
            )


def _group(problem: FlatPlan) -> tuple[int, int]:
    """Rows and columns of a group, of a problem whose own cut does not matter."""
    place, shape, side = problem.place, problem.shape, _slice(problem)
    rows, keys = min(side, shape.rows), min(side, shape.kv_length)
    down, across = _divisors(place.rows), _divisors(place.cols)
    group = [max(n for n in down if n == 1 or n * rows <= shape.rows)]
    group.append(max(n for n in across if n == 1 or n * keys <= shape.kv_length))
    while group != [place.rows, place.cols]:
        rows, keys = (
            ceil_div(*each) for each in zip((shape.rows, shape.kv_length), group, strict=True)
        )
        groups = place.rows // group[0] * (place.cols // group[1])
        if groups <= shape.heads * ceil_div(rows, side):
            break
        wide = group[1] < place.cols and (keys >= rows or group[0] == place.rows)
        larger, at = (across, 1) if wide else (down, 0)
        group[at] = min(n for n in larger if n > group[at])
    return group[0], group[1]


def _slice(problem: FlatPlan) -> int:
    """The least side of a slice that keeps the matrix engine busy; else the largest that fits."""
    place, shape, side = problem.place, problem.shape, 1
    matrix, after = place.matrix, place.after_vector or place.matrix
    while 2 * side <= max(shape.rows, shape.kv_length):
        block = Block(2 * side, 2 * side, shape.qk_depth, shape.v_depth)
        if replace(problem, block=block, kv_blocks=2).tile_bytes > place.tile_bytes:
            break
        side *= 2
        macs = side * side * (shape.qk_depth + shape.v_depth)
        cycles = matrix.gemm_cycles(side, shape.qk_depth, side)
        cycles += after.gemm_cycles(side, side, shape.v_depth)
        if macs >= _BUSY * matrix.macs_per_cycle * cycles:
            break
    return side


@lru_cache(64)
def _divisors(count: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, count + 1) if count % n == 0)


def _keys_of_a_block(shape: AttentionShape, place: Place, cols: int, keys: int) -> int:
    """Whole words of them, but for a few that need no padding: a mask would cost more."""
    filled = filled_keys(place, keys)
    few = filled % keys == 0 and shape.kv_length % (keys * cols) == 0
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
