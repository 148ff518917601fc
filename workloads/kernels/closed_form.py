"""Kernels as performance models: how long their programs take if every tile is alike.

With two buffers per matrix, a block product of step s + 2 needs the buffer that step s has left, so
two steps take at least a product, the credit's way to the source, and the block's way back. Steps
are also no shorter than a product, nor than the flits of a step through a tile's one port. Start
and end of the pipeline are taken at their latencies. The error of these forms against the
loosely-timed engine is measured (`calibration.levels`).
"""

import numpy as np

from tlm.engines.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm import GemmPlan
from workloads.kernels.ring import Ring


def compute_shift_cycles(plan: GemmPlan, ring: Ring, timing: NocTiming) -> int:
    """Cycles of MeshGEMM or Cannon's method on a ring, the alignment of A included."""
    side, longest = plan.side, ring.longest_hops
    there = plan.a_flits + arrival_cycles(timing, longest, plan.b_flits)
    round_trip = plan.step_cycles + credit_cycles(timing, longest) + there
    step = max(plan.step_cycles, plan.a_flits + plan.b_flits, round_trip / 2)
    align = side // 2 * _lock_step_cycles(plan, ring, timing)
    return round(align + (side - 1) * step + plan.step_cycles)


def summa_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of SUMMA: every step waits for the tile farthest from its root."""
    roots = np.arange(plan.side)
    farthest = np.maximum(roots, plan.side - 1 - roots)
    laws = [
        (credit_cycles(timing, hops), arrival_cycles(timing, hops, plan.b_flits, multicast=True))
        for hops in range(plan.side)
    ]
    credit, arrival = np.array(laws)[farthest].T
    there = plan.a_flits + arrival
    step = np.maximum((plan.step_cycles + credit + there) / 2, plan.a_flits + plan.b_flits)
    step = np.maximum(step, plan.step_cycles)
    return round(float(there[0] + step[1:].sum()) + plan.step_cycles)


def _lock_step_cycles(plan: GemmPlan, ring: Ring, timing: NocTiming) -> float:
    """An alignment step: a block passes on when it has come; two buffers hide half a round trip."""
    hops = np.abs(ring.neighbours(1) - np.arange(ring.size))
    pass_on = timing.hop_cycles * hops.mean() + arrival_cycles(timing, 0, plan.a_flits)
    longest = int(hops.max())
    round_trip = credit_cycles(timing, longest) + arrival_cycles(timing, longest, plan.a_flits)
    return max(float(pass_on), round_trip / 2)
