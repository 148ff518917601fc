"""Plans of attention on tiles that work alone, or in runs: the fastest that they have room for.

FlashAttention's blocks have as many rows as keys (FlatAttention paper, section III-A: M = Br = Bc);
those of ``tile-attention`` and ``decode-attention`` are searched for.
Problems that differ in the number of keys alone are searched together, which costs little more than
one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.attention.flash_bounds import Bounds
from workloads.kernels.attention.flash_closed_form import candidate_cycles, flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan, counts, needed_bytes
from workloads.kernels.attention.plan import Cut
from workloads.kernels.attention.shape import AttentionShape, Block, filled_keys
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place

#: Blocks that a tile may have under way.
_TURNS = (1, 2)


def plan_flash(
    shape: AttentionShape, place: Place, turns: int, unit: float | None = None
) -> FlashPlan:
    """Plan FlashAttention: the fastest square blocks, of equally fast ones the largest.

    Args:
        shape: The problem.
        place: The grid.
        turns: Blocks that a tile has under way: 1 or 2.
        unit: Of a score; by default one over the root of the depth, by 16.

    Raises:
        InputError: if no block fits.
    """
    problem, found = _problem(shape, place, "network", unit), []
    least = 2**62
    for side in (1 << n for n in range(max(shape.rows, shape.kv_length).bit_length() + 1)):
        rows, keys = min(side, shape.rows), filled_keys(place, min(side, shape.kv_length))
        cut = ceil_div(shape.rows, rows), ceil_div(shape.kv_length, keys)
        block = Block(rows, keys, shape.qk_depth, shape.v_depth)
        plan = replace(problem, block=block, q_blocks=cut[0], kv_blocks=cut[1], turns=turns)
        least = min(least, plan.tile_bytes)
        if plan.tile_bytes <= place.tile_bytes:
            found.append((flash_attention_cycles(plan, place.timing), -side, plan))
    if not found:
        raise _too_small(least, place)
    return min(found, key=lambda each: each[:2])[2]


def plan_alone(shape: AttentionShape, place: Place) -> FlashPlan:
    """Plan attention by tiles that work alone; the largest blocks of equally fast ones.

    Raises:
        InputError: if no block fits.
    """
    problem = _problem(shape, place, "network", None)
    heights = _by_heights(problem, [1], whole=False)
    return _planned(_fastest(problem, [shape], _TURNS, heights), place)[0].plan


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


def alone_within(
    shapes: Sequence[AttentionShape], place: Place, cycles: Sequence[int]
) -> list[Found[FlashPlan] | None]:
    """`plan_alone` of problems that differ in their keys alone, and take so many cycles at most.

    None of others. Rows of blocks with which that is out of question are not tried.
    """
    bounds = _bounds_of(place, shapes[0])
    found: list[Found[FlashPlan] | None] = [None] * len(shapes)
    may = [bounds.within(one.kv_length, most) for one, most in zip(shapes, cycles, strict=True)]
    which = [at for at, rows in enumerate(may) if rows]
    if which:
        rows = sorted({row for each in may for row in each})
        tried = {tuple(bounds.rows[row] for row in rows): [1]}
        some = [shapes[at] for at in which]
        problem = _problem(shapes[0], place, "network", None)
        for at, one in zip(which, _fastest(problem, some, _TURNS, tried), strict=True):
            found[at] = None if isinstance(one, int) or one.cycles > cycles[at] else one
    return found


def _bounds_of(place: Place, shape: AttentionShape) -> Bounds:
    """Of all problems that differ from one in their keys alone."""
    sizes = shape.batch, shape.q_heads, shape.kv_heads, shape.q_length
    return _bounds(place, sizes, (shape.qk_depth, shape.v_depth), (shape.latent, shape.causal))


@lru_cache(1 << 10)
def _bounds(
    place: Place,
    sizes: tuple[int, int, int, int],
    depths: tuple[int, int],
    flags: tuple[bool, bool],
) -> Bounds:
    batch, q_heads, kv_heads, q_length = sizes
    shape = AttentionShape(batch, q_heads, kv_heads, q_length, q_length, *depths, *flags)
    problem = _problem(shape, place, "network", None)
    (rows,) = _by_heights(problem, [1], whole=False)
    return Bounds(problem, rows)


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
    most = min(place.cols, max(shape.kv_length for shape in shapes))
    runs = [run for run in range(1, most + 1) if place.cols % run == 0]
    problem = _problem(shapes[0], place, method, unit)
    heights = _by_heights(problem, runs, whole=whole)
    return _planned(_fastest(problem, shapes, _TURNS, heights), place)


def _problem(shape: AttentionShape, place: Place, method: str, unit: float | None) -> FlashPlan:
    """A plan whose cut does not matter."""
    exponent = Factor.of_exponent(shape.qk_depth**-0.5 / 16 if unit is None else unit)
    block = Block(1, 1, shape.qk_depth, shape.v_depth)
    return FlashPlan(place, shape, block, 1, 1, 1, exponent, method=method)


def _planned(found: Sequence[Found[FlashPlan] | int], place: Place) -> list[Found[FlashPlan]]:
    """What was found.

    Raises:
        InputError: if there is none of a problem.
    """
    planned = []
    for each in found:
        if isinstance(each, int):
            raise _too_small(each, place)
        planned.append(each)
    return planned


def _too_small(needed_bytes: int, place: Place) -> InputError:
    return InputError(
        f"--shape: a single row takes {needed_bytes} bytes of a tile's memory; allowed: "
        f"{place.tile_bytes}"
    )


def _fastest(
    problem: FlashPlan,
    shapes: Sequence[AttentionShape],
    turns: Sequence[int],
    heights: Mapping[tuple[int, ...], Sequence[int]],
) -> list[Found[FlashPlan] | int]:
    """The fastest plans with some blocks under way, and rows of blocks with the runs that try them.

    Where none fits, it is the bytes of a tile that the smallest takes.
    """
    place, shape = problem.place, problem.shape
    best: list[_Best | None] = [None] * len(shapes)
    least = [2**62] * len(shapes)
    for high, alike in heights.items():
        grid = _grid(problem, [one.kv_length for one in shapes], np.array(high), turns, alike)
        each = counts(problem, grid.cut)
        needed = needed_bytes(problem, grid.cut, each)
        fits, timing = needed <= place.tile_bytes, place.timing
        cycles = np.rint(candidate_cycles(problem, grid.cut, each, timing, fits, grid.of))
        first = [columns.start for *_, columns in grid.spans]
        fastest = np.minimum.reduceat(cycles.min(axis=(0, 1)), first).tolist()
        for (number, run, columns), lowest in zip(grid.spans, fastest, strict=True):
            known = best[number]
            if known is None or lowest <= known.cycles:
                tried = _Best.of(cycles[..., columns], run, grid.cut, columns.start)
                best[number] = tried if known is None else min(known, tried)
            if lowest == np.inf:
                least[number] = min(least[number], int(needed[..., columns].min()))
    found: list[Found[FlashPlan] | int] = []
    for one, taken, needs in zip(shapes, best, least, strict=True):
        if taken is None or taken.cycles == np.inf:
            found.append(needs)
            continue
        block = Block(taken.rows, taken.keys, shape.qk_depth, shape.v_depth)
        blocks = ceil_div(shape.rows, block.rows), ceil_div(one.kv_length, block.keys * taken.run)
        plan = FlashPlan(
            place, one, block, *blocks, turns[taken.turn], problem.exponent, taken.run,
            problem.method,
        )  # fmt: skip
        # Of many cuts at once it is an estimate, how streams are dealt out.
        own = flash_attention_cycles(plan, place.timing) if shape.causal else int(taken.cycles)
        found.append(Found(plan, own))
    return found


class _Best(NamedTuple):
    """The fastest cut with some run; of equally fast ones the first in this order."""

    cycles: float
    turn: int  # which one of those to try
    run: int
    rows: int  # of a block
    keys: int

    @classmethod
    def of(cls, cycles: NDArray[np.float64], run: int, cut: Cut, first: int) -> "_Best":
        """Of the columns of a grid from the first on."""
        turn, row, column = np.unravel_index(int(cycles.argmin()), cycles.shape)
        least = float(cycles[turn, row, column])
        return cls(least, int(turn), run, int(cut.rows[row, 0]), int(cut.keys[first + column]))


class _Grid(NamedTuple):
    """Cuts to try, those with the largest blocks first.

    Attributes:
        cut: Axes are the blocks under way, the rows of blocks, and at last their keys, with the
            runs and problems that they belong to. What is the same along one has a single place.
        of: Number of the problem along that last axis.
        spans: Problems and runs, and their part of it.
    """

    cut: Cut
    of: NDArray[np.int64]
    spans: list[tuple[int, int, slice]]


def _grid(
    problem: FlashPlan,
    lengths: Sequence[int],
    high: NDArray[np.int64],
    turns: Sequence[int],
    runs: Sequence[int],
) -> _Grid:
    """Cuts of problems of some numbers of keys.

    Keys are cut into equal blocks without padding, into 1, 2, 4, ... blocks, and into blocks of 1,
    2, 4, ... keys, which fill most engines.
    """
    word = filled_keys(problem.place, 1)
    spans, wide, end = [], [], 0
    for number, one in enumerate(lengths):
        for tiles in runs:
            if tiles <= one:
                wide.append(_lengths(ceil_div(one, tiles), word))
                begin, end = end, end + len(wide[-1])
                spans.append((number, tiles, slice(begin, end)))
    keys, counts = np.concatenate(wide), [len(each) for each in wide]
    of = np.repeat([number for number, *_ in spans], counts)
    length = np.array(lengths)[of]
    # Of a single run the streams of a tile depend on a block's rows alone.
    run = np.array(runs)
    if len(runs) > 1:
        run = np.repeat([tiles for _, tiles, _ in spans], counts)
    cut = Cut(
        rows=high[:, None],
        keys=keys,
        q_blocks=ceil_div(problem.shape.rows, high)[:, None],
        kv_blocks=ceil_div(length, keys * run),
        run=run,
        turns=np.array(turns)[:, None, None],
        length=length,
    )
    return _Grid(cut, of, spans)


def _by_heights(
    problem: FlashPlan, runs: Sequence[int], *, whole: bool
) -> dict[tuple[int, ...], list[int]]:
    """Rows of blocks to try, and the runs that try the same.

    A head's rows are cut into 1, 2, 4, ... blocks, and into as many times those that give every
    run a stream; with ``whole`` they are not.
    """
    place, shape = problem.place, problem.shape
    found: dict[tuple[int, ...], list[int]] = {}
    for run in runs:
        together = ceil_div(place.rows * place.cols // run, shape.heads)
        high = (shape.rows,) if whole else _heights(shape.rows, together)
        found.setdefault(high, []).append(run)
    return found


@lru_cache(1 << 10)
def _heights(rows: int, runs: int) -> tuple[int, ...]:
    """Rows of a block, if so many runs work on a head; falling."""
    cuts = [1 << n for n in range(rows.bit_length() + 1)]
    heights = {ceil_div(rows, cut) for cut in (*cuts, *(runs * cut for cut in cuts))}
    return tuple(sorted(heights, reverse=True))


@lru_cache(1 << 12)
def _lengths(keys: int, word: int) -> NDArray[np.int64]:
    """Keys of a block in whole words, of so many of a tile; falling."""
    powers = [1 << n for n in range(keys.bit_length())]
    numbers = np.arange(1, isqrt(keys) + 1)
    equal = numbers[keys % numbers == 0].tolist()
    tried = {*equal, *(keys // n for n in equal), *(ceil_div(keys, n) for n in powers), *powers}
    return np.array(sorted({ceil_div(each, word) * word for each in tried}, reverse=True))
