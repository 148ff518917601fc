"""Work of a tile's engine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer, Gemm, Task, buffer_names, task_fault
from tlm.program.lines import Placement
from tlm.program.operations.base import Ends, Engine, Grid, Operation, outside_fault, turned_tiles

_NOWHERE = Ends(range(0), range(0))


@dataclass(frozen=True, slots=True)
class Work(Operation):
    """Occupies an engine of each tile for some cycles.

    Attributes:
        engine: Any engine but TRANSFER.
        tiles: Tiles that work.
        cycles: One number for all, or an array of shape (rows of the set, columns of the set).
        takes: Tokens taken at the tile at the start.
        gives: Tokens given at the tile at the end.
        task: What is computed: a `Gemm` on MATRIX, a `Vector` on VECTOR; None computes nothing.
        label: What it is for, for traces.
    """

    engine: Engine
    tiles: TileSet
    cycles: int | NDArray[np.int64]
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    task: Task | None = None
    label: str = ""
    flits: int = field(default=0, init=False, repr=False)
    slots: tuple[str, ...] = field(default=(), init=False, repr=False)
    arrivals: tuple[str, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.cycles, np.integer):
            object.__setattr__(self, "cycles", int(self.cycles))
        elif not isinstance(self.cycles, int):
            object.__setattr__(self, "cycles", np.asarray(self.cycles))

    @property
    def near(self) -> Ends:
        """Tiles that work."""
        return Ends.of(self.tiles)

    @property
    def far(self) -> Ends:
        """None."""
        return _NOWHERE

    @property
    def touched(self) -> tuple[tuple[str, Ends], ...]:
        """The task's operands and result."""
        names = () if self.task is None else buffer_names(self.task)
        return tuple((name, self.near) for name in names)

    def turned(self) -> "Work":
        """See `Operation`."""
        return replace(self, tiles=turned_tiles(self.tiles))

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`."""
        for rows, cols, tiles in lines.pieces(self.tiles):
            cycles = self.cycles if isinstance(self.cycles, int) else self.cycles[rows, cols]
            yield replace(self, tiles=tiles, cycles=cycles), []

    def _own_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        if self.engine is Engine.TRANSFER:
            return "engine TRANSFER only moves data; use a transfer"
        fault = self._cycles_fault()
        if fault:
            return fault
        if self.task is not None:
            engine = Engine.MATRIX if isinstance(self.task, Gemm) else Engine.VECTOR
            if self.engine is not engine:
                return f"a task of engine {engine.name} on engine {self.engine.name}"
            fault = task_fault(self.task, buffers)
            if fault:
                return fault
        return outside_fault(self.tiles, grid)

    def _cycles_fault(self) -> str | None:
        cycles = self.cycles
        if isinstance(cycles, int):
            least = cycles
        else:
            expected = (len(self.tiles.rows), len(self.tiles.cols))
            if cycles.dtype.kind not in "iu":
                return f"cycles is of type {cycles.dtype}; allowed: whole numbers"
            if cycles.shape != expected:
                return f"cycles has shape {cycles.shape}; the tile set is {expected}"
            least = int(cycles.min()) if cycles.size else 0
        return f"cycles holds {least}; allowed: 0 or more" if least < 0 else None
