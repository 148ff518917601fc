"""Partitioned products: what a core sends, what comes out bit for bit, times of all levels."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.levels.chips import Ground
from tests.workloads.kernels.products import TIMING, computed, operands, place
from tlm.compute.systolic import FoldTiming, Systolic
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.program import Program, Send
from tlm.program.arithmetic import Integers
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemm.partition_closed_form import least_cycles, partition_cycles
from workloads.kernels.gemm.partition_gemm import partition_gemm, put, result
from workloads.kernels.gemm.partition_plan import (
    PARTITIONS,
    PartitionPlan,
    cores_of,
    plan_partition,
)
from workloads.kernels.gemm.partition_search import find_partition
from workloads.machine.moved import moved_by
from workloads.machine.order import PLACEMENTS

Grid = tuple[int, int]
GRIDS: tuple[Grid, ...] = ((1, 1), (2, 2), (1, 4), (2, 3), (4, 4))
FIXED = PARTITIONS[:-1]


def plans(
    grid: Grid, shape: tuple[int, int, int], *, scattered: bool = False
) -> list[PartitionPlan]:
    """Of all partitions and placements that a grid has."""
    found = []
    for partition in FIXED:
        for placement in PLACEMENTS:
            try:
                tiles = replace(place(*grid), placement=placement)
                found.append(find_partition(shape, tiles, partition, scattered=scattered))
            except InputError as error:
                assert "ring" in str(error) or "2d" in str(error)
    return found


def multiplied(
    plan: PartitionPlan, program: Program, a: Integers, b: Integers, seed: int
) -> Integers:
    """Shape (C, padded M, padded N): the product as each column of cores has it."""
    found = result(plan, computed(program, lambda at: put(plan, at, a, b), seed))
    return found.swapaxes(0, 1).reshape(plan.cores[1], -1, found.shape[-1])


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("shape", [(13, 22, 17), (1, 5, 3)])
@pytest.mark.parametrize("grid", GRIDS)
def test_the_product(grid: Grid, shape: tuple[int, int, int], scattered: bool) -> None:
    """All cores of a row have the same rows of C; of scattered sums each a part of them."""
    size_m, size_n, size_k = shape
    a, b = operands((size_m, size_k), (size_k, size_n))
    for plan in plans(grid, shape, scattered=scattered):
        for seed in range(2):
            found = multiplied(plan, partition_gemm(plan), a, b, seed)
            for c in [found.sum(axis=0)] if scattered else found:
                assert (c[:size_m, :size_n] == a @ b).all()
                assert c.sum() == (a @ b).sum()


@pytest.mark.parametrize("partition", ["mn", "k"])
def test_blocks_overwrite_each_other_without_credits(partition: str) -> None:
    a, b = operands((6, 12), (12, 6))
    plan = find_partition((6, 6, 12), place(2, 3), partition)
    built = partition_gemm(plan)
    careless = replace(
        built,
        build=lambda: [
            replace(operation, slots=()) if isinstance(operation, Send) else operation
            for operation in built.build()
        ],
    )
    assert not all((multiplied(plan, careless, a, b, seed) == a @ b).all() for seed in range(20))


# Table 2 ------------------------------------------------------------------------------------------


@given(
    st.sampled_from([(2, 2), (2, 4), (4, 4), (1, 6), (3, 4)]),
    st.tuples(*[st.integers(1, 5)] * 3),
    st.booleans(),
)
@settings(deadline=None)
def test_what_a_core_sends(grid: Grid, units: tuple[int, int, int], scattered: bool) -> None:
    """The closed forms of table 2, in elements; of scattered sums half as many."""
    tiles = grid[0] * grid[1]
    m, n, k = (tiles * unit for unit in units)
    turns = 1 if scattered else 2
    forms = {
        "input": lambda rows, cols: Fraction(0),
        "mn": lambda rows, cols: Fraction(tiles - 1, tiles) * k * n,
        "k": lambda rows, cols: turns * Fraction(tiles - 1, tiles) * m * n,
        # Derived: R rounds of all-reductions of M/R x N/R, and R - 1 moves of K/C x N/R.
        "2d": lambda rows, cols: (
            turns * Fraction(cols - 1, cols) * m * n / rows
            + (rows - 1) * Fraction(k * n, cols * rows)
        ),
    }
    for plan in plans(grid, (m, n, k), scattered=scattered):
        name = "input" if plan.whole_b else "2d"
        assert plan.sent_elements == forms[name](*plan.cores)
        for same in ("mn", "k"):  # the ends of the 2-D form
            if plan.cores == cores_of(same, plan.place)[0] and not plan.whole_b:
                assert plan.sent_elements == forms[same](*plan.cores)


@pytest.mark.parametrize("grid", GRIDS)
def test_the_program_sends_what_the_plan_says(grid: Grid) -> None:
    for scattered in (False, True):
        for plan in plans(grid, (13, 22, 17), scattered=scattered):
            moved = moved_by(partition_gemm(plan), TIMING.flit_bytes)
            assert moved == plan.moved
            assert partition_gemm(plan).tile_bytes == plan.tile_bytes
            assert moved.delivered == grid[0] * grid[1] * plan.sent_bytes


def test_memory_of_a_core() -> None:
    """Table 2's operands, with a second chunk of B and two received parts of sums."""
    m, n, k, tiles = 16, 32, 64, place(2, 2)
    needed = {
        partition: partition_gemm(find_partition((m, n, k), tiles, partition)).tile_bytes
        for partition in FIXED
    }
    a, b, c, part = m * k // 4, k * n // 4, m * n // 4 * 4, m * n // 4 * 4
    assert needed == {
        "input": a + 4 * b + c,
        "mn": a + 2 * b + c,
        "k": a + b + 4 * c + 2 * part,  # all of C, not a quarter
        "2d": a + 2 * b + 2 * c + 2 * part // 2,
    }


# Times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("shape", [(13, 22, 17), (96, 96, 8)])
def test_levels_agree(grid: Grid, shape: tuple[int, int, int]) -> None:
    """`perf` is `lt`, and that `at`, but for messages of a 2-D partition that share links."""
    for plan in plans(grid, shape):
        program = partition_gemm(plan)
        lt = run_lt(program, TIMING).cycles
        at = run_at(program, TIMING, HandshakeMesh(*grid, TIMING)).cycles
        perf = partition_cycles(plan, TIMING)
        assert lt == pytest.approx(at, rel=0.03)
        assert perf == pytest.approx(lt, rel=0.025)
        assert least_cycles(plan, TIMING) <= perf
        if 1 in plan.cores:  # one ring
            assert perf == lt == at


@pytest.mark.parametrize("placement", ["linear", "interleave"])
def test_messages_of_a_product_wait_for_links(placement: str) -> None:
    """Cores of a column lie two tiles apart: their messages share links."""
    engine = Systolic(32, 32, "weight-stationary", FoldTiming(0, 0, 0))
    tiles = replace(place(1, 4), placement=placement, matrix=engine)
    plan = find_partition((8, 512, 512), tiles, "2d")
    program = partition_gemm(plan)
    at = run_at(program, TIMING, HandshakeMesh(1, 4, TIMING)).cycles
    lt = run_lt(program, TIMING).cycles
    assert lt == pytest.approx(at, rel=0.01)
    assert partition_cycles(plan, TIMING) == pytest.approx(lt, rel=0.002)


@pytest.mark.parametrize("partition", FIXED)
@pytest.mark.parametrize(("chip", "grid"), [("npusim-large", (2, 2)), ("flat32", (2, 4))])
def test_weights_from_memory(chip: str, grid: Grid, partition: str) -> None:
    """The product is the same, each core loads its part of B, and the levels agree."""
    ground = Ground.of(chip, grid, memory=True)
    shape = size_m, size_n, size_k = 13, 48, 40
    plan = find_partition(shape, ground.place, partition)
    program, edge = partition_gemm(plan), ground.place.offchip
    assert moved_by(program, ground.timing.flit_bytes) == plan.moved
    assert plan.moved.read >= size_n * size_k * 2
    a, b = (each % 8 for each in operands((size_m, size_k), (size_k, size_n)))  # sums of 16 bits
    for c in multiplied(plan, program, a, b, 0):
        assert (c[:size_m, :size_n] == a @ b).all()
    at, perf = ground.at(program), partition_cycles(plan, ground.timing)
    assert run_lt(program, ground.timing, offchip=edge).cycles == pytest.approx(at, rel=0.02)
    assert perf == pytest.approx(at, rel=0.02)
    without = replace(plan, place=replace(plan.place, offchip=None))
    assert partition_cycles(without, ground.timing) < perf


def test_auto_is_the_fastest_that_fits() -> None:
    tiles, shape = place(2, 2), (64, 64, 64)
    needed = partition_gemm(find_partition(shape, tiles, "input")).tile_bytes
    assert find_partition(shape, tiles).whole_b
    small = replace(tiles, tile_bytes=needed - 1)
    cycles = {
        partition: partition_cycles(find_partition(shape, tiles, partition), TIMING)
        for partition in FIXED[1:]
    }
    fits = [
        partition
        for partition in cycles
        if partition_gemm(find_partition(shape, tiles, partition)).tile_bytes < needed
    ]
    assert fits
    assert partition_cycles(find_partition(shape, small), TIMING) == min(map(cycles.get, fits))


def test_bad_input() -> None:
    with pytest.raises(InputError) as error:
        find_partition((4, 4, 4), place(1, 3), "2d")
    assert str(error.value) == (
        "--partition: found 2d on 3 tiles; allowed: on a number of tiles that is a product of two "
        "above 1"
    )
    with pytest.raises(InputError) as error:
        find_partition((4, 4, 4), place(1, 3), "rows")
    assert str(error.value) == "unknown partition 'rows'; known: 2d, auto, input, k, mn"
    with pytest.raises(InputError, match="^--shape: every partition takes [0-9]+ bytes of a tile"):
        find_partition((64, 64, 64), replace(place(2, 2), tile_bytes=100))
    with pytest.raises(InputError, match="^--partition: this kernel has other choices"):
        KERNELS["summa"].planned((4, 4, 4), place(2, 2), Choices(partition="k"))


# Verilog ------------------------------------------------------------------------------------------


def check_on_rtl(side: int, dtype: str, partition: str, placement: str) -> None:
    """Tiles in Verilog take the cycles of level `at` within 2 %."""
    options = KernelOptions(
        kernel="partitioned-gemm",
        chip=f"rtl-{side}x{side}",
        grid=f"{side}x{side}",
        shape="20,32,24",
        dtype=dtype,
        partition=partition,
        placement=placement,
    )
    found = [run_kernel(replace(options, level=level)).cycles for level in ("at", "rtl")]
    assert found[0] == pytest.approx(found[1], rel=0.02)


@pytest.mark.parametrize(
    ("partition", "placement"), [("mn", "linear"), ("k", "interleave"), ("2d", "mesh")]
)
def test_tiles_in_verilog(partition: str, placement: str) -> None:
    check_on_rtl(2, "int8", partition, placement)


@pytest.mark.parametrize("partition", ["mn", "k", "2d"])
def test_few_columns_on_tiles_of_whole_words(partition: str) -> None:
    """Rows of sums are whole words of two: columns are padded where sums move."""
    tiles = replace(place(4, 4), whole_lines=True)
    plan = find_partition((8, 16, 32), tiles, partition)
    assert plan.block[2] == (1 if partition == "mn" else 2)
    a, b = operands((8, 32), (32, 16))
    assert (multiplied(plan, partition_gemm(plan), a, b, 0)[:, :8, :16] == a @ b).all()


@pytest.mark.slow
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("partition", FIXED)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_more_tiles_in_verilog(dtype: str, partition: str, placement: str) -> None:
    check_on_rtl(4, dtype, partition, placement)


@pytest.mark.slow  # minutes each
@pytest.mark.parametrize(
    ("partition", "placement"), [("mn", "ring"), ("k", "linear"), ("2d", "mesh")]
)
def test_many_tiles_in_verilog(partition: str, placement: str) -> None:
    check_on_rtl(8, "int8", partition, placement)


def test_columns_of_a_ring_lie_below_each_other() -> None:
    ring = replace(place(2, 8), placement="ring")
    order = plan_partition((64, 64, 64), ring, "2d", (2, 8)).order
    assert order == tuple(product(range(2), range(8)))
    assert plan_partition((64, 64, 64), ring, "mn", (16, 1)).order == ring.order
