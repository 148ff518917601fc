"""Collectives along lines as performance models.

All parts of a line are taken to be there at the same time. A stage in software is a message and an
addition; a root that gets two messages at once adds them one after the other. Reductions in
software may have arrays of lengths, and of cycles to combine two parts: each has its own result.
"""

from itertools import chain
from typing import Any

import numpy as np

from tlm.compute.base import larger
from tlm.interconnect.transfer_times import (
    arrival_cycles,
    credit_cycles,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import k_tree, tree

_RECEIVE_BUFFERS = 2
"""Of a tile in a tree, for the messages of its rounds in turn."""


def reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is at the root, whose place is the farthest of those given."""
    length = reduction.lines.length
    farthest = _farthest(reduction)
    if reduction.method == "network":
        return _network_cycles(reduction, timing)
    if reduction.method == "sequential":
        return _sequential_cycles(reduction, timing)
    if reduction.method == "tree":
        return _worst(reduction, _gather_cycles(reduction, timing))
    if reduction.method == "chain":
        return _chain_cycles(reduction, timing, [farthest, length - 1 - farthest])
    return _k_tree_cycles(reduction, timing)


def all_reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is everywhere."""
    length, flits = reduction.lines.length, reduction.flits
    if reduction.method == "tree":
        both = _gather_cycles(reduction, timing) + _spread_cycles(reduction, timing)
        return _worst(reduction, both)
    come = reduce_cycles(reduction, timing)
    if reduction.method == "sequential":
        last = max(length - 2, 0) * flits + arrival_cycles(timing, _farthest(reduction), flits)
        return come + (last if length > 1 else 0)
    if length == 1:
        return come + arrival_cycles(timing, 0, flits)
    many: Any = np.atleast_1d(flits)
    spread: Any = multicast_cycles_over(timing, np.full_like(many, _farthest(reduction)), many)
    cycles: int = come + (spread if np.ndim(flits) else int(spread[0]))
    return cycles


def root_cycles(reduction: Reduction, timing: NocTiming) -> Any:
    """Cycles of the root's engine for a sum in software if the other tiles are ahead of it.

    Then its messages are there but for those of a tree that need a buffer which is used again.
    """
    rounds = _rounds(reduction.lines.length)
    if reduction.method != "tree":
        return len(rounds) * reduction.combine_cycles
    way = _tree_ways(reduction, timing, reduction.flits)
    credit = _tree_ways(reduction, timing, 1) - timing.launch_cycles
    added = [np.zeros_like(way[:, 0])]
    for number, (_, step) in enumerate(rounds):
        come = added[-1]
        if number >= _RECEIVE_BUFFERS:
            free = added[number + 1 - _RECEIVE_BUFFERS]
            come = np.maximum(come, free + credit[:, step] + way[:, step])
        added.append(come + reduction.combine_cycles)
    return _worst(reduction, added[-1])


def broadcast_cycles(timing: NocTiming, method: str, length: int, root: int, flits: int) -> int:
    """Cycles until a block of the root is at all tiles of a line, sent by messages."""
    farthest = max(root, length - 1 - root)
    if method == "sequential":
        # Nearer tiles first; the root's own copy last.
        return (length - 1) * flits + arrival_cycles(timing, 0 if length == 1 else farthest, flits)
    own = arrival_cycles(timing, 0, flits)
    return own + sum(
        arrival_cycles(timing, max(abs(here - there) for here, there in stage), flits)
        for stage in tree(length, root)
    )


def _roots(reduction: Reduction) -> tuple[int, ...]:
    return (reduction.root,) if isinstance(reduction.root, int) else reduction.root


def _farthest(reduction: Reduction) -> int:
    return max(max(root, reduction.lines.length - 1 - root) for root in _roots(reduction))


def _network_cycles(reduction: Reduction, timing: NocTiming) -> int:
    many: Any = np.atleast_1d(reduction.flits)
    cycles: Any = reduction_cycles_over(timing, np.full_like(many, _farthest(reduction)), many)
    whole: int = cycles if np.ndim(reduction.flits) else int(cycles[0])
    return whole


def _gather_cycles(reduction: Reduction, timing: NocTiming) -> Any:
    """Rounds of a tree, shape (roots, candidates): a tile adds what comes when it has its own.

    It has two buffers, and says far away that one is free again.
    """
    way = _tree_ways(reduction, timing, reduction.flits)
    credit = _tree_ways(reduction, timing, 1) - timing.launch_cycles
    added = [np.zeros_like(way)]
    for number, (senders, step) in enumerate(_rounds(reduction.lines.length)):
        takers, now = senders - step, added[-1].copy()
        leave = now[:, senders]
        if number >= _RECEIVE_BUFFERS:
            free = added[number + 1 - _RECEIVE_BUFFERS][:, takers]
            leave = np.maximum(leave, free + credit[:, senders])
        come = leave + way[:, senders]
        now[:, takers] = np.maximum(now[:, takers], come) + reduction.combine_cycles
        added.append(now)
    return added[-1][:, 0]


def _spread_cycles(reduction: Reduction, timing: NocTiming) -> Any:
    """The same rounds back: a tile sends to one after the other."""
    way, rounds = _tree_ways(reduction, timing, reduction.flits), _rounds(reduction.lines.length)
    here = np.zeros_like(way)
    for takers, step in reversed(rounds):
        senders = takers - step
        here[:, takers] = here[:, senders] + way[:, takers]
        here[:, senders] += reduction.flits
    return here.max(axis=1)


def _rounds(length: int) -> list[tuple[Any, int]]:
    """Who sends in each round of a tree, by number from the root, and to how many before."""
    steps = [1 << n for n in range((length - 1).bit_length())]
    return [(np.arange(step, length, 2 * step), step) for step in steps]


def _tree_ways(reduction: Reduction, timing: NocTiming, flits: Any) -> Any:
    """Cycles of a message of each tile's in a tree: shape (roots, tiles, candidates)."""
    length = reduction.lines.length
    roots = np.array(sorted(set(_roots(reduction))))[:, None]
    places = (roots + np.arange(length)) % length
    hops = np.zeros_like(places)
    for senders, step in _rounds(length):
        hops[:, senders] = np.abs(places[:, senders] - places[:, senders - step])
    one = np.atleast_1d(arrival_cycles(timing, 1, flits))
    return one + (hops[..., None] - 1) * timing.hop_cycles


def _worst(reduction: Reduction, cycles: Any) -> int:
    """Of all roots; a number if the length is one."""
    worst = cycles.max(axis=0)
    whole: int = worst if np.ndim(reduction.flits) else int(worst[0])
    return whole


def _k_tree_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Message after message: groups differ in length, and a tile alone sends on at once."""
    length, flits = reduction.lines.length, reduction.flits
    here, port = [0] * length, [0] * length
    for level in k_tree(length, reduction.groups):
        for sender, taker in chain.from_iterable(level.stages):
            way = arrival_cycles(timing, abs(sender - taker), flits)
            port[taker] = max(here[sender] + way, port[taker] + flits)
            here[taker] = max(here[taker], port[taker]) + reduction.combine_cycles
    return max(here)


def _chain_cycles(reduction: Reduction, timing: NocTiming, sides: list[int]) -> int:
    """Chains from both sides: as long as the longer one; both ends of equal ones meet."""
    message = arrival_cycles(timing, 1, reduction.flits)
    stages: int = max(sides) * (message + reduction.combine_cycles)
    meet = max(sides) > 0 and sides[0] == sides[1]
    return stages + (larger(reduction.combine_cycles, reduction.flits) if meet else 0)


def _sequential_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Messages to one root, which has two buffers."""
    others, farthest = reduction.lines.length - 1, _farthest(reduction)
    if not others:
        return 0
    flits, combine = reduction.flits, reduction.combine_cycles
    round_trip = credit_cycles(timing, farthest) + arrival_cycles(timing, farthest, flits)
    pace = larger(larger(flits, combine), (round_trip + combine) / 2)
    nearest = arrival_cycles(timing, 1, flits)
    free = min(others, 2)  # these need no credit
    cycles: Any = nearest + free * larger(flits, combine) + (others - free) * pace
    whole: Any = round(cycles) if isinstance(cycles, float) else np.rint(cycles).astype(np.int64)
    return whole  # type: ignore[no-any-return]
