"""What a kernel moves, counted from its plan."""

from typing import NamedTuple


class Moved(NamedTuple):
    """Bytes that a kernel moves.

    Attributes:
        read: From off-chip memory.
        written: To off-chip memory.
        delivered: Taken in by tiles from the network, a multicast once for each tile that it
            reaches.
    """

    read: int = 0
    written: int = 0
    delivered: int = 0
