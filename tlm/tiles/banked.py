"""Tiles at the nodes of a mesh, whose banks its flits come from and go to."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.interconnect.base import NO_PACKET, Event, EventKind, Interconnect
from tlm.tiles import records as at
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.programs import matrix_streams, vector_streams
from tlm.tiles.records import Folds, Pass
from tlm.tiles.streams import Numbers, joined, loop
from tlm.tiles.timing import TileTiming

Routes = Annotated[NDArray[np.int64], types.int64[::1]]
_Spans = list[tuple[int, int]]
#: What a tile reports, by the bit of a cycle that brings it.
KINDS = {
    at.MATRIX_ENDS: EventKind.MATRIX,
    at.VECTOR_ENDS: EventKind.VECTOR,
    at.READ_ENDS: EventKind.READ,
}


class Rows(NamedTuple):
    """Rows of words in a scratchpad.

    Attributes:
        address: Of the first word.
        rows: How many.
        words: Words of each.
        distance: Words from row to row.
    """

    address: int
    rows: int
    words: int
    distance: int


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

    def begin(self, cycle: int, node: int, job: MatrixJob | VectorJob) -> None:
        """Start a job of a tile's engine, which must be free, in a cycle."""

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows) -> None:
        """Start a transfer, whose packets are injected next at its node.

        Args:
            cycle: When; all words of the node's transfer before have been read.
            node: Where.
            source: Its words.
            target: Where they are written.
        """

    def begin_answer(self, cycle: int, node: int, target: Rows) -> None:
        """Say where the packet is written that a node without a tile injects next."""


class BankedTiles:
    """Jobs and transfers under way in the tiles of a mesh, word by word.

    Attributes:
        tile: What the tiles are like.
        edge_rows: Rows of nodes without tiles.
        records: All that is known of them (`tlm.tiles.records`).
        words: Banks of the words of all jobs and transfers so far.
        routes: By packet, where the words begin that its flits are written to.

    Args:
        rows: Rows of tiles.
        cols: Columns of the mesh.
        tile: What they are like.
        edge_rows: Rows of nodes without tiles, below the others.

    Raises:
        InputError: for rows that cannot be, or if words are asked for in the cycle in which what
            needs them begins.
    """

    def __init__(self, rows: int, cols: int, tile: TileTiming, edge_rows: int) -> None:
        if edge_rows < 0 or rows < 1:
            raise InputError(
                f"edge_rows: found {edge_rows}, below {rows} of tiles; "
                "allowed: 0 or more, below 1 or more"
            )
        if tile.streams.ask_cycles < 1:
            raise InputError(
                f"lead_cycles: found {tile.streams.lead_cycles}; "
                "allowed in step with a mesh: 3 or more"
            )
        self.tile, self.edge_rows = tile, edge_rows
        shape = (tile.banks, tile.streams.places, tile.streams.pipeline_cycles)
        self.records = at.new_tiles(rows * cols, tile.array_size, *shape)
        self.words = np.zeros(64, dtype=np.int32)
        self.routes = np.zeros(64, dtype=np.int64)
        self._word_count = 0
        self._products: dict[MatrixJob, tuple[Folds, _Spans]] = {}
        self._passes: dict[VectorJob, tuple[Pass, _Spans]] = {}
        self._transfers: dict[tuple[Rows, Rows], _Spans] = {}
        self._next_route = np.zeros((rows + edge_rows) * cols, dtype=np.int64)

    @property
    def stirring(self) -> bool:
        """Something goes on by itself."""
        return bool(self.records[at.STIRRING])

    def begin(self, cycle: int, node: int, job: MatrixJob | VectorJob) -> None:
        """Start a job of a tile's engine, which must be free, in a cycle."""
        tile, asks = self._record(node), cycle + self.tile.streams.ask_cycles
        size = self.tile.array_size
        if isinstance(job, MatrixJob):
            if job not in self._products:
                folds, streams = matrix_streams(job, size)
                self._products[job] = folds, self._placed(streams)
            at.begin_matrix(self.records, tile, asks, *self._products[job])
        else:
            if job not in self._passes:
                work, streams = vector_streams(job, size)
                self._passes[job] = work, self._placed(streams)
            at.begin_vector(self.records, tile, asks, *self._passes[job])

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows) -> None:
        """Start a transfer (see `TiledInterconnect`)."""
        (begin, end), (self._next_route[node], _) = self._spans(source, target)
        asks = cycle + self.tile.streams.ask_cycles
        at.begin_reading(self.records, self._record(node), asks, begin, end)

    def begin_answer(self, node: int, target: Rows) -> None:
        """Say where a packet of a node without a tile is written (see `TiledInterconnect`)."""
        _, (self._next_route[node], _) = self._spans(target, target)

    def route(self, packet: int, source: int, flits: int) -> None:
        """The next flits of the transfer that has begun at a node are those of a packet."""
        if packet >= len(self.routes):
            self.routes = np.resize(self.routes, 2 * packet)
        self.routes[packet] = self._next_route[source]
        self._next_route[source] += flits

    def _spans(self, source: Rows, target: Rows) -> _Spans:
        """Where a transfer's words stand, those that are read and those that are written."""
        if (source, target) not in self._transfers:
            streams = [
                loop(each.address, (each.words, each.rows), (1, each.distance))
                for each in (source, target)
            ]
            self._transfers[source, target] = self._placed(streams)
        return self._transfers[source, target]

    def _record(self, node: int) -> int:
        return int(at.HEADER_COLUMNS + node * self.records[at.RECORD_SIZE])

    def _placed(self, streams: Sequence[Numbers]) -> _Spans:
        """Where words that are entered into the list of all begin and end, stream by stream."""
        words, ends = joined(streams, self.tile.banks)
        first, stop = self._word_count, self._word_count + len(words)
        if stop > len(self.words):
            self.words = np.resize(self.words, 2 * stop)
        self.words[first:stop] = words
        self._word_count = stop
        return [(first + begin, first + end) for begin, end in ends]


class TileStarts:
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

    def begin(self, cycle: int, node: int, job: MatrixJob | VectorJob) -> None:
        """Start a job (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin(cycle, node, job)

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows) -> None:
        """Start a transfer (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin_reading(cycle, node, source, target)

    def begin_answer(self, cycle: int, node: int, target: Rows) -> None:
        """Say where a packet of a node without a tile is written (see `TiledInterconnect`)."""
        self._wake(cycle)
        self._tiles.begin_answer(node, target)

    def _wake(self, cycle: int) -> None:
        """Nothing has happened since the clock stood still, if all is idle."""
        raise NotImplementedError


def tile_event(kind: int, node: int, cycle: int) -> Event:
    """What a tile reports of a cycle.

    The interface is free in the very cycle in which a transfer's last word is read.
    """
    found = KINDS[kind]
    return Event(found, NO_PACKET, node, cycle - int(found is EventKind.READ))


def in_turn(events: list[Event]) -> list[Event]:
    """A cycle's events, those first that take effect in it."""
    return sorted(events, key=lambda event: event.cycle)
