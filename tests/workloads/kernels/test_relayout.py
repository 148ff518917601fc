"""A change of layout: every part comes to its tile, and the levels agree to the cycle."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.kernels.products import TIMING, computed, place
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from workloads.kernels.vector.relayout import (
    expected,
    plan_relayout,
    put,
    relayout,
    relayout_cycles,
    result,
)


@pytest.mark.parametrize("to_blocks", [True, False])
@pytest.mark.parametrize(
    ("grid", "shape"), [((1, 2), (3, 5)), ((2, 3), (13, 9)), ((3, 4), (24, 8)), ((2, 5), (1, 1))]
)
def test_every_part_comes_to_its_tile(
    grid: tuple[int, int], shape: tuple[int, int], *, to_blocks: bool
) -> None:
    plan = plan_relayout(shape, place(*grid), to_blocks=to_blocks)
    matrix = np.random.default_rng(0).integers(-(2**31), 2**31, shape)
    for seed in range(4):
        memory = computed(relayout(plan), lambda memory: put(plan, memory, matrix), seed)
        assert np.array_equal(result(plan, memory), expected(plan, matrix))


def test_blocks_are_what_rows_were() -> None:
    """Of 4 x 6 numbers on 1 x 2 tiles: rows of three columns each, from two tiles of two rows."""
    plan = plan_relayout((4, 6), place(1, 2), to_blocks=True)
    matrix = np.arange(24).reshape(4, 6)
    memory = computed(relayout(plan), lambda memory: put(plan, memory, matrix))
    left, right = result(plan, memory).reshape(2, 4, 3)
    assert np.array_equal(left, matrix[:, :3])
    assert np.array_equal(right, matrix[:, 3:])
    back = plan_relayout((4, 6), place(1, 2), to_blocks=False)
    memory = computed(relayout(back), lambda memory: put(back, memory, matrix))
    first, second = result(back, memory)[0]
    assert np.array_equal(np.concatenate(first, axis=1), matrix[:2])
    assert np.array_equal(np.concatenate(second, axis=1), matrix[2:])


@settings(deadline=None)
@given(
    grid=st.tuples(st.integers(1, 4), st.integers(2, 7)),
    shape=st.tuples(st.integers(1, 80), st.integers(1, 200)),
    hop_cycles=st.integers(1, 2),
)
def test_levels_agree(grid: tuple[int, int], shape: tuple[int, int], hop_cycles: int) -> None:
    timing = replace(TIMING, hop_cycles=hop_cycles)
    plan = plan_relayout(shape, replace(place(*grid), timing=timing), to_blocks=True)
    lt = run_lt(relayout(plan), timing).cycles
    assert run_at(relayout(plan), timing, HandshakeMesh(*grid, timing)).cycles == lt
    # Ends of the ring are a hop apart, not two: short messages may gain by that.
    assert lt <= relayout_cycles(plan, timing) <= lt + 2 * hop_cycles


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="grid 4x1: this kernel needs rows of two tiles or more"):
        plan_relayout((8, 8), place(4, 1), to_blocks=True)
    with pytest.raises(InputError, match="--shape: found 0 rows of 8; allowed: 1 or more"):
        plan_relayout((0, 8), place(4, 4), to_blocks=True)
