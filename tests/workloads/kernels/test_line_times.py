"""How long sums along lines take: hops and stages as WaferLLM counts them, closed forms, levels."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.workloads.kernels.products import place
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Program, Token
from workloads.kernels.gemv.closed_form import gemv_cycles, ring_gemv_cycles
from workloads.kernels.gemv.mesh_gemv import plan_mesh_gemv
from workloads.kernels.gemv.pipeline_gemv import plan_pipeline_gemv
from workloads.kernels.gemv.plan import GemvPlan, gemv, plan_gemv
from workloads.kernels.gemv.ring_gemv import ring_gemv
from workloads.kernels.parts.closed_form import reduce_cycles
from workloads.kernels.parts.collectives import METHODS, Reduction
from workloads.kernels.parts.line import Lines, default_groups, k_tree
from workloads.kernels.parts.message_times import rounds_of, tree_ways
from workloads.kernels.vector.closed_form import softmax_cycles
from workloads.kernels.vector.softmax import plan_softmax, softmax

TIMING = NocTiming(1, 1, 4, 1, 8)
SHAPE = (1, 2, 500)


def at(program: Program) -> int:
    return run_at(program, TIMING, HandshakeMesh(program.rows, program.cols, TIMING)).cycles


def slopes(plan: GemvPlan) -> tuple[int, int]:
    """Cycles that a program takes longer if a hop, and if an addition, takes one more."""
    build = gemv if plan.parts == 1 else ring_gemv
    cycles = run_lt(build(plan), TIMING).cycles
    slow_hops = run_lt(build(plan), replace(TIMING, hop_cycles=2)).cycles
    slow_sums = replace(plan, combine_cycles=plan.combine_cycles + 1)
    return slow_hops - cycles, run_lt(build(slow_sums), TIMING).cycles - cycles


# Hops and stages


@pytest.mark.parametrize(
    ("tiles", "groups"), [(420, 20), (420, 21), (400, 20), (36, 6), (35, 5), (24, 1), (24, 24)]
)
def test_a_two_level_tree_has_the_stages_and_hops_of_the_paper(tiles: int, groups: int) -> None:
    size = tiles // groups
    inner = size // 2
    root = groups // 2 * size + inner
    stages = max(inner, size - 1 - inner) + max(groups // 2, groups - 1 - groups // 2)
    levels = k_tree(tiles, (groups,))
    assert levels[-1].roots == [root]
    assert sum(len(level.stages) for level in levels) == stages
    hops, sums = slopes(plan_mesh_gemv(SHAPE, place(tiles, 1), (groups,)))
    assert hops == 2 * max(root, tiles - 1 - root)
    # Where both sides of a chain are equally long, its root adds twice at the end.
    assert sums == stages + size % 2 * (size > 1) + groups % 2 * (groups > 1)


def test_a_tree_of_an_even_number_of_groups_is_off_its_centre() -> None:
    assert slopes(plan_mesh_gemv(SHAPE, place(420, 1), (20,)))[0] == 440


@pytest.mark.parametrize("tiles", [2, 3, 10, 64, 420])
def test_a_pipeline_has_a_stage_a_tile(tiles: int) -> None:
    assert slopes(plan_pipeline_gemv(SHAPE, place(tiles, 1))) == (2 * (tiles - 1), tiles - 1)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("tiles", [3, 10, 64])
def test_a_ring_goes_around_twice_and_adds_once(tiles: int, few: bool) -> None:
    # All edges of the interleaved ring but one, there and back again.
    plan = plan_gemv((1, 4 if few else 2 * tiles, 500), place(tiles, 1), ring=True)
    assert plan.parts == (2 if few else tiles)
    hops, sums = slopes(plan)
    around = 2 * (tiles - 1)
    assert 2 * (around - 2) <= hops <= 2 * around
    assert sums == tiles - 1


def test_more_levels_have_fewer_stages() -> None:
    stages = {
        groups: sum(len(level.stages) for level in k_tree(729, groups))
        for groups in ((), (27,), (81, 9), (243, 81, 27, 9, 3))
    }
    assert list(stages.values()) == [364, 26, 12, 6]


@pytest.mark.parametrize(
    ("tiles", "groups"), [(1, 1), (2, 1), (8, 3), (9, 3), (420, 21), (720, 27)]
)
def test_by_default_a_tree_has_two_levels(tiles: int, groups: int) -> None:
    assert default_groups(tiles) == (groups,)


def test_trees_beat_pipelines_beat_rings_on_long_lines() -> None:
    grid = place(256, 1)
    tree, pipeline = plan_mesh_gemv(SHAPE, grid), plan_pipeline_gemv(SHAPE, grid)
    ring = plan_gemv(SHAPE, grid, ring=True)
    cycles = [run_lt(gemv(tree), TIMING).cycles, run_lt(gemv(pipeline), TIMING).cycles]
    cycles.append(run_lt(ring_gemv(ring), TIMING).cycles)
    assert cycles == sorted(cycles)
    assert cycles[1] > 1.5 * cycles[0]


# Closed forms and levels


@pytest.mark.parametrize("width", [1, 8, 30])
@pytest.mark.parametrize("tiles", [1, 2, 5, 9, 16])
def test_gemv_at_all_levels(tiles: int, width: int) -> None:
    shape, grid = (1, 3 * width, 8 * tiles), place(tiles, 3)
    pipeline = plan_pipeline_gemv(shape, grid)
    assert gemv_cycles(pipeline, TIMING) == run_lt(gemv(pipeline), TIMING).cycles
    assert run_lt(gemv(pipeline), TIMING).cycles == at(gemv(pipeline))
    ring = plan_gemv(shape, grid, ring=True)
    assert ring_gemv_cycles(ring, TIMING) == pytest.approx(
        run_lt(ring_gemv(ring), TIMING).cycles, abs=2
    )
    assert run_lt(ring_gemv(ring), TIMING).cycles == at(ring_gemv(ring))
    tree = plan_mesh_gemv(shape, grid)
    assert gemv_cycles(tree, TIMING) == run_lt(gemv(tree), TIMING).cycles


@pytest.mark.parametrize("method", [method for method in METHODS if method != "k-tree"])
@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (4, 4), (5, 8)])
def test_softmax_by_its_closed_form(grid: tuple[int, int], method: str) -> None:
    for rows, cols in ((4, 8), (40, 6)):
        plan = plan_softmax((rows * grid[0], cols * grid[1]), place(*grid), method)
        tolerance = 0.12 if method in ("tree", "sequential") else 0.015
        assert softmax_cycles(plan, TIMING) == pytest.approx(at(softmax(plan)), rel=tolerance)


def test_the_network_reduces_faster_than_software() -> None:
    cycles = {
        method: at(softmax(plan_softmax((64, 128), place(8, 8), method)))
        for method in ("network", "tree", "sequential")
    }
    assert cycles["network"] < cycles["tree"] < cycles["sequential"]


@pytest.mark.parametrize(
    ("method", "mean_pct", "worst_pct"), [("tree", 1, 8), ("sequential", 4, 25)]
)
def test_messages_to_one_tile_wait_for_its_port_its_buffers_and_each_other(
    method: str, mean_pct: float, worst_pct: float
) -> None:
    rng, errors = random.Random(11), []
    for _ in range(60):
        length, flits = rng.randrange(2, 33), rng.choice([1, 2, 4, 8, 16, 50])
        part, combine = Buffer(1, 2 * flits, 32), rng.choice([1, 5, 20, 60])
        reduction = Reduction(
            Lines("row", range(1), length), rng.randrange(length), method, "sum", "part", "there",
            flits, combine,
        )  # fmt: skip
        tokens = {"there": Token(initial=1)} | reduction.tokens()
        buffers = {"part": part} | reduction.buffers(part)
        program = Program(1, length, tokens, reduction.reduce, buffers)
        cycles = run_lt(program, TIMING).cycles
        errors.append(100 * abs(reduce_cycles(reduction, TIMING) - cycles) / cycles)
    assert sum(errors) / len(errors) <= mean_pct
    assert max(errors) <= worst_pct


def test_messages_over_locked_channels_pay_each_link_three_times() -> None:
    """A request and an acknowledge go the way of the data before them."""
    timing = NocTiming(2, 3, 4, 1, 8, channel="output", acknowledge_cycles=2)
    ways = tree_ways(Lines("row", range(1), 8), 0, timing, np.array([1, 5]))
    for senders, step in rounds_of(8):
        for sender in senders.tolist():
            expected = [arrival_cycles(timing, step, flits) for flits in (1, 5)]
            assert ways[0, sender].tolist() == expected
