"""A program: operations over a grid of tiles, with the tokens and buffers of every tile."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tlm.errors import InputError
from tlm.program.data import Buffer, buffers_fault, peak_bytes
from tlm.program.operations import Operation
from tlm.program.tokens import Token

#: Operations times tiles of a program that is built once; longer ones are never held in memory.
_SHORT = 2**16


@dataclass(slots=True)
class Found:
    """What was found out about a program, so that it is not again: it builds the same each time.

    Attributes:
        operations: All that it has; None before they are built, and of a long program.
        fits: Whether each was checked.
        steps: Of all tiles, each a `tlm.program.steps.Step`; None before they are asked for, and
            of many.
        scripts: What its runs at level lt are made of, by all else that they depend on; none of a
            long program.
    """

    operations: list[Operation] | None = None
    fits: bool = False
    steps: list[Any] | None = None
    scripts: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Operations over ``rows`` x ``cols`` tiles.

    ``build`` returns an iterator over the same operations each time; nobody changes their arrays
    once the program has run. Every tile has the ``tokens`` and the ``buffers``; a program of times
    alone needs no buffers.
    """

    rows: int
    cols: int
    tokens: Mapping[str, Token]
    build: Callable[[], Iterable[Operation]]
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    found: Found = field(default_factory=Found, init=False, repr=False)

    def built(self) -> Iterator[Operation]:
        """The operations in program order, none checked."""
        return self._build() if self.found.operations is None else iter(self.found.operations)

    def operations(self) -> Iterator[Operation]:
        """The operations in program order, each checked against grid, tokens and buffers.

        Raises:
            InputError: naming the operation and what does not fit.
        """
        return self.built() if self.found.fits else self._check()

    def within_tiles(self) -> Iterator[Operation]:
        """The operations as they are but for off-chip memory (`Operation.within_tiles`)."""
        return (operation.within_tiles() for operation in self.operations())

    @property
    def tile_bytes(self) -> int:
        """Memory that the buffers of a tile take."""
        return peak_bytes(self.buffers)

    def _build(self) -> Iterator[Operation]:
        most = _SHORT // (self.rows * self.cols)
        kept: list[Operation] = []
        for operation in self.build():
            if len(kept) <= most:
                kept.append(operation)
            yield operation
        if len(kept) <= most:
            self.found.operations = kept

    def _check(self) -> Iterator[Operation]:
        fault = buffers_fault(self.buffers)
        if fault:
            raise InputError(fault)
        grid = (self.rows, self.cols)
        for number, operation in enumerate(self.built()):
            fault = operation.fault(grid, self.tokens, self.buffers)
            if fault:
                raise InputError(f"{operation.called(number)}: {fault}")
            yield operation
        self.found.fits = True
