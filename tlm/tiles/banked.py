"""Jobs and transfers under way in tiles whose streams share the banks of a scratchpad."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tlm.errors import InputError
from tlm.tiles.jobs import Job
from tlm.tiles.records import (
    HEADER_COLUMNS,
    LOAD,
    Header,
    TileTables,
    begin_job,
    begin_reading,
    new_tiles,
)
from tlm.tiles.streams import Folds, Numbers, Pass, Spans, job_streams, joined, loop
from tlm.tiles.timing import TileTiming


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


class BankedTiles:
    """Jobs and transfers under way in the tiles of a mesh, word by word.

    Attributes:
        tile: What the tiles are like.
        edge_rows: Rows of nodes without tiles.
        tables: All that is known of them.

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
        self.tables = TileTables(
            records=new_tiles(rows * cols, tile),
            words=np.zeros(64, dtype=np.int32),
            routes=np.zeros(64, dtype=np.int64),
        )
        self._word_count = 0
        self._jobs: dict[Job, tuple[Folds | Pass, Spans]] = {}
        self._transfers: dict[tuple[Rows, Rows], Spans] = {}
        self._next_route = np.zeros((rows + edge_rows) * cols, dtype=np.int64)

    @property
    def stirring(self) -> bool:
        """Something goes on by itself."""
        return bool(self.tables.records[Header.STIRRING])

    def begin(self, cycle: int, node: int, job: Job) -> None:
        """Start a job of a tile's engine, which must be free, in a cycle."""
        if job not in self._jobs:
            work, streams = job_streams(job, self.tile.array_size)
            self._jobs[job] = work, self._placed(streams)
        asks = cycle + self.tile.streams.ask_cycles
        begin_job(self.tables.records, self._record(node), asks, *self._jobs[job])

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows | None) -> None:
        """Start a transfer (see `TiledInterconnect`)."""
        (begin, end), (self._next_route[node], _) = self._spans(source, target or source)
        if target is None:
            self._next_route[node] = LOAD
        asks = cycle + self.tile.streams.ask_cycles
        begin_reading(self.tables.records, self._record(node), asks, begin, end)

    def begin_answer(self, node: int, target: Rows) -> None:
        """Say where a packet of a node without a tile is written (see `TiledInterconnect`)."""
        _, (self._next_route[node], _) = self._spans(target, target)

    def route(self, packet: int, source: int, flits: int) -> None:
        """The next flits of the transfer that has begun at a node are those of a packet."""
        if packet >= len(self.tables.routes):
            grown = np.resize(self.tables.routes, 2 * packet)
            self.tables = self.tables._replace(routes=grown)
        self.tables.routes[packet] = self._next_route[source]
        self._next_route[source] += flits

    def _spans(self, source: Rows, target: Rows) -> Spans:
        """Where a transfer's words stand, those that are read and those that are written."""
        if (source, target) not in self._transfers:
            streams = [
                loop(each.address, (each.words, each.rows), (1, each.distance))
                for each in (source, target)
            ]
            self._transfers[source, target] = self._placed(streams)
        return self._transfers[source, target]

    def _record(self, node: int) -> int:
        return int(HEADER_COLUMNS + node * self.tables.records[Header.RECORD_SIZE])

    def _placed(self, streams: Sequence[Numbers]) -> Spans:
        """Where words that are entered into the list of all begin and end, stream by stream."""
        words, ends = joined(streams, self.tile.banks)
        first, stop = self._word_count, self._word_count + len(words)
        if stop > len(self.tables.words):
            self.tables = self.tables._replace(words=np.resize(self.tables.words, 2 * stop))
        self.tables.words[first:stop] = words
        self._word_count = stop
        return [(first + begin, first + end) for begin, end in ends]
