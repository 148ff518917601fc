"""What a kernel moves: by its plan, or counted from its program."""

from typing import NamedTuple

from tlm.program import OffChip, Program
from tlm.program.operations.transfer import Transfer


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


def moved_by(program: Program, flit_bytes: int) -> Moved:
    """What a program moves, counted operation by operation."""
    read = written = delivered = 0
    for operation in program.built():
        if not isinstance(operation, Transfer):
            continue
        size = len(operation.far) * operation.flits * flit_bytes
        if not isinstance(operation, OffChip):
            delivered += size
        elif operation.loads:
            read, delivered = read + size, delivered + size
        else:
            written += size
    return Moved(read, written, delivered)
