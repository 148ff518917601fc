"""A streaming product whose blocks share a column's links all the way, results among them.

So they do where each column has a channel that fills its link both ways (`Edge.fills_links`).
"""

import numpy as np

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.stream_channels import Channel, load_of
from workloads.kernels.gemm.stream_steps import Numbers, Steps


def column_cycles(steps: Steps, channel: Channel, sums: Numbers) -> Numbers:
    """For which a step's blocks come up a column.

    A channel's answers go one after the other. One for a tile takes turns at its port with a block
    of A for all of its row. One for a tile above the sender of B takes turns on links with a block
    of B, which so comes up a column twice. What is loaded next waits behind it.

    Args:
        steps: The steps.
        channel: The busiest channel.
        sums: Flits of partial blocks that go along a column in a step.
    """
    a, b = steps.a, steps.b
    beside = np.where(a.shared, np.minimum(a.flits, b.loads * b.flits), 0)
    return channel.loads + beside + np.where(b.shared, b.trees * b.flits, 0) + sums


def stall_cycles(
    steps: Steps, channel: Channel, pace: Numbers, left: Numbers, summed: Numbers
) -> Numbers:
    """Of a pass, for which products wait as tiles store results, and send nothing meanwhile.

    All tiles that have results store them at once, the nearest first. Behind the farthest one's its
    sender hands on the blocks of the next step but one. Those of the step behind that have come
    meanwhile.

    Args:
        steps: The steps.
        channel: The busiest channel.
        pace: From step to step where none waits.
        left: Cycles for which partial blocks hold up what their tiles send next.
        summed: Cycles until they are summed.
    """
    cut, depth = steps.cut, steps.depth
    burst = channel.posted + left + _met_cycles(steps)
    # Sums leave time for products of tiles that share no B. Else two steps' blocks go between them.
    handed = np.maximum(steps.a.hold, steps.b.hold)
    between = np.where(steps.b.shared, np.maximum(steps.product, 2 * handed), 0)
    between = np.where(summed > 0, between, steps.product)
    # Nearer tiles that share no B with the farthest may have the next results before a burst is
    # over. These go first.
    sooner = np.minimum(steps.product, np.maximum(0, channel.posted - depth * steps.product))
    burst = burst + np.where(_groups(steps) > 1, sooner, 0)
    longer = burst + np.where(depth > 1, between + (depth - 2) * pace, 0)
    # Requests meet results on the way, half of a burst on average: all of a column, if B ties it.
    column, met = column_cycles(steps, channel, 0), channel.posted / 2
    longer = np.maximum(longer, np.where(steps.b.shared, depth * column + met, 0))
    # In passes of one step sums are stored before blocks are asked for, which come two steps later.
    for each in (steps.a, steps.b):
        column = np.maximum(column, 0 if each.there else load_of(each).alone_cycles(each.way))
    turn = (column + met + handed + burst) / 2
    waits = np.maximum(0, np.where((summed > 0) & (depth == 1), turn, longer) - depth * pace)
    # With K cut along rows, columns do, all tiles of one in a step. Others go on with the blocks of
    # three steps. Those that store later wait again, for half of what a column stores on average.
    again = np.minimum(depth, cut.m_cols * cut.n_cols) / 3 - 1
    return waits * np.where(cut.k_cols > 1, 1 + np.maximum(0, again) / 2, 1)


def turns_cycles(steps: Steps, pace: Numbers, stalls: Numbers, summed: Numbers) -> Numbers:
    """From the first product to the last one.

    Partial blocks are summed first, and so stored a step later.

    Args:
        steps: The steps.
        pace: From step to step where no tile waits to store.
        stalls: See `stall_cycles`.
        summed: Cycles until partial blocks are summed.
    """
    stalled = np.maximum(0, steps.passes - 1 - (summed > 0) / steps.depth)
    return (steps.count - 1) * pace - _early_cycles(steps, pace) + stalled * stalls


def _early_cycles(steps: Steps, pace: Numbers) -> Numbers:
    """For which the first pass is ahead of the pace.

    Until the first blocks of both are in all tiles, those of the next two steps are on their way.
    """
    early = np.where(steps.a.shared & steps.b.shared, np.minimum(steps.depth - 1, 2), 0)
    return early * (pace - steps.product)


def drifted(steps: Steps, stalls: Numbers, summed: Numbers) -> Numbers:
    """In how many groups the last results of a column come, as stalls take rows of tiles apart.

    Those that wait for each other's sums in every step stay together.
    """
    stay = (stalls == 0) | (summed > 0) & (steps.depth == 1)
    return np.where(stay, 1, _groups(steps))


def _groups(steps: Steps) -> Numbers:
    """Of tiles of a column that share B, or each alone."""
    return np.maximum(1, np.where(steps.b.shared, steps.cut.n_rows, steps.cut.c_stores))


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
    computed = (steps.depth - 1) * pace - _early_cycles(steps, pace) + steps.product
    met = np.maximum(0, steps.count - steps.depth - 1) * _met_cycles(steps)
    later = channel.posted * steps.passes + met
    # Tiles that share no B go on while others sum.
    later = later + np.where(steps.b.shared, (steps.passes - 1) * left, 0)
    return computed + first + later


def _met_cycles(steps: Steps) -> Numbers:
    """For which a step's blocks of B hold up results on their way down a column.

    A buffer passes packets one after the other. At ports those of B take turns with those of A if
    they come together, which they are taken to do half of the time.
    """
    a, b = steps.a, steps.b
    return np.where(b.shared, b.trees * b.flits + np.minimum(a.flits, b.flits) / 2, 0)


def met_before(steps: Steps, timing: NocTiming, *, of_b: bool) -> tuple[Numbers, Numbers]:
    """What first blocks meet on links and at ports: while they come, and while they are sent on.

    A nearer sender's second block comes to its port beside its own copy of the first one, and a
    block of A for its row. What comes to a sender of A above then goes beside second blocks of B.
    """
    a, b, cut, again = steps.a, steps.b, steps.cut, steps.count > 1
    turns = np.minimum(a.flits, b.flits)
    own, second, met = (b, cut.b_behind_a2, a.flits) if of_b else (
        a, cut.a_behind_b2, b.flits + 2 * turns,
    )  # fmt: skip
    come = np.where(a.shared & b.shared & again & (second > 0), met, 0)
    # The last one's own copy takes turns with its second block.
    alone = own.shared & (own.loads == 1) & again
    copied = 2 * own.flits - timing.launch_cycles - own.hold
    return come, np.where(alone, np.maximum(0, copied), 0)
