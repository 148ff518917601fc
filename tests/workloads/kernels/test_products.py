"""Matrix products on real blocks: C = A B bit for bit, whatever happens first."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests.workloads.kernels.products import computed, operands, place
from tlm.program import Gemm, Multicast, Program, Send, Work
from workloads.kernels.gemm import allgather_gemm, cannon, mesh_gemm, mesh_gemm_t, summa
from workloads.kernels.gemm.plan import GemmPlan, Shape, plan_gemm, plan_square_gemm
from workloads.kernels.parts.blocks import join

SHAPES = [(1, 1, 1), (6, 6, 6), (7, 5, 9), (16, 3, 20)]
SHIFTED = {
    "mesh-gemm": (mesh_gemm.mesh_gemm, mesh_gemm.put),
    "cannon": (cannon.cannon, cannon.put),
}
PANELS = {
    "summa": (summa.summa, summa.put),
    "allgather-gemm": (allgather_gemm.allgather_gemm, allgather_gemm.put),
}
shapes = pytest.mark.parametrize("shape", SHAPES)
sides = pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 8])


def check(
    program: Program,
    put: Callable[..., None],
    plan: GemmPlan,
    shape: Shape,
    *,
    turned: bool = False,
) -> None:
    """The product is right in two orders of events, the padding zero, each tile's work equal."""
    size_m, size_n, size_k = shape
    a, b = operands((size_m, size_k), (size_k, size_n))
    for seed in range(2):
        memory = computed(program, lambda at: put(plan, at, a, b.T if turned else b), seed)
        c = memory["c"]
        assert join(c, (size_m, size_n)).tolist() == (a @ b).tolist()
        assert c.sum() == (a @ b).sum()
    products = [work for work in program.operations() if isinstance(work, Work) and work.task]
    assert len(products) == plan.panels
    assert all(isinstance(work.task, Gemm) for work in products)
    assert all(len(work.tiles) == plan.rows * plan.cols for work in products)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("name", SHIFTED)
@shapes
@sides
def test_compute_shift_multiplies(name: str, side: int, shape: Shape, align: bool) -> None:
    build, put = SHIFTED[name]
    plan = plan_square_gemm(shape, place(side, side))
    check(build(plan, align=align), partial(put, align=align), plan, shape)


@pytest.mark.parametrize("name", SHIFTED)
def test_compute_shift_multiplies_on_a_large_prime_side(name: str) -> None:
    build, put = SHIFTED[name]
    plan = plan_square_gemm((30, 14, 25), place(13, 13))
    check(build(plan), put, plan, (30, 14, 25))


@shapes
@sides
def test_transposed_mesh_gemm_multiplies(side: int, shape: Shape) -> None:
    plan = plan_square_gemm(shape, place(side, side))
    check(mesh_gemm_t.mesh_gemm_t(plan), mesh_gemm_t.put, plan, shape, turned=True)


@pytest.mark.parametrize("method", ["tree", "sequential"])
@pytest.mark.parametrize("grid", [(1, 1), (1, 4), (3, 2), (4, 4), (5, 7)])
@pytest.mark.parametrize("name", PANELS)
def test_panels_sent_by_messages_give_the_same_product(
    name: str, grid: tuple[int, int], method: str
) -> None:
    build, put = PANELS[name]
    plan = replace(plan_gemm((7, 5, 9), place(*grid)), method=method)
    check(build(plan), put, plan, (7, 5, 9))


@pytest.mark.parametrize("method", ["network", "tree", "sequential"])
@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (4, 4), (5, 7)])
def test_summa_with_one_buffer_and_panels_in_turn(
    grid: tuple[int, int], buffers: int, serial: bool, method: str
) -> None:
    plan = replace(
        plan_gemm((7, 5, 9), place(*grid)), receive_buffers=buffers, serial=serial, method=method
    )
    check(summa.summa(plan), summa.put, plan, (7, 5, 9))


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("grid", [(1, 1), (4, 4), (2, 3), (3, 2), (3, 5), (1, 4), (2, 4), (7, 7)])
@shapes
def test_panels_multiply(name: str, grid: tuple[int, int], shape: Shape) -> None:
    build, put = PANELS[name]
    plan = plan_gemm(shape, place(*grid))
    check(build(plan), put, plan, shape)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        *(
            (name, build)
            for name, (build, _) in (SHIFTED | PANELS).items()
            if name != "allgather-gemm"
        )
    ],
)
def test_blocks_overwrite_each_other_without_credits(
    name: str, program: Callable[[GemmPlan], Program]
) -> None:
    plan = plan_square_gemm((8, 8, 8), place(4, 4))
    a, b = operands((8, 8), (8, 8))
    built = program(plan)
    careless = replace(
        built,
        build=lambda: [
            replace(operation, slots=()) if isinstance(operation, Send | Multicast) else operation
            for operation in built.build()
        ],
    )
    put = (SHIFTED | PANELS)[name][1]
    results = [
        join(computed(careless, lambda at: put(plan, at, a, b), seed)["c"], (8, 8)).tolist()
        for seed in range(3)
    ]
    assert any(result != (a @ b).tolist() for result in results)
