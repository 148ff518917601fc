"""Blocks that move between tiles and off-chip memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer
from tlm.program.lines import Placement
from tlm.program.operations.base import (
    Ends,
    Engine,
    Grid,
    Operation,
    Unicasts,
    Way,
    indices,
    outside_fault,
    turned_tiles,
)
from tlm.program.operations.send import Send
from tlm.program.operations.transfer import Transfer
from tlm.program.operations.work import Work


@dataclass(frozen=True, slots=True)
class OffChip(Transfer):
    """Every tile of a set moves a block between its memory and off-chip memory.

    It gives ``gives`` when all that the tile sends has left, a request or a block. It gives
    ``arrivals`` at the same tile when a block, or the word that it is kept, has come.

    Attributes:
        tiles: Tiles, each with a block of its own.
        flits: Length of each block.
    """

    tiles: TileSet
    flits: int
    # Room in a tile's own memory is among what it takes.
    slots: tuple[str, ...] = field(default=(), init=False, repr=False)

    #: Blocks come from off-chip memory.
    loads: ClassVar[bool]

    @property
    def near(self) -> Ends:
        """The tiles."""
        return Ends.of(self.tiles)

    @property
    def far(self) -> Ends:
        """The same: a block, or the word that it is kept, comes to who asked."""
        return Ends.of(self.tiles)

    @property
    def block(self) -> str:
        """Name of the buffer in off-chip memory; empty if the program says none."""
        return (self.source if self.loads else self.target) or ""

    @property
    def sent_flits(self) -> int:
        """Flits that a tile sends: of a load a request, of a store the block and a request."""
        return 1 if self.loads else self.flits + 1

    def ways(self, region: TileSet | None = None) -> Iterator[Way]:
        """See `Transfer`: each tile's with itself, as memory is no tile."""
        return self.within_tiles().ways(region)

    def moves(self) -> Iterator[Unicasts]:
        """See `Transfer`: none among the tiles."""
        return self.within_tiles().moves()

    def within_tiles(self) -> Send:
        """See `Operation`."""
        rows, cols = indices(self.tiles.rows), indices(self.tiles.cols)
        return Send(
            self.tiles, rows, cols, self.flits, takes=self.takes, gives=self.gives,
            arrivals=self.arrivals, source=self.source, target=self.target, label=self.label,
        )  # fmt: skip

    def at_once(self) -> Work:
        """What it is if off-chip memory costs nothing: the block is there when asked for."""
        given = (*self.gives, *self.arrivals)
        return Work(Engine.TRANSFER, self.tiles, 0, self.takes, given, label=self.label)

    def turned(self) -> Self:
        """See `Operation`."""
        return replace(self, tiles=turned_tiles(self.tiles))

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`."""
        for _, _, tiles in lines.pieces(self.tiles):
            yield replace(self, tiles=tiles), []

    def _places_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        return self._offchip_fault(buffers) or outside_fault(self.tiles, grid)

    def _offchip_fault(self, buffers: Mapping[str, Buffer]) -> str | None:
        if self.source is None or self.target is None:
            return None
        found = (buffers[self.source].offchip, buffers[self.target].offchip)
        if found == (self.loads, not self.loads):
            return None
        where = ["off chip" if offchip else "in the tile" for offchip in found]
        return (
            f"source '{self.source}' lies {where[0]}, target '{self.target}' {where[1]}; "
            f"allowed: a {'source' if self.loads else 'target'} off chip, the other in the tile"
        )


@dataclass(frozen=True, slots=True)
class Load(OffChip):
    """Every tile of a set asks off-chip memory for a block; ``source`` is a buffer off chip."""

    loads = True


@dataclass(frozen=True, slots=True)
class Store(OffChip):
    """Every tile of a set writes a block to off-chip memory; ``target`` is a buffer off chip.

    What a tile loads after the arrival of its store is what it has stored.
    """

    loads = False
