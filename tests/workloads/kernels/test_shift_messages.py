"""Closed forms of compute-shift products against levels `lt` and `at`."""

from dataclasses import replace
from itertools import product

import pytest

from tests.tlm.programs import run_mesh
from tlm.engines.lt import run_lt
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm import closed_form, shift_messages
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.closed_form import compute_shift_cycles
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.gemm.shift_messages import steps_followed

#: Routers that hold a whole block, and the project's.
ROOMY, SMALL = NocTiming(1, 1, 64, 1, 8), NocTiming(1, 1, 4, 1, 8)
#: Cycles of a product, of the core for a lock step, and flits: the network's pace, or that of work.
COSTS = ((20, 0, 16, 8), (20, 0, 8, 16), (90, 0, 40, 40), (400, 0, 32, 16), (300, 150, 8, 8))


def plan_of(
    rows: int, cols: int, cost: tuple[int, int, int, int], *, skewed: bool = False
) -> GemmPlan:
    step, align, *flits = cost
    return GemmPlan(rows, cols, (1, 1, 1), step, *flits, align_cycles=align, skewed=skewed)


@pytest.mark.parametrize("name", ["cannon", "mesh-gemm"])
@pytest.mark.parametrize("timing", [ROOMY, SMALL])
@pytest.mark.parametrize("grid", [(2, 2), (4, 4), (8, 8), (6, 1)])
def test_small_grids_take_the_cycles_of_at(
    name: str, timing: NocTiming, grid: tuple[int, int]
) -> None:
    for cost, skewed in product(COSTS, (False, True)):
        plan = plan_of(*grid, cost, skewed=skewed)
        at = run_mesh(KERNELS[name].program(plan), timing).cycles
        assert KERNELS[name].closed_form(plan, timing) == at, (cost, skewed)


@pytest.mark.parametrize("name", ["cannon", "mesh-gemm"])
@pytest.mark.parametrize("timing", [ROOMY, SMALL])
@pytest.mark.parametrize("grid", [(16, 16), (24, 24), (6, 4), (4, 6), (5, 3)])
def test_others_take_those_of_lt(name: str, timing: NocTiming, grid: tuple[int, int]) -> None:
    for cost in COSTS:
        plan = plan_of(*grid, cost)
        lt = run_lt(KERNELS[name].program(plan), timing).cycles
        assert KERNELS[name].closed_form(plan, timing) == lt, cost


def test_some_steps_stand_for_those_behind_them_at_the_pace_of_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rings, plan = Rings.natural(16, 16), plan_of(16, 16, (400, 0, 32, 16))
    monkeypatch.setattr(shift_messages, "_MOST_WAYS", 18_000)
    assert steps_followed(plan, rings, catch_up=False) == 10
    assert compute_shift_cycles(plan, rings, ROOMY) == run_lt(cannon(plan), ROOMY).cycles
    assert steps_followed(plan, rings, catch_up=True) == 0  # those who are late make up for it


def test_large_grids_have_the_pace_of_lock_steps_and_no_waits() -> None:
    rings, plan = Rings.natural(48, 48), plan_of(48, 48, (20, 0, 16, 8))
    assert steps_followed(plan, rings, catch_up=True) == 0
    assert steps_followed(plan, rings, catch_up=False) == 13
    large = plan_of(64, 64, (400, 0, 16, 8))
    assert steps_followed(large, Rings.natural(64, 64), catch_up=False) == 0
    lt = run_lt(cannon(plan), ROOMY).cycles
    assert 0.92 * lt < compute_shift_cycles(plan, rings, ROOMY) < lt


def test_nothing_is_followed_where_no_message_waits_or_links_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def followed(*_: object) -> int:
        raise AssertionError

    monkeypatch.setattr(closed_form, "followed_cycles", followed)
    at_pace_of_products = 400, 0, 32, 16
    for rows, skewed in ((4, True), (1, False)):
        plan = plan_of(rows, 4, at_pace_of_products, skewed=skewed)
        assert compute_shift_cycles(plan, Rings.natural(rows, 4), ROOMY) == 4 * 400
    plan, slow = plan_of(4, 4, COSTS[0]), replace(ROOMY, link_interval_cycles=2)
    compute_shift_cycles(plan, Rings.natural(4, 4), slow)
    assert compute_shift_cycles(plan_of(1, 1, COSTS[0]), Rings.natural(1, 1), ROOMY) == 20
