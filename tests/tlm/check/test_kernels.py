"""The shipped kernels pass the check, with the hops and stages that WaferLLM states."""

from collections.abc import Callable

import pytest

from tests.workloads.kernels.products import place
from tlm.check import TileLimits, check_program
from tlm.program import Program
from workloads.kernels.gemm.allgather_gemm import allgather_gemm
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.mesh_gemm_t import mesh_gemm_t
from workloads.kernels.gemm.plan import GemmPlan, plan_gemm
from workloads.kernels.gemm.summa import summa
from workloads.kernels.gemv.mesh_gemv import plan_mesh_gemv
from workloads.kernels.gemv.pipeline_gemv import plan_pipeline_gemv
from workloads.kernels.gemv.plan import gemv, plan_gemv
from workloads.kernels.gemv.ring_gemv import ring_gemv

Build = Callable[[GemmPlan], Program]
GEMMS = (mesh_gemm, mesh_gemm_t, cannon, summa, allgather_gemm)
SIZES = (2, 3, 5, 8, 13)
TREES = [(p, g) for p in (2, 5, 9, 12, 16, 30) for g in range(1, 6) if p % g == 0]


def gemm(build: Build, side: int) -> Program:
    return build(plan_gemm((2 * side, 2 * side, 2 * side), place(side, side)))


@pytest.mark.parametrize("build", GEMMS)
@pytest.mark.parametrize("side", SIZES)
def test_gemm_kernels_pass_and_work_everywhere(build: Build, side: int) -> None:
    report = check_program(gemm(build, side), TileLimits(tile_bytes=48 * 1024, routing_paths=32))
    assert report.findings == ()
    assert (report.parallelism.busy_share, report.parallelism.balance) == (1.0, 1.0)


@pytest.mark.parametrize("side", SIZES)
def test_hops_of_the_gemm_kernels(side: int) -> None:
    """Critical hops of a step (WaferLLM, section 5.1): 2, N - 1 and up to N - 1."""
    longest = [
        check_program(gemm(build, side)).latency.longest_hops
        for build in (mesh_gemm, cannon, summa, allgather_gemm)
    ]
    assert longest == [min(side - 1, 2), side - 1, side - 1, side - 1]


@pytest.mark.parametrize("side", SIZES)
def test_routing_paths_of_the_gemm_kernels(side: int) -> None:
    """One from each root of the row and of the column, or a few whatever the size."""
    paths = {build: check_program(gemm(build, side)).routing.most_paths for build in GEMMS}
    assert paths[summa] == paths[allgather_gemm] == 2 * side
    assert max(paths[mesh_gemm], paths[cannon]) <= 9


@pytest.mark.parametrize(("rows", "groups"), TREES)
def test_stages_and_hops_of_a_two_level_tree(rows: int, groups: int) -> None:
    """Chains to the roots of G groups of g tiles, a chain of roots, a multicast back."""
    size = rows // groups
    middle, middle_group = size // 2, groups // 2
    root = middle_group * size + middle
    stages = max(middle, size - 1 - middle) + max(middle_group, groups - 1 - middle_group)
    program = gemv(plan_mesh_gemv((1, 4, 2 * rows), place(rows, 2), (groups,)))
    report = check_program(program)
    assert report.findings == ()
    latency = report.latency
    assert latency.chain_hops == 2 * max(root, rows - 1 - root)
    assert latency.chain_stages == stages


@pytest.mark.parametrize("rows", SIZES)
def test_a_pipeline_has_as_many_stages_as_tiles_on_the_way(rows: int) -> None:
    """With its root at the edge: 2 (N - 1) hops and N - 1 stages."""
    program = gemv(plan_pipeline_gemv((1, 4, 2 * rows), place(rows, 2)))
    latency = check_program(program).latency
    assert (latency.chain_hops, latency.chain_stages) == (2 * (rows - 1), rows - 1)


@pytest.mark.parametrize("rows", [3, 5, 8, 13])
def test_a_ring_takes_some_two_hops_for_each_tile(rows: int) -> None:
    """About (2 alpha + beta) N for each of its two rounds of N - 1 shifts."""
    program = ring_gemv(plan_gemv((1, 4, 2 * rows), place(rows, 2), ring=True))
    report = check_program(program, TileLimits(routing_paths=32))
    assert report.findings == ()
    assert report.latency.longest_hops <= 2
    assert report.latency.chain_stages == 2 * (rows - 1) - 1


@pytest.mark.slow
def test_a_wafer_of_half_a_million_tiles() -> None:
    """MeshGEMM on 720x720 tiles keeps within the limits of WSE-2; SUMMA needs too many routes."""
    limits = TileLimits(tile_bytes=48 * 1024, routing_paths=32)
    report = check_program(gemm(mesh_gemm, 720), limits)
    assert report.findings == ()
    assert (report.latency.longest_hops, report.routing.most_paths) == (2, 9)
    (found,) = check_program(gemm(summa, 720), limits).findings
    assert found.message == (
        "tile (0, 0): 1440 distinct routes begin, pass or end here; a router holds 32"
    )
