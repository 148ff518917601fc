"""What all transfers have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program.arithmetic import Integers
from tlm.program.data import Buffer, unknown_buffer
from tlm.program.operations.base import Ends, Engine, Grid, Operation, Tile, Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Operation):
    """Moves blocks between tiles, or between tiles and off-chip memory.

    Attributes:
        source: Buffer that is sent; None: the program is of times alone.
        target: Buffer into which it is written, of the same shape.
    """

    engine: Engine = field(default=Engine.TRANSFER, init=False, repr=False)
    takes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    arrivals: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    label: str = ""

    #: The blocks of the near tiles are combined into one for each of the far ones.
    inwards: ClassVar[bool] = False

    @property
    def transfers(self) -> int:
        """See `Operation`."""
        return len(self.far if self.inwards else self.near)

    @property
    def touched(self) -> tuple[tuple[str, Ends], ...]:
        """Source and target, each at its end."""
        if self.source is None or self.target is None:
            return ()
        return (self.source, self.near), (self.target, self.far)

    def of_flits(self, flits: int) -> Self:
        """The same with transfers of another length."""
        return replace(self, flits=flits)  # type: ignore[call-arg]  # every kind has that field

    @property
    def sent_flits(self) -> int:
        """Flits that a near tile sends."""
        return self.flits

    @abstractmethod
    def ways(self, region: TileSet | None = None) -> Iterator[Way]:
        """The transfers one by one, in the order in which units are counted.

        Args:
            region: Leave out most of those that neither begin nor end at these tiles.
        """

    def contributes(self, tile: Tile) -> bool:
        """Whether a tile's block changes what blocks are combined to."""
        return True

    def combined(self, blocks: list[Integers], bits: int) -> Integers:
        """What blocks of ``bits`` are combined to, of an operation that goes inwards."""
        raise TypeError(f"{type(self).__name__} combines nothing")

    def _own_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        fault = self._length_fault() or self._data_fault(buffers)
        return fault or self._places_fault(grid, buffers)

    @abstractmethod
    def _places_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        """What is wrong with the tiles that it names, or with where its buffers lie."""

    def _length_fault(self) -> str | None:
        if not isinstance(self.flits, int | np.integer):
            return f"flits is {self.flits!r}; allowed: whole numbers from 1"
        if self.flits < 1:
            return f"flits is {self.flits}; a transfer has at least 1"
        for here, there, names in (
            ("takes", "slots", {*self.takes} & {*self.slots}),
            ("gives", "arrivals", {*self.gives} & {*self.arrivals}),
        ):
            # A tile is a source and a destination of the same operation: which unit is first?
            if names:
                return f"token '{min(names)}' is among both {here} and {there}"
        return None

    def _data_fault(self, buffers: Mapping[str, Buffer]) -> str | None:
        source, target = self.source, self.target
        if source is None or target is None:
            if source == target:
                return None
            return f"source '{source}' and target '{target}'; allowed: both or neither"
        fault = unknown_buffer((source, target), buffers)
        if fault:
            return fault
        here, there = buffers[source], buffers[target]
        if (here.shape, here.bits) != (there.shape, there.bits):
            return (
                f"source '{source}' is {here.rows} x {here.columns} of {here.bits} bits, target "
                f"'{target}' {there.rows} x {there.columns} of {there.bits}"
            )
        return None
