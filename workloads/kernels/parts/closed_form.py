"""Collectives along lines as performance models.

All parts of a line are taken to be there at the same time. A stage in software is a message and an
addition; a root that gets two messages at once adds them one after the other. Reductions in
software may have arrays of lengths, and of cycles to combine two parts: each has its own result.
"""

from typing import Any

import numpy as np

from tlm.compute.base import larger
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.transfer_times import (
    arrival_cycles,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import k_tree, tree
from workloads.kernels.parts.message_times import (
    RECEIVE_BUFFERS,
    rounds_of,
    sequential_gather,
    tree_gather,
    tree_spread,
    tree_ways,
)

_SIDES = {
    "row": (MeshPort.WEST, MeshPort.EAST),
    "column": (MeshPort.NORTH, MeshPort.SOUTH),
}
"""Ports by which messages from lower and from higher places of a line come in."""


def reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is at the root, whose place is the farthest of those given."""
    length = reduction.lines.length
    farthest = _farthest(reduction)
    if reduction.method == "network":
        return _network_cycles(reduction, timing)
    if reduction.method == "sequential":
        return _worst(reduction, sequential_gather(reduction, timing)[1])
    if reduction.method == "tree":
        return _worst(reduction, tree_gather(reduction, timing)[1])
    if reduction.method == "chain":
        return _chain_cycles(reduction, timing, [farthest, length - 1 - farthest])
    return _k_tree_cycles(reduction, timing)


def all_reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is everywhere."""
    length, flits = reduction.lines.length, reduction.flits
    if reduction.method == "tree":
        back = tree_spread(reduction.lines, reduction.root, flits, timing)
        return _worst(reduction, tree_gather(reduction, timing)[1] + back)
    come = reduce_cycles(reduction, timing)
    if reduction.method == "sequential":
        last = max(length - 2, 0) * flits + arrival_cycles(timing, _farthest(reduction), flits)
        return come + (last if length > 1 else 0)
    if length == 1:
        return come + arrival_cycles(timing, 0, flits)
    hops = _farthest(reduction)
    if isinstance(flits, int):
        return come + arrival_cycles(timing, hops, flits, multicast=True)
    many: Any = flits
    spread: Any = multicast_cycles_over(timing, np.full_like(many, hops), many)
    cycles: int = come + spread
    return cycles


def root_cycles(reduction: Reduction, timing: NocTiming) -> Any:
    """Cycles of the root's engine for a sum in software if the other tiles are ahead of it.

    Then its messages are there but for those of a tree that need a buffer which is used again.
    """
    rounds = rounds_of(reduction.lines.length)
    if reduction.method != "tree":
        return len(rounds) * reduction.combine_cycles
    way = tree_ways(reduction.lines, reduction.root, timing, reduction.flits)
    credit = tree_ways(reduction.lines, reduction.root, timing, 1) - timing.launch_cycles
    added = [np.zeros_like(way[:, 0])]
    for number, (_, step) in enumerate(rounds):
        come = added[-1]
        if number >= RECEIVE_BUFFERS:
            free = added[number + 1 - RECEIVE_BUFFERS]
            come = np.maximum(come, free + credit[:, step] + way[:, step])
        added.append(come + reduction.combine_cycles)
    return _worst(reduction, added[-1])


def broadcast_cycles(
    timing: NocTiming, method: str, length: int, root: int, flits: int, *, own: bool = True
) -> int:
    """Cycles until a block of the root is at all tiles of a line, sent by messages.

    ``own``: the root sends a copy to itself.
    """
    farthest = max(root, length - 1 - root)
    if length == 1 and not own:
        return 0
    if method == "sequential":
        # Nearer tiles first; the root's own copy last.
        before = (length - 1 if own else length - 2) * flits
        return before + arrival_cycles(timing, 0 if length == 1 else farthest, flits)
    there = arrival_cycles(timing, 0, flits) if own else 0
    return there + sum(
        arrival_cycles(timing, max(abs(here - there) for here, there in stage), flits)
        for stage in tree(length, root)
    )


def _roots(reduction: Reduction) -> tuple[int, ...]:
    return (reduction.root,) if isinstance(reduction.root, int) else reduction.root


def _farthest(reduction: Reduction) -> int:
    roots = _roots(reduction)
    return max(max(roots), reduction.lines.length - 1 - min(roots))


def _network_cycles(reduction: Reduction, timing: NocTiming) -> int:
    hops, flits = _farthest(reduction), reduction.flits
    if isinstance(flits, int):
        return timing.launch_cycles + timing.reduction_cycles(hops, flits) + 1
    many: Any = flits
    cycles: Any = reduction_cycles_over(timing, np.full_like(many, hops), many)
    whole: int = cycles
    return whole


def _worst(reduction: Reduction, cycles: Any) -> int:
    """Of all roots; a number if the length is one."""
    worst = cycles.max(axis=0)
    whole: int = worst if np.ndim(reduction.flits) else int(worst[0])
    return whole


def _k_tree_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Message after message: groups differ in length, and a tile alone sends on at once.

    Of two that come to a root the first one's flits go before the other's. Of two at once that is
    who has his turn, while the root adds them in the order of the program.
    """
    length, flits = reduction.lines.length, reduction.flits
    here, port, won = [0] * length, [0] * length, [len(MeshPort) - 1] * length
    below, above = _SIDES[reduction.lines.along]
    for level in k_tree(length, reduction.groups):
        for stage in level.stages:
            coming: dict[int, list[int]] = {}
            for sender, taker in stage:
                coming.setdefault(taker, []).append(sender)
            for taker, senders in coming.items():
                asked: list[tuple[int, int, int]] = []
                for sender in senders:
                    side = below if sender < taker else above
                    way = arrival_cycles(timing, abs(sender - taker), flits)
                    turn = (side - won[taker] - 1) % len(MeshPort)
                    asked.append((here[sender] + way, turn, sender))
                come = {}
                for time, _, sender in sorted(asked):
                    come[sender] = port[taker] = max(time, port[taker] + flits)
                    won[taker] = below if sender < taker else above
                for sender in senders:
                    here[taker] = max(here[taker], come[sender]) + reduction.combine_cycles
    return max(here)


def _chain_cycles(reduction: Reduction, timing: NocTiming, sides: list[int]) -> int:
    """Chains from both sides: as long as the longer one; both ends of equal ones meet."""
    message = arrival_cycles(timing, 1, reduction.flits)
    stages: int = max(sides) * (message + reduction.combine_cycles)
    meet = max(sides) > 0 and sides[0] == sides[1]
    return stages + (larger(reduction.combine_cycles, reduction.flits) if meet else 0)
