"""Programs over a grid of tiles: what a kernel builds and every level runs (docs/programs.md).

A program is a sequence of SPMD operations. Each belongs to one in-order engine of every tile of its
set, takes tokens before it starts and gives tokens when it ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tlm.data import Buffer, Gemm, Task, Vector, buffers_fault, peak_bytes
from tlm.errors import InputError
from tlm.operations import (
    Along,
    Collective,
    Engine,
    Indices,
    Load,
    Multicast,
    OffChip,
    Operation,
    Reduce,
    Roots,
    Send,
    Store,
    TileOperation,
    Transfer,
    Work,
    destination,
    root_lines,
    root_tiles,
    segment_of,
    within_tiles,
)
from tlm.program_faults import operation_fault

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
    "Roots",
    "Send",
    "Store",
    "Task",
    "TileOperation",
    "Token",
    "Transfer",
    "Vector",
    "Work",
    "destination",
    "root_lines",
    "root_tiles",
    "segment_of",
    "within_tiles",
]


@dataclass(frozen=True, slots=True)
class Token:
    """A counting semaphore that every tile has one of.

    Attributes:
        initial: Units there from the start; as slots they need no credit to be known.
        depth: Most units given and not yet taken, counting in program order.

    Raises:
        InputError: if the depth is below 1, or does not hold the initial units.
    """

    initial: int = 0
    depth: int = 1

    def __post_init__(self) -> None:
        if self.depth < 1 or not 0 <= self.initial <= self.depth:
            raise InputError(
                f"token: initial {self.initial}, depth {self.depth}; "
                "allowed: a depth of 1 or more, initial from 0 to depth"
            )


@dataclass(frozen=True, slots=True)
class Program:
    """Operations over ``rows`` x ``cols`` tiles.

    ``build`` returns a fresh iterator each time, so that a long program is never held in memory.
    Every tile has the ``tokens`` and the ``buffers``; a program of times alone needs no buffers.
    """

    rows: int
    cols: int
    tokens: Mapping[str, Token]
    build: Callable[[], Iterable[Operation]]
    buffers: Mapping[str, Buffer] = field(default_factory=dict)

    def operations(self) -> Iterator[Operation]:
        """The operations in program order, each checked against grid, tokens and buffers.

        Raises:
            InputError: naming the operation and what does not fit.
        """
        fault = buffers_fault(self.buffers)
        if fault:
            raise InputError(fault)
        grid = (self.rows, self.cols)
        for number, operation in enumerate(self.build()):
            fault = operation_fault(operation, grid, self.tokens, self.buffers)
            if fault:
                raise InputError(
                    f"operation {number} ({type(operation).__name__} '{operation.label}'): {fault}"
                )
            yield operation

    def within_tiles(self) -> Iterator[TileOperation]:
        """The operations as they are but for off-chip memory (`tlm.operations.within_tiles`)."""
        return map(within_tiles, self.operations())

    @property
    def tile_bytes(self) -> int:
        """Memory that the buffers of a tile take."""
        return peak_bytes(self.buffers)
