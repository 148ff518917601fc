"""Attention on a latent cache: values are the first elements of the keys."""

from dataclasses import replace
from itertools import product

import pytest

from tests.workloads.kernels.attended import METHODS, UNIT, build, lt_errors, run
from tests.workloads.kernels.products import place
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.errors import InputError
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_decode, plan_flash
from workloads.kernels.attention.flat_plan import SCHEDULES, FlatPlan
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.parts.passes import Factor
from workloads.machine.moved import moved_by
from workloads.machine.place import Place, chip_place

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
        for seed in range(2):
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


@pytest.mark.parametrize("name", ["flat32", "npusim-large", "npusim-small"])
def test_the_closed_form_on_a_latent_cache(name: str) -> None:
    kernels = ["decode-attention", "flash-attention-2", "flash-attention-3", "flat-attention"]
    errors = lt_errors(
        name, kernels, [(8, 128, 1, 1, 2048, 576, 512), (3, 16, 1, 1, 700, 144, 128)], latent=True
    )
    assert errors.mean() < 3
    assert errors.max() < 15
