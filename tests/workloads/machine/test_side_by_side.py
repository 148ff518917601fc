"""Places side by side: rectangles that do not overlap, and what lies between them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.chips import load_chip
from tlm.errors import InputError
from workloads.machine.place import Rectangle
from workloads.machine.side_by_side import (
    Lot,
    hops_between,
    links_between,
    side_by_side,
    whole,
)

_NPUSIM = load_chip("npusim-large")  # 8x8
_FLAT = load_chip("flat32")


def test_whole_rows_lie_above_each_other_and_share_their_columns_channels() -> None:
    above, below = side_by_side(_FLAT, [512, 256])
    assert above == Lot(Rectangle(8, 0, 16, 32), Fraction(2, 3))
    assert below == Lot(Rectangle(24, 0, 8, 32), Fraction(1, 3))
    assert links_between(above.tiles, below.tiles) == 32
    assert hops_between(above.tiles, below.tiles) == 23
    assert side_by_side(_FLAT, [1024]) == [whole(_FLAT)]


def test_other_rectangles_lie_where_they_are_most_like_squares() -> None:
    one, other = side_by_side(_NPUSIM, [20, 12])
    assert one == Lot(Rectangle(4, 0, 4, 5))
    assert other == Lot(Rectangle(4, 5, 4, 3))
    assert links_between(one.tiles, other.tiles) == 4
    assert hops_between(one.tiles, other.tiles) == 7
    # On a tall grid these are next to each other 5x2 and 6x2, above each other 5x2 and 3x4.
    one, other = side_by_side(load_chip("rtl-8x4"), [10, 12])
    assert (one.tiles, other.tiles) == (Rectangle(0, 0, 5, 2), Rectangle(5, 0, 3, 4))
    assert (one.share, other.share) == (Fraction(5, 8), Fraction(3, 8))


@pytest.mark.parametrize("counts", [[11], [42, 21], [65], [0, 8], [-8, 16], [64, 8]])
def test_what_is_no_rectangle_or_too_much_is_refused(counts: list[int]) -> None:
    found = " and ".join(map(str, counts))
    with pytest.raises(InputError) as refused:
        side_by_side(_NPUSIM, counts)
    assert str(refused.value) == (
        f"tiles of a pool of 'npusim-large': found {found}; allowed: rectangles of tiles that lie "
        "on its 8x8 together, such as whole rows of 8"
    )


@given(st.lists(st.integers(1, 64), min_size=1, max_size=4))
def test_places_do_not_overlap_and_no_channel_is_shared_out_twice(counts: list[int]) -> None:
    try:
        lots = side_by_side(_NPUSIM, counts)
    except InputError:
        return
    tiles = [
        (row, col)
        for lot in lots
        for row in range(lot.tiles.row, lot.tiles.row + lot.tiles.rows)
        for col in range(lot.tiles.col, lot.tiles.col + lot.tiles.cols)
    ]
    assert len(tiles) == len(set(tiles)) == sum(counts)
    for lot in lots:
        lot.tiles.check_within(_NPUSIM)
    for col in range(8):
        there = [lot for lot in lots if lot.tiles.col <= col < lot.tiles.col + lot.tiles.cols]
        assert sum(lot.share for lot in there) <= 1
