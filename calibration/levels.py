"""Whole kernels at adjacent levels: what each level above `at` adds to the error below it.

The cases are small grids of the chip that is exactly the RTL, from bound by communication to bound
by computation. Where links and ports contend, `lt` differs from `at`; the closed forms differ from
`lt` where tiles do not all do the same.
"""

from collections.abc import Iterator

from calibration.store import save_levels
from tlm.calibrated import LevelPoint
from tlm.chips import load_chip
from tlm.chips.parts import matrix_engine, noc_timing
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.interconnect.handshake import HandshakeMesh
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm import plan_gemm

_SIDES = (3, 4, 8)
# (m, k, n) of a tile: cubes, from fills-the-array to hides-the-transfers, and one that does not.
_BLOCKS = ((8, 8, 8), (16, 16, 16), (32, 32, 32), (8, 32, 8))


def compare_levels() -> list[LevelPoint]:
    """Run every kernel on every case at all levels, and store the outcome."""
    points = list(_points())
    save_levels(points)
    return points


def _points() -> Iterator[LevelPoint]:
    for side in _SIDES:
        chip = load_chip(f"rtl-{side}x{side}")
        timing, engine = noc_timing(chip), matrix_engine(chip)
        for block in _BLOCKS:
            m, k, n = (side * size for size in block)
            plan = plan_gemm((m, n, k), (side, side), 1, timing.flit_bytes, engine)
            for name, kernel in KERNELS.items():
                program = kernel.program(plan)
                yield LevelPoint(
                    kernel=name,
                    case=f"{chip.name}: M={m} N={n} K={k}",
                    balance=plan.balance,
                    at=run_at(program, timing, HandshakeMesh(side, side, timing)).cycles,
                    lt=run_lt(program, timing).cycles,
                    perf=kernel.closed_form(plan, timing),
                )
