"""MeshGEMM (WaferLLM, section 5): compute-shift on interleaved rings, two hops at most a shift."""

from tlm.program import Program
from workloads.kernels.compute_shift import compute_shift
from workloads.kernels.gemm import GemmPlan
from workloads.kernels.ring import Ring


def mesh_gemm(plan: GemmPlan, *, align: bool = True) -> Program:
    """Program of MeshGEMM; see `compute_shift`."""
    return compute_shift(plan, Ring.interleaved(plan.side), align=align)
