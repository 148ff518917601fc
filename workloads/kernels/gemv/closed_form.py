"""Products of a vector and a matrix as performance models."""

from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemv.plan import GemvPlan
from workloads.kernels.parts.closed_form import all_reduce_cycles, reduce_cycles
from workloads.kernels.parts.streams import (
    StreamedSum,
    streamed_all_reduce_cycles,
    streamed_reduce_cycles,
)


def gemv_cycles(plan: GemvPlan, timing: NocTiming) -> int:
    """Cycles of a product of a vector and a matrix with its (all-)reduction."""
    reduction = plan.reduction
    if isinstance(reduction, StreamedSum):
        form = streamed_reduce_cycles if plan.at_root else streamed_all_reduce_cycles
        return plan.product_cycles + form(reduction, timing)
    by_messages = reduce_cycles if plan.at_root else all_reduce_cycles
    return plan.product_cycles + by_messages(reduction, timing)


def ring_gemv_cycles(plan: GemvPlan, timing: NocTiming) -> int:
    """Cycles with a ring: each shift is a message; half of them end in an addition."""
    shifts = plan.rows - 1
    if not shifts:
        return plan.product_cycles
    # A part goes once around but for an edge of one hop.
    around = timing.hop_cycles * (2 * shifts - 1)
    message = arrival_cycles(timing, 0, plan.c_flits)
    return plan.product_cycles + shifts * (2 * message + plan.combine_cycles) + 2 * around
