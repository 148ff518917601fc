"""A program: operations over a grid of tiles, with the tokens and buffers of every tile."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tlm.errors import InputError
from tlm.program.data import Buffer, buffers_fault, peak_bytes
from tlm.program.operations import Operation
from tlm.program.tokens import Token


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
            fault = operation.fault(grid, self.tokens, self.buffers)
            if fault:
                raise InputError(f"{operation.called(number)}: {fault}")
            yield operation

    def within_tiles(self) -> Iterator[Operation]:
        """The operations as they are but for off-chip memory (`Operation.within_tiles`)."""
        return (operation.within_tiles() for operation in self.operations())

    @property
    def tile_bytes(self) -> int:
        """Memory that the buffers of a tile take."""
        return peak_bytes(self.buffers)
