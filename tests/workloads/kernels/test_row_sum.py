"""Sums of rows that all tiles of a line get."""

import numpy as np
import pytest

from tests.workloads.kernels.products import computed, operands, place
from tests.workloads.kernels.test_streams import cores
from tlm.engines.lt import run_lt
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemv.row_sum import RowSumPlan, put
from workloads.machine.place import Place

KERNEL = KERNELS["row-sum"]


def planned(at: Place, shape: tuple[int, int], collective: str | None) -> RowSumPlan:
    plan = KERNEL.planned(shape, at, Choices(collective=collective))
    assert isinstance(plan, RowSumPlan)
    return plan


@pytest.mark.parametrize("shape", [(1, 9), (7, 20), (12, 12)])
@pytest.mark.parametrize(
    ("at", "collective"),
    [
        (place(3, 4), None), (place(4, 3), "pipeline"), (place(3, 3), "network"),
        (cores(5, 5), None), (cores(4, 4), "pipeline"), (cores(5, 4), "stream"),
    ],
)  # fmt: skip
def test_every_tile_of_a_line_has_the_sums(
    at: Place, collective: str | None, shape: tuple[int, int]
) -> None:
    plan = planned(at, shape, collective)
    (x,) = operands(shape)
    memory = computed(KERNEL.program(plan), lambda memory: put(plan, memory, x))
    for row in range(at.rows):
        sums = memory["c"][row].reshape(-1)[: shape[0]]
        assert np.array_equal(sums, x.sum(axis=1))


@pytest.mark.parametrize("collective", [None, "pipeline", "stream"])
def test_its_closed_form_is_that_of_the_streams(collective: str | None) -> None:
    at = cores(16, 16)
    plan = planned(at, (40, 100), collective)
    assert KERNEL.closed_form(plan, at.timing) == run_lt(KERNEL.program(plan), at.timing).cycles
    # A pass of 3 rows of 7 elements, two at a time.
    assert plan.tile_vector_cycles == plan.product_cycles == 3 * 4 + 3
    assert plan.tile_matrix_cycles == plan.tile_macs == 0
