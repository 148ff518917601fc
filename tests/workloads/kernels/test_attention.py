"""Softmax and attention on real blocks: near the exact result, and equal however they are cut."""

from collections import Counter
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.workloads.kernels.attended import attended
from tests.workloads.kernels.products import computed, place
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Load, Program
from tlm.program.arithmetic import Integers
from workloads.kernels.attention import flash_attention, flat_attention
from workloads.kernels.attention.flash_closed_form import flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_decode, plan_flash
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.catalogue import KERNELS, Choices, moves
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.passes import Factor
from workloads.kernels.vector import softmax
from workloads.kernels.vector.softmax import plan_softmax
from workloads.machine.moved import moved_by
from workloads.machine.place import Place, chip_place

METHODS = ["network", "chain", "tree", "sequential"]


def exact_softmax(scores: Integers, unit: float) -> np.ndarray:
    scaled = scores * unit
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5), (4, 4)])
def test_softmax_of_rows(grid: tuple[int, int], method: str) -> None:
    scores = np.random.default_rng(1).integers(-2000, 2000, (7, 18))
    plan = plan_softmax((7, 18), place(*grid), method, unit=1 / 256)
    program = softmax.softmax(plan)
    memory = computed(program, lambda at: softmax.put(plan, at, scores))
    m, n = plan.block
    powers = memory["s"].swapaxes(1, 2).reshape(grid[0] * m, grid[1] * n)[:7, :18]
    totals = memory["sum"].swapaxes(1, 2).reshape(grid[0] * m, grid[1])[:7]
    assert (totals == powers.sum(axis=1, keepdims=True)).all()
    shares = powers / totals[:, :1]
    # An exponent of two is cut off at a 256th, which is 0.27 %.
    assert np.abs(shares - exact_softmax(scores, 1 / 256)).max() < 0.003


def build(plan: FlatPlan | FlashPlan) -> Program:
    """The program of a plan."""
    if isinstance(plan, FlatPlan):
        return flat_attention.flat_attention(plan)
    return flash_attention.flash_attention(plan)


def run(plan: FlatPlan | FlashPlan, seed: int = 0, *, latent: bool = False) -> tuple[Integers, ...]:
    """Operands, the output and the sums of rows that the program computes.

    With ``latent`` values are the first elements of the keys.
    """
    kernel: ModuleType = flat_attention if isinstance(plan, FlatPlan) else flash_attention
    shape = plan.shape
    rng = np.random.default_rng(5)
    q = rng.integers(-90, 90, (shape.heads, shape.rows, shape.qk_depth))
    k = rng.integers(-90, 90, (shape.heads, shape.kv_length, shape.qk_depth))
    v = rng.integers(-128, 128, (shape.heads, shape.kv_length, shape.v_depth))
    v = k[:, :, : shape.v_depth] if latent else v
    memory = computed(build(plan), lambda at: kernel.put(plan, at, q, k, v), seed)
    return q, k, v, *kernel.result(plan, memory)


def attention(plan: FlatPlan | FlashPlan, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Attention as the program has it, and exactly."""
    q, k, v, output, totals = run(plan, seed)
    exact = exact_softmax(q @ k.swapaxes(1, 2), UNIT) @ v
    return output / 127 * 2**16 / totals[:, :, None], exact


UNIT = 1 / 4096
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
@pytest.mark.parametrize("keys", [1, 7, 11, 16, 29])
@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (4, 4)])
def test_padding_keys_do_not_count(grid: tuple[int, int], keys: int, memory: bool) -> None:
    edge = Edge(*grid, grid[1], 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    at = replace(place(*grid), offchip=edge if memory else None)
    shape = AttentionShape(1, 4, 2, 5, keys, 8, 6)
    plans: list[FlatPlan | FlashPlan] = []
    for schedule in SCHEDULES:
        flat = plan_flat(shape, at, "network", schedule, UNIT, group=grid)
        assert flat.core.padded == (keys % grid[1] > 0)
        plans.append(flat)
        for cut in {-(-flat.block.keys // parts) for parts in (2, 3)}:
            count = -(-flat.block.keys // cut)
            plans.append(replace(flat, kv_blocks=count, block=replace(flat.block, keys=cut)))
    for turns in (1, 2):
        flash = plan_flash(shape, at, turns, UNIT)
        plans.append(flash)
        for cut in (2, 4, 6, 32):
            block = replace(flash.block, keys=cut)
            plans.append(replace(flash, kv_blocks=-(-keys // cut), block=block))
    for seed, plan in enumerate(plans):
        q, k, v, output, totals = run(plan, seed)
        for head in range(shape.heads):
            found = np.hstack([output[head], totals[head][:, None]])
            assert (found == attended(plan, q[head], k[head], v[head])).all()


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("group", [(1, 1), (2, 2), (4, 2), (1, 4), (2, 1)])
def test_groups_work_side_by_side(group: tuple[int, int], schedule: str, memory: bool) -> None:
    edge = Edge(4, 4, 2, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(4, 4), offchip=edge if memory else None)
    for shape in (AttentionShape(1, 6, 3, 5, 16, 8, 6), AttentionShape(2, 4, 2, 9, 21, 8, 6)):
        for tile_bytes in (2**20, 700, 520):
            small = replace(tiles, tile_bytes=tile_bytes)
            plan = plan_flat(shape, small, "network", schedule, UNIT, group=group)
            program = flat_attention.flat_attention(plan)
            assert program.tile_bytes == plan.tile_bytes <= tile_bytes
            assert plan.loads == plan.core.items()[-1].load + 1
            if memory:
                assert plan.moved == moved_by(program, tiles.timing.flit_bytes)
            q, k, v, output, totals = run(plan, tile_bytes)
            for head in range(shape.heads):
                found = np.hstack([output[head], totals[head][:, None]])
                assert (found == attended(plan, q[head], k[head], v[head])).all()


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("group", [(1, 1), (2, 2), (1, 4)])
def test_groups_with_one_head_under_way(group: tuple[int, int], memory: bool) -> None:
    edge = Edge(4, 4, 2, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(4, 4), offchip=edge if memory else None)
    for sizes in ((2, 24, 12, 5, 16, 8, 6), (2, 20, 10, 9, 21, 8, 6)):
        shape = AttentionShape(*sizes)
        for tile_bytes in (2**20, 520):
            small = replace(tiles, tile_bytes=tile_bytes)
            plan = plan_flat(shape, small, "network", "async", UNIT, group=group, heads=1)
            assert (plan.depth, plan.core.states) == (min(2, plan.streams * plan.kv_blocks), 1)
            program = flat_attention.flat_attention(plan)
            assert program.tile_bytes == plan.tile_bytes <= tile_bytes
            if memory:
                assert plan.moved == moved_by(program, tiles.timing.flit_bytes)
            q, k, v, output, totals = run(plan, tile_bytes)
            for head in range(shape.heads):
                found = np.hstack([output[head], totals[head][:, None]])
                assert (found == attended(plan, q[head], k[head], v[head])).all()


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


def test_heads_share_keys_in_equal_numbers() -> None:
    with pytest.raises(InputError, match="found 5 heads of Q for 2 of K and V; allowed: a mul"):
        AttentionShape(1, 5, 2, 4, 7, 8, 8)


def test_sizes_are_told_as_they_were_typed() -> None:
    with pytest.raises(InputError) as caught:
        AttentionShape(1, 0, 2, 4, 7, 8, 8)
    assert str(caught.value) == "--shape: found 1,0,2,4,7,8,8; allowed: sizes of 1 or more"


def test_a_row_has_to_fit() -> None:
    small = replace(place(2, 2), tile_bytes=100)
    with pytest.raises(InputError, match="a single row takes [0-9]+ bytes of a tile's memory"):
        plan_flat(SHAPE, small)


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5)])
@pytest.mark.parametrize("tile_bytes", [2**20, 900])
def test_blocks_from_offchip_memory(grid: tuple[int, int], tile_bytes: int) -> None:
    # The results are those without: blocks come in time, and go before their room is used again.
    shape = AttentionShape(1, 6, 3, 6, 30, 8, 5)
    plain = replace(place(*grid), tile_bytes=tile_bytes)
    edge = Edge(*grid, grid[1], 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    loading = replace(plain, offchip=edge)
    plans = [plan_flat(shape, loading, "network", schedule, UNIT) for schedule in SCHEDULES] + [
        plan_flash(shape, loading, turns, UNIT) for turns in (1, 2)
    ]
    for plan in plans:
        found, _ = attention(replace(plan, place=plain))
        for seed in range(2):
            assert (attention(plan, seed)[0] == found).all()


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


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 4)])
@pytest.mark.parametrize("sizes", [(1, 2, 2, 16, 16, 8, 8), (2, 8, 4, 8, 33, 8, 4)])
@pytest.mark.parametrize("name", ["flash-attention-2", "flash-attention-3", "flat-attention"])
def test_bytes_moved_are_those_of_the_program(
    name: str, sizes: tuple[int, ...], grid: tuple[int, int]
) -> None:
    edge = Edge(*grid, 1, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles, kernel = replace(place(*grid), tile_bytes=6000, offchip=edge), KERNELS[name]
    for method in METHODS if "collective" in kernel.choices else [None]:
        plan = kernel.planned(sizes, tiles, Choices(method))
        assert moves(plan)
        assert plan.moved == moved_by(kernel.program(plan), tiles.timing.flit_bytes)


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


LATENT = AttentionShape(2, 6, 1, 1, 37, 12, 8, latent=True)


def latent_plans(place_: Place) -> list[FlatPlan | FlashPlan]:
    """Of each kernel, with blocks as large as fit and some that are smaller."""
    plans: list[FlatPlan | FlashPlan] = []
    for small in (2**20, 1500):
        tiles = replace(place_, tile_bytes=small)
        plans += [plan_flash(LATENT, tiles, turns, UNIT) for turns in (1, 2)]
        plans += [plan_decode(LATENT, tiles, method, UNIT) for method in METHODS]
        plans += [plan_flat(LATENT, tiles, "network", schedule, UNIT) for schedule in SCHEDULES]
    cut = Factor.of_exponent(UNIT)
    for turns, run_ in product((1, 2), (1, 2)):
        plans.append(
            FlashPlan(place_, LATENT, Block(3, 4, 12, 8), 2, -(-10 // run_), turns, cut, run_)
        )
    return plans


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("grid", [(1, 2), (2, 2), (2, 4)])
def test_values_are_taken_from_a_latent_cache(grid: tuple[int, int], memory: bool) -> None:
    edge = Edge(*grid, grid[1], 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
    tiles = replace(place(*grid), offchip=edge if memory else None)
    for plan in latent_plans(tiles):
        apart = replace(plan, shape=replace(LATENT, latent=False))
        wanted = [each.tolist() for each in run(apart, latent=True)]
        for seed in range(3):
            assert [each.tolist() for each in run(plan, seed, latent=True)] == wanted
        if memory:
            program = build(plan)
            assert plan.moved == moved_by(program, tiles.timing.flit_bytes)
            assert plan.moved.read < apart.moved.read
            assert plan.tile_bytes == program.tile_bytes


def test_own_tiles_load_the_values_of_a_latent_cache_apart() -> None:
    # Words of keys hold elements of several keys, words of values several of one.
    chip = load_chip("rtl-4x4").for_dtype("int8")
    tiles = chip_place(chip, (4, 4), noc_timing(chip), 8, 32)
    plan = plan_decode(LATENT, tiles)
    assert not plan.shared
    assert plan.moved == replace(plan, shape=replace(LATENT, latent=False)).moved


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((1, 4, 2, 1, 9, 8, 8), "found 2 heads of K and V, values of 8 elements in keys of 8"),
        ((1, 4, 1, 1, 9, 8, 9), "found 1 heads of K and V, values of 9 elements in keys of 8"),
    ],
)
def test_keys_that_hold_no_values(sizes: tuple[int, ...], text: str) -> None:
    with pytest.raises(InputError) as caught:
        AttentionShape(*sizes, latent=True)
    allowed = "allowed: one head, values no longer than keys"
    assert str(caught.value) == f"--latent: {text}; {allowed}"


def lt_errors(name: str, kernels: list[str], shapes: list[tuple[int, ...]], *, latent: bool) -> Any:
    """The closed forms' errors against `lt`, in per cent, with and without off-chip memory."""
    chip, found = load_chip(name).for_dtype("fp16"), []
    timing = noc_timing(chip)
    choices = Choices(latent=latent or None)
    for grid, kernel, memory in product([(4, 4), (3, 5), (8, 8)], kernels, [False, True]):
        tiles = chip_place(chip, grid, timing, 16, 16, memory=memory and name != "wse2")
        for sizes in shapes:
            plan = KERNELS[kernel].planned(sizes, tiles, choices)
            lt = run_lt(KERNELS[kernel].program(plan), timing, offchip=tiles.offchip).cycles
            found.append(100 * (KERNELS[kernel].closed_form(plan, timing) / lt - 1))
    return np.abs(found)


@pytest.mark.parametrize("name", ["flat32", "npusim-large", "npusim-small"])
def test_the_closed_form_on_a_latent_cache(name: str) -> None:
    kernels = ["decode-attention", "flash-attention-2", "flash-attention-3", "flat-attention"]
    errors = lt_errors(
        name, kernels, [(8, 128, 1, 1, 2048, 576, 512), (3, 16, 1, 1, 700, 144, 128)], latent=True
    )
    assert errors.mean() < 3
    assert errors.max() < 15


@pytest.mark.parametrize("name", ["flat32", "npusim-large", "npusim-small", "wse2"])
def test_the_closed_form_of_flat_attention(name: str) -> None:
    shapes = [(1, 4, 4, 160, 150, 32, 32), (2, 2, 2, 590, 340, 64, 64), (1, 8, 2, 1, 1400, 64, 64)]
    if name == "wse2":  # whose tiles have 48 KiB
        shapes = [(1, 4, 4, 36, 39, 8, 8), (1, 8, 2, 1, 176, 8, 8)]
    errors = lt_errors(name, ["flat-attention"], shapes, latent=False)
    multiplies = name.startswith("npusim")  # the vector engine, too
    assert errors.mean() < (3.5 if multiplies else 3)
    assert errors.max() < (14 if multiplies else 10)
