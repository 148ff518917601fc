"""The fastest plan of a kernel of rows by its closed form, of those that a tile has room for."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.parts.found import Found
from workloads.kernels.vector.closed_form import candidate_cycles
from workloads.kernels.vector.recipe import Recipe
from workloads.kernels.vector.rows_plan import RowsPlan, needed_bytes
from workloads.machine.place import Place

#: Into how many blocks a tile's rows, and its columns, are cut.
_CUTS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096])


def plan_rows(
    recipe: Recipe,
    shape: tuple[int, int],
    place: Place,
    method: str = "network",
    *,
    inner: int = 1,
    width: int | None = None,
) -> RowsPlan:
    """Plan a kernel of rows.

    Args:
        recipe: What is done.
        shape: Rows, and columns of each.
        place: The grid.
        method: How parts of a row's result come together.
        inner: Blocks of operands that come together in a block of results.
        width: Columns of a block, where they are not free.

    Raises:
        InputError: for a size below 1, or if no block fits.
    """
    rows, columns = shape
    return plan_all_rows(recipe, [rows], columns, place, method, inner=inner, width=width)[0].plan


def plan_all_rows(
    recipe: Recipe,
    rows: Sequence[int],
    columns: int,
    place: Place,
    method: str = "network",
    *,
    inner: int = 1,
    width: int | None = None,
) -> list[Found[RowsPlan]]:
    """`plan_rows` of problems that differ in their rows alone."""
    problems, tried = [], []
    for each in rows:
        if min(each, columns, inner) < 1:
            raise InputError(f"--shape: found {each} rows of {columns}; allowed: 1 or more")
        problem = RowsPlan(place, recipe, (each, columns), inner, 1, (1, 1), method)
        problems.append(problem)
        tried.append(_candidates(problem, width))
    counts = [which.shape[1] for which in tried]
    parts, m, n = np.concatenate(tried, axis=1)
    # Of all problems together: rows are those of each candidate's.
    sizes: Any = {"shape": (np.repeat(rows, counts), columns)}
    needed = needed_bytes(replace(problems[0], **sizes), parts, m, n)
    fits = np.flatnonzero(needed <= place.tile_bytes)
    cycles = np.full(len(needed), np.inf)
    if len(fits):
        sizes = {"shape": (np.repeat(rows, counts)[fits], columns)}
        which = parts[fits], m[fits], n[fits]
        cycles[fits] = candidate_cycles(replace(problems[0], **sizes), which, place.timing)
    found, end = [], 0
    for problem, count in zip(problems, counts, strict=True):
        begin, end = end, end + count
        best = begin + int(np.argmin(cycles[begin:end]))
        if cycles[best] == np.inf:
            raise InputError(
                f"--shape: the smallest blocks take {int(needed[begin:end].min())} bytes of a "
                f"tile's memory; allowed: {place.tile_bytes}"
            )
        plan = replace(problem, parts=int(parts[best]), block=(int(m[best]), int(n[best])))
        found.append(Found(plan, round(float(cycles[best]))))
    return found


def _candidates(problem: RowsPlan, width: int | None) -> NDArray[np.int64]:
    """Parts and blocks to try, shape (3, candidates): rows are cut before columns are."""
    (rows, columns), place = problem.shape, problem.place
    parts = _parts(place.rows, place.cols, across=problem.recipe.reduced is None)
    high = ceil_div(rows, place.rows * place.cols // parts)
    # Lines of the project's own tiles are whole words: what is moved has no gaps between them.
    word = 8 * place.timing.flit_bytes // place.element_bits if place.whole_lines else 1
    wide = ceil_div(columns, parts)
    m = ceil_div(high, _CUTS[:, None])
    n: Any = ceil_div(wide, word) * word if width is None else width
    tried = [np.broadcast_arrays(parts, m, n)]
    if width is None and problem.recipe.reduced is None:
        n = ceil_div(ceil_div(wide, _CUTS[:, None]), word) * word
        tried.append(np.broadcast_arrays(parts, 1, n))
    parts, m, n = np.concatenate(tried, axis=1).reshape(3, -1)
    # Each once, by one number: several times as fast as by columns.
    shape = tuple(int(each.max()) + 1 for each in (parts, m, n))
    numbers = np.unique(np.ravel_multi_index((parts, m, n), shape))
    found = np.array(np.unravel_index(numbers, shape))
    # Of equally fast ones that with the largest blocks.
    return found[:, np.argsort(-found[1] * found[2], kind="stable")]


@lru_cache(64)
def _parts(rows: int, cols: int, *, across: bool) -> NDArray[np.int64]:
    """Numbers of tiles that may share a row: some of a row of the grid, or whole rows of it."""
    along = [each for each in range(1, cols + 1) if cols % each == 0]
    whole = [cols * each for each in range(2, rows + 1) if rows % each == 0]
    return np.array(along + (whole if across else []))
