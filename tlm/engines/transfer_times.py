"""Times of uncontended transfers as programs count them: from the start to an effect.

A handshake in cycle c has its effect at time c + 1, so these are the closed forms of
`tlm.interconnect.zero_load` plus one cycle.
"""

from tlm.interconnect.zero_load import NocTiming


def arrival_cycles(timing: NocTiming, hops: int, flits: int, *, multicast: bool = False) -> int:
    """From the start of a transfer to the tokens at its destination."""
    law = timing.multicast_cycles if multicast else timing.unicast_cycles
    return law(hops, flits) + 1


def credit_cycles(timing: NocTiming, hops: int) -> int:
    """From the freeing of a slot to the knowledge of it ``hops`` away: one flit, uncontended."""
    return arrival_cycles(timing, hops, 1)


def hold_cycles(timing: NocTiming, flits: int, *, multicast: bool = False) -> int:
    """From the start of a transfer to the tokens at its source.

    A multicast packet follows its predecessor into the first buffer while that one leaves it, so of
    the gaps between packets the interface sees all but the first.
    """
    if not multicast:
        return flits
    packets = -(-flits // timing.fifo_depth)
    return flits + max(0, packets - 2) * timing.multicast_gap_cycles
