"""What holds of attention however it is cut, on tiles alone and in groups."""

from dataclasses import replace

import numpy as np
import pytest

from tests.workloads.kernels.attended import METHODS, UNIT, attended, attention, run
from tests.workloads.kernels.products import place
from tlm.errors import InputError
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_flash
from workloads.kernels.attention.flat_plan import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.catalogue import KERNELS, Choices, moves
from workloads.machine.moved import moved_by


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


def test_heads_share_keys_in_equal_numbers() -> None:
    with pytest.raises(InputError, match="found 5 heads of Q for 2 of K and V; allowed: a mul"):
        AttentionShape(1, 5, 2, 4, 7, 8, 8)


def test_sizes_are_told_as_they_were_typed() -> None:
    with pytest.raises(InputError) as caught:
        AttentionShape(1, 0, 2, 4, 7, 8, 8)
    assert str(caught.value) == "--shape: found 1,0,2,4,7,8,8; allowed: sizes of 1 or more"


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
