"""Attention of groups of tiles: schedules, operands, cuts and the size of groups."""

import re
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from calibration.levels.chips import Ground
from tests.workloads.kernels.attended import (
    METHODS,
    UNIT,
    attended,
    attention,
    lt_errors,
    run,
)
from tests.workloads.kernels.products import place
from tlm.calibrated import stale_allowed
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.errors import InputError
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from workloads.kernels.attention import flat_attention
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.machine.moved import moved_by
from workloads.machine.place import chip_place

SHAPE = AttentionShape(1, 3, 3, 6, 20, 8, 5)


@pytest.mark.parametrize("schedule", ["naive", "async"])
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5), (4, 4)])
def test_flat_attention(grid: tuple[int, int], schedule: str) -> None:
    plan = plan_flat(SHAPE, place(*grid), "network", schedule, UNIT)
    assert (plan.q_blocks, plan.kv_blocks) == (1, 1)
    for seed in range(2):
        found, exact = attention(plan, seed)
        assert np.abs(found - exact).max() < 2.0


@pytest.mark.parametrize("operands", BY_MESSAGES)
@pytest.mark.parametrize("schedule", ["naive", "async"])
@pytest.mark.parametrize("grid", [(1, 1), (3, 5), (4, 4)])
def test_operands_sent_by_messages_give_the_same_attention(
    grid: tuple[int, int], schedule: str, operands: str
) -> None:
    plan = plan_flat(SHAPE, place(*grid), operands, schedule, UNIT)
    found, _ = attention(replace(plan, operands=operands))
    assert found.tolist() == attention(plan)[0].tolist()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schedule", ["naive", "async"])
def test_flat_attention_in_blocks(schedule: str, method: str) -> None:
    # A head of keys in two to ten blocks, rows in one or two: earlier results are corrected.
    shape = AttentionShape(1, 6, 3, 6, 20, 8, 5)
    cuts = set()
    for tile_bytes in (1400, 700, 450):
        small = replace(place(2, 2), tile_bytes=tile_bytes)
        plan = plan_flat(shape, small, method, schedule, UNIT)
        cuts.add((plan.q_blocks, plan.kv_blocks))
        assert flat_attention.flat_attention(plan).tile_bytes <= tile_bytes
        found, exact = attention(plan)
        assert np.abs(found - exact).max() < 2.0
    assert len(cuts) == 3, cuts


def hold_to_attention(plan: FlatPlan, tile_bytes: int) -> None:
    """A plan's program fits, moves what the plan says, and computes attention."""
    program = flat_attention.flat_attention(plan)
    assert program.tile_bytes == plan.tile_bytes <= tile_bytes
    if plan.place.offchip is not None:
        assert plan.moved == moved_by(program, plan.place.timing.flit_bytes)
    q, k, v, output, totals = run(plan, tile_bytes)
    for head in range(plan.shape.heads):
        found = np.hstack([output[head], totals[head][:, None]])
        assert (found == attended(plan, q[head], k[head], v[head])).all()


#: Groups, and which of two shapes they have with memory; they have the other one without.
GROUPS = (((1, 1), 0), ((2, 2), 1), ((4, 2), 0), ((1, 4), 1), ((2, 1), 0))


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("group", "number"), GROUPS)
def test_groups_work_side_by_side(
    group: tuple[int, int], number: int, schedule: str, memory: bool
) -> None:
    edge = Edge(4, 4, 2, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(4, 4), offchip=edge if memory else None)
    sizes = ((2, 4, 2, 9, 21, 8, 6), (1, 6, 3, 5, 16, 8, 6))[number ^ memory]
    shape = AttentionShape(*sizes)
    for tile_bytes in (2**20, 700, 520):
        small = replace(tiles, tile_bytes=tile_bytes)
        plan = plan_flat(shape, small, "network", schedule, UNIT, group=group)
        assert plan.loads == plan.core.items()[-1].load + 1
        hold_to_attention(plan, tile_bytes)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("group", [(1, 1), (2, 2), (1, 4)])
def test_groups_with_one_head_under_way(group: tuple[int, int], memory: bool) -> None:
    edge = Edge(4, 4, 2, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(4, 4), offchip=edge if memory else None)
    # Each group with one shape in memory, and with the other one without.
    sizes = ((2, 24, 12, 5, 16, 8, 6), (2, 20, 10, 9, 21, 8, 6))[(group == (2, 2)) ^ memory]
    shape = AttentionShape(*sizes)
    for tile_bytes in (2**20, 520):
        small = replace(tiles, tile_bytes=tile_bytes)
        plan = plan_flat(shape, small, "network", "async", UNIT, group=group, heads=1)
        assert (plan.depth, plan.core.states) == (min(2, plan.streams * plan.kv_blocks), 1)
        hold_to_attention(plan, tile_bytes)


def test_two_heads_hide_more_than_one_and_take_more_room() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (8, 8), noc_timing(chip), 16, 16, memory=True)
    shape = AttentionShape(1, 8, 8, 1024, 1024, 128, 128)
    one, two = (plan_flat(shape, tiles, group=(8, 8), heads=heads) for heads in (1, 2))
    assert two == plan_flat(shape, tiles, group=(8, 8))
    times = [flat_attention_cycles(plan, tiles.timing) for plan in (one, two)]
    assert times[0] > 1.05 * times[1]
    alike = replace(one, block=two.block, q_blocks=two.q_blocks, kv_blocks=two.kv_blocks)
    assert alike.tile_bytes < two.tile_bytes
    naive = plan_flat(shape, tiles, schedule="naive", group=(8, 8), heads=1)
    assert naive == plan_flat(shape, tiles, schedule="naive", group=(8, 8))
    with pytest.raises(InputError, match="--heads-per-group: found 2 with --schedule naive; allow"):
        plan_flat(shape, tiles, schedule="naive", heads=2)
    with pytest.raises(InputError, match="found 3 with --schedule async; allowed: 1 or 2"):
        plan_flat(shape, tiles, heads=3)


def test_blocks_of_rows_of_a_head_share_its_keys() -> None:
    edge = Edge(4, 4, 4, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(4, 4), offchip=edge)
    plan = plan_flat(AttentionShape(1, 2, 2, 32, 32, 8, 8), tiles, group=(4, 4))
    halves = replace(plan, q_blocks=2, block=replace(plan.block, rows=4))
    apart = replace(halves, schedule="naive")
    assert (halves.alike, halves.streams) == (2, 4)
    # Q once; K and V once for both, or for each.
    whole = 2 * 32 * 8
    assert (halves.loads, halves.held) == (2, 2)
    assert halves.moved.read == 3 * whole
    assert apart.moved.read == 5 * whole


def test_a_group_is_as_large_as_the_scores_fill() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True)
    groups = {
        length: plan_flat(AttentionShape(4, 32, 32, length, length, 128, 128), tiles)
        for length in (512, 1024, 4096)
    }
    assert {length: plan.group for length, plan in groups.items()} == {
        512: (4, 4), 1024: (8, 8), 4096: (32, 32),
    }  # fmt: skip
    assert {(plan.block.rows, plan.block.keys) for plan in groups.values()} == {(128, 128)}
    # A head alone is flattened over all tiles; rows of a decoding request over a row of them.
    assert plan_flat(AttentionShape(1, 1, 1, 512, 512, 128, 128), tiles).group == (32, 32)
    assert plan_flat(AttentionShape(64, 32, 1, 1, 4096, 128, 128), tiles).group[0] == 1
    # With few heads a group is larger: two streams of each hide what the other waits for.
    few = plan_flat(AttentionShape(32, 32, 1, 1, 4096, 128, 128), tiles)
    assert (few.group[0], few.streams) == (2, 2)
    with pytest.raises(InputError, match="--group: found 3x4; allowed: auto, or rows and colu"):
        plan_flat(AttentionShape(1, 1, 1, 8, 8, 8, 8), tiles, group=(3, 4))


@pytest.mark.parametrize("group", [(1, 32), (2, 8), (4, 4), (8, 2), (32, 1)])
def test_every_channel_has_as_many_roots_as_another(group: tuple[int, int]) -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True)
    plan = plan_flat(AttentionShape(1024, 8, 1, 4, 64, 16, 16), tiles, group=group)
    assert tiles.offchip is not None
    for name in ("q", "k"):
        found = [tile for roots in plan.groups.roots(name) for tile in roots]
        assert len(set(found)) == len(found) == 1024 // group[name == "q"]
        assert len(set(Counter(map(tiles.offchip.channel, found)).values())) == 1
        # Each line of a group has one.
        lines = {tile[0] if name == "q" else tile[1] for tile in found}
        assert lines == set(range(32))


def test_slices_need_not_be_square() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    tiles = chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True)
    plan = plan_flat(AttentionShape(128, 128, 1, 8, 4096, 576, 512, latent=True), tiles)
    # Of what fits, 16 rows of 64 keys leave the engine most: 84 %, where 32 of 32 leave 59 %.
    assert (plan.block.rows, plan.block.keys) == (16, 64)
    use = plan.tile_macs / (tiles.matrix.macs_per_cycle * plan.tile_matrix_cycles)
    assert use == pytest.approx(0.841, abs=1e-3)


def test_a_row_has_to_fit() -> None:
    small = replace(place(2, 2), tile_bytes=100)
    with pytest.raises(InputError, match="a single row takes [0-9]+ bytes of a tile's memory"):
        plan_flat(SHAPE, small)


def test_a_row_of_a_causal_head_has_to_fit() -> None:
    """As much as it is told to take is enough."""
    causal, tiles = AttentionShape(1, 8, 1, 512, 4096, 64, 64, causal=True), place(2, 2)
    with pytest.raises(InputError, match="a single row takes [0-9]+ bytes") as error:
        plan_flat(causal, replace(tiles, tile_bytes=100), group=(2, 2))
    least = int(re.findall("takes ([0-9]+)", str(error.value))[0])
    plan = plan_flat(causal, replace(tiles, tile_bytes=least), group=(2, 2))
    assert (plan.tile_bytes, plan.block.rows) == (least, 1)


@pytest.mark.parametrize("name", ["flat32", "npusim-large", "npusim-small", "wse2"])
def test_the_closed_form_of_flat_attention(name: str) -> None:
    shapes = [(1, 4, 4, 160, 150, 32, 32), (2, 2, 2, 590, 340, 64, 64), (1, 8, 2, 1, 1400, 64, 64)]
    if name == "wse2":  # whose tiles have 48 KiB
        shapes = [(1, 4, 4, 36, 39, 8, 8), (1, 8, 2, 1, 176, 8, 8)]
    errors = lt_errors(name, ["flat-attention"], shapes, latent=False)
    multiplies = name.startswith("npusim")  # the vector engine, too
    assert errors.mean() < (3.5 if multiplies else 3)
    assert errors.max() < (14 if multiplies else 10)


@pytest.mark.parametrize("name", ["npusim-small", "rtl"])
def test_the_closed_form_where_all_goes_by_messages(name: str) -> None:
    """Of groups of all tiles, and of rows: who sends slices on sends its parts behind them."""
    shapes = [(1, 4, 4, 160, 150, 32, 32), (2, 2, 2, 290, 340, 64, 64), (1, 8, 2, 1, 1400, 64, 64)]
    if name == "rtl":
        shapes = [(1, 4, 4, 60, 50, 8, 8), (2, 2, 2, 90, 140, 16, 16), (1, 8, 2, 1, 400, 16, 16)]
    ground, kernel = Ground.of(name, (8, 8), memory=False), KERNELS["flat-attention"]
    errors = []
    with stale_allowed(True):
        for method, schedule, group, shape in product(
            BY_MESSAGES, SCHEDULES, [(8, 8), (1, 8)], shapes
        ):
            choices = Choices(collective=method, schedule=schedule, group=group)
            cycles = ground.both(kernel, kernel.planned(shape, ground.place, choices))
            assert cycles is not None
            errors.append(abs(cycles[1] / cycles[0] - 1))
    assert np.mean(errors) < 0.03
    assert max(errors) < 0.08
