"""Vectors times matrices: every tile of a column gets its part of the product, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from tests.workloads.kernels.products import computed, operands, place
from tlm.errors import InputError
from tlm.program.arithmetic import Integers
from workloads.kernels.gemv import ring_gemv
from workloads.kernels.gemv.mesh_gemv import plan_mesh_gemv
from workloads.kernels.gemv.pipeline_gemv import plan_pipeline_gemv
from workloads.kernels.gemv.plan import GemvPlan, gemv, plan_gemv, put
from workloads.kernels.parts.collectives import METHODS

GRIDS = [(1, 1), (2, 2), (4, 3), (5, 1), (7, 2), (8, 2), (9, 2), (12, 1)]
SHAPES = [(1, 1, 1), (1, 9, 11), (1, 30, 16)]
grids = pytest.mark.parametrize("grid", GRIDS)
shapes = pytest.mark.parametrize("shape", SHAPES)


def check(plan: GemvPlan, shape: tuple[int, int, int]) -> None:
    program = gemv(plan)
    a, b = operands((1, shape[2]), (shape[2], shape[1]))
    for seed in range(2):
        memory = computed(program, lambda at: put(plan, at, a, b), seed)
        check_rows(memory["c"].reshape(plan.rows, -1), a, b)


def check_rows(rows: Integers, a: Integers, b: Integers) -> None:
    expected = np.pad((a @ b)[0], (0, rows.shape[1] - b.shape[1]))
    assert (rows == expected).all()


@grids
@shapes
def test_mesh_gemv(grid: tuple[int, int], shape: tuple[int, int, int]) -> None:
    check(plan_mesh_gemv(shape, place(*grid)), shape)


@pytest.mark.parametrize("groups", [(), (1,), (2,), (4,), (5,), (11,), (6, 2), (8, 3, 2), (11, 11)])
def test_mesh_gemv_with_any_groups(groups: tuple[int, ...]) -> None:
    check(plan_mesh_gemv((1, 6, 24), place(11, 2), groups), (1, 6, 24))


@grids
@shapes
def test_pipeline_gemv(grid: tuple[int, int], shape: tuple[int, int, int]) -> None:
    check(plan_pipeline_gemv(shape, place(*grid)), shape)


@grids
@shapes
def test_ring_gemv(grid: tuple[int, int], shape: tuple[int, int, int]) -> None:
    plan = plan_gemv(shape, place(*grid), ring=True)
    a, b = operands((1, shape[2]), (shape[2], shape[1]))
    for seed in range(2):
        memory = computed(ring_gemv.ring_gemv(plan), lambda at: ring_gemv.put(plan, at, a, b), seed)
        check_rows(ring_gemv.result(plan, memory), a, b)


@pytest.mark.parametrize("root", [0, 2, 6])
@pytest.mark.parametrize("method", [method for method in METHODS if method != "k-tree"])
def test_every_method_from_any_root(method: str, root: int) -> None:
    plan = plan_gemv((1, 8, 20), place(7, 2))
    check(replace(plan, method=method, root=root), (1, 8, 20))


def test_a_matrix_is_refused() -> None:
    with pytest.raises(
        InputError, match="^--shape: found M = 2; a vector times a matrix has M = 1"
    ):
        plan_gemv((2, 8, 8), place(2, 2))


def test_groups_are_of_members() -> None:
    for groups, found in (((5,), "5 groups of 4; allowed: 1 to 4"), ((2, 3), "3 groups of 2; ")):
        with pytest.raises(InputError, match=f"^--groups: found {found}"):
            plan_mesh_gemv((1, 8, 8), place(4, 2), groups)


def test_a_network_that_does_not_combine() -> None:
    alone = replace(place(4, 2), in_network=False)
    with pytest.raises(InputError, match="^--collective: found 'network'; this chip's routers do"):
        plan_mesh_gemv((1, 8, 8), alone, method="network")
