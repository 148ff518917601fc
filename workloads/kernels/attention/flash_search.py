"""The fastest plan of FlashAttention by its closed form, of those that a tile has room for.

Problems that differ in the number of keys alone are searched together, which costs little more than
one of them.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.attention.core import AttentionShape, Block, filled_keys
from workloads.kernels.attention.flash_closed_form import candidate_cycles
from workloads.kernels.attention.flash_plan import FlashPlan, needed_bytes
from workloads.kernels.attention.plan import Cut
from workloads.kernels.parts.found import Found
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
    return alone([shape], place, (turns,), unit)[0].plan


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
    return in_runs([shape], place, method, unit)[0].plan


def alone(
    shapes: Sequence[AttentionShape],
    place: Place,
    turns: Sequence[int],
    unit: float | None = None,
) -> list[Found[FlashPlan]]:
    """`plan_flash` of problems that differ in their keys alone, with the best of some turns."""
    return _fastest(shapes, place, tuple((each, 1) for each in turns), "network", unit)


def in_runs(
    shapes: Sequence[AttentionShape],
    place: Place,
    method: str,
    unit: float | None = None,
    *,
    whole: bool = False,
) -> list[Found[FlashPlan]]:
    """`plan_decode` of problems that differ in their keys alone.

    With ``whole`` heads of keys and values are used by one run each: they lie in its tiles.
    """
    runs = [run for run in range(1, place.cols + 1) if place.cols % run == 0]
    kinds = tuple((turns, run) for turns in (1, 2) for run in runs)
    return _fastest(shapes, place, kinds, method, unit, whole=whole)


def _fastest(
    shapes: Sequence[AttentionShape],
    place: Place,
    kinds: tuple[tuple[int, int], ...],
    method: str,
    unit: float | None,
    *,
    whole: bool = False,
) -> list[Found[FlashPlan]]:
    """Of blocks under way, and tiles of a run, that go together."""
    shape = shapes[0]
    exponent = Factor.of_exponent(shape.qk_depth**-0.5 / 16 if unit is None else unit)
    block = Block(1, 1, shape.qk_depth, shape.v_depth)
    problem = FlashPlan(place, shape, block, 1, 1, 1, exponent, method=method)
    heads = (shape.rows, shape.heads)
    each = [_cuts(*heads, one.kv_length, place, kinds, whole=whole) for one in shapes]
    columns = np.concatenate(each, axis=1)
    needed = needed_bytes(problem, Cut(*columns))
    fits = np.flatnonzero(needed <= place.tile_bytes)
    cycles = np.full(len(needed), np.inf)
    if len(fits):
        cycles[fits] = candidate_cycles(problem, Cut(*columns[:, fits]), place.timing)
    found, end = [], 0
    for one, cuts in zip(shapes, each, strict=True):
        begin, end = end, end + cuts.shape[1]
        best = begin + int(np.argmin(np.rint(cycles[begin:end])))
        if cycles[best] == np.inf:
            raise InputError(
                f"--shape: a single row takes {int(needed[begin:end].min())} bytes of a tile's "
                f"memory; allowed: {place.tile_bytes}"
            )
        rows, keys, q_blocks, kv_blocks, run, turns, _ = columns[:, best].tolist()
        block = Block(rows, keys, shape.qk_depth, shape.v_depth)
        plan = FlashPlan(place, one, block, q_blocks, kv_blocks, turns, exponent, run, method)
        found.append(Found(plan, round(float(cycles[best]))))
    return found


def _cuts(
    rows: int,
    heads: int,
    keys: int,
    place: Place,
    kinds: tuple[tuple[int, int], ...],
    *,
    whole: bool,
) -> NDArray[np.int64]:
    """Cuts to try, those with the largest blocks first: the columns of a `Cut`, as rows.

    Keys are cut into equal blocks without padding, into 1, 2, 4, ... blocks, and into blocks of 1,
    2, 4, ... keys, which fill most engines. A head's rows are cut into 1, 2, 4, ... blocks, and
    into as many times those that give every run a stream.
    """
    word, found = filled_keys(place, 1), []
    for turns, run in kinds:
        if run > keys:
            continue
        runs = ceil_div(place.rows * place.cols // run, heads)
        high = np.array([rows]) if whole else _heights(rows, runs)
        wide = _lengths(ceil_div(keys, run), word)
        cut = np.empty((7, len(high), len(wide)), dtype=np.int64)
        cut[0], cut[2] = high[:, None], ceil_div(rows, high)[:, None]
        cut[1], cut[3] = wide, ceil_div(keys, wide * run)
        cut[4:] = np.array([run, turns, keys])[:, None, None]
        found.append(cut.reshape(7, -1))
    return np.concatenate(found, axis=1)


@lru_cache(1 << 10)
def _heights(rows: int, runs: int) -> NDArray[np.int64]:
    """Rows of a block, if so many runs work on a head; falling."""
    cuts = [1 << n for n in range(rows.bit_length() + 1)]
    heights = {ceil_div(rows, cut) for cut in (*cuts, *(runs * cut for cut in cuts))}
    return np.array(sorted(heights, reverse=True))


@lru_cache(1 << 12)
def _lengths(keys: int, word: int) -> NDArray[np.int64]:
    """Keys of a block in whole words, of so many of a tile; falling."""
    powers = [1 << n for n in range(keys.bit_length())]
    numbers = np.arange(1, keys + 1)
    equal = numbers[keys % numbers == 0].tolist()
    tried = {*equal, *(ceil_div(keys, n) for n in powers), *powers}
    return np.array(sorted({ceil_div(each, word) * word for each in tried}, reverse=True))
