"""The fastest plan of FlashAttention by its closed form, of those that a tile has room for."""

from collections.abc import Iterator

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.attention.closed_form import flash_attention_cycles
from workloads.kernels.attention.core import AttentionShape, Block, filled_keys
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
        for block, cut in _blocks(shape, place)
    ]
    needed = [plan.tile_bytes for plan in plans]
    fitting = [plan for plan, size in zip(plans, needed, strict=True) if size <= place.tile_bytes]
    if not fitting:
        raise InputError(
            f"--shape: a single row takes {min(needed)} bytes of a tile's memory; "
            f"allowed: {place.tile_bytes}"
        )
    return min(fitting, key=lambda plan: flash_attention_cycles(plan, place.timing))


def _blocks(shape: AttentionShape, place: Place) -> Iterator[tuple[Block, int]]:
    """Blocks, and how many there are of keys, the last of them filled up.

    Keys are cut into equal blocks without padding, into 1, 2, 4, ... blocks, and into blocks of 1,
    2, 4, ... keys, which fill most engines. A head's rows are cut into 1, 2, 4, ... blocks, and
    into as many times those that give every tile a stream.
    """
    cuts = [1 << n for n in range(shape.rows.bit_length() + 1)]
    cuts += [ceil_div(place.rows * place.cols, shape.heads) * cut for cut in cuts]
    heights = {ceil_div(shape.rows, cut) for cut in cuts}
    tried = {filled_keys(place, keys) for keys in _key_lengths(shape.kv_length)}
    lengths = sorted(tried, reverse=True)
    for rows in sorted(heights, reverse=True):
        for keys in lengths:
            cut = ceil_div(shape.kv_length, keys)
            yield Block(rows, keys, shape.qk_depth, shape.v_depth), cut


def _key_lengths(keys: int) -> set[int]:
    """Keys of a block, of all that are tried."""
    powers = [1 << n for n in range(keys.bit_length())]
    equal = {keys // n for n in range(1, keys + 1) if keys % n == 0}
    return equal | {ceil_div(keys, n) for n in powers} | set(powers)
