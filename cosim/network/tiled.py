"""The Verilated mesh with modelled tiles at its nodes, in step cycle by cycle."""

import ctypes
from pathlib import Path

import numpy as np

from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import ReductionGoal, TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.tiles.banked import BankedTiles
from tlm.tiles.interconnect import TileStarts, in_turn, tile_event
from tlm.tiles.outside_mesh import NO_FLIT, Done, ready, run_beside
from tlm.tiles.records import LOAD
from tlm.tiles.timing import TileTiming

_ENDS = (
    (Done.MATRIX, EventKind.MATRIX),
    (Done.VECTOR, EventKind.VECTOR),
    (Done.READ, EventKind.READ),
)


class TiledRtlInterconnect(TileStarts, RtlInterconnect):
    """A Verilated mesh with tiles (`TiledInterconnect`).

    A node offers a flit when its word has been read, and takes one when its bank writes the word.
    While nothing is on its way the mesh is not clocked, though tiles go on.

    Args:
        model: The mesh; built if it is not yet.
        tile: What the tiles are like.
        edge_rows: Rows of nodes without tiles, below the others: they take what comes, as far as
            `let_take` lets them, and send at once.
        loopback: A sender among the destinations of its multicast gets a copy.
        waves: A VCD file that is written as the mesh runs.
        timing: Of the mesh's model (`RtlInterconnect`).

    Raises:
        InputError: if the waves cannot be written, for rows that cannot be, or words that are
            asked for in the cycle in which what needs them begins.
        SimulationError: if the model cannot be built, or stops in its reset.
    """

    def __init__(
        self,
        model: LoopModel,
        tile: TileTiming,
        *,
        edge_rows: int = 0,
        loopback: bool = True,
        waves: Path | None = None,
        timing: NocTiming | None = None,
    ) -> None:
        rows, cols = model.rows - edge_rows, model.cols
        self._tiles = BankedTiles(rows, cols, tile, edge_rows)
        super().__init__(model, loopback=loopback, waves=waves, timing=timing)
        nodes, count = model.rows * cols, rows * cols
        ready()
        self._nothing = np.full((nodes, 2), NO_FLIT, dtype=np.int64)
        self._offers = self._nothing.copy()
        self._offers_place = self._offers.ctypes.data_as(ctypes.c_void_p)
        self._edge = (1 << nodes) - (1 << count)  # a bit a node
        self._may_take: dict[int, int | None] = dict.fromkeys(range(count, nodes))  # None: all
        self._leave_loads: set[int] = set()
        self._offered = 0  # a bit a node that has offered a flit since the mesh was clocked
        self._done = np.zeros(len(Done), dtype=np.int64)

    @property
    def idle(self) -> bool:
        """Nothing moves, neither in the network nor in a tile."""
        return super().idle and not self._tiles.stirring

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        """Queue a packet of the transfer that has begun at a node (see `Interconnect`)."""
        packet = super().inject(max(cycle, self._state.cycle), source, goal, flits)
        self._state.quiet = 0
        self._tiles.route(packet, source, flits)
        return packet

    def let_take(self, node: int, flits: int) -> None:
        """Have a node without a tile take so many flits (see `TiledInterconnect`)."""
        self._may_take[node] = flits

    def let_load(self, node: int, lets: bool) -> None:
        """Have a node without a tile take requests for loads (see `TiledInterconnect`)."""
        (self._leave_loads.discard if lets else self._leave_loads.add)(node)

    def sends_last(self, node: int) -> bool:
        """Whether a node has nothing to send after the next cycle (see `TiledInterconnect`)."""
        return bool(self._library.loop_sends_last(self._open, node))

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `RtlInterconnect`)."""
        loop = self._open
        while not self.idle and self._state.cycle < until_cycle:
            # Flits that have been offered all the while will not get in by themselves.
            resting = self._rests and not self._done[Done.HOLD] & ~self._offered
            if resting and not self._tiles.stirring:
                self._stand_still()
                break
            events = self._apart(until_cycle) if resting else self._together(loop)
            if events:
                return in_turn(events)
        return []

    def _together(self, loop: int) -> list[Event]:
        """A cycle of mesh and tiles."""
        now, done = self._state.cycle, self._done
        self._offered = int(done[Done.HOLD])
        room = self._library.loop_begin(loop, self._offered | self._edge, self._offers_place)
        run_beside(self._tiles.tables, self._offers, room, done, now, now + 1)
        takes, taken = self._take_at_edge(now)
        moved = self._library.loop_end(loop, int(done[Done.TOOK]) | takes)
        self._hold_no_failure()
        return [*self._ended(now), *taken, *(self._events() if moved else ())]

    def _take_at_edge(self, cycle: int) -> tuple[int, list[Event]]:
        """A bit a node without a tile that takes what it is offered; which have to stop then."""
        takes, stop = 0, []
        for node, flits in self._may_take.items():
            packet = int(self._offers[node, 0])
            loads = packet != NO_FLIT and self._tiles.tables.routes[packet] == LOAD
            if flits == 0 or (loads and node in self._leave_loads):
                continue
            takes |= 1 << node
            if flits is not None and packet != NO_FLIT:
                self._may_take[node] = flits - 1
                if flits == 1:
                    stop.append(Event(EventKind.TAKEN, packet, node, cycle))
        return takes, stop

    def _apart(self, until_cycle: int) -> list[Event]:
        """Cycles of tiles beside a mesh at rest."""
        now, done = self._state.cycle, self._done
        self._state.cycle = run_beside(self._tiles.tables, self._nothing, 0, done, now, until_cycle)
        return self._ended(self._state.cycle - 1)

    def _ended(self, cycle: int) -> list[Event]:
        """What ended in tiles, by node."""
        if not self._done[Done.MATRIX :].any():
            return []
        ends = [(int(self._done[column]), kind) for column, kind in _ENDS]
        return [
            tile_event(kind, node, cycle)
            for node in range(len(self._offers))
            for bits, kind in ends
            if bits >> node & 1
        ]

    def _wake(self, cycle: int) -> None:
        """Nothing has happened since the clock stood still."""
        if self.idle:
            self._skip(cycle)
