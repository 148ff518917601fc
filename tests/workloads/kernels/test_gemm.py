"""Cutting a product into blocks."""

from dataclasses import replace

import pytest

from tests.workloads.kernels.products import TIMING
from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_unit import VectorUnit
from tlm.errors import InputError
from workloads.kernels.gemm.plan import GemmPlan, plan_gemm, plan_square_gemm
from workloads.machine.place import Place

COMPUTE = VectorMac(1.0, 1.0, 100.0)


def fp16(rows: int, cols: int) -> Place:
    """A machine of fp16 in flits of 4 bytes."""
    return Place(rows, cols, replace(TIMING, flit_bytes=4), 16, 16, COMPUTE, VectorUnit(2))


def test_every_dimension_is_padded_to_whole_blocks() -> None:
    # M, N, K = 10, 7, 13 on 4 x 4: blocks of 3 x 4 and 4 x 2.
    plan = plan_gemm((10, 7, 13), fp16(4, 4))
    cycles = COMPUTE.gemm_cycles(3, 4, 2)
    assert plan == GemmPlan(4, 4, (3, 4, 2), cycles, 6, 4, 3, element_bits=16, sum_bits=16)
    assert (plan.side, plan.panels, plan.tile_macs) == (4, 4, 96)


def test_panels_of_a_grid_that_is_not_square() -> None:
    # Four rows and six columns share panels of a twelfth.
    plan = plan_gemm((8, 12, 24), fp16(4, 6))
    assert (plan.panels, plan.block) == (12, (2, 2, 2))


def test_a_block_smaller_than_a_flit_takes_a_flit() -> None:
    plan = plan_gemm((1, 1, 1), fp16(2, 2))
    assert (plan.a_flits, plan.b_flits, plan.c_flits) == (1, 1, 1)


def test_memory_of_blocks() -> None:
    buffers = plan_gemm((10, 7, 13), fp16(4, 4)).buffers(("a",), ("b",), ("c",))
    assert [buffers[name].size_bytes for name in "abc"] == [24, 16, 12]


def test_lines_of_blocks_may_begin_in_flits_of_their_own() -> None:
    # A of 3 x 4: four columns of three elements, two to a flit; B four rows of two; C three of two.
    whole = replace(fp16(4, 4), whole_lines=True)
    plan = plan_gemm((10, 7, 13), whole)
    assert (plan.a_flits, plan.b_flits, plan.c_flits) == (8, 4, 3)
    assert whole.flits(5, 1, 32) == 5


def test_some_kernels_need_a_square_grid() -> None:
    with pytest.raises(InputError, match="^grid 2x3: this kernel runs on square grids$"):
        plan_square_gemm((4, 4, 4), fp16(2, 3))


def test_a_grid_has_a_tile() -> None:
    with pytest.raises(InputError, match="^grid 0x3: a kernel needs a tile$"):
        fp16(0, 3)


def test_sizes_are_checked() -> None:
    with pytest.raises(InputError, match="matrix product: N is 0"):
        plan_gemm((4, 0, 4), fp16(2, 2))
