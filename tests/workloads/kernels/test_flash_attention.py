"""Attention of tiles, and of runs of tiles, that know nothing of each other."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.workloads.kernels.attended import METHODS, UNIT, attention
from tests.workloads.kernels.products import place
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Load
from workloads.kernels.attention import flash_attention
from workloads.kernels.attention.flash_closed_form import flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_decode, plan_flash
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.parts.passes import Factor
from workloads.machine.moved import moved_by
from workloads.machine.place import chip_place


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (5, 3), (4, 4)])
def test_flash_attention(grid: tuple[int, int], turns: int) -> None:
    plan = plan_flash(AttentionShape(1, 10, 5, 6, 20, 8, 5), place(*grid), turns, UNIT)
    for seed in range(2):
        found, exact = attention(plan, seed)
        assert np.abs(found - exact).max() < 2.0


@pytest.mark.parametrize(("turns", "memories"), [(1, (450, 300, 120)), (2, (800, 400, 250))])
def test_flash_attention_in_smaller_blocks(turns: int, memories: tuple[int, ...]) -> None:
    cuts = set()
    for tile_bytes in memories:
        small = replace(place(2, 2), tile_bytes=tile_bytes)
        plan = plan_flash(AttentionShape(1, 10, 5, 6, 20, 8, 5), small, turns, UNIT)
        cuts.add((plan.q_blocks, plan.kv_blocks))
        assert flash_attention.flash_attention(plan).tile_bytes <= small.tile_bytes
        found, exact = attention(plan)
        assert np.abs(found - exact).max() < 2.0
    assert len(cuts) == 3, cuts


@pytest.mark.parametrize("turns", [1, 2])
def test_flash_attention_leaves_tiles_out(turns: int) -> None:
    # Seven streams on six tiles are two each: four tiles would do, and whole rows of them are used.
    shape = AttentionShape(1, 7, 7, 1, 8, 4, 4)
    plan = plan_flash(shape, place(3, 2), turns, UNIT)
    assert (plan.streams, plan.tiles) == (2, TileSet(range(1, 3), range(2)))
    found, exact = attention(plan)
    assert np.abs(found - exact).max() < 2.0


def test_flash_attention_shares_no_loads() -> None:
    shape = AttentionShape(2, 4, 4, 64, 64, 16, 16)
    edge = Edge(4, 4, 4, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    plan = plan_flash(shape, replace(place(4, 4), offchip=edge), 2)
    loaded = sum(
        len(operation.tiles) * operation.flits * edge.flit_bytes
        for operation in flash_attention.flash_attention(plan).build()
        if isinstance(operation, Load)
    )
    # Q once; K and V for every block of rows.
    assert loaded == 8 * 64 * 16 * (1 + 2 * plan.q_blocks)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("turns", [1, 2])
def test_the_closed_form_of_flash_attention_on_foreign_chips(turns: int, memory: bool) -> None:
    errors = []
    shapes = [(1, 8, 8, 512, 512, 128, 128), (1, 32, 8, 256, 1024, 128, 128)]
    shapes += [(8, 8, 8, 1, 2048, 128, 128), (1, 40, 8, 64, 4096, 128, 128)]
    for name in ("flat32", "npusim-large", "npusim-small"):
        chip = load_chip(name).for_dtype("fp16")
        timing = noc_timing(chip)
        for side, shape in product((4, 8, 16), shapes):
            place = chip_place(chip, (side, side), timing, 16, 16, memory=memory)
            plan = plan_flash(AttentionShape(*shape), place, turns)
            program = flash_attention.flash_attention(plan)
            lt = run_lt(program, timing, offchip=place.offchip).cycles
            errors.append(abs(flash_attention_cycles(plan, timing) / lt - 1))
    assert np.mean(errors) < 0.03
    assert max(errors) < 0.10


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize(
    ("grid", "run_", "sizes", "rows", "keys"),
    [
        ((1, 2), 2, (1, 3, 3, 6, 20, 8, 5), 3, 2),
        ((4, 4), 4, (2, 4, 2, 1, 37, 8, 4), 2, 5),
        ((3, 6), 3, (1, 1, 1, 2, 50, 8, 8), 1, 8),
        ((2, 8), 4, (3, 8, 4, 3, 16, 4, 4), 3, 8),  # some tiles have padding alone
    ],
)
def test_runs_of_tiles_share_streams(
    grid: tuple[int, int],
    run_: int,
    sizes: tuple[int, ...],
    rows: int,
    keys: int,
    turns: int,
    method: str,
    memory: bool,
) -> None:
    shape, tiles = AttentionShape(*sizes), place(*grid)
    if memory:
        edge = Edge(*grid, grid[1], 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
        tiles = replace(tiles, offchip=edge)
    cut = -(-shape.kv_length // (keys * run_))
    plan = FlashPlan(
        tiles, shape, Block(rows, keys, shape.qk_depth, shape.v_depth), -(-shape.rows // rows),
        cut, turns, Factor.of_exponent(UNIT), run_, method,
    )  # fmt: skip
    for seed in range(2):
        found, exact = attention(plan, seed)
        assert np.abs(found - exact).max() < 3.0
    if memory:
        program = flash_attention.flash_attention(plan)
        assert plan.tile_bytes == program.tile_bytes
        assert plan.moved == moved_by(program, tiles.timing.flit_bytes)


def test_few_rows_on_many_keys_are_faster_on_runs() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True)
    shape = AttentionShape(1, 32, 8, 1, 8192, 128, 128)
    alone, together = plan_flash(shape, tiles, 2), plan_decode(shape, tiles)
    assert together.run > 1
    cycles = [flash_attention_cycles(plan, tiles.timing) for plan in (alone, together)]
    assert cycles[1] < 0.3 * cycles[0]
    # With as many heads as tiles there is nothing to share.
    assert plan_decode(AttentionShape(128, 32, 8, 1, 512, 128, 128), tiles).run == 1


#: Sequences, heads of Q and of K, rows, keys, depth.
_DECODED = [(1, 32, 8, 1, 4096, 128), (16, 32, 8, 1, 1025, 128), (4, 16, 1, 4, 700, 64)]


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        *product(["flat32", "npusim-large", "npusim-small"], [False, True]),
        ("wse2", False),  # it has no off-chip memory
    ],
)
def test_the_closed_form_of_decode_attention(name: str, memory: bool) -> None:
    chip, errors = load_chip(name).for_dtype("fp16"), []
    timing = noc_timing(chip)
    for grid, sizes in product([(4, 4), (8, 6), (32, 32)], _DECODED):
        tiles = chip_place(chip, grid, timing, 16, 16, memory=memory)
        shape = AttentionShape(*sizes, sizes[-1])
        plan = plan_decode(shape, tiles, tiles.method(None))
        lt = run_lt(flash_attention.flash_attention(plan), timing, offchip=tiles.offchip).cycles
        errors.append(abs(flash_attention_cycles(plan, timing) / lt - 1))
    # A vector engine that multiplies is done with a row's keys in a few cycles: messages show.
    assert np.mean(errors) < (0.035 if name.startswith("npusim") else 0.03)
    assert max(errors) < 0.10


@pytest.mark.parametrize(
    ("name", "grid", "sizes", "run_", "blocks", "turns", "method", "once"),
    [
        ("npusim-small", (2, 8), (13, 4, 2, 1, 584, 128), 8, 1, 2, "tree", False),
        ("npusim-large", (4, 8), (33, 32, 4, 1, 1581, 128), 8, 1, 2, "sequential", False),
        ("npusim-small", (2, 8), (26, 16, 2, 1, 1703, 64), 4, 2, 2, "sequential", False),
        ("wse2", (4, 16), (34, 4, 4, 1, 1082, 16), 8, 1, 2, "tree", False),
        # Buffers on the way take an output.
        ("npusim-small", (1, 16), (50, 32, 4, 1, 187, 128), 2, 1, 2, "tree", True),
        # One block under way.
        ("npusim-large", (2, 8), (7, 8, 8, 1, 1972, 64), 2, 1, 1, "tree", True),
    ],
)
def test_the_closed_form_of_runs_that_share_several_streams(
    name: str,
    grid: tuple[int, int],
    sizes: tuple[int, ...],
    run_: int,
    blocks: int,
    turns: int,
    method: str,
    once: bool,
) -> None:
    chip = load_chip(name).for_dtype("fp16")
    timing, shape = noc_timing(chip), AttentionShape(*sizes, sizes[-1])
    tiles = chip_place(chip, grid, timing, 16, 16, memory=False)
    block = Block(shape.rows, -(-shape.kv_length // (run_ * blocks)), sizes[-1], sizes[-1])
    plan = FlashPlan(tiles, shape, block, 1, blocks, turns, Factor.of_exponent(UNIT), run_, method)
    lt = run_lt(flash_attention.flash_attention(plan), timing).cycles
    assert abs(flash_attention_cycles(plan, timing) / lt - 1) < 0.06
    # The root's port is busy with a stream's blocks, and then the last tile's is with its own.
    brought = plan.streams * (plan.flits("q") + blocks * (plan.flits("k") + plan.flits("v")))
    assert (lt < 1.5 * brought) == once
