"""What an engine tells of a run while it goes on. Cycles as of docs/programs.md."""

from typing import NamedTuple, Protocol

from tlm.interconnect.packets import TileSet
from tlm.program.operations import Tile


class EngineSpan(NamedTuple):
    """An engine of a tile did an operation."""

    number: int  # of the operation in the program
    label: str  # of the operation
    engine: int  # an `Engine`
    tile: Tile
    start_cycle: int  # when its tokens, and the credits of a transfer, were there
    end_cycle: int  # when it gave its tokens


class TransferSpan(NamedTuple):
    """A transfer has been written at a tile."""

    number: int  # of the operation in the program
    label: str  # of the operation
    source: Tile  # of a reduction its first contributor
    target: Tile  # that is written to
    flits: int
    start_cycle: int  # when it started at the source
    arrival_cycle: int  # when it gave its tokens at the target


class Recorder(Protocol):
    """Takes note of operations and transfers, in any order."""

    @property
    def region(self) -> TileSet:
        """Tiles that matter; an engine may tell of others too."""

    def operation(self, span: EngineSpan) -> None:
        """An engine did an operation."""

    def transfer(self, span: TransferSpan) -> None:
        """A transfer has been written."""
