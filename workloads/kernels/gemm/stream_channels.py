"""What a streaming product's blocks cost at the channels of off-chip memory."""

from typing import Any, NamedTuple

import numpy as np

from tlm.offchip.times import OffChipLaw
from workloads.kernels.gemm.stream_steps import Numbers, Operand, Steps
from workloads.machine.place import Place


class Channel(NamedTuple):
    """Cycles of the busiest channel."""

    loads: Numbers  # for the loads of a step
    ahead: Numbers  # for those of the second step that go before some of the first one
    stores: Numbers  # that loads wait for the stores of a pass
    posted: Numbers  # for these at its router and until they are written, if no load waits


def channel_of(place: Place, steps: Steps) -> Channel:
    """The busiest channel's cycles; none without off-chip memory."""
    if place.offchip is None:
        return Channel(0, 0, 0, 0)
    a, b = (each.loads * load_of(each).served_cycles for each in (steps.a, steps.b))
    loads = a + b
    if place.offchip.at_tiles:
        loads = np.where(apart(steps), np.maximum(a, b), loads)
    ahead = a * steps.ahead
    if not place.offchip.at_tiles:
        early = np.minimum(*(second for _, second in behind_cycles(steps)))
        ahead = ahead + np.where(steps.a.shared & steps.b.shared, early, early_cycles(steps))
    store: Any = store_of(steps)
    paced = np.maximum(store.served_cycles, store.sent_flits)
    # Blocks that are sent on come in time only if the requests for them do, behind what is stored.
    held = (store.served_cycles + paced) / 2
    served = np.where(steps.a.shared & steps.b.shared, held, store.served_cycles)
    stores = steps.cut.c_stores
    return Channel(loads, ahead, stores * served, stores * paced)


def burst_cycles(steps: Steps, channel: Channel, pace: Numbers) -> Numbers:
    """For which products wait for loads behind results that leave at once.

    With K cut along rows, a column of tiles stores all its results of a pass in one step. Products
    go on with the blocks of this step, and of the two whose blocks are in place. Where senders are
    late anyway, results have gone ahead of what they ask for.
    """
    burst = np.maximum(0, channel.posted - 3 * steps.product)
    waits = (steps.cut.k_cols > 1) & (pace <= steps.product)
    return (steps.passes - 1) * np.where(waits, burst, 0)


def behind_cycles(steps: Steps) -> tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]]:
    """What a channel serves before the last first block of A, and of B: first ones, second ones.

    Of tiles that send what they load: all ask at once, and the nearer ones for two blocks.
    """
    cut, again = steps.cut, steps.count > 1
    a, b = (load_of(each).served_cycles for each in (steps.a, steps.b))
    second_a = cut.a_behind_a2 * a + cut.a_behind_b2 * b
    second_b = cut.b_behind_a2 * a + cut.b_behind_b2 * b
    return (
        (steps.a.loads * a + cut.a_behind_b * b, np.where(again, second_a, 0)),
        (steps.b.loads * b + cut.b_behind_a * a, np.where(again, second_b, 0)),
    )


def early_cycles(steps: Steps) -> Numbers:
    """For second blocks of tiles that send none of the other operand, which they ask for at once.

    Those that do send ask for theirs of the first step later.
    """
    a, b = steps.a, steps.b
    if b.there:
        return 0
    early = (
        np.maximum(0, own.loads - sent.loads) * load_of(own).served_cycles
        for own, sent in ((a, b), (b, a))
    )
    of_a, of_b = early
    one = np.where(a.shared & ~b.shared, of_b, np.where(b.shared & ~a.shared, of_a, 0))
    return np.where(steps.count > 1, one, 0)


def apart(steps: Steps) -> Numbers:
    """Whether no tile loads both operands."""
    return steps.a.shared & steps.b.shared & np.logical_not(steps.cut.both)


def load_of(operand: Operand) -> OffChipLaw:
    """What a block of an operand costs that comes from off-chip memory."""
    assert operand.law is not None
    return operand.law


def store_of(steps: Steps) -> OffChipLaw:
    """What a block of C costs that goes there."""
    assert steps.store is not None
    return steps.store
