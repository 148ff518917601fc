"""The fastest plan of FlashAttention by its closed form, of those that a tile has room for."""

from collections.abc import Iterator

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.attention.closed_form import flash_attention_cycles
from workloads.kernels.attention.core import AttentionShape, Block
from workloads.kernels.attention.flash_attention import FlashPlan
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place


def plan_flash(
    shape: AttentionShape, place: Place, turns: int, unit: float | None = None
) -> FlashPlan:
    """Plan attention; among equally fast plans the one with the largest blocks.

    Args:
        shape: The problem.
        place: The grid.
        turns: Blocks that a tile has under way: 1 or 2.
        unit: Of a score; by default one over the root of the depth, by 16.

    Raises:
        InputError: if no block fits.
    """
    exponent = Factor.of_exponent(shape.qk_depth**-0.5 / 16 if unit is None else unit)
    plans = [
        FlashPlan(place, shape, block, ceil_div(shape.rows, block.rows), cut, turns, exponent)
        for block, cut in _blocks(shape, place.rows * place.cols)
    ]
    needed = [plan.tile_bytes for plan in plans]
    fitting = [plan for plan, size in zip(plans, needed, strict=True) if size <= place.tile_bytes]
    if not fitting:
        raise InputError(
            f"--shape: a single row takes {min(needed)} bytes of a tile's memory; "
            f"allowed: {place.tile_bytes}"
        )
    return min(fitting, key=lambda plan: flash_attention_cycles(plan, place.timing))


def _blocks(shape: AttentionShape, tiles: int) -> Iterator[tuple[Block, int]]:
    """Blocks, and how many there are of keys, all equal: a key that pads would count as one.

    A head's rows are cut into 1, 2, 4, ... blocks, and into as many times those that give every
    tile a stream.
    """
    cuts = [1 << n for n in range(shape.rows.bit_length() + 1)]
    cuts += [ceil_div(tiles, shape.heads) * cut for cut in cuts]
    heights = {ceil_div(shape.rows, cut) for cut in cuts}
    keys = shape.kv_length
    for rows in sorted(heights, reverse=True):
        for cut in (n for n in range(1, keys + 1) if keys % n == 0):
            yield Block(rows, keys // cut, shape.qk_depth, shape.v_depth), cut
