"""Closed forms of compute-shift products whose A is aligned first, against `lt`."""

from dataclasses import replace

import pytest

from tests.tlm.programs import run_mesh
from tlm.engines.lt import run_lt
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm import aligned_shifts, closed_form
from workloads.kernels.gemm.aligned_shifts import steps_followed
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.closed_form import compute_shift_cycles
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings

#: Routers that hold a whole block, and the project's.
ROOMY, SMALL = NocTiming(1, 1, 64, 1, 8), NocTiming(1, 1, 4, 1, 8)
GRIDS = ((4, 4), (8, 8), (16, 16), (6, 4), (4, 6), (5, 3))
#: Cycles of a product, of the core for a lock step, and flits: the network's pace, or that of work.
COSTS = ((20, 0, 16, 8), (20, 0, 8, 16), (90, 0, 40, 40), (400, 0, 32, 16), (300, 150, 8, 8))


def plan_of(rows: int, cols: int, cost: tuple[int, int, int, int]) -> GemmPlan:
    step, align, a_flits, b_flits = cost
    return GemmPlan(rows, cols, (1, 1, 1), step, a_flits, b_flits, align_cycles=align)


@pytest.mark.parametrize("name", ["cannon", "mesh-gemm"])
@pytest.mark.parametrize("timing", [ROOMY, SMALL])
@pytest.mark.parametrize("grid", GRIDS)
def test_small_grids_take_the_cycles_of_lt(
    name: str, timing: NocTiming, grid: tuple[int, int]
) -> None:
    for cost in COSTS:
        plan = plan_of(*grid, cost)
        lt = run_lt(KERNELS[name].program(plan), timing).cycles
        assert KERNELS[name].closed_form(plan, timing) == lt, cost


@pytest.mark.parametrize("name", ["cannon", "mesh-gemm"])
@pytest.mark.parametrize("grid", [(2, 2), (6, 1)])
def test_few_tiles_take_the_cycles_of_at(name: str, grid: tuple[int, int]) -> None:
    """Level `lt` is up to 17 % early there: messages do not share links, but ports."""
    for cost in COSTS:
        plan = plan_of(*grid, cost)
        at = run_mesh(KERNELS[name].program(plan), SMALL).cycles
        assert KERNELS[name].closed_form(plan, SMALL) == at, cost


def test_some_steps_stand_for_those_behind_them_at_the_pace_of_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rings, plan = Rings.natural(16, 16), plan_of(16, 16, (400, 0, 32, 16))
    monkeypatch.setattr(aligned_shifts, "_MOST_WAYS", 18_000)
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


def test_nothing_is_followed_where_no_row_aligns_or_links_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def followed(*_: object) -> int:
        raise AssertionError

    monkeypatch.setattr(closed_form, "followed_cycles", followed)
    plan = plan_of(4, 4, (20, 0, 16, 8))
    compute_shift_cycles(replace(plan, skewed=True), Rings.natural(4, 4), ROOMY)
    compute_shift_cycles(plan_of(1, 4, (20, 0, 16, 8)), Rings.natural(1, 4), ROOMY)
    compute_shift_cycles(plan, Rings.natural(4, 4), replace(ROOMY, link_interval_cycles=2))
