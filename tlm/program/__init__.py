"""Programs over a grid of tiles: what a kernel builds and every level runs (docs/programs.md).

A program is a sequence of SPMD operations. Each belongs to one in-order engine of every tile of its
set, takes tokens before it starts and gives tokens when it ends.
"""

from tlm.program.data import Buffer, Gemm, Task, Vector
from tlm.program.operations import (
    Along,
    Collective,
    Engine,
    Indices,
    Load,
    Multicast,
    OffChip,
    Operation,
    Reduce,
    Relay,
    Roots,
    Send,
    Store,
    Transfer,
    Work,
)
from tlm.program.program import Program
from tlm.program.tokens import Token

__all__ = [
    "Along",
    "Buffer",
    "Collective",
    "Engine",
    "Gemm",
    "Indices",
    "Load",
    "Multicast",
    "OffChip",
    "Operation",
    "Program",
    "Reduce",
    "Relay",
    "Roots",
    "Send",
    "Store",
    "Task",
    "Token",
    "Transfer",
    "Vector",
    "Work",
]
