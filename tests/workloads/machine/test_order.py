"""Orders of tiles: published ones, and how far a ring's steps go."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.kernels.products import place
from tlm.errors import InputError
from workloads.kernels.gemm.ring import Ring
from workloads.machine.order import PLACEMENTS, footprint, step_hops, tile_order

SIDES = st.integers(1, 12)


def indices(placement: str, rows: int, cols: int, chip_cols: int = 8) -> list[int]:
    return [row * chip_cols + col for row, col in tile_order(placement, rows, cols)]


@pytest.mark.parametrize(
    ("placement", "rows", "cols", "published"),
    [
        ("linear", 1, 4, [0, 1, 2, 3]),
        ("mesh", 2, 2, [0, 1, 8, 9]),
        ("ring", 2, 2, [0, 1, 9, 8]),
        ("ring", 2, 8, [*range(8), *range(15, 7, -1)]),
        ("interleave", 2, 8, [0, 2, 4, 6, 15, 13, 11, 9, 8, 10, 12, 14, 7, 5, 3, 1]),
    ],
)
def test_published_orders(placement: str, rows: int, cols: int, published: list[int]) -> None:
    assert indices(placement, rows, cols) == published


def test_four_interleaved_are_the_published_ring_the_other_way_round() -> None:
    found = indices("interleave", 1, 4)
    assert [found[0], *found[:0:-1]] == [0, 1, 3, 2]


@given(SIDES, SIDES, st.sampled_from(PLACEMENTS))
def test_every_tile_once(rows: int, cols: int, placement: str) -> None:
    try:
        order = tile_order(placement, rows, cols)
    except InputError:
        assert placement == "ring"
        assert rows * cols > 2
        assert min(rows, cols) == 1 or rows * cols % 2
        return
    assert sorted(order) == sorted(product(range(rows), range(cols)))


@given(SIDES, SIDES)
def test_hops_of_a_step(rows: int, cols: int) -> None:
    size = rows * cols
    if size % 2 == 0 and min(rows, cols) > 1:
        assert step_hops(tile_order("ring", rows, cols)) == [1] * size
    assert max(step_hops(tile_order("interleave", rows, cols))) <= 2
    assert max(step_hops(tile_order("mesh", rows, cols))) <= 3
    on_a_row = step_hops(tile_order("linear", 1, cols))
    assert on_a_row == [*[1] * (cols - 1), cols - 1]


@given(SIDES)
def test_interleaved_is_the_ring_of_the_products(size: int) -> None:
    line = [col for _, col in tile_order("interleave", 1, size)]
    assert line == np.argsort(Ring.interleaved(size).position).tolist()


def test_footprints() -> None:
    found = {(name, count): footprint(name, count, 8) for name in PLACEMENTS for count in (4, 16)}
    assert found == {
        ("linear", 4): (1, 4), ("linear", 16): (2, 8),
        ("interleave", 4): (1, 4), ("interleave", 16): (2, 8),
        ("ring", 4): (2, 2), ("ring", 16): (2, 8),
        ("mesh", 4): (2, 2), ("mesh", 16): (4, 4),
    }  # fmt: skip


def test_a_place_has_an_order() -> None:
    tiles = place(2, 2)
    assert tiles.order == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert replace(tiles, placement="ring").order == ((0, 0), (0, 1), (1, 1), (1, 0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tile_order("spiral", 2, 2),
            "unknown placement 'spiral'; known: interleave, linear, mesh, ring",
        ),
        (
            lambda: tile_order("ring", 1, 4),
            "placement ring: found 1x4 tiles; allowed: two rows and columns or more, an even "
            "number of one of them",
        ),
        (
            lambda: footprint("linear", 13, 8),
            "placement linear: found 13 tiles; allowed on 8 columns: rows as long as each other",
        ),
        (
            lambda: footprint("ring", 20, 8),
            "placement ring: found 20 tiles; allowed on 8 columns: rows as long as each other",
        ),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message
