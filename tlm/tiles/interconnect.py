"""What networks do whose tiles' engines and network interfaces share banks with their flits."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from tlm.interconnect.base import NO_PACKET, Event, EventKind, Interconnect
from tlm.tiles.banked import BankedTiles, Rows
from tlm.tiles.jobs import Job
from tlm.tiles.timing import TileTiming


@runtime_checkable
class TiledInterconnect(Interconnect, Protocol):
    """A network whose tiles' engines and network interfaces share the banks of scratchpads.

    A flit goes in when its word has been read, and comes out when its word is written; jobs take as
    long as all that goes on beside them lets them.
    """

    @property
    def tile(self) -> TileTiming:
        """What the tiles are like."""

    @property
    def edge_rows(self) -> int:
        """Rows of nodes without tiles, below the others."""

    def begin(self, cycle: int, node: int, job: Job) -> None:
        """Start a job of a tile's engine, which must be free, in a cycle."""

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows | None) -> None:
        """Start a transfer, whose packets are injected next at its node.

        Args:
            cycle: When; all words of the node's transfer before have been read.
            node: Where.
            source: Its words.
            target: Where they are written; None: they ask a node without a tile for a load.
        """

    def begin_answer(self, cycle: int, node: int, target: Rows) -> None:
        """Say where the packet is written that a node without a tile injects next."""

    def let_take(self, node: int, flits: int) -> None:
        """Have a node without a tile take so many flits, then none.

        With the last one comes an event TAKEN of its packet. A node of which nobody says it takes
        all.
        """

    def let_load(self, node: int, lets: bool) -> None:
        """Have a node without a tile take requests for loads, as at first, or leave them."""

    def sends_last(self, node: int) -> bool:
        """Whether a node without a tile has nothing to send after the cycle to simulate next."""


class TileStarts(ABC):
    """What begins at the tiles of a mesh, whatever carries their flits (`TiledInterconnect`)."""

    _tiles: BankedTiles

    @property
    def tile(self) -> TileTiming:
        """What the tiles are like."""
        return self._tiles.tile

    @property
    def edge_rows(self) -> int:
        """Rows of nodes without tiles, below the others."""
        return self._tiles.edge_rows

    def begin(self, cycle: int, node: int, job: Job) -> None:
        """Start a job (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin(cycle, node, job)

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows | None) -> None:
        """Start a transfer (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin_reading(cycle, node, source, target)

    def begin_answer(self, cycle: int, node: int, target: Rows) -> None:
        """Say where a packet of a node without a tile is written (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin_answer(node, target)

    @abstractmethod
    def _wake(self, cycle: int) -> None:
        """Nothing has happened since the clock stood still, if all is idle."""


def tile_event(kind: EventKind, node: int, cycle: int) -> Event:
    """What a tile reports of a cycle.

    The interface is free in the very cycle in which a transfer's last word is read.
    """
    return Event(kind, NO_PACKET, node, cycle - int(kind is EventKind.READ))


def in_turn(events: list[Event]) -> list[Event]:
    """A cycle's events, those first that take effect in it; ends of packets come last."""

    def place(event: Event) -> tuple[int, bool, int, int]:
        return event.cycle, event.kind is EventKind.EJECTED, event.packet, event.node

    return sorted(events, key=place)
