"""Collectives along lines as performance models.

All parts of a line are taken to be there at the same time. A stage in software is a message and an
addition; a root that gets two messages at once adds them one after the other. Reductions in
software may have arrays of lengths, and of cycles to combine two parts: each has its own result.
"""

from functools import reduce
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


def reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is at the root, whose place is the farthest of those given."""
    length = reduction.lines.length
    farthest = _farthest(reduction)
    if reduction.method == "network":
        return _network_cycles(reduction, timing)
    if reduction.method == "sequential":
        return _sequential_cycles(reduction, timing)
    if reduction.method == "tree":
        return _tree_cycles(reduction, timing, reduction.combine_cycles)
    groups = reduction.groups if reduction.method == "k-tree" else ()
    if reduction.method == "chain":
        return _chain_cycles(reduction, timing, [farthest, length - 1 - farthest], 1)
    total, spacing = 0, 1
    for level in k_tree(length, groups):
        longest = max(map(len, level.groups))
        sides = [longest // 2, (longest - 1) // 2]
        total += _chain_cycles(reduction, timing, sides, spacing)
        spacing *= longest
    return total


def all_reduce_cycles(reduction: Reduction, timing: NocTiming) -> int:
    """Cycles until the result is everywhere."""
    length, flits = reduction.lines.length, reduction.flits
    come = reduce_cycles(reduction, timing)
    if reduction.method == "sequential":
        last = max(length - 2, 0) * flits + arrival_cycles(timing, _farthest(reduction), flits)
        return come + (last if length > 1 else 0)
    if reduction.method == "tree":
        return come + _tree_cycles(reduction, timing, 0)
    if length == 1:
        return come + arrival_cycles(timing, 0, flits)
    many: Any = np.atleast_1d(flits)
    spread: Any = multicast_cycles_over(timing, np.full_like(many, _farthest(reduction)), many)
    cycles: int = come + (spread if np.ndim(flits) else int(spread[0]))
    return cycles


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


def _tree_cycles(reduction: Reduction, timing: NocTiming, combine_cycles: int) -> int:
    """Rounds of a tree, from the worst root: each as long as its farthest message."""
    flits, length = reduction.flits, reduction.lines.length
    return reduce(
        larger,
        (
            sum(
                arrival_cycles(timing, max(abs(a - b) for a, b in stage), flits) + combine_cycles
                for stage in tree(length, root)
            )
            for root in set(_roots(reduction))
        ),
    )


def _chain_cycles(reduction: Reduction, timing: NocTiming, sides: list[int], spacing: int) -> int:
    """Chains from both sides: as long as the longer one; both ends of equal ones meet."""
    message = arrival_cycles(timing, spacing, reduction.flits)
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
