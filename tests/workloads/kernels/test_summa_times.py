"""SUMMA's closed form against `lt`, where panels meet at ports and links, and where not."""

from itertools import product

import numpy as np
import pytest

from tlm.engines.lt import run_lt
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.closed_form import summa_cycles
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.summa import summa
from workloads.kernels.gemm.summa_closed_form import Block, Flow, beside

OWN = NocTiming(1, 1, 4, 1, 8)
FOREIGN = NocTiming(1, 1, 2**30, 0, 64)
GRIDS = [(2, 2), (4, 4), (3, 5), (5, 3), (8, 8), (4, 8), (12, 12)]
FLITS = [(3, 4), (20, 20), (64, 30), (30, 64), (90, 110)]


def errors_at(timing: NocTiming, grid: tuple[int, int], balances: tuple[float, ...]) -> list[float]:
    """Percent, for products of so many cycles for each flit of their blocks."""
    errors = []
    for balance, flits in product(balances, FLITS):
        plan = GemmPlan(*grid, (1, 1, 1), round(balance * sum(flits)), *flits)
        lt = run_lt(summa(plan), timing).cycles
        errors.append(100 * abs(summa_cycles(plan, timing) / lt - 1))
    return errors


@pytest.mark.parametrize("grid", GRIDS)
def test_own_network(grid: tuple[int, int]) -> None:
    errors = errors_at(OWN, grid, (0.2, 0.7, 1.5, 3))
    assert np.mean(errors) < 5
    assert max(errors) < 13


@pytest.mark.parametrize(
    ("grid", "mean", "worst"), [((1, 4), 1, 7), ((4, 1), 1, 2), ((1, 9), 2, 8), ((9, 1), 2, 8)]
)
def test_a_line_of_tiles(grid: tuple[int, int], mean: float, worst: float) -> None:
    """Blocks that tiles send to themselves hold panels up."""
    errors = errors_at(OWN, grid, (0.2, 0.7, 1.5, 3))
    assert np.mean(errors) < mean
    assert max(errors) < worst


def test_a_packet_to_a_line_of_tiles_leaves_its_root_for_the_buffers_on_the_way() -> None:
    # The root's own block goes at once, while the packet waits for those of the other tiles.
    plan = GemmPlan(1, 13, (1, 1, 1), 71, 1, 70, receive_buffers=1)
    lt = run_lt(summa(plan), OWN).cycles
    assert summa_cycles(plan, OWN) == pytest.approx(lt, rel=0.01)


@pytest.mark.parametrize("grid", GRIDS)
def test_a_network_that_streams(grid: tuple[int, int]) -> None:
    errors = errors_at(FOREIGN, grid, (1, 1.5, 3))
    assert np.mean(errors) < 3.5
    assert max(errors) < 10


def test_panels_take_turns() -> None:
    block = Block.of(NocTiming(1, 1, 4, 0, 8), 40)
    zero = np.zeros(1)
    other = block.flow(zero)
    assert beside(block, zero, [], []).cycles == block.hold
    # Two on a link, and one that meets both at ports: that one has half of the turns.
    for same, others, flits in (([other], [], 80), ([], [other], 80), ([other], [other], 120)):
        assert beside(block, zero, same, others).cycles == pytest.approx(flits, abs=3)
    late = Flow(zero + 20, zero + block.hold, 40)
    assert beside(block, zero, [late], []).cycles == pytest.approx(60, abs=3)


@pytest.mark.parametrize(
    ("variant", "mean", "worst"),
    [((1, False), 2, 8), ((1, True), 1, 5), ((2, True), 6, 20)],
    ids=["one buffer", "one buffer, serial", "serial"],
)
@pytest.mark.parametrize("timing", [OWN, FOREIGN], ids=["own", "foreign"])
def test_one_buffer_and_panels_in_turn(
    timing: NocTiming, variant: tuple[int, bool], mean: float, worst: float
) -> None:
    errors = []
    for grid, flits, balance in product(GRIDS, FLITS, (1, 3)):
        cycles = round(balance * sum(flits))
        plan = GemmPlan(
            *grid, (1, 1, 1), cycles, *flits, receive_buffers=variant[0], serial=variant[1]
        )
        lt = run_lt(summa(plan), timing).cycles
        errors.append(100 * abs(summa_cycles(plan, timing) / lt - 1))
    assert np.mean(errors) < mean
    assert max(errors) < worst


def test_the_fewer_buffers_and_the_more_in_turn_the_longer() -> None:
    def cycles(buffers: int, serial: bool) -> int:
        plan = GemmPlan(16, 16, (1, 1, 1), 60, 9, 9, receive_buffers=buffers, serial=serial)
        return run_lt(summa(plan), FOREIGN).cycles

    assert cycles(2, False) < cycles(1, False) < cycles(1, True)
    assert cycles(2, True) < cycles(1, True)
