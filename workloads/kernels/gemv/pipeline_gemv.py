"""GEMV with a pipelined all-reduction: partial sums are added tile by tile down a column.

The root is at the end of the column: P - 1 stages of one hop each, and P - 1 hops back by multicast
(WaferLLM, section 6.1: what Cerebras' own GEMV does). Where cores stream sums, a word passes a
stage while the next one comes.
"""

from dataclasses import replace

from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemv.plan import GemvPlan, plan_gemv, streamed
from workloads.kernels.parts.streams import whole_line
from workloads.machine.place import Place


def plan_pipeline_gemv(shape: Shape, place: Place) -> GemvPlan:
    """Plan the pipelined product of ``shape`` = (1, N, K).

    Raises:
        InputError: if the shape does not fit.
    """
    plan = plan_gemv(shape, place)
    if place.relay_cycles is not None:
        return streamed(plan, place, whole_line(plan.rows, plan.rows - 1))
    return replace(plan, method="chain", root=plan.rows - 1)
