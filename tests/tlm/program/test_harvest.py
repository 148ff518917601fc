"""Which rows and columns go out of use."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.program.harvest import Grid, Harvest, least_harvest


def table(*rows: str) -> np.ndarray:
    """Rows of tiles, disabled where an x is."""
    return np.array([[tile == "x" for tile in row] for row in rows])


def subsets(size: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(size), n) for n in range(size + 1)))


def first_of_least(disabled: np.ndarray, grid: Grid) -> Harvest | None:
    """The first of the lines with the fewest tiles on them, by looking at all choices."""
    height, width = disabled.shape
    found = [
        (len(rows) * width + len(cols) * height, len(cols), rows, cols)
        for rows in subsets(height)
        for cols in subsets(width)
        if height - len(rows) >= grid[0]
        and width - len(cols) >= grid[1]
        and not np.delete(np.delete(disabled, rows, 0), cols, 1).any()
    ]
    return Harvest((height, width), *min(found)[2:]) if found else None


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, Grid]:
    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    tiles = st.lists(
        st.sampled_from([0, 0, 0, 1]), min_size=height * width, max_size=height * width
    )
    disabled = np.array(draw(tiles), dtype=bool).reshape(height, width)
    return disabled, (draw(st.integers(1, height)), draw(st.integers(1, width)))


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_lines_are_as_few_as_can_be(case: tuple[np.ndarray, Grid]) -> None:
    disabled, grid = case
    least = first_of_least(disabled, grid)
    if least is None:
        left = first_of_least(disabled, (1, 1))
        allowed = "none" if left is None else "such as {}x{}".format(*left.left)
        with pytest.raises(InputError, match=f"found {grid[0]}x{grid[1]}; allowed: {allowed}, "):
            least_harvest(disabled, grid)
        return
    found = least_harvest(disabled, grid)
    assert found == least
    rows, cols = found.places(grid)
    assert (len(rows), len(cols)) == grid
    assert not disabled[np.ix_(rows, cols)].any()
    assert rows == sorted(set(rows) - set(found.rows))
    assert cols == sorted(set(cols) - set(found.cols))


def test_one_line_covers_many_disabled_tiles() -> None:
    disabled = table("..x.", "..x.", "x.x.", "..x.")
    assert least_harvest(disabled, (3, 3)) == Harvest((4, 4), (2,), (2,))
    with pytest.raises(InputError) as caught:
        least_harvest(disabled, (4, 3))
    assert str(caught.value) == (
        "found 4x3; allowed: such as 3x3, of 4x4 tiles of which 5 are disabled"
    )


def test_the_wanted_grid_decides_which_way_lines_go() -> None:
    disabled = table("....", ".x..", "....", "....")
    assert least_harvest(disabled, (3, 3)).rows == (1,)
    assert least_harvest(disabled, (3, 4)) == Harvest((4, 4), (1,), ())
    assert least_harvest(disabled, (4, 3)) == Harvest((4, 4), (), (1,))


def test_of_as_many_rows_the_lowest_go() -> None:
    # Every choice of 36 rows, and the columns of the other tiles, would do.
    disabled = np.eye(40, dtype=bool)[::-1]
    assert least_harvest(disabled, (4, 4)).rows == tuple(range(36))
    assert least_harvest(disabled, (4, 4)).cols == (0, 1, 2, 3)


def test_short_lines_go_first() -> None:
    assert least_harvest(table("...", ".x.", "...", "..."), (2, 2)).rows == (1,)
    assert least_harvest(table("....", ".x..", "...."), (2, 2)).cols == (1,)


def test_a_grid_lies_where_the_fewest_lines_are_out_of_use() -> None:
    harvest = Harvest((8, 6), rows=(1, 3), cols=(4,))
    assert harvest.left == (6, 5)
    assert harvest.places((4, 4)) == ([4, 5, 6, 7], [0, 1, 2, 3])
    assert harvest.places((6, 5)) == ([0, 2, 4, 5, 6, 7], [0, 1, 2, 3, 5])


def test_no_tile_may_be_left() -> None:
    with pytest.raises(InputError, match="found 1x1; allowed: none, of 2x2 tiles of which 4"):
        least_harvest(np.ones((2, 2), dtype=bool), (1, 1))


def test_a_grid_larger_than_the_table() -> None:
    with pytest.raises(InputError) as caught:
        least_harvest(np.zeros((2, 3), dtype=bool), (3, 3))
    assert str(caught.value) == (
        "found 3x3; allowed: such as 2x3, of 2x3 tiles of which 0 are disabled"
    )
