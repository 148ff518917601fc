"""Kernels as performance models: how long their programs take if every tile is alike.

With two buffers per matrix, a block product of step s + 2 needs the buffer that step s has left, so
two steps take at least a product, the credit's way to the source, and the block's way back. Steps
are also no shorter than a product, nor than the flits of a step through a tile's one port. Start
and end of the pipeline are taken at their latencies. The error of these forms against the
loosely-timed engine is measured (`calibration.levels`).
"""

import math

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.allgather_on_a_line import gathered_on_a_line_cycles
from workloads.kernels.gemm.compute_shift import alignment
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.relayed_sums import relayed_gemm_t_cycles
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.gemm.shift_messages import followed_cycles, steps_followed
from workloads.kernels.gemm.summa_closed_form import multicast_summa_cycles
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import broadcast_cycles
from workloads.kernels.parts.shared_links import follows

_TOGETHER = 4
"""Lines whose second blocks in an all-gather go at the same times (measured at lt)."""


def compute_shift_cycles(plan: GemmPlan, rings: Rings, timing: NocTiming) -> int:
    """Cycles of MeshGEMM or Cannon's method, with the alignment of A if it needs it.

    A panel comes back to a buffer as many steps later as a tile has buffers for its matrix. On
    small grids messages are followed if they set the pace, or those of an alignment are among them.
    """
    held_a, held_b = plan.held
    across, down = rings.across.longest_hops, rings.down.longest_hops
    a_way = credit_cycles(timing, across) + arrival_cycles(timing, across, plan.a_flits)
    b_way = credit_cycles(timing, down) + arrival_cycles(timing, down, plan.b_flits) + plan.a_flits
    round_trips = (
        (plan.step_cycles + a_way) / (held_a + 1),
        (plan.step_cycles + b_way) / (held_b + 1),
    )
    step = max(plan.step_cycles, plan.a_flits + plan.b_flits, *round_trips)
    begins, followed = float(plan.step_cycles), 1
    if not plan.skewed:
        lock_steps = int(alignment(plan, rings).steps.max())
        begins += lock_steps * _lock_step_cycles(plan, rings, timing)
    steps = steps_followed(plan, rings, catch_up=step > plan.step_cycles)
    if follows(timing) and steps:
        begins, followed = followed_cycles(plan, rings, timing, steps), steps
    return round(begins + (plan.panels - followed) * step)


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
    total, both = 0.0, sum if plan.method == "tree" or plan.serial else max
    for step in range(plan.panels):
        roots = step * plan.cols // plan.panels, step * plan.rows // plan.panels
        a = broadcast_cycles(timing, plan.method, plan.cols, roots[0], plan.a_flits)
        b = broadcast_cycles(timing, plan.method, plan.rows, roots[1], plan.b_flits)
        far = max(roots[0], plan.cols - 1 - roots[0], roots[1], plan.rows - 1 - roots[1])
        again = plan.step_cycles + credit_cycles(timing, far) + both((a, b))
        pace = max(plan.step_cycles, again / plan.receive_buffers)
        total += a + b if step == 0 else pace
    return round(total) + plan.step_cycles


def allgather_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of the all-gather product: what a port has to take, and then the products.

    All tiles send at once, and each link takes the blocks of the tile before it first. So blocks
    come to the corner opposite the first panel's roots in the reverse of the order in which they
    are multiplied: it begins when all have come. (A tile with several panels sends them in turn
    with those that pass, and the corner begins somewhat before.) Blocks of several packets wait
    longer. On a line of tiles messages of one panel pass those of others.
    """
    port = plan.panels * (plan.a_flits + plan.b_flits) + arrival_cycles(timing, 0, 0)
    if min(plan.rows, plan.cols) == 1:
        if plan.panels > 1 and plan.method not in BY_MESSAGES:
            return gathered_on_a_line_cycles(plan, timing)
        far = max(plan.rows, plan.cols) - 1
        first = plan.a_flits + arrival_cycles(timing, far, plan.b_flits, multicast=far > 0)
        return max(first + plan.panels * plan.step_cycles, port + plan.step_cycles)
    if plan.method in BY_MESSAGES or max(plan.a_flits, plan.b_flits) <= timing.fifo_depth:
        return port + plan.panels * plan.step_cycles
    return round(_in_turns_cycles(plan, port))


def _in_turns_cycles(plan: GemmPlan, port: int) -> float:
    """The same of multicasts of several packets; ``port`` cycles bring all flits through a port.

    A multicast is as fast as the slowest port on its way, where those of A and of B take turns. So
    the longer blocks come at half the pace of a port, whatever is left of the shorter ones of their
    own line, while a shorter one is on any line across. Each line has one for the part short/long
    of the time. Lines do by chance, but for the first few, which have theirs at the same times.

    A tile sends its block of one matrix behind that of the other. Many have sent the longer one
    only when all of these have come; then the rest of the shorter ones comes, to tiles that have
    long begun. Nearer ones come first. So the panels with the lowest numbers are the last, but for
    those that came while few tiles had sent.
    """
    short, long = sorted((plan.a_flits, plan.b_flits))
    across = plan.cols if plan.a_flits > plan.b_flits else plan.rows
    idle = (1 - short / long) ** max(across - _TOGETHER, 0)
    first = port + (1 - idle) * plan.panels * (long - short)
    second = first + (1 - idle) * plan.panels * short
    products = max(1, plan.panels - _early_panels(plan.panels, short / long))
    return max(first + plan.panels * plan.step_cycles, second + products * plan.step_cycles)


def _early_panels(panels: int, ratio: float) -> float:
    """Panels whose blocks come to the end of a line although more and more tiles send beside it.

    Each tile nearer to the end that sends halves what is left of a line for those behind it. As
    many begin to send as end if blocks of A and B are as long (``ratio`` 1); else one more begins
    for each 1 / (1 - ``ratio``) that end.
    """
    share = 2 ** (ratio - 1)
    blocks = panels if share == 1 else (1 - share**panels) / (1 - share)
    return 1 + math.log2(blocks)


def mesh_gemm_t_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of transposed MeshGEMM: moves of B, and at the end the last sum of a row."""
    if plan.relayed is not None:
        return relayed_gemm_t_cycles(plan, plan.relayed, timing)
    if plan.relay_cycles is not None:
        return _streamed_gemm_t_cycles(plan, plan.relay_cycles, timing)
    side, longest = plan.side, min(2, plan.side - 1)
    # Packets of an operand follow each other with gaps.
    sums = timing.reduction_cycles(longest, plan.c_flits) - timing.reduction_cycles(longest, 1) + 1
    round_trip = credit_cycles(timing, longest) + arrival_cycles(timing, longest, plan.b_flits)
    step = max(plan.step_cycles, plan.b_flits + sums, (plan.step_cycles + round_trip) / 2)
    last = timing.launch_cycles + timing.reduction_cycles(side - 1, plan.c_flits) + 1
    return round((side - 1) * step + plan.step_cycles + last)


def _streamed_gemm_t_cycles(plan: GemmPlan, relay_cycles: int, timing: NocTiming) -> int:
    """The same where cores stream the sums.

    The last sum passes all stages of a row. Before it those of the steps follow each other. But of
    rows whose roots lie far apart the streams run against each other, and moves of B tie such rows
    together: by three stages a step, as far as tiles are not ahead by two steps (measured at lt).
    """
    side, flits = plan.side, plan.c_flits
    stage = arrival_cycles(timing, 1, 1) + relay_cycles
    step = max(plan.step_cycles, plan.b_flits + 2 * flits)
    behind = stage * (side - 1) + flits - 1
    against = stage * (3 * side - 5) - 2 * step + 3 * (flits - 1)
    return side * step + max(behind, against)


def _lock_step_cycles(plan: GemmPlan, rings: Rings, timing: NocTiming) -> float:
    """A panel passes on when it has come; buffers hide a part of a round trip."""
    ring, held, own = rings.across, plan.held[0], plan.align_cycles
    longest = ring.longest_hops
    pass_on = timing.hop_cycles * ring.mean_hops + arrival_cycles(timing, 0, plan.a_flits) + own
    way = credit_cycles(timing, longest) + arrival_cycles(timing, longest, plan.a_flits)
    return max(pass_on / held, (way + own) / (held + 1), own, plan.a_flits)
