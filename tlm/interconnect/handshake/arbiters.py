"""Who of several that ask is first: the laws of the arbiters, at an output and at a unit."""

from tlm.compiled import compiled, lowest
from tlm.interconnect.handshake.records import PORTS, Arbiter


def at_reset(arbiter: int) -> int:
    """Whom an arbiter prefers after reset: all, or place 0 by the pointer of a tree."""
    return 0 if arbiter == Arbiter.TREE else 2 ** (PORTS + 1) - 1


@compiled
def first_of(arbiter: int, preferred: int, asking: int) -> int:
    """Place in line of the request that wins.

    Args:
        arbiter: An `Arbiter`.
        preferred: A bit a place for who is first, or the pointer of a tree.
        asking: A bit a place; at least one is set.
    """
    if arbiter == Arbiter.ROUND_ROBIN:  # rtl/noc/rr_arbiter.sv
        line = asking & preferred
        return lowest(line if line else asking)
    if arbiter == Arbiter.FIXED:
        return lowest(asking)
    # A tree over eight places: the upper half goes first if the pointer's bit says so.
    first, half = 0, 4
    while half:
        lower = asking >> first & ((1 << half) - 1)
        upper = asking >> (first + half) & ((1 << half) - 1)
        if upper and (not lower or preferred & half):
            first += half
        half >>= 1
    return first


@compiled
def preferred_after(arbiter: int, preferred: int, asking: int, winner: int) -> int:
    """Whom an arbiter prefers once one of those that ask has won."""
    if arbiter == Arbiter.ROUND_ROBIN:
        return 63 & ~((2 << winner) - 1)
    if arbiter == Arbiter.FIXED:
        return preferred
    behind = asking & ~((2 << preferred) - 1)
    return lowest(behind if behind else asking)
