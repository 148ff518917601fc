"""Kernels as performance models: how long their programs take if every tile is alike.

With two buffers per matrix, a block product of step s + 2 needs the buffer that step s has left, so
two steps take at least a product, the credit's way to the source, and the block's way back. Steps
are also no shorter than a product, nor than the flits of a step through a tile's one port. Start
and end of the pipeline are taken at their latencies. The error of these forms against the
loosely-timed engine is measured (`calibration.levels`).
"""

import numpy as np

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.gemm.summa_closed_form import multicast_summa_cycles
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import broadcast_cycles


def compute_shift_cycles(plan: GemmPlan, ring: Ring, timing: NocTiming) -> int:
    """Cycles of MeshGEMM or Cannon's method on a ring, the alignment of A included."""
    side, longest = plan.side, ring.longest_hops
    there = plan.a_flits + arrival_cycles(timing, longest, plan.b_flits)
    round_trip = plan.step_cycles + credit_cycles(timing, longest) + there
    step = max(plan.step_cycles, plan.a_flits + plan.b_flits, round_trip / 2)
    align = side // 2 * _lock_step_cycles(plan, ring, timing)
    return round(align + (side - 1) * step + plan.step_cycles)


def summa_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of SUMMA by multicasts or by messages."""
    if plan.method in BY_MESSAGES:
        return _summa_by_messages_cycles(plan, timing)
    return multicast_summa_cycles(plan, timing)


def _summa_by_messages_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles where panels are sent by messages.

    By a tree a tile hands on those of B behind those of A. In turn only one tile has both to send,
    in each step another one, and the others make up for its delay.
    """
    total, both = 0.0, sum if plan.method == "tree" else max
    for step in range(plan.panels):
        roots = step * plan.cols // plan.panels, step * plan.rows // plan.panels
        a = broadcast_cycles(timing, plan.method, plan.cols, roots[0], plan.a_flits)
        b = broadcast_cycles(timing, plan.method, plan.rows, roots[1], plan.b_flits)
        far = max(roots[0], plan.cols - 1 - roots[0], roots[1], plan.rows - 1 - roots[1])
        again = plan.step_cycles + credit_cycles(timing, far) + both((a, b))
        total += a + b if step == 0 else max(plan.step_cycles, again / 2)
    return round(total) + plan.step_cycles


def allgather_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of the all-gather product: what a port has to take, and then the products.

    All tiles send at once, and each link takes the blocks of the tile before it first. So blocks
    come to the corner opposite the first panel's roots in the reverse of the order in which they
    are multiplied: it begins when all have come. (A tile with several panels sends them in turn
    with those that pass, and the corner begins somewhat before.) On a line of tiles every one
    begins with blocks of its own, and nothing is in the first panel's way.
    """
    if min(plan.rows, plan.cols) == 1:
        far = max(plan.rows, plan.cols) - 1
        first = plan.a_flits + arrival_cycles(timing, far, plan.b_flits, multicast=far > 0)
        come = plan.panels * (plan.a_flits + plan.b_flits) + arrival_cycles(timing, 0, 0)
        return max(first + plan.panels * plan.step_cycles, come + plan.step_cycles)
    come = plan.panels * (plan.a_flits + plan.b_flits) + arrival_cycles(timing, 0, 0)
    return come + plan.panels * plan.step_cycles


def mesh_gemm_t_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of transposed MeshGEMM: moves of B, and at the end the last sum of a row."""
    side, longest = plan.side, min(2, plan.side - 1)
    # Packets of an operand follow each other with gaps.
    sums = timing.reduction_cycles(longest, plan.c_flits) - timing.reduction_cycles(longest, 1) + 1
    round_trip = credit_cycles(timing, longest) + arrival_cycles(timing, longest, plan.b_flits)
    step = max(plan.step_cycles, plan.b_flits + sums, (plan.step_cycles + round_trip) / 2)
    last = timing.launch_cycles + timing.reduction_cycles(side - 1, plan.c_flits) + 1
    return round((side - 1) * step + plan.step_cycles + last)


def _lock_step_cycles(plan: GemmPlan, ring: Ring, timing: NocTiming) -> float:
    """An alignment step: a block passes on when it has come; two buffers hide half a round trip."""
    hops = np.abs(ring.neighbours(1) - np.arange(ring.size))
    pass_on = timing.hop_cycles * hops.mean() + arrival_cycles(timing, 0, plan.a_flits)
    longest = int(hops.max())
    round_trip = credit_cycles(timing, longest) + arrival_cycles(timing, longest, plan.a_flits)
    return max(float(pass_on), round_trip / 2)
