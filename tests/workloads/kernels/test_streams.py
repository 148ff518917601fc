"""Sums that cores stream along lines: geometry, results and times."""

from dataclasses import replace

import pytest

from tests.workloads.kernels.products import computed, operands, place
from tlm.chips.profile import ChipSoftware
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemm import mesh_gemm_t
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemv.plan import GemvPlan, gemv, put
from workloads.kernels.parts.blocks import join
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.relayed import RelayedParts
from workloads.kernels.parts.streams import (
    StreamedSum,
    _chain_cycles,
    best_tree,
    streamed_reduce_cycles,
    tree_of,
    tree_of_groups,
    whole_line,
)
from workloads.machine.place import Place

BETA = 16
GEMV = ("mesh-gemv", "pipeline-gemv")


def cores(rows: int, cols: int, beta: int = BETA, fixed: int = 50) -> Place:
    """Tiles whose cores stream sums, and whose network combines nothing."""
    software = ChipSoftware(stage_cycles=beta, all_reduce_cycles=fixed)
    return replace(place(rows, cols), software=software, in_network=False)


def own_tiles(rows: int, cols: int) -> Place:
    """The project's own tiles, which store a part of a sum before they pass it on."""
    return replace(place(rows, cols), whole_lines=True)


def gemv_plan(name: str, shape: tuple[int, int, int], at: Place, choices: Choices) -> GemvPlan:
    plan = KERNELS[name].planned(shape, at, choices)
    assert isinstance(plan, GemvPlan)
    return plan


# Geometry


@pytest.mark.parametrize(
    ("length", "groups", "stages", "hops"),
    [(420, 21, 20, 420), (420, 20, 20, 440), (540, 20, 23, 566), (660, 33, 26, 660), (9, 3, 2, 8)],
)
def test_trees_are_those_of_the_paper(length: int, groups: int, stages: int, hops: int) -> None:
    size = length // groups
    middle, root = size // 2, groups // 2 * size + size // 2
    above = max(groups // 2, groups - 1 - groups // 2)
    assert stages == max(middle, size - 1 - middle) + above
    assert hops == 2 * max(root, length - 1 - root)
    tree = tree_of_groups(length, groups)
    assert (len(tree.groups), tree.root, tree.stages, tree.hops(length)) == (
        groups,
        root,
        stages,
        hops,
    )


@pytest.mark.parametrize("length", range(1, 40))
def test_groups_cover_a_line_and_their_roots_are_evenly_spaced(length: int) -> None:
    for size in range(1, length + 1):
        tree = tree_of(length, size)
        assert [place for chain in tree.groups for place in chain.segment] == [*range(length)]
        assert all(chain.root in chain.segment for chain in tree.groups)
        roots = [chain.root for chain in tree.groups]
        assert roots == ([*tree.roots.segment] if tree.roots else [tree.root])


def test_the_best_tree_is_about_the_square_root_and_weighs_hops_against_stages() -> None:
    assert abs(len(best_tree(400, 16, 1).groups) - 20) <= 2
    assert best_tree(400, 100, 1).stages < best_tree(400, 1, 1).stages + 1
    assert best_tree(400, 1, 100).hops(400) <= best_tree(400, 100, 1).hops(400)


@pytest.mark.parametrize("weights", [(16, 1), (1, 1), (3, 7)])
def test_the_best_tree_is_the_best_of_all(weights: tuple[int, int]) -> None:
    beta, alpha = weights
    for length in range(1, 50):
        trees = [tree_of(length, size) for size in range(length, 0, -1)]
        latencies = [tree.hops(length) * alpha + tree.stages * beta for tree in trees]
        best = trees[latencies.index(min(latencies))]
        assert best_tree(length, beta, alpha) == best


def test_a_number_of_groups_that_evenly_spaced_ones_cannot_have() -> None:
    with pytest.raises(InputError, match="^--groups: found 7 evenly spaced groups of 10 tiles; "):
        tree_of_groups(10, 7)


# Results


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (4, 3), (5, 1), (9, 2), (12, 1)])
@pytest.mark.parametrize(
    ("name", "choices"),
    [
        *((name, Choices()) for name in GEMV),
        ("mesh-gemv", Choices(collective="stream")),
        ("mesh-gemv", Choices(groups=(1,))),
    ],
)
def test_every_tile_gets_the_sum(name: str, choices: Choices, grid: tuple[int, int]) -> None:
    plan = gemv_plan(name, (1, 9, 11), cores(*grid), choices)
    assert plan.tree is not None
    a, b = operands((1, 11), (11, 9))
    for seed in range(2):
        memory = computed(gemv(plan), lambda at: put(plan, at, a, b), seed)
        for row in memory["c"].reshape(plan.rows, -1):
            assert row[:9].tolist() == (a @ b)[0].tolist()


@pytest.mark.parametrize("name", GEMV)
def test_sums_may_stay_at_the_roots(name: str) -> None:
    plan = replace(gemv_plan(name, (1, 9, 11), cores(6, 3), Choices()), at_root=True)
    a, b = operands((1, 11), (11, 9))
    memory = computed(gemv(plan), lambda at: put(plan, at, a, b))
    assert memory["c"][plan.root].ravel()[:9].tolist() == (a @ b)[0].tolist()
    whole = replace(plan, at_root=False)
    form = KERNELS[name].closed_form
    assert form(plan, cores(6, 3).timing) < form(whole, cores(6, 3).timing) - 50


@pytest.mark.parametrize("side", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("shape", [(1, 1, 1), (6, 6, 6), (7, 5, 9), (16, 3, 20)])
def test_transposed_mesh_gemm_by_streams(side: int, shape: tuple[int, int, int]) -> None:
    size_m, size_n, size_k = shape
    plan = KERNELS["mesh-gemm-t"].planned(shape, cores(side, side))
    assert isinstance(plan, GemmPlan) and plan.relay_cycles is not None
    a, b = operands((size_m, size_k), (size_k, size_n))
    for seed in range(2):
        program = mesh_gemm_t.mesh_gemm_t(plan)
        memory = computed(program, lambda at: mesh_gemm_t.put(plan, at, a, b.T), seed)
        assert join(memory["c"], (size_m, size_n)).tolist() == (a @ b).tolist()


# Times


@pytest.mark.parametrize("beta", [5, 16, 40])
@pytest.mark.parametrize("length", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("columns", [1, 12])
def test_closed_form_of_streams(beta: int, length: int, columns: int) -> None:
    at = cores(length, 2, beta)
    for name in GEMV:
        kernel = KERNELS[name]
        plan = kernel.planned((1, 2 * columns, length), at)
        lt = run_lt(kernel.program(plan), at.timing).cycles
        assert kernel.closed_form(plan, at.timing) == pytest.approx(lt, rel=0.04)


@pytest.mark.parametrize("length", [1, 2, 7, 33])
@pytest.mark.parametrize("flits", [1, 40])
def test_members_of_a_group_begin_at_once(length: int, flits: int) -> None:
    """As if each began at a time of its own, and all times were equal."""
    timing = cores(length, 1).timing
    for root in {0, length // 2, length - 1}:
        tree = whole_line(length, root)
        lines = Lines("column", range(1), length)
        streamed = StreamedSum(lines, tree, "s", "c", "t", flits, BETA)
        found = streamed_reduce_cycles(streamed, timing)
        assert found == _chain_cycles(streamed, tree.groups[0], [0] * length, timing)


def test_a_word_passes_a_stage_while_the_next_one_comes() -> None:
    """The length of a part counts once a level, and once on the way back."""

    def cycles(columns: int) -> int:
        at = cores(31, 1)
        kernel = KERNELS["pipeline-gemv"]
        plan = gemv_plan("pipeline-gemv", (1, columns, 31), at, Choices())
        return run_lt(kernel.program(plan), at.timing).cycles - plan.product_cycles

    assert [cycles(2 * flits) - cycles(2) for flits in (2, 4)] == [2 * 1, 2 * 3]


def test_a_stage_costs_beta_and_a_link_alpha() -> None:
    def cycles(length: int, beta: int) -> int:
        at = cores(length, 1, beta)
        plan = gemv_plan("pipeline-gemv", (1, 2, length), at, Choices())
        return run_lt(KERNELS["pipeline-gemv"].program(plan), at.timing).cycles

    assert cycles(20, 16) - cycles(10, 16) == 10 * (16 + 2)
    assert cycles(20, 17) - cycles(20, 16) == 19
    assert whole_line(20, 19).stages == 19


@pytest.mark.parametrize("side", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("block", [(1, 1, 1), (6, 6, 6), (9, 9, 30)])
def test_closed_form_of_transposed_mesh_gemm(side: int, block: tuple[int, int, int]) -> None:
    software = ChipSoftware(stage_cycles=16, step_cycles=250, element_cycles=1)
    at = replace(cores(side, side), software=software)
    kernel = KERNELS["mesh-gemm-t"]
    m, n, k = (side * size for size in block)
    plan = kernel.planned((m, n, k), at)
    lt = run_lt(kernel.program(plan), at.timing).cycles
    assert kernel.closed_form(plan, at.timing) == pytest.approx(lt, rel=0.01)


# Part by part


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (4, 3), (9, 2), (12, 1)])
@pytest.mark.parametrize("method", ["stream", "stream-tree"])
@pytest.mark.parametrize("columns", [1, 9, 80])
def test_own_tiles_sum_part_by_part(method: str, columns: int, grid: tuple[int, int]) -> None:
    shape = (1, columns, 11)
    plan = gemv_plan("mesh-gemv", shape, own_tiles(*grid), Choices(collective=method))
    assert plan.relayed is not None
    a, b = operands((1, 11), (11, columns))
    for seed in range(2):
        memory = computed(gemv(plan), lambda at: put(plan, at, a, b), seed)
        for row in memory["c"].reshape(plan.rows, -1):
            assert row[:columns].tolist() == (a @ b)[0].tolist()


@pytest.mark.parametrize("side", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 9), (16, 3, 20)])
def test_own_tiles_sum_to_a_root_that_moves(side: int, shape: tuple[int, int, int]) -> None:
    size_m, size_n, size_k = shape
    choices = Choices(collective="stream")
    plan = KERNELS["mesh-gemm-t"].planned(shape, own_tiles(side, side), choices)
    assert isinstance(plan, GemmPlan) and plan.relayed is not None
    a, b = operands((size_m, size_k), (size_k, size_n))
    for seed in range(2):
        program = mesh_gemm_t.mesh_gemm_t(plan)
        memory = computed(program, lambda at: mesh_gemm_t.put(plan, at, a, b.T), seed)
        assert join(memory["c"], (size_m, size_n)).tolist() == (a @ b).tolist()


@pytest.mark.parametrize("length", [2, 5, 8, 13])
@pytest.mark.parametrize("columns", [2, 40, 400])
@pytest.mark.parametrize("method", ["stream", "stream-tree"])
def test_closed_form_of_parts(method: str, columns: int, length: int) -> None:
    at, kernel = own_tiles(length, 1), KERNELS["mesh-gemv"]
    plan = kernel.planned((1, columns, length), at, Choices(collective=method))
    lt = run_lt(kernel.program(plan), at.timing).cycles
    assert kernel.closed_form(plan, at.timing) == pytest.approx(lt, rel=0.03)


@pytest.mark.parametrize("side", [2, 4, 8])
@pytest.mark.parametrize("block", [(6, 6, 6), (9, 9, 30), (20, 4, 2)])
def test_closed_form_of_parts_to_a_root_that_moves(side: int, block: tuple[int, int, int]) -> None:
    at, kernel = own_tiles(side, side), KERNELS["mesh-gemm-t"]
    m, n, k = (side * size for size in block)
    plan = kernel.planned((m, n, k), at, Choices(collective="stream"))
    lt = run_lt(kernel.program(plan), at.timing).cycles
    assert kernel.closed_form(plan, at.timing) == pytest.approx(lt, rel=0.10)


def test_the_cut_is_the_one_of_the_fewest_cycles() -> None:
    at = own_tiles(8, 1)
    plan = gemv_plan("mesh-gemv", (1, 200, 8), at, Choices(collective="stream"))
    assert plan.relayed is not None and 1 < plan.relayed.count < 100
    kernel = KERNELS["mesh-gemv"]

    def cycles(part: int) -> int:
        vector = at.vector.pass_cycles(1, part)
        cut = RelayedParts(part, -(-200 // part), part // 2, vector)
        return run_lt(kernel.program(replace(plan, relayed=cut)), at.timing).cycles

    best = run_lt(kernel.program(plan), at.timing).cycles
    assert best < min(cycles(2), cycles(200))


def test_a_way_that_a_moving_root_does_not_have() -> None:
    with pytest.raises(InputError) as error:
        KERNELS["mesh-gemm-t"].planned((8, 8, 8), own_tiles(2, 2), Choices(collective="tree"))
    assert str(error.value) == "unknown collective 'tree'; known: network, stream"
