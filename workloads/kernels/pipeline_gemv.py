"""GEMV with a pipelined all-reduction: partial sums are added tile by tile down a column.

The root is at the end of the column: P - 1 stages of one hop each, and P - 1 hops back by multicast
(WaferLLM, section 6.1: what Cerebras' own GEMV does).
"""

from tlm.program import Program
from workloads.kernels.gemv import GemvPlan, gemv


def pipeline_gemv(plan: GemvPlan) -> Program:
    """Program of the pipelined product."""
    return gemv(plan, "chain", plan.rows - 1)
