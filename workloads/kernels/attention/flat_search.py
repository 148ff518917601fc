"""The plan of FlatAttention: the largest blocks that the tiles have room for.

A group is chosen as in FlatAttention, section IV-C: first the slice of a tile, which has to keep
its matrix engine busy and to fit its memory; then the largest group that the scores of a head fill
with such slices. Where that leaves groups without a stream they are larger, of smaller slices; an
asynchronous one should have two, which hide each other's waiting. Then blocks are as large as a
tile holds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled, forget_stale
from tlm.compute.base import Sizes, ceil_div
from tlm.errors import InputError, choose
from workloads.kernels.attention.causal_search import fastest_causal
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_cuts import blocks_of_keys
from workloads.kernels.attention.flat_memory import Sizes as Fit
from workloads.kernels.attention.flat_memory import cut_bytes
from workloads.kernels.attention.flat_plan import SCHEDULES, FlatPlan, sizes_of
from workloads.kernels.attention.shape import AttentionShape, Block, filled_keys
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place

#: What part of its peak a slice should leave to the matrix engine, or of the best if none does.
_BUSY = 0.95


def plan_flats(
    shapes: Sequence[AttentionShape],
    place: Place,
    method: str = "network",
    schedule: str = "async",
    operands: str = "network",
    group: tuple[int, int] | None = None,
    heads: int | None = None,
) -> list[Found[FlatPlan]]:
    """`plan_flat`, with the cycles, of problems that differ in their keys alone."""
    how: dict[str, Any] = {"operands": operands, "group": group, "heads": heads}
    return [_found(shape, place, method, schedule, **how) for shape in shapes]


def plan_flat(
    shape: AttentionShape,
    place: Place,
    method: str = "network",
    schedule: str = "async",
    unit: float | None = None,
    operands: str = "network",
    group: tuple[int, int] | None = None,
    heads: int | None = None,
) -> FlatPlan:
    """Plan attention: the largest group of the best slices, and blocks that a tile has room for.

    Args:
        shape: The problem.
        place: The grid.
        method: How parts of rows come together.
        schedule: One of `SCHEDULES`.
        unit: Of a score; by default one over the root of the depth, by 16.
        operands: How slices are sent to many.
        group: Rows and columns of a group; None: as the slice says.
        heads: Streams that a group has under way; None: as many as the schedule may.

    Raises:
        InputError: for an unknown name, a group that the grid has no whole number of, more streams
            under way than the schedule has, or if no block fits.
    """
    return _found(shape, place, method, schedule, unit, operands, group, heads).plan


def _found(
    shape: AttentionShape,
    place: Place,
    method: str,
    schedule: str,
    unit: float | None = None,
    operands: str = "network",
    group: tuple[int, int] | None = None,
    heads: int | None = None,
) -> Found[FlatPlan]:
    """`plan_flat`, with the cycles."""
    choose("schedule", schedule, SCHEDULES)
    most = 2 if schedule == "async" else 1
    if heads is not None and not 1 <= heads <= most:
        raise InputError(
            f"--heads-per-group: found {heads} with --schedule {schedule}; allowed: "
            f"{'1 or 2' if most > 1 else '1, as one has to end before the next one begins'}"
        )
    unit = shape.qk_depth**-0.5 / 16 if unit is None else unit
    exponent = Factor.of_exponent(unit)
    one, heads = Block(1, 1, shape.qk_depth, shape.v_depth), heads or most
    fixed = group is not None
    if group is None:
        group = _group(place, shape, sizes_of(place, shape, method, most, heads))
    check_group(group, place)
    problem = FlatPlan(place, shape, one, 1, 1, group, method, schedule, exponent, operands, heads)
    if shape.causal:
        return fastest_causal(problem, fixed=fixed)
    rows, keys, q_blocks, kv_blocks = _cuts(problem, group)
    busy = _busy(place, problem.sizes, group, rows, keys, q_blocks, kv_blocks)
    enough = busy & (ceil_div(shape.heads * q_blocks, problem.most_groups) >= problem.heads)
    # Of busy ones that with the most rows reads least.
    row, col = np.argwhere(enough if enough.any() else busy)[0]
    block = Block(int(rows[row, 0]), int(keys[col]), shape.qk_depth, shape.v_depth)
    plan = replace(
        problem, block=block, q_blocks=int(q_blocks[row, 0]), kv_blocks=int(kv_blocks[col])
    )
    return Found(plan, flat_attention_cycles(plan, place.timing))


def _cuts(problem: FlatPlan, group: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Rows and keys of blocks to try in a group, and how many there are of a head.

    Rows are along the first axis, keys along the second; both fall.
    """
    shape, (down, across) = problem.shape, group
    keys, kv_blocks = blocks_of_keys(shape.kv_length, filled_keys(problem.place, 1), across)
    q_blocks = 1 << np.arange((ceil_div(shape.rows, down) - 1).bit_length() + 1)[:, None]
    rows = ceil_div(ceil_div(shape.rows, down), q_blocks)
    return rows, keys, q_blocks, kv_blocks


def check_group(group: tuple[int, int], place: Place) -> None:
    """Hold that a grid has a whole number of groups.

    Raises:
        InputError: if it has not.
    """
    if place.rows % group[0] or place.cols % group[1]:
        raise InputError(
            f"--group: found {group[0]}x{group[1]}; allowed: auto, or rows and columns of which "
            f"the grid's {place.rows}x{place.cols} are whole numbers"
        )


def _busy(
    place: Place, sizes: Fit, group: tuple[int, int], rows: Sizes, keys: Sizes, q_blocks: Any,
    kv_blocks: Any,
) -> NDArray[np.bool_]:  # fmt: skip
    """Which slices fit and keep the matrix engine as busy as it should be, or about as it can.

    Raises:
        InputError: if none fits.
    """
    needed = cut_bytes(sizes, rows, keys, q_blocks, kv_blocks, *group)
    fits = needed <= place.tile_bytes
    if not fits.any():
        raise InputError(
            f"--shape: a single row takes {needed.min()} bytes of a tile's memory; allowed: "
            f"{place.tile_bytes}"
        )
    after = place.after_vector or place.matrix
    scores = place.matrix.gemm_cycles_over(rows, sizes.qk_depth, keys)
    cycles = scores + after.gemm_cycles_over(rows, keys, sizes.v_depth)
    macs = rows * keys * (sizes.qk_depth + sizes.v_depth)
    use = np.where(fits, macs / (place.matrix.macs_per_cycle * cycles), 0.0)
    most = float(use.max())
    busy: NDArray[np.bool_] = use >= (_BUSY if most >= _BUSY else _BUSY * most)
    return busy


def _group(place: Place, shape: AttentionShape, sizes: Fit) -> tuple[int, int]:
    """Rows and columns of a group."""
    rows, keys = shape.rows, shape.kv_length
    # Others than with a causal mask know from the keys whether some are padding.
    alike = sizes._replace(keys=1) if shape.causal else sizes
    best = _least_slice(place, alike, rows.bit_length(), keys.bit_length())
    grid = place.rows, place.cols
    down, across = _large_group(grid, (rows, keys), best, shape.heads, sizes.states)
    return int(down), int(across)


@allocating
def _large_group(
    grid: tuple[int, int], lengths: tuple[int, int], slices: tuple[int, int], heads: int, turns: int
) -> tuple[int, int]:
    """The same, for rows and columns of tiles, rows and keys of a head, and of the best slices."""
    down, across = (
        _largest(grid[0], lengths[0], slices[0]),
        _largest(grid[1], lengths[1], slices[1]),
    )
    while (down, across) != grid:
        rows, keys = -(-lengths[0] // down), -(-lengths[1] // across)
        groups = (grid[0] // down) * (grid[1] // across)
        if turns * groups <= heads * -(-rows // slices[0]):
            break
        if across < grid[1] and (keys >= rows or down == grid[0]):
            across = _next_divisor(grid[1], across)
        else:
            down = _next_divisor(grid[0], down)
    return down, across


@compiled
def _largest(tiles: int, length: int, part: int) -> int:
    """The most tiles of a line, a whole number of times, that a length fills with such parts."""
    found, part = 1, min(part, length)
    for count in range(2, tiles + 1):
        if tiles % count == 0 and count * part <= length:
            found = count
    return found


@compiled
def _next_divisor(tiles: int, count: int) -> int:
    """The next count after one of which the tiles of a line are a whole number."""
    count += 1
    while tiles % count:
        count += 1
    return count


@lru_cache(1 << 10)
def _least_slice(place: Place, sizes: Fit, rows_bits: int, keys_bits: int) -> tuple[int, int]:
    """Rows and keys of the least slice that keeps the matrix engine busy: powers of two.

    Of lengths of so many bits.
    """
    rows, keys = 1 << np.arange(rows_bits)[:, None], 1 << np.arange(keys_bits)
    area = np.where(_busy(place, sizes, (1, 1), rows, keys, 2, 2), rows * keys, np.inf)
    # Of equal ones the nearest to a square.
    unequal = np.where(area == area.min(), np.abs(np.log2(rows / keys)), np.inf)
    row, col = np.unravel_index(int(unequal.argmin()), unequal.shape)
    return int(rows[row, 0]), int(keys[col])


forget_stale(_large_group)
