"""Tiles whose streams share banks: timelines small enough to write down."""

from dataclasses import replace

import pytest

from tests.tlm.programs import TIMING
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.offchip.edge import Edge
from tlm.offchip.system import OffChipMemory
from tlm.program import Buffer, Load, Program
from tlm.tiles.banked import Rows
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, StreamTiming, TileTiming

TILE = TileTiming(
    array_size=4, banks=8, streams=StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3),
    queues=FREE,
)  # fmt: skip
#: Ten words, from bank 0 on, to bank 7 on.
PASS = VectorJob("scale", 10, 1, 0, 10, 7, 10, 10)

EDGE = Edge(1, 2, 2, 8, 32, 1 << 20, ChannelTiming(30, 16, 16))


def events(mesh: HandshakeMesh) -> list[Event]:
    return [event for happened in iter(lambda: mesh.advance(10**6), []) for event in happened]


def cycles(found: list[Event], kind: EventKind) -> list[int]:
    return [event.cycle for event in found if event.kind is kind]


def send(mesh: TiledMesh, cycle: int, source: int, target: int, words: int) -> None:
    """Send words from the first tile to the second."""
    mesh.begin_reading(cycle, 0, Rows(source, 1, words, 0), Rows(target, 1, words, 0))
    mesh.inject(cycle, 0, TileSet.tile(0, 1), words)


def test_a_job_that_is_alone_takes_its_own_cycles() -> None:
    product = MatrixJob(length=5, a=0, b=1, c=2, c_row=2, accumulate=True)
    mesh = TiledMesh(1, 2, TIMING, TILE)
    mesh.begin(7, 0, product)
    mesh.begin(9, 1, PASS)
    found = events(mesh)
    assert cycles(found, EventKind.MATRIX) == [7 + job_cycles(product, TILE) - 1]
    assert cycles(found, EventKind.VECTOR) == [9 + job_cycles(PASS, TILE) - 1]
    assert mesh.idle


def test_a_transfer_is_read_written_and_tells_when_the_next_one_may_start() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE)
    send(mesh, 0, source=0, target=0, words=6)
    # Words are asked for from cycle 1 on; the first flit leaves in 3 and comes out two later. The
    # next transfer may start in cycle 6, in which the last word is read.
    assert [(event.kind, event.cycle + 1) for event in events(mesh)] == [
        (EventKind.READ, 6), (EventKind.INJECTED, 9), (EventKind.EJECTED, 11),
    ]  # fmt: skip


def test_a_single_word() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE)
    send(mesh, 0, source=0, target=0, words=1)
    assert [event.cycle + 1 for event in events(mesh)] == [1, 4, 6]


def test_what_asks_a_bank_that_serves_another_waits() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE)
    send(mesh, 0, source=0, target=0, words=6)
    mesh.begin(0, 0, PASS)
    # Both begin at bank 0: the vector engine's port is the first in line. From then on all go on
    # side by side, a bank apart.
    found = events(mesh)
    assert cycles(found, EventKind.VECTOR) == [job_cycles(PASS, TILE) - 1]
    assert cycles(found, EventKind.INJECTED) == [9]


def test_a_word_that_comes_waits_for_its_bank_and_the_flits_behind_it_wait_too() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE)
    send(mesh, 0, source=0, target=0, words=6)
    # In cycle 5 the first one comes, and the vector engine, first in line, asks for its bank.
    mesh.begin(4, 1, PASS)
    found = events(mesh)
    assert cycles(found, EventKind.INJECTED) == [8]
    assert cycles(found, EventKind.EJECTED) == [11]


def test_nodes_without_tiles_send_at_once() -> None:
    tiled, plain = TiledMesh(1, 2, TIMING, TILE, edge_rows=1), HandshakeMesh(2, 2, TIMING)
    for cycle, node, target in ((5, 2, (0, 1)), (5, 3, (0, 1)), (8, 3, (1, 0))):
        tiled.begin_answer(cycle, node, Rows(0, 1, 6, 0))
        packets = {mesh.inject(cycle, node, TileSet.tile(*target), 6) for mesh in (tiled, plain)}
        assert len(packets) == 1
    found = events(tiled)
    assert found == events(plain) and len(found) == 6
    assert tiled.idle


def test_a_node_without_a_tile_takes_as_many_flits_as_it_may() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=1)
    mesh.let_take(2, 4)
    mesh.begin_reading(0, 0, Rows(0, 1, 6, 0), Rows(0, 1, 6, 0))
    packet = mesh.inject(0, 0, TileSet.tile(1, 0), 6)
    # The first flit leaves in cycle 3 and comes out two later; the last two wait in the router.
    before = [event for happened in iter(lambda: mesh.advance(20), []) for event in happened]
    assert Event(EventKind.TAKEN, packet, 2, 8) in before
    assert not cycles(before, EventKind.EJECTED) and not mesh.idle
    mesh.let_take(2, 4)
    assert events(mesh) == [Event(EventKind.EJECTED, packet, 2, 21)]
    assert mesh.idle


def test_flits_that_are_not_taken_are_in_the_way_of_others() -> None:
    ends = []
    for flits in (100, 0):
        mesh = TiledMesh(1, 3, TIMING, TILE, edge_rows=1)
        mesh.let_take(4, flits)
        mesh.inject(0, 3, TileSet.tile(1, 1), 9)  # fills buffers of two routers
        passing = mesh.inject(0, 3, TileSet.tile(1, 2), 1)
        mesh.advance(40)
        while mesh.advance(40):
            pass
        mesh.let_take(4, 100)
        ends += [event.cycle for event in events(mesh) if event.packet == passing]
    assert ends[-1] > 40


def test_a_node_without_a_tile_says_before_its_last_flit_goes() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=1)
    assert mesh.sends_last(2)
    mesh.begin_answer(5, 2, Rows(0, 1, 3, 0))
    mesh.inject(5, 2, TileSet.tile(0, 0), 3)
    said = []
    for cycle in (5, 6, 7, 8):
        said.append(mesh.sends_last(2))
        mesh.advance(cycle + 1)
    assert said == [False, False, True, True]


def test_a_last_flit_without_room_does_not_go() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=1)
    mesh.let_take(3, 0)
    mesh.inject(0, 2, TileSet.tile(1, 1), 9)  # as many as two routers hold, and one
    mesh.advance(30)
    assert not mesh.sends_last(2)
    mesh.let_take(3, 9)
    mesh.advance(31)
    said = []
    while not mesh.idle:
        said.append(mesh.sends_last(2))
        happened = mesh.advance(31 + len(said))
        if any(event.kind is EventKind.INJECTED for event in happened):
            break
    assert said == [False] * (len(said) - 1) + [True]


def test_an_answer_waits_for_the_banks_it_is_written_to() -> None:
    ends = []
    for bank in (4, 0):
        mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=1)
        mesh.begin(0, 0, replace(PASS, words=1, rows=20, a_row=8, out=0, out_row=8, out_words=1))
        mesh.begin_answer(0, 2, Rows(bank, 8, 1, 8))
        mesh.inject(0, 2, TileSet.tile(0, 0), 8)
        ends += cycles(events(mesh), EventKind.EJECTED)
    # Banks serve the flits of a column one in three cycles beside a reader and a writer.
    assert ends[0] == 9 and ends[1] > 2 * ends[0]


def test_transfers_that_wait_for_each_other_for_ever_are_told() -> None:
    mesh = TiledMesh(1, 2, TIMING, TILE)
    both = TileSet(range(1), range(2))
    for cycle, roots in ((0, (0, 1)), (20, (1, 0))):
        for node, root in enumerate(roots):
            mesh.begin_reading(cycle, node, Rows(0, 1, 4, 0), Rows(0, 1, 4, 0))
            mesh.inject(cycle, node, ReductionGoal(both, root), 4)
        while mesh.advance(20):  # the first operands, each of which waits for one of the second
            pass
    with pytest.raises(DeadlockError):
        events(mesh)


def test_forks_in_lockstep_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        TiledMesh(1, 2, replace(TIMING, fork="lockstep"), TILE)
    assert str(caught.value) == "fork: found lockstep; allowed with tiles: own-pace, flit-by-flit"


def test_words_asked_for_at_once_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        TiledMesh(1, 2, TIMING, replace(TILE, streams=replace(TILE.streams, lead_cycles=2)))
    assert str(caught.value) == "lead_cycles: found 2; allowed in step with a mesh: 3 or more"


@pytest.mark.parametrize(("rows", "edge_rows"), [(2, -1), (0, 1)])
def test_rows_that_cannot_be_are_refused(rows: int, edge_rows: int) -> None:
    with pytest.raises(InputError) as caught:
        TiledMesh(rows, 2, TIMING, TILE, edge_rows=edge_rows)
    said = (
        f"edge_rows: found {edge_rows}, below {rows} of tiles; allowed: 0 or more, below 1 or more"
    )
    assert str(caught.value) == said


def test_channels_at_a_row_of_tiles_are_refused() -> None:
    """They would be asked by a tile that takes their requests for its own words."""
    everywhere, block = TileSet(range(1), range(2)), Buffer(4, 4, 32)
    loads = [Load(everywhere, 4, source="x", target="a")]
    program = Program(1, 2, {}, lambda: loads, {"a": block, "x": replace(block, offchip=True)})
    channels = OffChipMemory(EDGE, lambda env: BandwidthLatencyMemory(env, EDGE.timing))
    with pytest.raises(InputError) as caught:
        run_at(program, TIMING, TiledMesh(2, 2, TIMING, TILE), offchip=channels)
    assert str(caught.value) == "edge_rows: found 0; allowed with off-chip memory: 1"
    with pytest.raises(InputError) as caught:
        run_at(program, TIMING, TiledMesh(1, 2, TIMING, TILE, edge_rows=1))
    assert str(caught.value) == "edge_rows: found 1; allowed without off-chip memory: 0"
    mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=1)
    assert run_at(program, TIMING, mesh, offchip=channels).cycles > EDGE.timing.latency_cycles


def test_rows_between_tiles_and_channels_are_hops() -> None:
    loads = [Load(TileSet.tile(0, 0), 4, source="x", target="a")]
    block = Buffer(4, 4, 32)
    program = Program(1, 2, {}, lambda: loads, {"a": block, "x": replace(block, offchip=True)})
    cycles = []
    for rows_below in (0, 3):
        edge = replace(EDGE, rows_below=rows_below)
        channels = OffChipMemory(edge, lambda env: BandwidthLatencyMemory(env, EDGE.timing))
        mesh = TiledMesh(1, 2, TIMING, TILE, edge_rows=edge.edge_rows)
        cycles.append(run_at(program, TIMING, mesh, offchip=channels).cycles)
    assert cycles[1] - cycles[0] == 2 * 3 * TIMING.hop_cycles


def test_packets_without_words_are_refused() -> None:
    with pytest.raises(InputError, match="^packets: found 0 without words; allowed with tiles: "):
        TiledMesh(1, 2, TIMING, TILE).simulate(Packets.of([]))
