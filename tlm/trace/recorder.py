"""What an engine tells of a run while it goes on."""

from typing import Protocol

from tlm.interconnect.packets import TileSet
from tlm.program.operations import Engine

Tile = tuple[int, int]


class Recorder(Protocol):
    """Takes note of operations and transfers, in any order. Cycles as of docs/programs.md."""

    @property
    def region(self) -> TileSet:
        """Tiles that matter; an engine may tell of others too."""

    def operation(
        self, number: int, label: str, engine: Engine, tile: Tile, start_cycle: int, end_cycle: int
    ) -> None:
        """An engine of a tile did an operation.

        Args:
            number: Number of the operation in the program.
            label: Its label.
            engine: The engine.
            tile: Row and column.
            start_cycle: When its tokens, and the credits of a transfer, were there.
            end_cycle: When it gave its tokens.
        """

    def transfer(
        self,
        number: int,
        label: str,
        source: Tile,
        target: Tile,
        flits: int,
        start_cycle: int,
        arrival_cycle: int,
    ) -> None:
        """A transfer has been written at a tile.

        Args:
            number: Number of the operation in the program.
            label: Its label.
            source: Row and column of the source; of a reduction of its first contributor.
            target: Row and column of the tile that is written to.
            flits: Length.
            start_cycle: When it started at the source.
            arrival_cycle: When it gave its tokens at the target.
        """
