"""Passes over rows as performance models."""

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.closed_form import all_reduce_cycles
from workloads.kernels.vector.softmax import SoftmaxPlan, reductions


def softmax_cycles(plan: SoftmaxPlan, timing: NocTiming) -> int:
    """Cycles of a softmax: the passes, and between them the two all-reductions."""
    both = reductions(plan.place, plan.method, plan.column_flits, plan.block[0])
    return plan.tile_vector_cycles + sum(all_reduce_cycles(each, timing) for each in both)
