"""Messages that share links, in closed forms: when each has come, and when its sender is free.

What a message waits for is the network's law, not that of a kernel: a link that another one has, or
holds while it is blocked itself; room in a buffer; its turn at a port. So packets are followed from
link to link as at level `lt` (`tlm.interconnect.unicast_packets`), a few events for each that they
cross, whatever their length.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect import unicast_packets
from tlm.interconnect.unicast_packets import Crossing
from tlm.interconnect.zero_load import NocTiming

_Numbers = NDArray[np.int64]


def follows(timing: NocTiming) -> bool:
    """Whether packets of a network can be followed: not if channels are locked, or links slow."""
    return not timing.locks and timing.link_interval_cycles == 1


class MessageLinks:
    """The links of a rectangle of tiles, as messages have left them.

    Args:
        rows: Rows of tiles.
        cols: Columns.
        timing: Of a network that `follows`.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming) -> None:
        unicast_packets.ready()
        self._router = unicast_packets.router_of(timing, cols, timing.launch_cycles)
        self._ways = unicast_packets.fresh_ways(rows * cols)

    def carry(
        self, ends: _Numbers, flits: _Numbers, ready: _Numbers | int, free: _Numbers | int
    ) -> tuple[_Numbers, _Numbers]:
        """When interfaces are free behind messages, and when these have come, shape (messages,).

        Args:
            ends: Shape (messages, 4): rows and columns of who sends, and of who takes. Those of a
                tile go in this order.
            flits: Their lengths.
            ready: When their first flits may leave.
            free: When their interfaces are free for the first of each.
        """
        table = np.zeros((len(ends), unicast_packets.TRANSFER_COLUMNS), dtype=np.int64)
        table[:, : Crossing.FLITS] = ends
        table[:, Crossing.FLITS] = flits
        table[:, Crossing.READY] = ready
        table[:, Crossing.FREE] = free
        unicast_packets.carry(unicast_packets.network_of(self._router, table, self._ways))
        return table[:, Crossing.FREE], table[:, Crossing.COME]
