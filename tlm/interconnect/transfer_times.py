"""Times of uncontended transfers as programs count them: from the start to an effect.

A handshake in cycle c has its effect at time c + 1, so these are the closed forms of
`tlm.interconnect.zero_load` plus one cycle, and plus what tiles take to launch a transfer if the
timing knows of it (`zero_load.Launching`).
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.zero_load import NocTiming


def arrival_cycles(timing: NocTiming, hops: int, flits: int, *, multicast: bool = False) -> int:
    """From the start of a transfer to the tokens at its destination.

    A ``multicast`` has several destinations; at 0 hops its root is one of them.
    """
    if not multicast:
        return timing.launch_cycles + timing.unicast_cycles(hops, flits) + 1
    if hops == 0:
        waits = _waits_before_last_packet(timing, flits)
        return timing.launch_cycles + timing.unicast_cycles(0, flits) + waits + 1
    return timing.launch_cycles + timing.multicast_cycles(hops, flits) + 1


def credit_cycles(timing: NocTiming, hops: int) -> int:
    """From the freeing of a slot to the knowledge of it ``hops`` away: one flit, uncontended.

    No tile launches it as it does a transfer.
    """
    return timing.unicast_cycles(hops, 1) + 1


def credit_cycles_over(timing: NocTiming, hops: NDArray[np.int64]) -> NDArray[np.int64]:
    """`credit_cycles` over each of some numbers of hops, of their shape."""
    return np.array([credit_cycles(timing, count) for count in range(int(hops.max()) + 1)])[hops]


def hold_cycles(timing: NocTiming, flits: int, *, multicast: bool = False) -> int:
    """From the start of a transfer to the tokens at its source.

    The root's own buffer takes in flits while packets wait to leave it. The tail flit goes in when
    the flit as far before it as the buffer is deep has left for the next router.
    """
    if not multicast or flits <= timing.fifo_depth:
        return flits
    left = flits - timing.fifo_depth + timing.hop_cycles + _waits_before_last_packet(timing, flits)
    return max(flits, left + 1)


def _waits_before_last_packet(timing: NocTiming, flits: int) -> int:
    """Waits for empty buffers of a multicast's packets but the last.

    The root's own copy of the last packet needs no more than that the packet before it is gone.
    """
    before = (flits - 1) // timing.fifo_depth * timing.fifo_depth
    if before == 0:
        return 0
    return timing.multicast_cycles(1, before) - timing.unicast_cycles(1, before)


def multicast_cycles_over(
    timing: NocTiming, hops: NDArray[np.int64], flits: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`arrival_cycles` of multicasts that are each a hop or more far: arrays that broadcast."""
    waits = _packet_waits_over(timing, flits, timing.multicast_gap_cycles)
    way = timing.launch_cycles + timing.ejection_cycles + hops * timing.hop_cycles
    cycles: NDArray[np.int64] = way + (flits - 1) * timing.link_interval_cycles + waits + 1
    return cycles


def hold_cycles_over(timing: NocTiming, flits: NDArray[np.int64]) -> NDArray[np.int64]:
    """`hold_cycles` of many multicasts at once, of the shape of ``flits``."""
    packets = (flits - 1) // timing.fifo_depth
    waits = np.maximum(packets - 1, 0) * timing.multicast_gap_cycles
    left = flits - timing.fifo_depth + timing.hop_cycles + waits + 1
    return np.where(packets > 0, np.maximum(flits, left), flits)


def reduction_cycles_over(
    timing: NocTiming, hops: NDArray[np.int64], flits: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cycles from the start of many reductions to the results' arrival: arrays that broadcast."""
    per_hop = timing.hop_cycles + timing.reduce_cycles
    links = np.where(hops > 0, timing.link_interval_cycles, 1)
    interval = np.maximum(timing.reduce_interval_cycles, links)
    latency = timing.ejection_cycles + timing.reduce_cycles + hops * per_hop
    latency = latency + timing.launch_cycles
    waits = np.where(hops > 0, _packet_waits_over(timing, flits, per_hop), 0)
    results = np.where(
        hops > 0,
        timing.cut_results_cycles(flits, interval),
        timing.results_cycles(flits, interval),
    )
    cycles: NDArray[np.int64] = latency + results + waits + 1
    return cycles


def _packet_waits_over(
    timing: NocTiming, flits: NDArray[np.int64], gap_cycles: int
) -> NDArray[np.int64]:
    full, rest = np.divmod(flits, timing.fifo_depth)
    waits: NDArray[np.int64] = np.maximum(full - 1, 0) * gap_cycles
    short = np.maximum(rest + gap_cycles - timing.fifo_depth, 0)
    waits += np.where((full > 0) & (rest > 0), short, 0)
    return waits
