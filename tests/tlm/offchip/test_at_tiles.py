"""A channel at each tile: beside the network, at levels lt and at."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment

from tests.tlm.programs import program_of, tile
from tests.tlm.trace.test_loosely import Notes
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.memory.base import MemoryTarget
from tlm.memory.block_costs import BlockCosts
from tlm.offchip import system
from tlm.offchip.edge import Blocks, Edge
from tlm.offchip.streamed import are_streamed
from tlm.offchip.system import OffChipMemory
from tlm.offchip.times import load_law, store_law
from tlm.program import Engine, Load, Operation, Program, Send, Store, Work
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, StreamTiming, TileTiming
from tlm.trace.recorder import Recorder

TIMING = NocTiming(
    hop_cycles=1, ejection_cycles=1, fifo_depth=8, multicast_gap_cycles=1, flit_bytes=256
)

#: Loads get a half of the peak; of 512 bytes a third. Stores get a third of it; of 512 a quarter.
COSTS = BlockCosts((512, 3840), (1536.0, 7680.0), (2048.0, 11520.0))


def edge_of(
    rows: int, cols: int, bytes_per_cycle: int | Fraction = 240, latency_cycles: int = 30
) -> Edge:
    timing = ChannelTiming(latency_cycles, bytes_per_cycle, queue_depth=2**30)
    return Edge(rows, cols, rows * cols, 256, 32, 1 << 28, timing, at_tiles=True)


def run(
    program: Program, edge: Edge, mesh: HandshakeMesh, recorder: Recorder | None = None
) -> tuple[Outcome, OffChipMemory]:
    def channel(env: Environment) -> MemoryTarget:
        return BandwidthLatencyMemory(env, edge.timing)

    memory = OffChipMemory(edge, channel)
    return run_at(program, TIMING, mesh, recorder, offchip=memory), memory


class Unused(HandshakeMesh):
    """A mesh that nothing may be sent over."""

    def inject(self, *packet: Any) -> int:
        pytest.fail(f"the network was given {packet}")


def test_where_channels_stand() -> None:
    edge, tiles = edge_of(3, 4), [(row, col) for row in range(3) for col in range(4)]
    assert [edge.channel(each) for each in tiles] == list(range(12))
    assert [edge.place(edge.channel(each)) for each in tiles] == tiles
    assert [edge.columns(edge.channel(each)) for each in tiles] == [
        range(col, col + 1) for _, col in tiles
    ]
    assert {edge.hops(each) for each in tiles} == {0}
    assert edge.edge_rows == 0


def test_blocks_of_a_tile_begin_where_its_channel_does() -> None:
    program = program_of(2, 2, [Load(TileSet(range(2), range(2)), 3)])
    blocks = Blocks(program, edge_of(2, 2))
    assert {blocks.address((row, col), "") for row in range(2) for col in range(2)} == {0}


@pytest.mark.parametrize(
    ("kind", "flits", "width", "cycles"),
    [
        # Request 1, latency 30, the last of so many bytes, hand-over 1, the last flit 1.
        (Load, 1, 240, 1 + 30 + 2 + 1 + 1),
        (Load, 15, 240, 1 + 30 + 16 + 1 + 1),
        # A faster channel: the first flit's bytes, hand-over 1, all flits.
        (Load, 15, 1024, 1 + 30 + 1 + 1 + 15),
        # 3840 bytes at 480 / 7 a cycle are 56 of them; at a byte in a thousand more 55 and a part.
        (Load, 15, Fraction(480, 7), 1 + 30 + 56 + 1 + 1),
        (Load, 15, Fraction(481, 7), 1 + 30 + 56 + 1 + 1),
        # The block, latency 30, its last burst 2, hand-over 1, the word that it is kept 1.
        (Store, 15, 240, 15 + 30 + 2 + 1 + 1),
    ],
)
def test_zero_load_laws(
    kind: type[Load] | type[Store], flits: int, width: int | Fraction, cycles: int
) -> None:
    edge = edge_of(2, 2, width)
    program = program_of(2, 2, [kind(tile(1), flits, arrivals=("there",))], there=(0, 1))
    law = (load_law if kind is Load else store_law)(TIMING, edge, flits)
    assert law.alone_cycles(edge.hops((0, 1))) == cycles
    assert run(program, edge, Unused(2, 2, TIMING))[0].cycles == cycles
    outcome = run_lt(program, TIMING, offchip=edge)
    assert outcome.cycles == outcome.last_arrival_cycle[0, 1] == cycles


@pytest.mark.parametrize(("kind", "cycles"), [(Load, 96), (Store, 144)])
def test_blocks_cost_what_they_get_of_the_bandwidth(
    kind: type[Load] | type[Store], cycles: int
) -> None:
    """Both levels: 3840 bytes at 80 a cycle, of which loads get a half and stores a third."""
    edge = edge_of(2, 2, 80)
    costly = replace(edge, timing=replace(edge.timing, costs=COSTS))
    program = program_of(2, 2, [kind(tile(1), 15, arrivals=("there",))], there=(0, 1))
    law = (load_law if kind is Load else store_law)(TIMING, costly, 15)
    assert law.served_cycles == cycles
    alone = law.alone_cycles(0)
    assert run(program, costly, Unused(2, 2, TIMING))[0].cycles == alone
    assert run_lt(program, TIMING, offchip=costly).cycles == alone
    more = program_of(2, 2, [kind(tile(1), 15) for _ in range(20)])
    for outcome in (run_lt(more, TIMING, offchip=costly), run(more, costly, _mesh(edge))[0]):
        assert 0 <= outcome.cycles - 20 * cycles < 60


@pytest.mark.parametrize("turned", [False, True])
def test_bandwidth_is_the_channels_own(turned: bool) -> None:
    """Of every tile at the same time, whole grids of any form."""
    rows, cols = (64, 1) if turned else (1, 64)
    edge, tiles = edge_of(rows, cols), TileSet(range(rows), range(cols))
    program = program_of(rows, cols, [Load(tiles, 960), Load(tiles, 960)])
    cycles = 2 * 960 * 256 // 240
    for outcome in (run_lt(program, TIMING, offchip=edge), run(program, edge, _mesh(edge))[0]):
        assert 0 <= outcome.cycles - cycles < 40
        assert (outcome.last_arrival_cycle == outcome.cycles).all()


def _mesh(edge: Edge) -> HandshakeMesh:
    return Unused(edge.rows, edge.cols, TIMING)


WHOLE, WIDE = TileSet(range(2), range(3)), TileSet(range(1), range(2))
LENGTHS, SHORT = st.integers(1, 300), st.integers(1, 12)
#: Blocks that are loaded, worked on and stored again: their length, the work, what is stored.
STREAMS = st.lists(st.tuples(LENGTHS, st.integers(1, 600), LENGTHS), min_size=1, max_size=6)


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([16, 60, Fraction(12500, 193), 240, 256, Fraction(1000, 3)]),
    st.sampled_from([None, COSTS]),
    st.lists(st.tuples(st.sampled_from([Load, Store]), LENGTHS), max_size=4),
    STREAMS,
    st.integers(1, 3),
)
def test_levels_agree_on_loads_work_and_stores(
    width: int | Fraction,
    costs: BlockCosts | None,
    before: list[tuple[type[Load] | type[Store], int]],
    streams: list[tuple[int, int, int]],
    room: int,
) -> None:
    """But for a cycle a block, as answers come in whole cycles."""
    operations: list[Operation] = [kind(WHOLE, flits) for kind, flits in before]
    for flits, cycles, stored in streams:
        operations += [
            Load(WHOLE, flits, takes=("room",), arrivals=("block",)),
            Work(Engine.MATRIX, WHOLE, cycles, takes=("block",), gives=("room", "done")),
            Store(WHOLE, stored, takes=("done",)),
        ]
    program = program_of(2, 3, operations, room=(room, room), block=(0, room), done=(0, 6))
    edge = edge_of(2, 3, width)
    edge = replace(edge, timing=replace(edge.timing, costs=costs))
    at, memory = run(program, edge, _mesh(edge))
    blocks = len(before) + 2 * len(streams)
    assert abs(run_lt(program, TIMING, offchip=edge).cycles - at.cycles) <= blocks
    assert memory.read_bytes == 6 * 256 * (
        sum(flits for kind, flits in before if kind is Load) + sum(each[0] for each in streams)
    )


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([(256, 32), (16, 64), (64, 64)]),
    st.sampled_from([1, 7, 16, 60, Fraction(12500, 193), 240, 256, Fraction(1000, 3), 1024]),
    st.sampled_from([None, COSTS]),
    st.sampled_from([4, 5, 30]),
    st.lists(
        st.tuples(
            st.sampled_from([Load, Store]), LENGTHS | SHORT, st.integers(0, 400), st.booleans()
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_blocks_at_once_come_when_they_come_burst_by_burst(
    sizes: tuple[int, int],
    width: int | Fraction,
    costs: BlockCosts | None,
    latency_cycles: int,
    blocks: list[tuple[type[Load] | type[Store], int, int, bool]],
) -> None:
    """Each is begun at once or when the one before has come, or is kept."""
    timing = ChannelTiming(latency_cycles, width, 2**30, costs)
    edge = Edge(1, 2, 2, *sizes, 1 << 28, timing, at_tiles=True)
    operations: list[Operation] = []
    for kind, flits, cycles, waits in blocks:
        takes = ("done",) if waits else ("free",)
        operations += [
            Work(Engine.MATRIX, WIDE, cycles + 1, takes=("there",), gives=("done", "free")),
            kind(WIDE, flits, takes=takes, gives=("sent",), arrivals=("there",)),
            Work(Engine.VECTOR, WIDE, 1, takes=("sent",)),
        ]
    many = len(blocks)
    program = program_of(
        1, 2, operations, there=(1, many + 1), done=(0, many), free=(many, many), sent=(0, many)
    )
    found = []
    for streamed in (True, False):
        notes = Notes()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(system, "are_streamed", lambda *of, answer=streamed: answer)
            outcome, memory = run(program, edge, _mesh(edge), notes)
        moved = memory.read_bytes, memory.written_bytes
        found.append((outcome.cycles, notes.operations, notes.transfers, *moved))
    assert found[0] == found[1]


def test_which_blocks_come_at_once() -> None:
    edge, program = edge_of(1, 2), program_of(1, 2, [Load(WIDE, 20), Store(WIDE, 30)])
    assert are_streamed(program, edge)
    assert not are_streamed(program, replace(edge, at_tiles=False))
    few = replace(edge.timing, queue_depth=49)
    assert not are_streamed(program, replace(edge, timing=few))
    assert not are_streamed(program, replace(edge, timing=replace(edge.timing, latency_cycles=0)))


def test_memory_and_network_are_not_in_each_others_way() -> None:
    # A block comes from the tile beside while another one comes from the channel.
    sent = Send(tile(0), [0], [1], 200, arrivals=("sent",))
    loaded = Load(tile(1), 200, arrivals=("loaded",))
    edge = edge_of(1, 2, 512)

    def program(*operations: Operation) -> Program:
        return program_of(1, 2, operations, sent=(0, 1), loaded=(0, 1))

    longest = max(run_lt(program(one), TIMING, offchip=edge).cycles for one in (sent, loaded))
    both = program(sent, loaded)
    assert run_lt(both, TIMING, offchip=edge).cycles == longest
    assert run(both, edge, HandshakeMesh(1, 2, TIMING))[0].cycles == longest


@pytest.mark.parametrize("kind", [Load, Store])
def test_both_levels_tell_of_the_same_spans(kind: type[Load] | type[Store]) -> None:
    at, lt = Notes(), Notes()
    edge, program = edge_of(2, 2), program_of(2, 2, [kind(tile(1), 15)])
    run(program, edge, _mesh(edge), at)
    run_lt(program, TIMING, recorder=lt, offchip=edge)
    assert lt.operations == at.operations
    assert lt.transfers == at.transfers


def test_refused() -> None:
    timing = ChannelTiming(30, 240, 16)
    with pytest.raises(InputError, match="channels: found 2; allowed: 4 to 4"):
        Edge(2, 2, 2, 256, 32, 1 << 20, timing, at_tiles=True)
    with pytest.raises(InputError, match="rows_below: found 1; allowed: 0, with a channel at each"):
        Edge(2, 2, 4, 256, 32, 1 << 20, timing, at_tiles=True, rows_below=1)
    with pytest.raises(InputError, match="rows_below: found -1; allowed: 0 or more"):
        Edge(2, 2, 2, 256, 32, 1 << 20, timing, rows_below=-1)
    streams = StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3)
    banked = TiledMesh(2, 2, TIMING, TileTiming(4, banks=8, streams=streams, queues=FREE))
    with pytest.raises(InputError, match="found a channel at each tile; allowed with tiles whose"):
        run(program_of(2, 2, [Load(tile(0), 1)]), edge_of(2, 2), banked)
