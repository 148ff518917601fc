"""A streaming product whose blocks share a column's links all the way, results among them.

So they do where each column has a channel that fills its link both ways (`Edge.fills_links`), and
tiles of a column share blocks of B.
"""

import numpy as np

from workloads.kernels.gemm.stream_channels import Channel
from workloads.kernels.gemm.stream_steps import Numbers, Steps


def column_cycles(steps: Steps, channel: Channel) -> Numbers:
    """For which a step's blocks come up a column.

    A block of B comes twice: to its sender, and from there to the tiles above. What is loaded for
    these waits in the same buffers, and what is loaded next waits behind it.
    """
    return np.where(steps.b.shared, channel.loads + steps.b.trees * steps.b.flits, 0)


def turns_cycles(
    steps: Steps, channel: Channel, pace: Numbers, left: Numbers, summed: Numbers
) -> Numbers:
    """From the first product to the last one, if tiles wait to store their results.

    Such a tile sends no operands, nor asks for any. Only what the pace leaves beside blocks of B
    makes up for that. Partial blocks are summed first, and so stored a step later.

    Args:
        steps: The steps.
        channel: The busiest channel.
        pace: From step to step where none waits.
        left: Cycles for which partial blocks hold up what their tiles send next.
        summed: Cycles until they are summed.
    """
    cut, depth = steps.cut, steps.depth
    # Rows of tiles store in turn, each in a step of a pass, and have what is spare from there: half
    # of it on average.
    to_come = np.where(cut.k_cols > 1, 1, (depth + 1) / 2)
    spare = to_come * np.maximum(0, pace - _met_cycles(steps))
    waits = np.maximum(0, channel.posted + left - spare)
    # With K cut along rows, columns do, all tiles of one in a step. Others go on with the blocks of
    # three steps. Those that store later wait again, for half of what a column stores on average.
    again = np.minimum(depth, cut.m_cols * cut.n_cols) / 3 - 1
    waits = waits * np.where(cut.k_cols > 1, 1 + np.maximum(0, again) / 2, 1)
    stalls = np.maximum(0, steps.passes - 1 - (summed > 0) / depth)
    return np.where(steps.b.shared, (steps.count - 1) * pace + stalls * waits, 0)


def stored_cycles(
    steps: Steps, channel: Channel, pace: Numbers, left: Numbers, first: Numbers
) -> Numbers:
    """From the first blocks' arrival to the last result's, if results follow each other.

    Behind the first result come blocks of B of all steps but the first pass's and the next one.

    Args:
        steps: The steps.
        channel: The busiest channel.
        pace: From step to step where none waits.
        left: Cycles for which partial blocks hold up what their tiles send next.
        first: From the end of a pass's products until its results leave.
    """
    computed = (steps.depth - 1) * pace + steps.product
    met = np.maximum(0, steps.count - steps.depth - 1) * _met_cycles(steps)
    later = channel.posted * steps.passes + met + (steps.passes - 1) * left
    return np.where(steps.b.shared, computed + first + later, 0)


def _met_cycles(steps: Steps) -> Numbers:
    """For which a step's blocks of B hold up results on their way down a column.

    A buffer passes packets one after the other. At ports those of B take turns with those of A if
    they come together, which they are taken to do half of the time.
    """
    a, b = steps.a, steps.b
    return b.trees * b.flits + np.minimum(a.flits, b.flits) / 2
