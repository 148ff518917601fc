"""A handshake mesh with the tiles at its nodes, cycle by cycle."""

from functools import cache

from tlm.compiled import compiled, prepare
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.handshake.core import happen, settle
from tlm.interconnect.handshake.events import report
from tlm.interconnect.handshake.gates import offered_flit, put_in_flit, room_for_flit, take_flit
from tlm.interconnect.handshake.places import node_at
from tlm.interconnect.handshake.records import (
    NEVER,
    Address,
    DeliveryTable,
    Fork,
    Mesh,
    Node,
    Packet,
    Records,
    Table,
)
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import FORKS, NocTiming
from tlm.tiles.banked import BankedTiles
from tlm.tiles.cycle import step
from tlm.tiles.interconnect import TileStarts, in_turn, tile_event
from tlm.tiles.records import HEADER_COLUMNS, LOAD, NOBODY, Brought, Column, Header, TileTables
from tlm.tiles.timing import TileTiming

_TAKEN, _FIRST_KIND = 15, 16  # behind the network's
_KINDS = {
    Brought.MATRIX_ENDS: EventKind.MATRIX,
    Brought.VECTOR_ENDS: EventKind.VECTOR,
    Brought.READ_ENDS: EventKind.READ,
}


def can_have_tiles(timing: NocTiming) -> bool:
    """Whether flits of such routers can wait for the banks of tiles (`TiledMesh`).

    Branches in lockstep would have to know a cycle ahead when the tile takes its copy; the
    interfaces of locked channels stand between router and tile.
    """
    return timing.fork != FORKS[Fork.LOCKSTEP] and not timing.locks


class TiledMesh(TileStarts, HandshakeMesh):
    """A handshake mesh with tiles (`TiledInterconnect`).

    Args:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        timing: What the routers are like (`can_have_tiles`).
        tile: What the tiles are like.
        edge_rows: Rows of nodes without tiles, below the others: they take what comes, as far as
            `let_take` lets them, and send at once.

    Raises:
        InputError: for a mesh without a router, one that is too large, forks in lockstep, locked
            channels, rows that cannot be, or words that are asked for in the cycle in which what
            needs them begins.
    """

    def __init__(
        self, rows: int, cols: int, timing: NocTiming, tile: TileTiming, *, edge_rows: int = 0
    ) -> None:
        if timing.fork == FORKS[Fork.LOCKSTEP]:
            allowed = ", ".join(fork for fork in FORKS if fork != timing.fork)
            raise InputError(f"fork: found {timing.fork}; allowed with tiles: {allowed}")
        if timing.locks:
            raise InputError(f"channel: found {timing.channel}; allowed with tiles: none")
        super().__init__(rows + edge_rows, cols, timing)
        _ready()
        self._mesh[Mesh.TILED] = 1
        self._tiles = BankedTiles(rows, cols, tile, edge_rows)
        for node in range(rows * cols, (rows + edge_rows) * cols):
            self.let_take(node, NEVER)

    @property
    def idle(self) -> bool:
        """Nothing moves, neither in the network nor in a tile."""
        return super().idle and not self._tiles.stirring

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        """Queue a packet of the transfer that has begun at a node (see `Interconnect`)."""
        packet = super().inject(max(cycle, self._clock), source, goal, flits)
        self._tiles.route(packet, source, flits)
        return packet

    def let_take(self, node: int, flits: int) -> None:
        """Have a node without a tile take so many flits (see `TiledInterconnect`)."""
        self._mesh[node_at(self._mesh, node) + Node.MAY_TAKE] = flits

    def let_load(self, node: int, lets: bool) -> None:
        """Have a node without a tile take requests for loads (see `TiledInterconnect`)."""
        self._mesh[node_at(self._mesh, node) + Node.LEAVES_LOADS] = not lets

    def sends_last(self, node: int) -> bool:
        """Whether a node has nothing to send after the next cycle (see `TiledInterconnect`)."""
        return bool(_sends_last(self._mesh, self._packets, node))

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
        return in_turn(super().advance(until_cycle))

    def _run(self, until_cycle: int) -> int:
        network = self._mesh, self._packets, self._deliveries
        return int(_run_tiled(*network, self._tiles.tables, until_cycle))

    def _event(self, kind: int, what: int, cycle: int) -> Event:
        if kind < _FIRST_KIND:
            if kind != _TAKEN:
                return super()._event(kind, what, cycle)
            row, col = self._packets[what, [Packet.ROW_FIRST, Packet.COL_FIRST]].tolist()
            return Event(EventKind.TAKEN, what, row * self._cols + col, cycle)
        return tile_event(_KINDS[Brought(kind - _FIRST_KIND)], what, cycle)

    def _wake(self, cycle: int) -> None:
        """Nothing has happened since the clock stood still."""
        if self.idle:
            self._mesh[Mesh.CLOCK] = max(cycle, self._clock)


@compiled
def _run_tiled(
    m: Records, packets: Table, deliveries: DeliveryTable, tiles: TileTables, until: int
) -> int:
    """As `run` of the handshake model, with the tiles at which anything goes on."""
    t = tiles.records
    m[Mesh.REPORTED] = 0
    while (
        m[Mesh.REPORTED] == 0
        and (t[Header.STIRRING] or m[Mesh.PENDING] > 0)
        and m[Mesh.CLOCK] < until
    ):
        if happen(m):
            settle(m, packets, deliveries)
        sends = _step_edge(m, packets, tiles)
        t[Header.STIRRING] = _step_tiles(m, packets, tiles) or sends
        if m[Mesh.TOP] > 0:
            settle(m, packets, deliveries)
        m[Mesh.CLOCK] += 1
    if (
        m[Mesh.REPORTED] == 0
        and m[Mesh.PENDING] == 0
        and not t[Header.STIRRING]
        and m[Mesh.OWED] > 0
    ):
        return -1
    return m[Mesh.REPORTED]


@compiled
def _step_tiles(m: Records, packets: Table, tiles: TileTables) -> bool:
    """A cycle of all tiles at which anything goes on; whether more does by itself."""
    t, words, routes = tiles
    stirs, now, node = False, m[Mesh.CLOCK], m[Mesh.NODES]
    for number, tile in enumerate(range(HEADER_COLUMNS, len(t), t[Header.RECORD_SIZE])):
        offered = m[node + Node.OFFERED] > 0
        if t[tile + Column.LIVE] > 0 or offered:
            comes, room = NOBODY, room_for_flit(m, packets, node)
            if offered:
                packet, place = offered_flit(m, node)
                comes = words[routes[packet] + place]
            brought = step(t, words, tile, now, comes, room <= now)
            stirs = stirs or brought & Brought.STIRS > 0 or now < room < NEVER
            if brought & Brought.CAME:
                take_flit(m, node)
            if brought & Brought.SENT:
                put_in_flit(m, node)
            for kind in (Brought.MATRIX_ENDS, Brought.VECTOR_ENDS, Brought.READ_ENDS):
                if brought & kind:
                    report(m, now, _FIRST_KIND + kind, number)
        node += m[Mesh.NODE_SIZE]
    return stirs


@compiled
def _step_edge(m: Records, packets: Table, tiles: TileTables) -> bool:
    """A cycle of the nodes without tiles; whether they have anything to send."""
    t, _, routes = tiles
    count, now, sends = (len(t) - HEADER_COLUMNS) // t[Header.RECORD_SIZE], m[Mesh.CLOCK], False
    for number in range(count, m[Mesh.NODE_COUNT]):
        node = node_at(m, number)
        if m[node + Node.OFFERED] > 0 and m[node + Node.MAY_TAKE] > 0:
            packet, _ = offered_flit(m, node)
            if m[node + Node.LEAVES_LOADS] == 0 or routes[packet] != LOAD:
                _take_at_edge(m, node, packet)
        if m[node + Node.QUEUE_HEAD] >= 0:
            sends = True
            begun = packets[m[node + Node.QUEUE_HEAD], Packet.CYCLE] <= now
            if begun and room_for_flit(m, packets, node) <= now:
                put_in_flit(m, node)
    return sends


@compiled
def _take_at_edge(m: Records, node: Address, packet: int) -> None:
    """A node without a tile takes what it is offered; it tells of the last that it may take."""
    if m[node + Node.MAY_TAKE] < NEVER:
        m[node + Node.MAY_TAKE] -= 1
    if m[node + Node.MAY_TAKE] == 0:
        report(m, m[Mesh.CLOCK], _TAKEN, packet)
    take_flit(m, node)


@compiled
def _sends_last(m: Records, packets: Table, number: int) -> bool:
    """Whether a node without a tile has nothing to send after the cycle to simulate next."""
    node = node_at(m, number)
    packet = m[node + Node.QUEUE_HEAD]
    if packet < 0:
        return True
    rest = packets[packet, Packet.FLITS] - m[node + Node.QUEUE_SENT]
    if rest > 1 or packets[packet, Packet.NEXT_IN_QUEUE] >= 0:
        return False
    begun = packets[packet, Packet.CYCLE] <= m[Mesh.CLOCK]
    return begun and room_for_flit(m, packets, node) <= m[Mesh.CLOCK]


@cache
def _ready() -> None:
    """Compile mesh and tiles, or load what was compiled."""
    prepare(_run_tiled, _sends_last)
