"""What channels of off-chip memory serve for the causal masks of FlatAttention's groups."""

from typing import NamedTuple

import numpy as np

from tlm.compiled import allocating
from workloads.kernels.attention.flat_work import Streams, count_masks, partly_seen


class MaskChannels(NamedTuple):
    """The channels that serve masks.

    Attributes:
        channels: At the edge; 0: each tile has its own, or there is no off-chip memory.
        cols: Columns of the grid, of which each has as many, or one less.
        served: Cycles for which one is busy with a mask; 1 without memory.
    """

    channels: int
    cols: int
    served: float


@allocating
def mask_loads(  # type: ignore[no-untyped-def]  # arrays, of types that Numba finds
    plan: Streams, edge: MaskChannels, work, number, masks, known, group: int
):
    """Cycles for which a channel is busy with a mask of all its tiles, and with other groups'.

    Other groups bring masks when ``group`` does, each time as many as the mean. Beside them stands
    who brings it: the tile that sends rows of Q (1), others (2) or both (3). Of groups of several
    rows, which have several such tiles, it is both.

    Args:
        plan: Its streams.
        edge: The channels.
        work: What `flat_work.work_of` gives of all groups; so the next three.
        number: Streams of each group.
        masks: Numbers of masks.
        known: What each number stands for.
        group: The one whose tile is followed.

    Returns:
        Shape (masks, 3); 0 of a mask that no tile brings.
    """
    tiles, channels = partly_seen(plan, known), edge.channels
    loads = np.zeros((len(known), 3), dtype=np.int64)
    root = group // plan.beside % max(1, plan.across // plan.down)
    for mask in range(len(known)):
        loads[mask, 2] = 3
        if plan.down == 1:
            own = tiles[mask, root]
            loads[mask, 2] = min(own, 1) + (2 if tiles[mask].sum() > own else 0)
    if not channels:
        for mask in range(len(known)):
            loads[mask, 0] = int(np.ceil(edge.served)) if tiles[mask].any() else 0
        return loads
    counts = np.zeros((plan.beside, len(known)), dtype=np.int64)
    for other in range(plan.groups):
        if number[other]:
            states = min(plan.states, number[other])
            count_masks(
                work[other], number[other], plan, states, masks, counts[other % plan.beside]
            )
    others = np.zeros(channels)
    for across in range(plan.beside):
        for mask in range(len(known)):
            if counts[across, mask]:
                for col in range(plan.across):
                    at = (across * plan.across + col) * channels // edge.cols
                    others[at] += counts[across, mask] * tiles[mask, col]
    own = np.zeros(len(known), dtype=np.int64)
    states = min(plan.states, number[group])
    count_masks(work[group], number[group], plan, states, masks, own)
    first = group % plan.beside * plan.across
    its = np.zeros((len(known), channels))
    for mask in range(len(known)):
        if own[mask]:
            for col in range(plan.across):
                at = (first + col) * channels // edge.cols
                its[mask, at] += tiles[mask, col]
                others[at] -= own[mask] * tiles[mask, col]
    others /= max(1, own.sum())
    for mask in range(len(known)):
        busiest = np.where(its[mask] > 0, its[mask] + others, 0).argmax()
        if its[mask, busiest] > 0:
            loads[mask, 0] = int(np.rint(edge.served * (its[mask, busiest] + others[busiest])))
            loads[mask, 1] = int(np.rint(edge.served * others[busiest]))
    return loads
