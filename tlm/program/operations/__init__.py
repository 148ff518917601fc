"""The operations of programs (docs/programs.md): work on a tile, and transfers between tiles.

A new operation is a class in a file of its own here, and a law in each engine that runs it. The
class says of itself what `Operation` and `Transfer` ask.
"""

from tlm.program.operations.base import (
    COMPUTING,
    Along,
    Ends,
    Engine,
    Indices,
    Operation,
    Tile,
    Trees,
    Unicasts,
    Way,
)
from tlm.program.operations.collectives import Collective, Multicast, Reduce, Roots
from tlm.program.operations.offchip import Load, OffChip, Store
from tlm.program.operations.relay import Relay
from tlm.program.operations.send import Send
from tlm.program.operations.transfer import Transfer
from tlm.program.operations.work import Work

__all__ = [
    "COMPUTING",
    "Along",
    "Collective",
    "Ends",
    "Engine",
    "Indices",
    "Load",
    "Multicast",
    "OffChip",
    "Operation",
    "Reduce",
    "Relay",
    "Roots",
    "Send",
    "Store",
    "Tile",
    "Transfer",
    "Trees",
    "Unicasts",
    "Way",
    "Work",
]
