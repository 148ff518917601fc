"""The fastest plan of a streaming product by its closed form, of those that fit a tile.

Cuts of the grid are ranked by what they cost if nothing but products and channels did. Of the best
ones all blocks are tried.
"""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tlm.compute.base import ceil_div, check_shape
from tlm.errors import InputError
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemm.stream_closed_form import candidate_cycles
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan, needed_bytes
from workloads.kernels.gemm.stream_steps import (
    Candidates,
    CutFigures,
    Numbers,
    blocks_of,
    cut_figures,
)
from workloads.machine.place import Place

#: Into how many blocks the columns and rows of a tile's share of C are cut.
_PASSES = np.array([1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 128, 1024])
#: Depths of blocks, as near as equal steps come to them.
_DEPTHS = np.array([16, 32, 64, 128, 256, 512, 2048])
_KEPT_CUTS = 8


def plan_stream(
    shape: Shape,
    place: Place,
    method: str = "network",
    groups: int = 1,
    weight_bits: float | None = None,
) -> StreamPlan:
    """Plan a product, or ``groups`` of one shape in one pipeline.

    Args:
        shape: M, N and K of a product.
        place: The grid.
        method: How partial blocks come together where K is cut.
        groups: Products.
        weight_bits: See `StreamPlan`.

    Raises:
        InputError: for a size below 1, or if no block fits.
    """
    check_shape(shape[0], shape[2], shape[1])
    if groups < 1:
        raise InputError(f"groups: found {groups}; allowed: 1 or more")
    cuts, columns = _grid_cuts(place.rows, place.cols)
    problem = StreamPlan(place, shape, groups, cuts[0], (1, 1, 1), method, weight_bits)
    kept = np.argsort(_least_cycles(problem, columns), kind="stable")[:_KEPT_CUTS]
    which = _blocks(problem, [cuts[index] for index in kept])
    best = int(np.argmin(candidate_cycles(problem, which, place.timing)))
    cut = GridCut(*(int(column[best]) for column in which.cut[:6]))
    block = int(which.m[best]), int(which.n[best]), int(which.k[best])
    return StreamPlan(place, shape, groups, cut, block, method, weight_bits)


@lru_cache(64)
def _grid_cuts(rows: int, cols: int) -> tuple[list[GridCut], GridCut]:
    """All cuts that use all tiles, and their columns as arrays; K is cut along one line only."""
    cuts = [
        GridCut(*row, *col)
        for row, col in product(_factors(rows), _factors(cols))
        if row[2] == 1 or col[2] == 1
    ]
    columns: Any = GridCut(*np.array(cuts).T)
    return cuts, columns


def _factors(side: int) -> list[tuple[int, int, int]]:
    divisors = [each for each in range(1, side + 1) if side % each == 0]
    return [
        (first, second, side // (first * second))
        for first in divisors
        for second in divisors
        if side % (first * second) == 0
    ]


def _least_cycles(problem: StreamPlan, cut: GridCut) -> Numbers:
    """Cycles that cuts take at least: those of products, or those of channels."""
    place = problem.place
    m, n, k = blocks_of(problem, cut.parts, (1, 1, 1))
    worked = problem.groups * place.matrix.gemm_cycles_over(m, k, n)
    parts = cut.k_rows * cut.k_cols
    flit_bits = 8 * place.timing.flit_bytes
    # Blocks that hardly fit set how often the operands are read.
    side = (place.tile_bytes / place.element_bits) ** 0.5
    a = place.rows * cut.m_cols * cut.k_cols * m * k * np.ceil(n / side) * place.element_bits
    b = place.cols * cut.n_rows * cut.k_rows * k * n * np.ceil(m / side) * problem.b_bits
    c = place.rows * place.cols // parts * m * n * place.sum_bits
    moved = problem.groups * (a + b + c) / flit_bits
    last = np.where(np.array(parts) > 1, m * n * place.sum_bits / flit_bits, 0)
    if place.offchip is None:
        return worked + moved / (place.rows * place.cols) + last
    edge = place.offchip
    cycles = max(1, edge.timing.transfer_cycles(edge.unit_bytes) / edge.unit_flits)
    loaded = moved * cycles / edge.channels
    return np.maximum(worked, loaded) + np.minimum(worked, loaded) / 64 + last


def _blocks(problem: StreamPlan, cuts: list[GridCut]) -> Candidates:
    """Blocks of some cuts that fit a tile.

    Raises:
        InputError: if none does.
    """
    columns = np.array([cut_figures(problem.place, cut) for cut in cuts]).T
    shares = blocks_of(problem, CutFigures(*columns).parts, (1, 1, 1))
    m, n, k = (share[:, None] for share in shares)
    high, deep = ceil_div(m, _PASSES), ceil_div(k, ceil_div(k, _DEPTHS))
    # Lines of the project's own tiles are whole words: what is stored has no gaps between them.
    place = problem.place
    line = 8 * place.timing.flit_bytes // place.element_bits if place.whole_lines else 1
    wide = ceil_div(ceil_div(n, _PASSES), line) * line
    new = [_new(side) for side in (high, wide, deep)]
    at = np.nonzero(new[0][:, :, None, None] & new[1][:, None, :, None] & new[2][:, None, None])
    sides = high[at[0], at[1]], wide[at[0], at[2]], deep[at[0], at[3]]
    needed = needed_bytes(problem, GridCut(*columns[:6, at[0]]), *sides)
    fits = np.flatnonzero(needed <= problem.place.tile_bytes)
    if not len(fits):
        raise InputError(
            f"--shape: the smallest blocks take {int(needed.min())} bytes of a tile's memory; "
            f"allowed: {problem.place.tile_bytes}"
        )
    figures = CutFigures(*columns[:, at[0][fits]])
    return Candidates(figures, *(side[fits] for side in sides))


def _new(sizes: Numbers) -> Numbers:
    """Where a size is another than the one before in its row."""
    return np.diff(sizes, axis=1, prepend=0) != 0
