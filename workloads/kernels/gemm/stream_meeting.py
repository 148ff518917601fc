"""What the first blocks of a streaming product wait for where all of them lie in tiles."""

import numpy as np

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.stream_steps import Numbers, Steps


def met_flits(steps: Steps, timing: NocTiming) -> Numbers:
    """Flits that come through a tile's port until it has the first blocks of A and of B.

    Blocks of the second step are on their way as soon as those of the first one have left. A block
    that is one packet lets another pass as a whole; longer ones take turns at the port, and a
    packet finds some room where those of another wait for empty buffers.
    """
    cut, a, b = steps.cut, steps.a.flits, steps.b.flits
    again, turns = steps.count > 1, np.minimum(a, b)
    whole = np.maximum(a, b) <= timing.fifo_depth
    second = np.where(again & ~whole, np.minimum(turns, np.abs(a - b)), 0)
    met = a + b + second
    # Where one tile sends both, the second A is on its way before the first B.
    a_turns, b_turns = (turns * (2 - each.hold / each.flits) for each in (steps.a, steps.b))
    sent = steps.a.hold + a_turns + steps.b.hold + np.where(again, b_turns, 0)
    sent = np.where(whole, a + b + np.where(again, a, 0), sent)
    met = np.where(cut.both, np.maximum(met, sent), met)
    return met + np.where(whole, _behind_trees(steps), 0)


def _behind_trees(steps: Steps) -> Numbers:
    """Flits that come before, where trees lie between each other's tiles."""
    a, b, again = steps.a.flits, steps.b.flits, steps.count > 1
    # A block waits in a buffer behind one that waits at a port, which second blocks take first.
    longer = np.where(again, np.maximum(a, b), 0)
    ported = sum(
        np.where(tiles > 2, (each.trees - 1) * np.maximum(longer, each.flits), 0)
        for each, tiles in ((steps.a, steps.cut.n_cols), (steps.b, steps.cut.m_rows))
    )
    # Or behind one that goes over the same link, if that is what a tile sends last.
    linked = steps.cut.both & (steps.cut.m_rows <= 2)
    return ported + np.where(linked, (steps.b.trees - 1) * b, 0)
