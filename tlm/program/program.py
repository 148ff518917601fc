"""A program: operations over a grid of tiles, with the tokens and buffers of every tile."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tlm.errors import InputError
from tlm.program.data import Buffer, buffers_fault, peak_bytes
from tlm.program.operations import Operation
from tlm.program.tokens import Token

#: Operations times tiles of a program that is built once; longer ones are never held in memory.
_KEPT = 2**16


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """Operations over ``rows`` x ``cols`` tiles.

    ``build`` returns an iterator over the same operations each time: a short program is kept when
    it has been built once. Every tile has the ``tokens`` and the ``buffers``; a program of times
    alone needs no buffers.
    """

    rows: int
    cols: int
    tokens: Mapping[str, Token]
    build: Callable[[], Iterable[Operation]]
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    _checked: list[bool] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Keep what is built, if it is short."""
        object.__setattr__(self, "build", _Kept(self.build, _KEPT // (self.rows * self.cols)))

    def operations(self) -> Iterator[Operation]:
        """The operations in program order, each checked against grid, tokens and buffers.

        Raises:
            InputError: naming the operation and what does not fit.
        """
        if self._checked:  # it builds the same each time
            yield from self.build()
            return
        fault = buffers_fault(self.buffers)
        if fault:
            raise InputError(fault)
        grid = (self.rows, self.cols)
        for number, operation in enumerate(self.build()):
            fault = operation.fault(grid, self.tokens, self.buffers)
            if fault:
                raise InputError(f"{operation.called(number)}: {fault}")
            yield operation
        self._checked.append(True)

    def within_tiles(self) -> Iterator[Operation]:
        """The operations as they are but for off-chip memory (`Operation.within_tiles`)."""
        return (operation.within_tiles() for operation in self.operations())

    @property
    def tile_bytes(self) -> int:
        """Memory that the buffers of a tile take."""
        return peak_bytes(self.buffers)


@dataclass(slots=True)
class _Kept:
    """Builds operations; keeps them, if there are no more than ``most``."""

    build: Callable[[], Iterable[Operation]]
    most: int
    operations: list[Operation] | None = None

    def __call__(self) -> Iterator[Operation]:
        return self._built() if self.operations is None else iter(self.operations)

    def _built(self) -> Iterator[Operation]:
        kept: list[Operation] = []
        for operation in self.build():
            if len(kept) <= self.most:
                kept.append(operation)
            yield operation
        if len(kept) <= self.most:
            self.operations = kept
