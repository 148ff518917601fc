"""MeshGEMM (WaferLLM, section 5): compute-shift on interleaved rings, two hops at most a shift."""

from tlm.program import Program
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.compute_shift import compute_shift, place_skewed
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings


def mesh_gemm(plan: GemmPlan, *, align: bool = True) -> Program:
    """Program of MeshGEMM; see `compute_shift`."""
    return compute_shift(plan, Rings.interleaved(plan.rows, plan.cols), align=align)


def put(
    plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers, *, align: bool = True
) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    place_skewed(plan, Rings.interleaved(plan.rows, plan.cols), memory, a, b, align=align)
