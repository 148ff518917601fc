"""A mesh with the tiles at its nodes, whose banks its flits come from and go to, cycle by cycle."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import address, compiled, prepare
from tlm.errors import InputError
from tlm.interconnect.base import NO_PACKET, Event, EventKind
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.core import happen, settle
from tlm.interconnect.handshake.events import report
from tlm.interconnect.handshake.gates import offered_flit, put_in_flit, room_for_flit, take_flit
from tlm.interconnect.handshake.records import Records, Table
from tlm.interconnect.packets import Deliveries, Packets, Reduce, TileSet
from tlm.interconnect.zero_load import FORKS, NocTiming
from tlm.tiles import records as tiles
from tlm.tiles.banks import step
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.programs import matrix_streams, vector_streams
from tlm.tiles.records import Folds, Pass, Tiles, Words
from tlm.tiles.streams import Numbers, joined, loop
from tlm.tiles.timing import TileTiming

Routes = Annotated[NDArray[np.int64], types.int64[::1]]
Spans = list[tuple[int, int]]
#: What a tile reports beside the network's events.
_KINDS = {
    tiles.MATRIX_ENDS: EventKind.MATRIX,
    tiles.VECTOR_ENDS: EventKind.VECTOR,
    tiles.READ_ENDS: EventKind.READ,
}
_FIRST_KIND = 16  # behind the network's


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


class TiledMesh(HandshakeMesh):
    """A handshake mesh whose tiles' engines and network interfaces share the banks of scratchpads.

    A flit goes in when its word has been read, and comes out when its word is written; jobs take as
    long as all that goes on beside them lets them.

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: What the routers are like; forks must go at their own pace.
        tile: What the tiles are like.

    Raises:
        InputError: for a mesh without a router, one that is too large, other forks, or words that
            are asked for in the cycle in which what needs them begins.
    """

    def __init__(self, rows: int, cols: int, timing: NocTiming, tile: TileTiming) -> None:
        if timing.fork != FORKS[at.OWN_PACE]:
            raise InputError(f"fork: found {timing.fork}; allowed with tiles: {FORKS[at.OWN_PACE]}")
        if tile.streams.ask_cycles < 1:
            raise InputError(
                f"lead_cycles: found {tile.streams.lead_cycles}; "
                "allowed in step with a mesh: 3 or more"
            )
        super().__init__(rows, cols, timing)
        _ready()
        self.tile = tile
        self._mesh[at.TILED] = 1
        streams, size = tile.streams, tile.array_size
        count = rows * cols
        shape = (tile.banks, streams.places, streams.pipeline_cycles)
        self._tiles = tiles.new_tiles(count, size, *shape)
        self._words = np.zeros(64, dtype=np.int32)
        self._word_count = 0
        self._products: dict[MatrixJob, tuple[Folds, Spans]] = {}
        self._passes: dict[VectorJob, tuple[Pass, Spans]] = {}
        self._transfers: dict[tuple[Rows, Rows], Spans] = {}
        self._routes = np.zeros(64, dtype=np.int64)
        self._next_route = np.zeros(count, dtype=np.int64)
        self._late: list[Event] = []

    @property
    def idle(self) -> bool:
        """Nothing moves, neither in the network nor in a tile."""
        return super().idle and not self._late and not self._tiles[tiles.STIRRING]

    def begin(self, cycle: int, node: int, job: MatrixJob | VectorJob) -> None:
        """Start a job of a tile's engine, which must be free, in a cycle."""
        self._wake(cycle)
        tile, asks = self._record(node), cycle + self.tile.streams.ask_cycles
        size = self.tile.array_size
        if isinstance(job, MatrixJob):
            if job not in self._products:
                folds, streams = matrix_streams(job, size)
                self._products[job] = folds, self._placed(streams)
            tiles.begin_matrix(self._tiles, tile, asks, *self._products[job])
        else:
            if job not in self._passes:
                work, streams = vector_streams(job, size)
                self._passes[job] = work, self._placed(streams)
            tiles.begin_vector(self._tiles, tile, asks, *self._passes[job])

    def begin_reading(self, cycle: int, node: int, source: Rows, target: Rows) -> None:
        """Start a transfer, whose packets are injected next at its node.

        Args:
            cycle: When; all words of the node's transfer before have been read.
            node: Where.
            source: Its words.
            target: Where they are written.
        """
        self._wake(cycle)
        if (source, target) not in self._transfers:
            streams = [
                loop(each.address, (each.words, each.rows), (1, each.distance))
                for each in (source, target)
            ]
            self._transfers[source, target] = self._placed(streams)
        (begin, end), (self._next_route[node], _) = self._transfers[source, target]
        asks = cycle + self.tile.streams.ask_cycles
        tiles.begin_reading(self._tiles, self._record(node), asks, begin, end)

    def inject(self, cycle: int, source: int, goal: TileSet | Reduce, flits: int) -> int:
        """Queue a packet of the transfer that has begun at a node (see `Interconnect`)."""
        packet = super().inject(max(cycle, self._clock), source, goal, flits)
        if packet >= len(self._routes):
            self._routes = np.resize(self._routes, 2 * len(self._routes))
        self._routes[packet] = self._next_route[source]
        self._next_route[source] += flits
        return packet

    def simulate(self, packets: Packets) -> Deliveries:
        """Refuse packets that no transfer's words stand behind.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"packets: found {len(packets)} without words; "
            "allowed with tiles: those injected after begin_reading"
        )

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `Interconnect`)."""
        if self._late:
            events, self._late = self._late, []
            return events
        events = super().advance(until_cycle)
        # The interface is free in the very cycle in which a transfer's last word is read.
        read = [event for event in events if event.kind is EventKind.READ]
        if read:
            self._late = [event for event in events if event.kind is not EventKind.READ]
        return read or events

    def _run(self, until_cycle: int) -> int:
        return int(
            _run_tiled(
                self._mesh, self._packets, self._deliveries, self._tiles, self._words,
                self._routes, until_cycle,
            )
        )  # fmt: skip

    def _event(self, kind: int, what: int, cycle: int) -> Event:
        if kind < _FIRST_KIND:
            return super()._event(kind, what, cycle)
        found = _KINDS[kind - _FIRST_KIND]
        return Event(found, NO_PACKET, what, cycle - int(found is EventKind.READ))

    def _wake(self, cycle: int) -> None:
        """Nothing has happened since the clock stood still."""
        if self.idle:
            self._mesh[at.CLOCK] = max(cycle, self._clock)

    def _record(self, node: int) -> int:
        return int(tiles.HEADER_COLUMNS + node * self._tiles[tiles.RECORD_SIZE])

    def _placed(self, streams: Sequence[Numbers]) -> Spans:
        """Where words that are entered into the list of all begin and end, stream by stream."""
        words, ends = joined(streams, self.tile.banks)
        first, stop = self._word_count, self._word_count + len(words)
        if stop > len(self._words):
            self._words = np.resize(self._words, 2 * stop)
        self._words[first:stop] = words
        self._word_count = stop
        return [(first + begin, first + end) for begin, end in ends]


@compiled
def _run_tiled(
    m: Records,
    packets: Table,
    deliveries: Table,
    t: Tiles,
    words: Words,
    routes: Routes,
    until: int,
) -> int:
    """As `run` of the handshake model, with the tiles at which anything goes on."""
    m[at.REPORTED] = 0
    while m[at.REPORTED] == 0 and (t[tiles.STIRRING] or m[at.PENDING] > 0) and m[at.CLOCK] < until:
        if happen(m):
            settle(m, packets, deliveries)
        t[tiles.STIRRING] = _step_tiles(m, packets, t, words, routes)
        if m[at.TOP] > 0:
            settle(m, packets, deliveries)
        m[at.CLOCK] += 1
    if m[at.REPORTED] == 0 and m[at.PENDING] == 0 and not t[tiles.STIRRING] and m[at.OWED] > 0:
        return -1
    return m[at.REPORTED]  # type: ignore[no-any-return]  # an element is Any


@compiled
def _step_tiles(m: Records, packets: Table, t: Tiles, words: Words, routes: Routes) -> bool:
    """A cycle of all tiles at which anything goes on; whether more does by itself."""
    stirs, now, node = False, m[at.CLOCK], address(m[at.NODES])
    for number, tile in enumerate(range(tiles.HEADER_COLUMNS, len(t), t[tiles.RECORD_SIZE])):
        offered = m[node + at.OFFERED] > 0
        if t[tile + tiles.LIVE] > 0 or offered:
            comes, room = tiles.NOBODY, room_for_flit(m, packets, node)
            if offered:
                packet, place = offered_flit(m, node)
                comes = words[routes[packet] + place]
            brought = step(t, words, tile, now, comes, room <= now)
            stirs = stirs or brought & tiles.STIRS > 0 or now < room < at.NEVER
            if brought & tiles.CAME:
                take_flit(m, node)
            if brought & tiles.SENT:
                put_in_flit(m, node)
            for kind in (tiles.MATRIX_ENDS, tiles.VECTOR_ENDS, tiles.READ_ENDS):
                if brought & kind:
                    report(m, now, _FIRST_KIND + kind, number)
        node += m[at.NODE_SIZE]
    return stirs


@cache
def _ready() -> None:
    """Compile mesh and tiles, or load what was compiled."""
    prepare(_run_tiled)
