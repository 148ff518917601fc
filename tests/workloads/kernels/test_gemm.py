"""Cutting a product into blocks."""

import pytest

from tlm.compute.vector_mac import VectorMac
from tlm.errors import InputError
from workloads.kernels.gemm import GemmPlan, plan_gemm

COMPUTE = VectorMac(1.0, 1.0, 100.0)


def test_every_dimension_is_padded_to_a_multiple_of_the_side() -> None:
    # M, N, K = 10, 7, 13 on 4 x 4: blocks of 3 x 4 and 4 x 2, fp16 in flits of 4 bytes.
    plan = plan_gemm((10, 7, 13), (4, 4), 2, 4, COMPUTE)
    assert plan == GemmPlan(4, (3, 4, 2), COMPUTE.gemm_cycles(3, 4, 2), a_flits=6, b_flits=4)
    assert plan.block_macs == 24


def test_a_block_smaller_than_a_flit_takes_a_flit() -> None:
    plan = plan_gemm((1, 1, 1), (2, 2), 1, 8, COMPUTE)
    assert (plan.a_flits, plan.b_flits) == (1, 1)


@pytest.mark.parametrize("grid", [(2, 3), (0, 0)])
def test_grids_are_square(grid: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=f"^grid {grid[0]}x{grid[1]}: these kernels run on square"):
        plan_gemm((4, 4, 4), grid, 2, 4, COMPUTE)


def test_sizes_are_checked() -> None:
    with pytest.raises(InputError):
        plan_gemm((4, 0, 4), (2, 2), 2, 4, COMPUTE)
