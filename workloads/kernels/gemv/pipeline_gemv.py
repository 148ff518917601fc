"""GEMV with a pipelined all-reduction: partial sums are added tile by tile down a column.

The root is at the end of the column: P - 1 stages of one hop each, and P - 1 hops back by multicast
(WaferLLM, section 6.1: what Cerebras' own GEMV does).
"""

from dataclasses import replace

from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemv.plan import GemvPlan, plan_gemv
from workloads.machine.place import Place


def plan_pipeline_gemv(shape: Shape, place: Place) -> GemvPlan:
    """Plan the pipelined product of ``shape`` = (1, N, K).

    Raises:
        InputError: if the shape does not fit.
    """
    plan = plan_gemv(shape, place)
    return replace(plan, method="chain", root=plan.rows - 1)
