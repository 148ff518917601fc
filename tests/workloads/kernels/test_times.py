"""How long the kernels take: closed forms, a slow tile, and `at` against `lt`."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

from tests.tlm.programs import run_mesh
from tests.workloads.kernels.products import place
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Operation, Program, Work
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemm.allgather_gemm import allgather_gemm
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.closed_form import allgather_cycles
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.summa import summa

TIMING = NocTiming(1, 1, 4, 1, 8)
Kernel = Callable[[GemmPlan], Program]

# Both are skewed by the host: the compute-shift loop alone.
mesh_gemm_loop = partial(mesh_gemm, align=False)
cannon_loop = partial(cannon, align=False)


def plan_of(side: int, step_cycles: int, flits: int) -> GemmPlan:
    return GemmPlan(side, side, (1, 1, 1), step_cycles, flits, flits)


def cycles_at_both(kernel: Kernel, plan: GemmPlan) -> tuple[int, int]:
    program = kernel(plan)
    mesh = HandshakeMesh(plan.side, plan.side, TIMING)
    return run_lt(program, TIMING).cycles, run_at(program, TIMING, mesh).cycles


def with_slow_tile(program: Program, tile: tuple[int, int], cycles: int) -> Program:
    def build() -> Iterator[Operation]:
        for operation in program.operations():
            if isinstance(operation, Work) and operation.engine is Engine.MATRIX:
                own = np.full((program.rows, program.cols), operation.cycles)
                own[tile] = cycles
                yield replace(operation, cycles=own)
            else:
                yield operation

    return replace(program, build=build)


# Closed forms


@pytest.mark.parametrize("side", [1, 2, 3, 8, 31, 64])
@pytest.mark.parametrize("flits", [1, 4, 16])
def test_a_loop_that_hides_its_communication_takes_its_products(side: int, flits: int) -> None:
    for kernel, hops in ((mesh_gemm_loop, 2), (cannon_loop, side - 1)):
        # Both blocks of a step come while the one before is worked on, credits included.
        hidden = credit_cycles(TIMING, hops) + flits + arrival_cycles(TIMING, hops, flits)
        plan = plan_of(side, hidden, flits)
        assert run_lt(kernel(plan), TIMING).cycles == side * hidden


@pytest.mark.parametrize("side", [3, 8, 31, 64])
def test_products_of_no_cycles_leave_the_flits_of_a_step(side: int) -> None:
    # Long blocks: the interface is never idle, and the last block travels at most two hops.
    last = arrival_cycles(TIMING, 2, 0)
    for flits in (16, 40):
        cycles = run_lt(mesh_gemm_loop(plan_of(side, 0, flits)), TIMING).cycles
        assert (side - 1) * 2 * flits < cycles <= (side - 1) * 2 * flits + last


@pytest.mark.parametrize("side", [2, 8])
@pytest.mark.parametrize("flits", [1, 4, 32])
def test_summa_starts_with_two_turns_at_the_ports(side: int, flits: int) -> None:
    # Blocks of one packet. Those of A and B come to the tiles together, and what the corner sends
    # second goes as far as what it sends first.
    step = 50 + 2 * side + 4 * flits
    wide = replace(TIMING, fifo_depth=64)
    program = summa(plan_of(side, step, flits))
    lt = run_lt(program, wide).cycles
    least = flits + arrival_cycles(wide, side - 1, flits, multicast=True) + side * step
    assert least < lt <= least + 2 * flits
    assert lt == run_at(program, wide, HandshakeMesh(side, side, wide)).cycles


@pytest.mark.parametrize("name", ["mesh-gemm", "cannon"])
@pytest.mark.parametrize("grid", [(1, 4), (2, 3), (4, 6), (6, 4), (9, 6), (7, 3)])
def test_closed_form_on_grids_that_are_not_square(name: str, grid: tuple[int, int]) -> None:
    kernel, tiles = KERNELS[name], place(*grid)
    for choices in (Choices(), Choices(skewed=True)):
        for sizes in ((40, 40, 40), (100, 90, 200)):
            plan = kernel.planned(sizes, tiles, choices)
            lt = run_lt(kernel.program(plan), tiles.timing).cycles
            assert kernel.closed_form(plan, tiles.timing) == pytest.approx(lt, rel=0.03)


def test_distance_orders_the_kernels() -> None:
    # Short products on a long line: what counts is how far a step's blocks and credits travel.
    plan = plan_of(64, 20, 2)
    mesh, far, multicast = (
        run_lt(kernel(plan), TIMING).cycles for kernel in (mesh_gemm_loop, cannon_loop, summa)
    )
    assert mesh == 64 * 20
    assert multicast > 2 * mesh
    assert far > multicast


@pytest.mark.parametrize("kernel", [mesh_gemm_loop, cannon_loop])
@pytest.mark.parametrize("side", [2, 5, 8, 31])
def test_one_slow_tile_sets_the_pace_of_all(kernel: Kernel, side: int) -> None:
    slow = 1000
    for tile in ((0, 0), (side // 2, side // 3), (side - 1, side - 1)):
        program = with_slow_tile(kernel(plan_of(side, 60, 4)), tile, slow)
        outcome = run_lt(program, TIMING)
        assert outcome.cycles == side * slow
        assert outcome.last_tile == tile
        # Its neighbours cannot run ahead: blocks wait until it has a free buffer.
        feeds = outcome.engine_end_cycle[Engine.TRANSFER][tile[0]].max()
        assert feeds > (side - 2) * slow


# Levels


@pytest.mark.parametrize("side", range(1, 9))
def test_levels_agree_on_the_loop_of_mesh_gemm(side: int) -> None:
    for step_cycles, flits in ((1, 1), (1, 32), (20, 2), (20, 32), (60, 16)):
        lt, at = cycles_at_both(mesh_gemm_loop, plan_of(side, step_cycles, flits))
        assert lt == at, (step_cycles, flits)


@pytest.mark.parametrize("side", [4, 7, 8])
def test_levels_agree_on_mesh_gemm_that_hides_its_communication(side: int) -> None:
    for flits in (1, 8, 32):
        lt, at = cycles_at_both(mesh_gemm, plan_of(side, 200, flits))
        assert lt == at, flits


@pytest.mark.parametrize("side", [3, 8])
def test_the_far_corner_of_an_all_gather_begins_when_all_has_come(side: int) -> None:
    # The first panel comes last there, behind those of all tiles on its way.
    plan = plan_of(side, 200, 8)
    program, mesh = allgather_gemm(plan), HandshakeMesh(side, side, TIMING)
    for outcome in (run_lt(program, TIMING), run_at(program, TIMING, mesh)):
        come = int(outcome.last_arrival_cycle[-1, -1])
        assert outcome.finish_cycle[-1, -1] == come + side * 200
        assert outcome.cycles - come - side * 200 < 0.05 * come  # its neighbours are as late
        assert side * 16 < come < 1.1 * side * 16
        assert outcome.cycles - outcome.finish_cycle[0, 0] > 0.7 * (side - 1) * 16


@pytest.mark.parametrize(
    "rows, cols, most_pct",
    [
        *((1, 1, 0), (1, 6, 0), (6, 1, 0), (2, 2, 2), (5, 5, 4), (16, 16, 6), (4, 8, 4), (8, 4, 4)),
        (3, 4, 13),  # tiles of several panels: the first is not quite the last to come
    ],
)
@pytest.mark.parametrize(("step_cycles", "flits"), [(200, 8), (50, 8), (20, 4)])
def test_all_gather_against_lt(
    rows: int, cols: int, step_cycles: int, flits: int, most_pct: float
) -> None:
    plan = GemmPlan(rows, cols, (1, 1, 1), step_cycles, flits, flits)
    lt = run_lt(allgather_gemm(plan), TIMING).cycles
    assert abs(allgather_cycles(plan, TIMING) - lt) <= most_pct / 100 * lt + 1


def test_longer_blocks_of_an_all_gather_take_turns_with_all_shorter_ones() -> None:
    # They come at half the pace of a port, and then the rest of the shorter ones.
    errors = []
    for side, (long, short) in product((4, 8, 16), ((78, 39), (60, 50), (24, 16), (70, 14))):
        for a, b in ((long, short), (short, long)):
            for step in (a + b, 3 * (a + b)):
                plan = GemmPlan(side, side, (1, 1, 1), step, a, b)
                lt = run_lt(allgather_gemm(plan), TIMING).cycles
                errors.append(100 * (allgather_cycles(plan, TIMING) / lt - 1))
    assert np.abs(errors).mean() < 3
    assert np.abs(errors).max() < 10


def test_messages_of_an_all_gather_wait_for_links_that_the_closed_form_does_not_know() -> None:
    # It has what comes through a port: the least that they take.
    plan = GemmPlan(8, 8, (1, 1, 1), 100, 32, 16, method="sequential")
    lt = run_lt(allgather_gemm(plan), TIMING).cycles
    assert lt == run_mesh(allgather_gemm(plan), TIMING).cycles == 1720
    assert allgather_cycles(plan, TIMING) == 1185


# Elsewhere flits wait on links and at ejection ports, at both levels: of sends, where those share
# links. Percent by which `lt` is early (-) or late, as measured: what lt leaves out is known, and a
# change of either level shows.
@pytest.mark.parametrize(
    ("kernel", "side", "step_cycles", "flits", "low_pct", "high_pct"),
    [
        (cannon_loop, 8, 20, 8, 0, 0),
        (cannon_loop, 8, 20, 32, 0, 0),
        (cannon_loop, 8, 1, 8, -4, -1),
        (cannon, 8, 200, 32, 0, 0),
        (cannon, 8, 20, 8, 0, 0),
        (cannon, 8, 20, 32, 0, 0),
        (mesh_gemm, 3, 20, 16, 0, 0),
        (mesh_gemm, 8, 20, 8, 0, 0),
        (mesh_gemm, 8, 20, 32, 0, 0),
        (summa, 2, 200, 1, 0, 0),
        (summa, 3, 1, 32, -8, -4),
        (summa, 8, 200, 32, -2, 0),
        (summa, 8, 20, 1, 0, 0),
        (summa, 8, 20, 8, 1, 3),
        (summa, 8, 1, 32, -8, -4),
        (allgather_gemm, 3, 200, 32, 0, 0),
        (allgather_gemm, 8, 20, 8, -1, 0),
        (allgather_gemm, 8, 1, 32, -4, -1),
    ],
)
def test_what_contention_costs_beyond_lt(
    kernel: Kernel, side: int, step_cycles: int, flits: int, low_pct: float, high_pct: float
) -> None:
    lt, at = cycles_at_both(kernel, plan_of(side, step_cycles, flits))
    assert low_pct <= 100 * (lt - at) / at <= high_pct


# Panels sent by messages


@pytest.mark.parametrize("kernel", ["summa", "allgather-gemm"])
@pytest.mark.parametrize("method", ["tree", "sequential"])
@pytest.mark.parametrize(
    ("side", "step_cycles", "flits"), [(4, 900, 16), (8, 900, 16), (16, 900, 9)]
)
def test_messages_in_place_of_multicasts_are_priced(
    kernel: str, method: str, side: int, step_cycles: int, flits: int
) -> None:
    found = KERNELS[kernel]
    by_messages = replace(plan_of(side, step_cycles, flits), method=method)
    cycles = run_lt(found.program(by_messages), TIMING).cycles
    assert abs(found.closed_form(by_messages, TIMING) - cycles) <= 0.1 * cycles


# Size

_WAFER = """
import json, resource, time
from dataclasses import replace
import numpy as np
from tlm.engines.lt import run_lt
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Work
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.mesh_gemm import mesh_gemm

timing = NocTiming(1, 1, 2**30, 0, 4)
run_lt(mesh_gemm(GemmPlan(4, 4, (1, 1, 1), 1, 1, 1)), timing)  # compile

def jittered(program):
    noise = np.random.default_rng(1).integers(0, 100, (program.rows, program.cols))
    for step, operation in enumerate(program.build()):
        if isinstance(operation, Work) and operation.label == "C":
            operation = replace(operation, cycles=operation.cycles + np.roll(noise, step))
        yield operation

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

program = mesh_gemm(GemmPlan(720, 720, (6, 6, 6), 645, 18, 18))
program = replace(program, build=lambda program=program: jittered(program))
before, start = peak(), time.process_time()
outcome = run_lt(program, timing)
print(json.dumps({
    "cpu_s": time.process_time() - start,
    "extra_bytes": peak() - before,
    "extra_cycles": outcome.cycles - 720 * 645,
}))
"""


@pytest.mark.slow
def test_a_wafer_fits_into_seconds_and_half_a_gigabyte() -> None:
    ran = subprocess.run([sys.executable, "-c", _WAFER], capture_output=True, text=True, check=True)
    seen = json.loads(ran.stdout)
    print(f"jittered MeshGEMM on 720x720 at lt: {seen}")
    assert seen["extra_bytes"] < 0.5 * 2**30
    assert seen["cpu_s"] < 60
    # A step takes the mean jitter more at least, its maximum at most; then there is the alignment.
    assert 720 * 49.5 < seen["extra_cycles"] < 720 * 99 + 360 * 40
