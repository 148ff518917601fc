"""What channels of off-chip memory serve for the causal masks of FlatAttention's groups."""

from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law
from workloads.kernels.attention.core import Core
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.groups import Groups
from workloads.kernels.attention.items import masks_brought


def masks_of(core: Core) -> list[int]:
    """Numbers of the masks that tiles bring, one after the other."""
    return masks_brought(core.blocks, core.masks, core.alike, core.states)


def mask_loads(plan: FlatPlan, core: Core, timing: NocTiming) -> NDArray[np.int64]:
    """Cycles for which a channel is busy with a mask of all its tiles, and with other groups'.

    Other groups bring masks when that of ``core`` does, each time as many as the mean.

    Returns:
        Shape (masks, 2); 0 of a mask that no tile brings. Without off-chip memory the first is 1.
    """
    if not plan.shape.causal:
        return np.zeros((1, 2), dtype=np.int64)
    tiles = plan.partly
    if not plan.core.parts:
        tiles = [[*plan.groups.places]] * len(plan.patterns)
    found, edge = np.zeros((len(tiles), 2)), plan.place.offchip
    found[:, 0] = [len(each) > 0 for each in tiles]
    if edge is None:
        return found.astype(np.int64)
    cycles = load_law(timing, edge, plan.flits("mask")).served_cycles
    if not edge.at_tiles:
        _add_others(plan, core, edge, tiles, found)
    return np.rint(cycles * found).astype(np.int64)


def _add_others(
    plan: FlatPlan, core: Core, edge: Edge, tiles: list[list[tuple[int, int]]],
    found: NDArray[np.float64],
) -> None:  # fmt: skip
    """Of each mask what its busiest channel serves at a time, and of this what is of others."""
    channels, columns = _channels(edge), [np.array([col for _, col in each]) for each in tiles]

    def served(groups: Groups, mask: int) -> NDArray[np.int64]:
        first = groups.size[1] * np.array(groups.across)[:, None]
        at = channels[(first + columns[mask]).ravel()] if len(columns[mask]) else []
        return len(groups.down) * np.bincount(at, minlength=edge.channels)

    number = masks_of(core)
    others = np.zeros(edge.channels)
    for groups, each in plan.cores:
        for mask, count in Counter(masks_of(each)).items():
            others += count * served(groups, mask)
    busiest = next(groups for groups, each in plan.cores if each is core)
    one = busiest._replace(down=busiest.down[:1], across=busiest.across[:1])
    own = {mask: served(one, mask) for mask in {*number}}
    for mask in number:
        others -= own[mask]
    others /= max(1, len(number))
    for mask, its in own.items():
        at = int(np.where(its > 0, its + others, 0).argmax())
        found[mask] = (its[at] + others[at], others[at]) if its[at] else (0, 0)


@lru_cache(64)
def _channels(edge: Edge) -> NDArray[np.int64]:
    """The channel of each column."""
    return np.array([edge.channel((0, col)) for col in range(edge.cols)])
