"""Softmax of rows on real blocks: near the exact result, sums of what is there."""

import numpy as np
import pytest

from tests.workloads.kernels.attended import METHODS, exact_softmax
from tests.workloads.kernels.products import computed, place
from workloads.kernels.vector import softmax
from workloads.kernels.vector.softmax import plan_softmax


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5), (4, 4)])
def test_softmax_of_rows(grid: tuple[int, int], method: str) -> None:
    scores = np.random.default_rng(1).integers(-2000, 2000, (7, 18))
    plan = plan_softmax((7, 18), place(*grid), method, unit=1 / 256)
    program = softmax.softmax(plan)
    memory = computed(program, lambda at: softmax.put(plan, at, scores))
    m, n = plan.block
    powers = memory["s"].swapaxes(1, 2).reshape(grid[0] * m, grid[1] * n)[:7, :18]
    totals = memory["sum"].swapaxes(1, 2).reshape(grid[0] * m, grid[1])[:7]
    assert (totals == powers.sum(axis=1, keepdims=True)).all()
    shares = powers / totals[:, :1]
    # An exponent of two is cut off at a 256th, which is 0.27 %.
    assert np.abs(shares - exact_softmax(scores, 1 / 256)).max() < 0.003
