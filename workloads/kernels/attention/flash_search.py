"""The fastest plan of FlashAttention by its closed form, of those that a tile has room for."""

from collections.abc import Sequence

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.attention.core import AttentionShape, Block, filled_keys
from workloads.kernels.attention.flash_closed_form import candidate_cycles
from workloads.kernels.attention.flash_plan import Cut, FlashPlan, needed_bytes
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place


def plan_flash(
    shape: AttentionShape, place: Place, turns: int, unit: float | None = None
) -> FlashPlan:
    """Plan attention by tiles that work alone; the largest blocks of equally fast ones.

    Args:
        shape: The problem.
        place: The grid.
        turns: Blocks that a tile has under way: 1 or 2.
        unit: Of a score; by default one over the root of the depth, by 16.

    Raises:
        InputError: if no block fits.
    """
    return _fastest(shape, place, (turns,), (1,), "network", unit)


def plan_decode(
    shape: AttentionShape, place: Place, method: str = "network", unit: float | None = None
) -> FlashPlan:
    """Plan attention by runs of tiles, with one or two blocks under way; else as `plan_flash`.

    Args:
        shape: The problem.
        place: The grid.
        method: How what the tiles of a run found comes together.
        unit: Of a score; by default one over the root of the depth, by 16.

    Raises:
        InputError: if no block fits.
    """
    most = min(place.cols, shape.kv_length)
    runs = [run for run in range(1, most + 1) if place.cols % run == 0]
    return _fastest(shape, place, (1, 2), runs, method, unit)


def _fastest(
    shape: AttentionShape,
    place: Place,
    turns: Sequence[int],
    runs: Sequence[int],
    method: str,
    unit: float | None,
) -> FlashPlan:
    exponent = Factor.of_exponent(shape.qk_depth**-0.5 / 16 if unit is None else unit)
    cuts = _cuts(shape, place, runs)
    found, least = [], []
    for each in turns:
        block = Block(1, 1, shape.qk_depth, shape.v_depth)
        problem = FlashPlan(place, shape, block, 1, 1, each, exponent, method=method)
        needed = needed_bytes(problem, cuts)
        fits = np.flatnonzero(needed <= place.tile_bytes)
        if not len(fits):
            least.append(int(needed.min()))
            continue
        some = Cut(*(column[fits] for column in cuts))
        cycles = np.rint(candidate_cycles(problem, some, place.timing))
        best = int(np.argmin(cycles))
        rows, keys, q_blocks, kv_blocks, run = (int(column[best]) for column in some)
        block = Block(rows, keys, shape.qk_depth, shape.v_depth)
        plan = FlashPlan(place, shape, block, q_blocks, kv_blocks, each, exponent, run, method)
        found.append((float(cycles[best]), plan))
    if not found:
        raise InputError(
            f"--shape: a single row takes {min(least)} bytes of a tile's memory; "
            f"allowed: {place.tile_bytes}"
        )
    return min(found, key=lambda each: each[0])[1]


def _cuts(shape: AttentionShape, place: Place, runs: Sequence[int]) -> Cut:
    """Cuts to try, those with the largest blocks first.

    Keys are cut into equal blocks without padding, into 1, 2, 4, ... blocks, and into blocks of 1,
    2, 4, ... keys, which fill most engines. A head's rows are cut into 1, 2, 4, ... blocks, and
    into as many times those that give every run a stream.
    """
    found = []
    for run in runs:
        cuts = [1 << n for n in range(shape.rows.bit_length() + 1)]
        some = ceil_div(place.rows * place.cols // run, shape.heads)
        heights = {ceil_div(shape.rows, cut) for cut in (*cuts, *(some * cut for cut in cuts))}
        share = ceil_div(shape.kv_length, run)
        lengths = {filled_keys(place, keys) for keys in _key_lengths(share)}
        for rows in sorted(heights, reverse=True):
            for keys in sorted(lengths, reverse=True):
                blocks = ceil_div(shape.kv_length, keys * run)
                found.append((rows, keys, ceil_div(shape.rows, rows), blocks, run))
    return Cut(*np.array(found).T)


def _key_lengths(keys: int) -> set[int]:
    """Keys of a block, of all that are tried."""
    powers = [1 << n for n in range(keys.bit_length())]
    equal = {keys // n for n in range(1, keys + 1) if keys % n == 0}
    return equal | {ceil_div(keys, n) for n in powers} | set(powers)
