"""Which rows and columns go out of use, so that no disabled tile is left in those that remain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError

Grid = tuple[int, int]

#: Rows that one integer program puts in order, by powers of two as weights.
_ROWS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Harvest:
    """Lines of a grid that are out of use.

    Attributes:
        grid: Rows and columns of all tiles.
        rows: Rows out of use, in rising order.
        cols: Columns out of use, in rising order.
    """

    grid: Grid
    rows: tuple[int, ...] = ()
    cols: tuple[int, ...] = ()

    @property
    def left(self) -> Grid:
        """Rows and columns that remain."""
        return self.grid[0] - len(self.rows), self.grid[1] - len(self.cols)

    def places(self, grid: Grid) -> tuple[list[int], list[int]]:
        """Rows and columns for a smaller grid: those with the fewest lines out of use between them.

        Args:
            grid: Rows and columns; no more than remain.
        """
        rows = _closest(self.grid[0], self.rows, grid[0])
        return rows, _closest(self.grid[1], self.cols, grid[1])


def _closest(size: int, unused: Sequence[int], count: int) -> list[int]:
    lines = np.delete(np.arange(size), unused)
    spans = lines[count - 1 :] - lines[: len(lines) - count + 1]
    first = int(spans.argmin())
    return [int(line) for line in lines[first : first + count]]


def least_harvest(disabled: NDArray[np.bool_], grid: Grid) -> Harvest:
    """The lines that cover all disabled tiles with the fewest tiles on them.

    Each disabled tile takes its row or its column out of use; a line counts as many tiles as it
    has. Enough lines for a wanted grid have to remain. Of lines that serve as well, rows go first,
    and of as many rows those with the lowest numbers, the first row that differs deciding.

    Args:
        disabled: Shape (rows, columns): tiles that must not be used.
        grid: Rows and columns that are wanted.

    Raises:
        InputError: if no such grid can remain; says how large one can.
    """
    size = (disabled.shape[0], disabled.shape[1])
    if not disabled.any():
        best = Harvest(size)
        if not _fits(grid, size):
            _refuse(grid, disabled, best)
        return best
    found = _cover(disabled, (size[0] - grid[0], size[1] - grid[1])) if _fits(grid, size) else None
    if found is None:
        _refuse(grid, disabled, _cover(disabled, (size[0] - 1, size[1] - 1)))
    return found


def _fits(grid: Grid, size: Grid) -> bool:
    return grid[0] <= size[0] and grid[1] <= size[1]


def _refuse(grid: Grid, disabled: NDArray[np.bool_], best: Harvest | None) -> NoReturn:
    allowed = "none" if best is None else "such as {}x{}".format(*best.left)
    raise InputError(
        f"found {grid[0]}x{grid[1]}; allowed: {allowed}, of {disabled.shape[0]}x"
        f"{disabled.shape[1]} tiles of which {disabled.sum()} are disabled"
    )


def _cover(disabled: NDArray[np.bool_], most: Grid) -> Harvest | None:
    """The lines that cover all disabled tiles, at most so many rows and columns; None: too few.

    A vertex cover of rows and columns, which is easy without bounds and hard with them: the
    repair of memories with spare rows and columns.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import: for few runs only
    from scipy.sparse import csr_array, vstack

    rows, row_of = np.unique(np.nonzero(disabled)[0], return_inverse=True)
    cols, col_of = np.unique(np.nonzero(disabled)[1], return_inverse=True)
    lines, tiles = len(rows) + len(cols), len(row_of)
    number = np.repeat(np.arange(tiles), 2)
    ends = np.stack([row_of, len(rows) + col_of], axis=1).ravel()
    edges = csr_array((np.ones(2 * tiles), (number, ends)), shape=(tiles, lines))
    is_row = np.arange(lines) < len(rows)
    sides = vstack([csr_array(is_row[None].astype(float)), csr_array(1.0 - is_row[None])])
    height, width = disabled.shape
    least, largest = np.zeros(lines), np.ones(lines)

    def solve(cost: NDArray[np.float64], fewest: Grid, most: Grid) -> NDArray[np.bool_] | None:
        found = milp(
            cost,
            integrality=np.ones(lines),
            bounds=Bounds(least, largest),
            constraints=[LinearConstraint(edges, lb=1), LinearConstraint(sides, fewest, most)],
            options={"mip_rel_gap": 0},
        )
        return None if found.x is None else found.x > 0.5

    # Of equals rows go first: all columns together cost less than half a tile more.
    chosen = solve(np.where(is_row, width, height + 1 / (2 * lines)), (0, 0), most)
    if chosen is None:
        return None
    # Of as many rows the lowest: each is worth more than all later ones. They settle the columns.
    count = int(chosen[is_row].sum()), int(chosen[~is_row].sum())
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        now = np.arange(first, min(first + _ROWS_AT_ONCE, len(rows)))
        worth = np.zeros(lines)
        worth[now] = 2.0 ** np.arange(len(now))[::-1]
        chosen = solve(-worth, count, count)
        assert chosen is not None, "the cover so far is one"
        least[now] = largest[now] = chosen[now]
    return Harvest(
        (height, width),
        tuple(rows[chosen[: len(rows)]].tolist()),
        tuple(cols[chosen[len(rows) :]].tolist()),
    )
