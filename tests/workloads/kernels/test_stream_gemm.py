"""Products whose operands stream from off-chip memory: right results, counted bytes, cycles."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from calibration.levels.cases import Tiles
from calibration.levels.chips import CHIPS, Ground
from tests.workloads.kernels.products import computed, place
from tlm.chips import find_tiles, load_chip
from tlm.chips.parts import noc_timing, offchip_channels
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.transfer_times import (
    arrival_cycles,
    hold_cycles,
    hold_cycles_over,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemm import stream_gemm
from workloads.kernels.gemm.stream_closed_form import stream_gemm_cycles
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemm.stream_search import plan_stream
from workloads.kernels.tile_jobs import on_own_tiles
from workloads.machine.moved import moved_by
from workloads.machine.place import Place, chip_place

#: Grid, cut, sizes, groups and block: shared and own operands, K cut along either line, padding.
CASES = [
    ((1, 1), (1, 1, 1, 1, 1, 1), (5, 7, 9), 1, (2, 3, 4)),
    ((2, 2), (2, 1, 1, 1, 2, 1), (8, 8, 8), 1, (4, 4, 8)),
    ((2, 3), (2, 1, 1, 1, 3, 1), (9, 7, 20), 2, (2, 3, 5)),
    ((4, 4), (1, 1, 4, 1, 4, 1), (3, 18, 17), 1, (3, 2, 2)),
    ((4, 2), (2, 1, 2, 1, 2, 1), (11, 6, 9), 3, (2, 3, 2)),
    ((3, 4), (3, 1, 1, 1, 2, 2), (10, 13, 8), 1, (2, 4, 2)),
    ((4, 4), (1, 4, 1, 2, 2, 1), (6, 15, 7), 2, (3, 1, 3)),
    ((2, 4), (1, 2, 1, 1, 1, 4), (4, 5, 12), 1, (2, 3, 3)),
    ((6, 2), (2, 1, 3, 2, 1, 1), (7, 4, 6), 1, (2, 2, 1)),
]


def loading(rows: int, cols: int) -> Place:
    """A machine with channels, one for two columns where there are as many."""
    edge = Edge(rows, cols, -(-cols // 2), 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    return replace(place(rows, cols), offchip=edge)


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("make", [place, loading])
@pytest.mark.parametrize(
    ("grid", "cut", "shape", "groups", "block", "method"),
    [
        (*case, method)
        for case in CASES
        for method in ("network", "chain", "tree", "sequential")
        if method == "network" or case[1][2] > 1  # K is not cut: nothing is summed
    ],
)
def test_products(
    grid: tuple[int, int],
    cut: tuple[int, int, int, int, int, int],
    shape: tuple[int, int, int],
    groups: int,
    block: tuple[int, int, int],
    method: str,
    make: Callable[[int, int], Place],
    *,
    resident: bool,
) -> None:
    parts = GridCut(*cut)
    plan = StreamPlan(make(*grid), shape, groups, parts, block, method, resident=resident)
    rng = np.random.default_rng(sum(shape))
    m, n, k = shape
    a, b = rng.integers(-128, 128, (groups, m, k)), rng.integers(-128, 128, (groups, k, n))
    program = stream_gemm.stream_gemm(plan)
    for seed in range(2):
        memory = computed(program, lambda at: stream_gemm.put(plan, at, a, b), seed)
        assert (stream_gemm.result(plan, memory) == a @ b).all()
    if plan.place.offchip is not None:
        assert program.tile_bytes == plan.tile_bytes
        count_bytes(plan)


def count_bytes(plan: StreamPlan) -> None:
    """What the program moves is what the plan says."""
    program = stream_gemm.stream_gemm(plan)
    assert plan.moved == moved_by(program, plan.place.timing.flit_bytes)


@pytest.mark.parametrize("grid", [(2, 3), (4, 4)])
@pytest.mark.parametrize("shape", [(1, 40, 64), (50, 30, 20), (1, 1, 1)])
def test_the_search_finds_plans_that_compute(
    grid: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    plan = plan_stream(shape, replace(loading(*grid), tile_bytes=2000), groups=2)
    assert plan.tile_bytes <= 2000
    a, b = np.ones((2, m, k), dtype=np.int64), np.full((2, k, n), 3)
    memory = computed(stream_gemm.stream_gemm(plan), lambda at: stream_gemm.put(plan, at, a, b))
    assert (stream_gemm.result(plan, memory) == a @ b).all()


def test_narrow_weights_count_by_their_bits() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (8, 8), noc_timing(chip), 16, 16)
    tiles = replace(tiles, offchip=offchip_channels(chip, 8, 8))
    wide = plan_stream((1, 2048, 2048), tiles)
    narrow = plan_stream((1, 2048, 2048), tiles, weight_bits=4.25)
    cycles = [stream_gemm_cycles(plan, tiles.timing) for plan in (wide, narrow)]
    count_bytes(narrow)
    assert narrow.moved.read < 0.3 * wide.moved.read
    assert 0.25 < cycles[1] / cycles[0] < 0.6


def test_resident_weights_take_memory_of_tiles_and_no_time_of_channels() -> None:
    tiles = Ground.of("flat32", (8, 8), memory=True).place
    shape = (4, 1024, 1024)
    streamed, resident = (plan_stream(shape, tiles, resident=each) for each in (False, True))
    count_bytes(resident)
    assert streamed.moved.read - resident.moved.read >= 2 * 1024 * 1024
    assert resident.tile_bytes >= 2 * 1024 * 1024 // 64
    cycles = [stream_gemm_cycles(plan, tiles.timing) for plan in (streamed, resident)]
    assert cycles[1] < 0.5 * cycles[0]
    with pytest.raises(InputError, match="--shape: the smallest blocks take [0-9]+ bytes of a ti"):
        plan_stream((4, 8192, 8192), tiles, resident=True)


@pytest.mark.parametrize(
    ("name", "memory"),
    [("rtl", False), *product(("flat32", "npusim-large"), (False, True))],
)
def test_the_closed_form_of_resident_weights(name: str, *, memory: bool) -> None:
    kernel, errors = KERNELS["grouped-gemm"], []
    side = CHIPS[name][1]
    for grid, shape in product(((4, 4), (8, 8)), ((1, 1, 8, 4), (3, 16, 4, 8), (2, 128, 8, 8))):
        ground = Ground.of(name, grid, memory=memory)
        groups, rows, n, k = shape
        sizes = (groups, rows, n * side * grid[1], k * side * grid[0])
        try:
            plan = kernel.planned(sizes, ground.place, Choices(resident=True))
        except InputError:
            continue  # larger than these tiles
        both = ground.both(kernel, plan)
        assert both is not None
        errors.append(abs(both[1] / both[0] - 1))
    assert len(errors) >= 4
    assert np.mean(errors) < 0.02
    assert max(errors) < 0.05


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="--shape: the smallest blocks take [0-9]+ bytes of a ti"):
        plan_stream((64, 64, 64), replace(loading(2, 2), tile_bytes=10))
    with pytest.raises(InputError, match="matrix product: N is 0"):
        plan_stream((64, 0, 64), loading(2, 2))
    with pytest.raises(InputError, match="groups: found 0; allowed: 1 or more"):
        plan_stream((64, 64, 64), loading(2, 2), groups=0)


@pytest.mark.parametrize("depth", [4, 2**30])
def test_laws_of_arrays_are_those_of_numbers(depth: int) -> None:
    timing = NocTiming(1, 1, depth, 1, 8)
    for hops, flits in product((1, 2, 9), (1, 3, 4, 5, 8, 9, 63, 200)):
        way, length = np.array([hops]), np.array([flits])
        there = arrival_cycles(timing, hops, flits, multicast=True)
        assert multicast_cycles_over(timing, way, length) == there
        assert hold_cycles_over(timing, length) == hold_cycles(timing, flits, multicast=True)
        summed = timing.reduction_cycles(hops, flits) + 1
        assert reduction_cycles_over(timing, way, length) == summed


@pytest.mark.parametrize("name", ["rtl-4x4", "flat32", "npusim-large", "wse2"])
def test_engines_count_many_products_at_once(name: str) -> None:
    matrix = load_chip(name).tile.matrix.compute()
    rng = np.random.default_rng(2)
    m, k, n = rng.integers(1, 300, (3, 40))
    cycles = [matrix.gemm_cycles(*each) for each in zip(*np.array([m, k, n]).tolist(), strict=True)]
    assert matrix.gemm_cycles_over(m, k, n).tolist() == cycles


#: Decode and prefill; the last number are groups.
_SHAPES = [
    (1, 2048, 2048, 1), (16, 1024, 4096, 1), (64, 2048, 1024, 5), (512, 1024, 2048, 1),
    (2048, 2048, 1024, 1), (300, 777, 1000, 2),
]  # fmt: skip


@pytest.mark.parametrize("memory", [False, True])
def test_the_closed_form_on_foreign_chips(memory: bool) -> None:
    errors = []
    for name in ("flat32", "npusim-large", "npusim-small"):
        chip = load_chip(name).for_dtype("fp16")
        timing = noc_timing(chip)
        for grid, shape in product([(4, 4), (8, 6), (16, 16)], _SHAPES):
            tiles = chip_place(chip, grid, timing, 16, 16)
            if memory:
                tiles = replace(tiles, offchip=offchip_channels(chip, *grid))
            plan = plan_stream(shape[:3], tiles, tiles.method(None), shape[3])
            lt = run_lt(stream_gemm.stream_gemm(plan), timing, offchip=tiles.offchip).cycles
            errors.append(abs(stream_gemm_cycles(plan, timing) / lt - 1))
    # It has blocks as whole messages, which lt cuts into packets where they meet.
    assert np.mean(errors) < 0.02
    assert max(errors) < 0.11


@pytest.mark.parametrize("memory", [False, True])
def test_the_closed_form_on_own_tiles(memory: bool) -> None:
    errors = []
    shapes = [(1, 256, 512, 1), (8, 512, 256, 3), (64, 128, 256, 1), (256, 256, 128, 2)]
    for grid, shape in product([(4, 4), (4, 8), (8, 8)], shapes):
        tiles = Tiles(grid, "int8", memory)
        plan = plan_stream(shape[:3], tiles.place, "network", shape[3])
        program = stream_gemm.stream_gemm(plan)
        lt = run_lt(
            on_tiles(program, tiles.tile),
            tiles.timing,
            queues=tiles.tile.queues,
            offchip=tiles.place.offchip,
        ).cycles
        own = on_own_tiles(plan, program, tiles.timing, tiles.tile)
        errors.append(abs(stream_gemm_cycles(*own) / lt - 1))
    # Blocks from memory meet others on links in more ways than the closed form knows.
    assert np.mean(errors) < (0.05 if memory else 0.03)
    # Senders of two operands, whose results are summed, are thought slower than they are.
    assert max(errors) < 0.14


#: Chip, grid and sizes of products whose first blocks meet: two steps, or one; trees that lie
#: between each other's tiles, whose second blocks come before some first ones; a tile that sends
#: both.
_MEETING = [
    ("npusim-large", (8, 8), (472, 576, 1936)), ("npusim-large", (8, 8), (1144, 1216, 1176)),
    ("npusim-small", (16, 16), (592, 464, 1744)), ("npusim-small", (16, 16), (560, 624, 592)),
    ("npusim-small", (8, 8), (295, 210, 1003)), ("wse2", (32, 32), (151, 159, 686)),
    ("wse2", (16, 16), (64, 48, 208)), ("rtl-8x8", (8, 8), (88, 56, 56)),
]  # fmt: skip


#: Where `lt` follows packets that the closed form does not know: 5213 for 6493 cycles, while `at`
#: lies between with 5869, 2325 for 2192, which `at` has too, and 1594 for 1502, where it has 1574.
_OFF = {(1144, 1216, 1176): 0.2, (592, 464, 1744): 0.07, (295, 210, 1003): 0.07}

#: They are of arrays whose tiles of weights follow each other without a bubble.
_FOLLOWING = ("tile.matrix.tiles=overlapped", "tile.matrix.lane_alus=0")


@pytest.mark.parametrize(("name", "grid", "shape"), _MEETING)
def test_first_blocks_that_meet(
    name: str, grid: tuple[int, int], shape: tuple[int, int, int]
) -> None:
    own = name == "rtl-8x8"
    changes = _FOLLOWING if name.startswith("npusim") else ()
    chip = find_tiles(name, changes).for_dtype("int8" if own else "fp16")
    timing = noc_timing(chip)
    tiles = chip_place(chip, grid, timing, *((8, 32) if own else (16, 16)))
    plan = plan_stream(shape, tiles, tiles.method(None))
    lt = run_lt(stream_gemm.stream_gemm(plan), timing).cycles
    assert stream_gemm_cycles(plan, timing) == pytest.approx(lt, rel=_OFF.get(shape, 0.05))
