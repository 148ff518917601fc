"""Cannon's method on a mesh: compute-shift on natural rings, closed by a path across the line.

Source: L. E. Cannon, "A cellular computer to implement the Kalman filter algorithm", 1969; mapped
to a mesh as in WaferLLM, section 5.1.
"""

from tlm.program import Program
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.compute_shift import compute_shift, place_skewed
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings


def cannon(plan: GemmPlan, *, align: bool = True) -> Program:
    """Program of Cannon's method; see `compute_shift`."""
    return compute_shift(plan, Rings.natural(plan.rows, plan.cols), align=align)


def put(
    plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers, *, align: bool = True
) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    place_skewed(plan, Rings.natural(plan.rows, plan.cols), memory, a, b, align=align)
