"""Loads and stores: where blocks lie, when they come, at level lt as at level at, and all of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment

from tests.tlm.programs import TIMING, program_of, tile
from tests.tlm.trace.test_loosely import Notes
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.engines.lt.behind import Behind
from tlm.engines.lt.contention.held import Taken
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.memory.base import MemoryTarget
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.edge import Blocks, Edge
from tlm.offchip.system import OffChipMemory
from tlm.offchip.times import load_law, load_times, store_law
from tlm.payload import Command
from tlm.program import Buffer, Engine, Load, Operation, Program, Send, Store, Token, Work
from tlm.protocol import ProtocolChecker
from tlm.sockets import InitiatorSocket, TargetSocket
from tlm.tiles.timing import QueueTiming

CHANNEL = ChannelTiming(latency_cycles=30, bytes_per_cycle=16, queue_depth=16)
AT_TILES = Edge(4, 4, 16, 8, 32, 1 << 28, CHANNEL, at_tiles=True)


def edge_of(rows: int, cols: int, channels: int | None = None) -> Edge:
    return Edge(rows, cols, channels or cols, 8, 32, 1 << 28, CHANNEL)


def formula(env: Environment) -> MemoryTarget:
    return BandwidthLatencyMemory(env, CHANNEL)


def dram(env: Environment) -> MemoryTarget:
    return DramMemory(env, rtl_channel())


def run(
    program: Program, edge: Edge, channel: Callable[[Environment], MemoryTarget] = formula
) -> tuple[Outcome, OffChipMemory]:
    memory = OffChipMemory(edge, channel)
    mesh = HandshakeMesh(program.rows + 1, program.cols, TIMING)
    return run_at(program, TIMING, mesh, offchip=memory), memory


def move(kind: type[Load] | type[Store], tiles: TileSet, flits: int) -> Operation:
    """One block of each tile after another."""
    return kind(tiles, flits, takes=("free",), arrivals=("free",))


def moves(rows: int, cols: int, operations: Sequence[Operation]) -> Program:
    return program_of(rows, cols, operations, free=(1, 1), there=(0, 1))


def test_channels_stand_below_their_columns() -> None:
    edge = edge_of(3, 5, 2)
    assert [edge.channel((0, col)) for col in range(5)] == [0, 0, 0, 1, 1]
    assert [edge.columns(channel) for channel in range(2)] == [range(3), range(3, 5)]
    assert [edge.place(channel) for channel in range(2)] == [(3, 1), (3, 4)]
    assert [edge.hops((row, 2)) for row in range(3)] == [4, 3, 2]


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_blocks_lie_apart(channels: int) -> None:
    edge = edge_of(2, 3, channels)
    tiles = TileSet(range(2), range(3))
    buffers = {"a": Buffer(1, 9, 64, offchip=True), "b": Buffer(1, 3, 64, offchip=True)}
    buffers |= {"here": Buffer(1, 9, 64), "there": Buffer(1, 3, 64)}
    operations = [
        Load(tiles, 9, source="a", target="here"),
        Store(tiles, 3, source="there", target="b"),
    ]
    blocks = Blocks(Program(2, 3, {}, lambda: operations, buffers), edge)
    taken = set()
    for row in range(2):
        for col in range(3):
            for name, bursts in (("a", 3), ("b", 1)):
                first = blocks.address((row, col), name)
                assert first % 32 == 0
                used = {(edge.channel((row, col)), first + 32 * burst) for burst in range(bursts)}
                assert not used & taken
                taken |= used


@pytest.mark.parametrize(
    ("kind", "flits", "cycles"),
    # Request to the channel 1 + 3 + 1, latency 30, burst 2, hand-over 1, back 1 + 3 + flits. Of a
    # block the last two bursts come 2 and 1 cycles before its request.
    [(Load, 4, 46), (Load, 13, 55), (Store, 13, 18 - 2 + 30 + 2 * 2 + 1 + 5)],
)
def test_zero_load_laws(kind: type[Load] | type[Store], flits: int, cycles: int) -> None:
    edge = edge_of(3, 2)
    program = moves(3, 2, [move(kind, tile(0), flits)])
    law = (load_law if kind is Load else store_law)(TIMING, edge, flits)
    assert law.alone_cycles(edge.hops((0, 0))) == cycles
    assert run(program, edge)[0].cycles == run_lt(program, TIMING, offchip=edge).cycles == cycles


@pytest.mark.parametrize("edge", [edge_of(4, 4, 2), AT_TILES, replace(AT_TILES, free=True)])
def test_laws_of_numbers_and_of_arrays_are_one(edge: Edge) -> None:
    lengths = np.array([1, 3, 4, 5, 100, 4095, 4096, 10_000])
    for law in (load_law, store_law):
        many = law(TIMING, edge, lengths)
        for number, flits in enumerate(lengths.tolist()):
            one = law(TIMING, edge, flits)
            assert one.alone_cycles(3) == many.alone_cycles(3)[number]
            assert one.served_cycles == many.served_cycles[number]
            assert isinstance(one.served_parts, int)
    for few in (lengths, np.array([1 << 19, 7])):  # these are in no table
        loads, listed = load_law(TIMING, edge, few), load_times(TIMING, edge, few)
        assert listed.served_cycles.tolist() == loads.served_cycles.tolist()
        assert listed.alone_cycles(3).tolist() == loads.alone_cycles(3).tolist()


@pytest.mark.parametrize("kind", [Load, Store])
@pytest.mark.parametrize("rows_below", [1, 5])
def test_rows_between_tiles_and_channels_are_hops(
    kind: type[Load] | type[Store], rows_below: int
) -> None:
    near, far = edge_of(3, 2), replace(edge_of(3, 2), rows_below=rows_below)
    tiles = [(row, col) for row in range(3) for col in range(2)]
    assert {far.hops(each) - near.hops(each) for each in tiles} == {rows_below}
    program = moves(3, 2, [move(kind, tile(0), 13)])
    memory = OffChipMemory(far, formula)
    mesh = HandshakeMesh(3 + far.edge_rows, 2, TIMING)
    found = run_at(program, TIMING, mesh, offchip=memory).cycles
    assert found == run_lt(program, TIMING, offchip=far).cycles
    assert found == run(program, near)[0].cycles + 2 * rows_below * TIMING.hop_cycles


@pytest.mark.parametrize("kind", [Load, Store])
def test_a_channel_slower_than_a_link_sets_the_pace(kind: type[Load] | type[Store]) -> None:
    slow = ChannelTiming(latency_cycles=30, bytes_per_cycle=4, queue_depth=2**30)
    edge = replace(edge_of(4, 4, 2), timing=slow)
    tiles = TileSet(range(4), range(4))
    program = moves(4, 4, [move(kind, tiles, 64), move(Load, tiles, 64)])
    memory = OffChipMemory(edge, lambda env: BandwidthLatencyMemory(env, slow))
    at = run_at(program, TIMING, HandshakeMesh(5, 4, TIMING), offchip=memory).cycles
    assert at > 2 * 8 * 64 * 2
    assert run_lt(program, TIMING, offchip=edge).cycles == pytest.approx(at, rel=0.02)


def test_short_blocks_share_a_cycle_of_the_channel() -> None:
    # 1.28 cycles a block; in whole cycles they would take 256.
    quick = ChannelTiming(latency_cycles=30, bytes_per_cycle=25, queue_depth=2**30)
    edge = Edge(4, 4, 1, 32, 32, 1 << 28, quick)
    program = moves(4, 4, [Load(TileSet(range(4), range(4)), 1)] * 8)
    memory = OffChipMemory(edge, lambda env: BandwidthLatencyMemory(env, quick))
    at = run_at(program, TIMING, HandshakeMesh(5, 4, TIMING), offchip=memory).cycles
    assert at < 256
    assert run_lt(program, TIMING, offchip=edge).cycles == pytest.approx(at, rel=0.02)


def test_a_channel_serves_in_the_order_in_which_it_is_asked() -> None:
    # A tile next to the channel gets both of its blocks before the farthest one gets its first.
    edge, tiles = edge_of(8, 1), TileSet(range(8), range(1))
    tokens = {name: (0, 1) for name in ("one", "other")}
    loads = [Load(tiles, 64, arrivals=(name,)) for name in tokens]
    work = Work(Engine.MATRIX, tiles, 50, takes=("one",))
    for operations in (loads, [loads[0], work, loads[1]]):
        program = program_of(8, 1, operations, **tokens)
        at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
        assert at.last_arrival_cycle[7, 0] < at.last_arrival_cycle[0, 0] - 6 * 2 * 64
        assert lt.last_arrival_cycle == pytest.approx(at.last_arrival_cycle, rel=0.01)
        assert lt.engine_end_cycle == pytest.approx(at.engine_end_cycle, rel=0.01)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("senders", [[0], [2], [1, 3]])
def test_who_waits_to_send_a_block_keeps_nobody_from_asking(
    senders: list[int], turned: bool
) -> None:
    """Tiles that send nothing ask for their next blocks while others wait for their first ones."""
    edge, every = edge_of(4, 4, 1), TileSet(range(4), range(4))
    tokens = {"one": (0, 2), "sent": (0, 2), "other": (0, 1)}
    operations: list[Operation] = []
    for sender in senders:
        to = TileSet.tile(sender, 0)
        operations.append(Load(to, 64, arrivals=("one",)))
        operations.append(
            Send(to, np.array([sender]), np.array([1]), 64, takes=("one",), arrivals=("sent",))
        )
    operations += [Load(every, 64, arrivals=("other",)), Work(Engine.MATRIX, every, 9, ("other",))]
    if turned:
        operations = [each.turned() for each in operations]
    program = program_of(4, 4, operations, **tokens)
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    assert lt.cycles == pytest.approx(at.cycles, rel=0.01)
    sent = [outcome.engine_end_cycle[Engine.TRANSFER] for outcome in (lt, at)]
    assert sent[0] == pytest.approx(sent[1], abs=130)  # two blocks earlier or later
    notes = Notes()
    assert run_lt(program, TIMING, offchip=edge, recorder=notes).cycles == lt.cycles


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 3), st.data())
def test_parts_of_a_load_are_all_of_its_tiles(
    rows: int, cols: int, apart: int, data: st.DataObject
) -> None:
    """Those that a transfer which waits keeps busy wait, too; all others ask at once."""
    tiles = TileSet(range(0, rows * apart, apart), range(1, 1 + cols))
    senders = data.draw(st.sets(st.tuples(st.integers(0, rows * apart - 1), st.integers(0, cols))))
    behind = Behind(rows * apart, cols + 1, turned=False)
    for row, col in senders:
        one = Send(TileSet.tile(row, col), np.array([0]), np.array([0]), 1)
        behind.append(Taken(0, one, {}))
    free, busy = behind.split(Load(tiles, 8))
    asked = [(row, col) for row in tiles.rows for col in tiles.cols]
    for parts, expected in (
        (free, [each for each in asked if each not in senders]),
        (busy, [each for each in asked if each in senders]),
    ):
        found = [(row, col) for part in parts for row in part.tiles.rows for col in part.tiles.cols]
        assert sorted(found) == expected
        assert all(part.flits == 8 for part in parts)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([Load, Store]), st.integers(0, 3), st.integers(1, 40)),
        min_size=1,
        max_size=5,
    )
)
def test_levels_agree_on_a_tile_alone(
    asked: list[tuple[type[Load] | type[Store], int, int]],
) -> None:
    edge = edge_of(4, 1)
    row = asked[0][1]
    program = moves(4, 1, [move(kind, tile(0, row), flits) for kind, _, flits in asked])
    assert run(program, edge)[0].cycles == run_lt(program, TIMING, offchip=edge).cycles


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("kind", [Load, Store])
def test_tiles_share_a_channel(channels: int, kind: type[Load] | type[Store]) -> None:
    # What a channel has to move, over its slowest part, is nearly all of the time.
    edge, tiles = edge_of(4, 4, channels), TileSet(range(4), range(4))
    program = moves(4, 4, [move(kind, tiles, 256)])
    outcome, _ = run(program, edge)
    flits = 16 * 256 / channels
    assert flits < outcome.cycles < flits + 80
    assert run_lt(program, TIMING, offchip=edge).cycles == pytest.approx(outcome.cycles, rel=0.02)


@pytest.mark.parametrize("turned", [False, True])
def test_level_lt_turns_rows_and_columns(turned: bool) -> None:
    rows, cols = (400, 2) if turned else (2, 400)
    edge = Edge(rows, cols, 1, 8, 32, 1 << 28, CHANNEL)
    tiles = TileSet(range(0, rows, 1 + turned), range(0, cols, 2 - turned))
    outcome = run_lt(moves(rows, cols, [move(Load, tiles, 4)]), TIMING, offchip=edge)
    came = outcome.last_arrival_cycle
    used = [(row, col) for row in tiles.rows for col in tiles.cols]
    assert {(int(row), int(col)) for row, col in zip(*came.nonzero(), strict=True)} == {*used}
    nearest = min(map(edge.hops, used))
    assert min(came[tile] for tile in used) == load_law(TIMING, edge, 4).alone_cycles(nearest)


class Through:
    """A memory with the checker of the protocol before it."""

    def __init__(self, env: Environment, memory: MemoryTarget) -> None:
        self.socket, self._front = TargetSocket(self), InitiatorSocket(self)
        self.checker = ProtocolChecker(env, self._front, memory.socket)
        self.b_transport = self._front.b_transport
        self.nb_transport_fw = self._front.nb_transport_fw
        self.nb_transport_bw = self.socket.nb_transport_bw
        self.posts_writes = memory.posts_writes


@pytest.mark.parametrize("channel", [formula, dram])
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_all_bytes_are_served_and_the_protocol_kept(
    channel: Callable[[Environment], MemoryTarget], data: st.DataObject
) -> None:
    """Every burst once, whatever else goes over the network; sockets keep the base protocol."""
    checkers: list[ProtocolChecker] = []

    def watched(env: Environment) -> MemoryTarget:
        through = Through(env, channel(env))
        checkers.append(through.checker)
        return through

    rows, cols = 3, 3
    sizes = data.draw(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=6))
    everywhere = TileSet(range(rows), range(cols))
    operations: list[Operation] = []
    for loads, flits in sizes:
        operations.append((Load if loads else Store)(everywhere, flits))
        operations.append(Send(tile(0), [2], [2], flits))
    edge = edge_of(rows, cols, data.draw(st.integers(1, 3)))
    memory = OffChipMemory(edge, watched)
    mesh = HandshakeMesh(rows + 1, cols, TIMING)
    run_at(moves(rows, cols, operations), TIMING, mesh, offchip=memory)
    for checker in checkers:
        checker.finish()
    tiles = rows * cols
    bursts = [(loads, -(-flits // 4)) for loads, flits in sizes]
    assert memory.read_bytes == 32 * tiles * sum(count for loads, count in bursts if loads)
    assert memory.written_bytes == 32 * tiles * sum(count for loads, count in bursts if not loads)


@pytest.mark.parametrize("kind", [Load, Store])
def test_both_levels_tell_of_the_same_spans(kind: type[Load] | type[Store]) -> None:
    at, lt = Notes(), Notes()
    edge, queues = edge_of(3, 2), QueueTiming(launch_cycles=3, outstanding=2)
    program, mesh = moves(3, 2, [move(kind, tile(0), 13)]), HandshakeMesh(4, 2, TIMING)
    run_at(program, TIMING, mesh, at, queues, OffChipMemory(edge, formula))
    run_lt(program, TIMING, recorder=lt, queues=queues, offchip=edge)
    assert lt.operations == at.operations
    assert lt.transfers == at.transfers


def test_a_load_holds_its_engine_for_a_request_alone() -> None:
    there = ("there",)
    operations = [
        Load(tile(0), 16, gives=("free",), arrivals=there),
        Work(Engine.MATRIX, tile(0), 5, takes=("free",)),
        Send(tile(0), [0], [1], 4),
    ]
    program = program_of(1, 2, operations, free=(0, 1), there=(0, 1))
    edge = edge_of(1, 2)
    for outcome in (run(program, edge)[0], run_lt(program, TIMING, offchip=edge)):
        assert outcome.engine_end_cycle[Engine.MATRIX, 0, 0] == 6
        assert outcome.engine_end_cycle[Engine.TRANSFER, 0, 0] == 5


def test_memory_that_costs_nothing() -> None:
    operations = [
        Load(tile(0), 16, arrivals=("there",)),
        Work(Engine.MATRIX, tile(0), 5, takes=("there",), gives=("free",)),
        Store(tile(0), 16, takes=("free",)),
    ]
    program = program_of(1, 1, operations, free=(0, 1), there=(0, 1))
    assert run_at(program, TIMING, HandshakeMesh(1, 1, TIMING)).cycles == 5
    assert run_lt(program, TIMING).cycles == 5


def test_refused() -> None:
    edge = edge_of(2, 2)
    with pytest.raises(InputError, match="channels: found 3; allowed: 1 to 2"):
        edge_of(2, 2, 3)
    with pytest.raises(InputError, match="flit_bytes: found 24 with bursts of 32 bytes"):
        Edge(2, 2, 1, 24, 32, 1 << 20, CHANNEL)
    small = Edge(2, 2, 2, 8, 32, 64, CHANNEL)
    program = moves(2, 2, [Load(tile(0), 16)])
    with pytest.raises(InputError, match="blocks take 128 bytes of a channel.*allowed: 64"):
        run_lt(program, TIMING, offchip=small)
    with pytest.raises(InputError, match="of 2x2 tiles; found a program for 1x2"):
        run(moves(1, 2, [Load(tile(0), 1)]), edge)
    buffers = {"a": Buffer(1, 2, 32), "b": Buffer(1, 2, 32, offchip=True)}
    wrong = Load(tile(0), 1, source="a", target="b")
    with pytest.raises(InputError, match="source 'a' lies in the tile, target 'b' off chip"):
        list(Program(1, 1, {}, lambda: [wrong], buffers).operations())
    soon = Load(tile(0), 1, takes=("free",), arrivals=("there",))
    program = Program(2, 2, {"free": Token(), "there": Token()}, lambda: [soon])
    with pytest.raises(InputError, match="takes token 'free'"):
        run_lt(program, TIMING, offchip=edge)


def test_commands_of_a_load() -> None:
    """Bursts of a block are asked for one after the other, a cycle each."""
    seen: list[tuple[int, Command, int]] = []

    class Watched(BandwidthLatencyMemory):
        def nb_transport_fw(self, payload, phase, delay_cycles):
            seen.append((int(self._env.now), payload.command, payload.address))
            return super().nb_transport_fw(payload, phase, delay_cycles)

    program = moves(1, 1, [Load(tile(0), 10)])
    run(program, edge_of(1, 1), lambda env: Watched(env, CHANNEL))
    asked = [each for each in seen if each[1] is Command.READ][:3]
    assert asked == [(3, Command.READ, 0), (4, Command.READ, 32), (5, Command.READ, 64)]
