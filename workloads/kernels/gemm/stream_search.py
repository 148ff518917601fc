"""The fastest plan of a streaming product by its closed form, of those that fit a tile.

Cuts of the grid are ranked by what they cost if nothing but products and channels did. Of the best
ones all blocks are tried.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tlm.compiled import allocating, forget_stale
from tlm.compute.base import ceil_div, check_shape
from tlm.compute.vector_product import Faster
from tlm.errors import InputError
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemm.stream_closed_form import candidate_cycles
from workloads.kernels.gemm.stream_plan import GridCut, Room, StreamPlan, block_bytes, blocks_along
from workloads.kernels.gemm.stream_steps import (
    Candidates,
    CutFigures,
    Numbers,
    blocks_of,
    figures_on,
)
from workloads.kernels.parts.found import Found
from workloads.machine.place import Place

#: Into how many blocks the columns and rows of a tile's share of C are cut.
_PASSES = np.array([1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 128, 1024])
#: Depths of blocks, as near as equal steps come to them.
_DEPTHS = np.array([16, 32, 64, 128, 256, 512, 2048])
_KEPT_CUTS = 8
_KEPT_BLOCKS = 256


def plan_stream(
    shape: Shape,
    place: Place,
    method: str = "network",
    groups: int = 1,
    weight_bits: float | None = None,
    *,
    resident: bool = False,
) -> StreamPlan:
    """Plan a product, or ``groups`` of one shape in one pipeline.

    Args:
        shape: M, N and K of a product.
        place: The grid.
        method: How partial blocks come together where K is cut.
        groups: Products.
        weight_bits: See `StreamPlan`.
        resident: See `StreamPlan`.

    Raises:
        InputError: for a size below 1, or if no block fits.
    """
    problem = [(shape[0], groups)]
    found = plan_streams(problem, shape[1:], place, method, weight_bits, resident=resident)
    return found[0].plan


def plan_streams(
    rows_groups: Sequence[tuple[int, int]],
    others: tuple[int, int],
    place: Place,
    method: str = "network",
    weight_bits: float | None = None,
    *,
    resident: bool = False,
    cut: GridCut | None = None,
) -> list[Found[StreamPlan]]:
    """`plan_stream` of problems, given by their M and groups, with the same N and K.

    Where B lies in the tiles a ``cut`` says which parts of it: then no other is tried.
    """
    problems, tried = [], []
    for rows, groups in rows_groups:
        check_shape(rows, others[1], others[0])
        if groups < 1:
            raise InputError(f"groups: found {groups}; allowed: 1 or more")
        cuts, columns = _grid_cuts(place.rows, place.cols) if cut is None else _one_cut(cut)
        problem = StreamPlan(
            place, (rows, *others), groups, cuts[0], (1, 1, 1), method, weight_bits, resident
        )
        ranked = [
            np.argsort(_least_cycles(each, columns), kind="stable")[:_KEPT_CUTS]
            for each in _as_ranked(problem)
        ]
        kept = dict.fromkeys(np.concatenate(ranked).tolist())
        problems.append(problem)
        tried.append(_likely(problem, [cuts[index] for index in kept]))
    counts = [len(which.m) for which in tried]
    # Of all problems together: M and groups are those of each candidate's.
    m, many = (np.repeat(column, counts) for column in np.array(rows_groups).T)
    sizes: Any = {"shape": (m, *others), "groups": many}
    together = replace(problems[0], **sizes)
    which = _joined(tried)
    rivals = np.repeat(np.arange(len(counts)), counts)
    cycles = candidate_cycles(together, which, place.timing, rivals)
    found, end = [], 0
    for problem, count in zip(problems, counts, strict=True):
        begin, end = end, end + count
        best = begin + int(np.argmin(cycles[begin:end]))
        cut = GridCut(*(int(column[best]) for column in which.cut[:6]))
        block = int(which.m[best]), int(which.n[best]), int(which.k[best])
        plan = replace(problem, cut=cut, block=block)
        found.append(Found(plan, round(float(cycles[best]))))
    return found


def _as_ranked(problem: StreamPlan) -> list[StreamPlan]:
    """A problem as its candidates are ranked: of two engines also as if the first had all of it.

    So a second engine adds candidates, and takes none away.
    """
    place = problem.place
    if not isinstance(place.matrix, Faster):
        return [problem]
    return [replace(problem, place=replace(place, matrix=place.matrix.one)), problem]


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


def _one_cut(cut: GridCut) -> tuple[list[GridCut], GridCut]:
    """A cut alone, and it as columns."""
    columns: Any = GridCut(*np.array([cut]).T)
    return [cut], columns


def whole_weight_cuts(rows: int, cols: int) -> list[GridCut]:
    """Cuts of a grid that give each tile a part of B of its own."""
    return [cut for cut in _grid_cuts(rows, cols)[0] if cut.parts[0] == 1]


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
    if problem.resident:  # takes no time, if there is room
        b, room = 0, 8 * place.tile_bytes
        worked = np.where(problem.groups * k * n * problem.b_bits > room, np.inf, worked)
    c = place.rows * place.cols // parts * m * n * place.sum_bits
    moved = problem.groups * (a + b + c) / flit_bits
    last = np.where(np.array(parts) > 1, m * n * place.sum_bits / flit_bits, 0)
    if place.offchip is None:
        return worked + moved / (place.rows * place.cols) + last
    edge = place.offchip
    cycles = max(1, edge.flit_bytes / float(edge.timing.bytes_per_cycle))
    loaded = moved * cycles / edge.channels
    return np.maximum(worked, loaded) + np.minimum(worked, loaded) / 64 + last


def _likely(problem: StreamPlan, cuts: list[GridCut]) -> Candidates:
    """Blocks of some cuts that fit a tile; of many those that `_roughly` takes for the fastest.

    Raises:
        InputError: if none fits.
    """
    columns = np.array([*map(figures_on(problem.place), cuts)]).T
    m, n, k = blocks_of(problem, CutFigures(*columns[:, :, None]).parts, (1, 1, 1))
    # Lines of the project's own tiles are whole words: what is stored has no gaps between them.
    place = problem.place
    line = 8 * place.timing.flit_bytes // place.element_bits if place.whole_lines else 1
    wide = ceil_div(ceil_div(n, _PASSES), line) * line
    sides = ceil_div(m, _PASSES), wide, ceil_div(k, ceil_div(k, _DEPTHS))
    which, least = _fitting(Room.of(problem), place.tile_bytes, columns[:6], *sides)
    if not which.shape[1]:
        raise InputError(
            f"--shape: the smallest blocks take {int(least)} bytes of a tile's memory; "
            f"allowed: {place.tile_bytes}"
        )
    if which.shape[1] > _KEPT_BLOCKS:
        ranked = [_roughly(each, columns, which) for each in _as_ranked(problem)]
        best = [np.argpartition(cycles, _KEPT_BLOCKS)[:_KEPT_BLOCKS] for cycles in ranked]
        which = which[:, np.unique(np.concatenate(best))]
    return Candidates(CutFigures(*columns[:, which[0]]), *which[1:])


@allocating
def _fitting(
    of: Room, tile_bytes: int, cuts: Numbers, high: Numbers, wide: Numbers, deep: Numbers
) -> tuple[Numbers, float]:
    """Blocks that a tile has room for, and the bytes of the smallest.

    Args:
        of: The problem.
        tile_bytes: Of a tile.
        cuts: `GridCut`s, shape (6, cuts).
        high: Rows of blocks to try in each cut, shape (cuts, rows); none is tried twice.
        wide: The same of columns.
        deep: The same of depths.

    Returns:
        The number of the cut, rows, columns and depth; shape (4, blocks).
    """
    sides = high.shape[1], wide.shape[1], deep.shape[1]
    found = np.empty((4, len(high) * sides[0] * sides[1] * sides[2]), dtype=np.int64)
    end, least = 0, np.inf
    for cut in range(len(high)):
        m_rows, n_rows, k_rows, m_cols, n_cols, k_cols = cuts[:, cut]
        parts = m_rows * m_cols, n_rows * n_cols, k_rows * k_cols
        for row in range(sides[0]):
            m = high[cut, row]
            if row and m == high[cut, row - 1]:
                continue
            for column in range(sides[1]):
                n = wide[cut, column]
                if column and n == wide[cut, column - 1]:
                    continue
                for depth in range(sides[2]):
                    k = deep[cut, depth]
                    if depth and k == deep[cut, depth - 1]:
                        continue
                    needed = block_bytes(of, parts, m_rows, n_cols, m, n, k)
                    least = min(least, float(needed))
                    if needed <= tile_bytes:
                        found[0, end], found[1, end] = cut, m
                        found[2, end], found[3, end] = n, k
                        end += 1
    return found[:, :end].copy(), least


def _roughly(problem: StreamPlan, columns: Numbers, which: Numbers) -> Numbers:
    """Cycles of candidates if nothing but products and channels took time.

    Args:
        problem: The problem.
        columns: `CutFigures` of cuts, shape (figures, cuts).
        which: As `_fitting` has them.
    """
    place, edge, (m, n, k) = problem.place, problem.place.offchip, which[1:]
    cycles = 1.0
    if edge is not None:
        cycles = max(1.0, edge.flit_bytes / float(edge.timing.bytes_per_cycle))
    product = place.matrix.gemm_cycles_over(m, k, n)
    more = 8 * place.timing.flit_bytes, cycles, edge is not None
    return _rough(Room.of(problem), columns, which, product, *more)


@allocating
def _rough(
    of: Room, columns: Numbers, which: Numbers, product: Numbers, flit_bits: int,
    flit_cycles: float, memory: bool,
) -> Numbers:  # fmt: skip
    """`_roughly`, with the cycles of each candidate's product."""
    found = np.empty(which.shape[1])
    for number in range(len(found)):
        cut, m, n, k = which[:, number]
        m_rows, n_rows, k_rows, m_cols, n_cols, k_cols = columns[:6, cut]
        a_loads, b_loads, c_stores = columns[6:9, cut]
        deep = blocks_along(of.k, k_rows * k_cols, k)
        passes = of.groups * blocks_along(of.m, m_rows * m_cols, m)
        passes *= blocks_along(of.n, n_rows * n_cols, n)
        a, c = m * k * of.element_bits, m * n * of.sum_bits
        b = 0 if of.resident else k * n * of.b_bits
        if memory:
            loads = (a_loads * a + b_loads * b) * flit_cycles / flit_bits
            stores = c_stores * c * flit_cycles / flit_bits
        else:
            loads, stores = (a + b) / flit_bits, c / flit_bits
        worked, moved = float(passes * deep * product[number]), passes * (deep * loads + stores)
        found[number] = loads + max(worked, moved) + min(product[number], loads) + stores
    return found


def _joined(each: list[Candidates]) -> Candidates:
    """Candidates of several problems, one after another."""
    cuts = np.concatenate([np.broadcast_arrays(*which.cut) for which in each], axis=1)
    m, n, k = np.concatenate([which[1:] for which in each], axis=1)
    return Candidates(CutFigures(*cuts), m, n, k)


forget_stale(_fitting, _rough)
