"""What the loosely-timed engine wants to know of a whole program before it runs it."""

from dataclasses import dataclass
from math import prod

from tlm.program import Program
from tlm.program.operations import COMPUTING, Engine, Multicast

_ROW_COST_TILES = 150
"""To take up a row costs as much as so many tiles of it."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A program's form.

    Attributes:
        operations: How many there are.
        queued: Tokens that some operation takes or gives at a part of the tiles only.
        computing: Computing engines that do some work.
        turned: Whether rows and columns should change places: rows of state are updated at once.
        multicasts: How often a multicast comes to a tile.
        multicast_flits: The same of their flits.
    """

    operations: int
    queued: frozenset[str]
    computing: frozenset[Engine]
    turned: bool
    multicasts: int
    multicast_flits: int


def scan(program: Program) -> Scan:
    """Read a program once."""
    everywhere = (program.rows, program.cols)
    queued: set[str] = set()
    engines: set[Engine] = set()
    count = upright = turned = copies = flits = 0
    for operation in program.built():
        # Blocks from off chip come to who asks: for this purpose tiles send them to themselves.
        operation = operation.within_tiles()
        near, far = operation.near.shape, operation.far.shape
        count += 1
        if near != everywhere:
            queued.update(operation.takes, operation.gives)
        if far != everywhere:
            queued.update(operation.slots, operation.arrivals)
        engines.add(operation.engine)
        if isinstance(operation, Multicast):
            copies += prod(far)
            flits += prod(far) * operation.flits
        rows, cols = max(near, far, key=prod)
        upright += rows * (cols + _ROW_COST_TILES)
        turned += cols * (rows + _ROW_COST_TILES)
    queues = frozenset(queued & program.tokens.keys())
    computing = frozenset(engines.intersection(COMPUTING))
    return Scan(count, queues, computing, turned < upright, copies, flits)
