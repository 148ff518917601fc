"""The network behind sockets: its phases, and the same cycles as the network by itself."""

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.network_interface import Destinations, NetworkInterface, Operand
from tlm.interconnect.packets import REDUCTIONS, Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import SteppedEnvironment
from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import Answer, InitiatorSocket, Phase, Sync

ROWS, COLS = 3, 4
TIMING = NocTiming(
    hop_cycles=1, ejection_cycles=1, fifo_depth=4, multicast_gap_cycles=1, flit_bytes=8
)
Tile = tuple[int, int]
Write = tuple[int, Tile, TileSet | ReductionGoal, int]
"""Cycle, from, to (or the reduction that it is an operand of), bytes."""


def write(goal: TileSet | ReductionGoal, length_bytes: int) -> GenericPayload:
    payload = GenericPayload(Command.WRITE, address=0, length_bytes=length_bytes)
    payload.extend(Operand(goal) if isinstance(goal, ReductionGoal) else Destinations(goal))
    return payload


class Mesh:
    """A mesh with an initiator at every tile, each behind a checker."""

    def __init__(self) -> None:
        self.env = SteppedEnvironment()
        mesh = HandshakeMesh(ROWS, COLS, TIMING)
        self.network = SimpyNetwork(self.env, mesh, TIMING.fifo_depth)
        self.ports: dict[Tile, MemoryPort] = {}
        self.checkers: list[ProtocolChecker] = []
        for tile in TileSet(range(ROWS), range(COLS)).nodes(COLS):
            at = divmod(tile, COLS)
            interface = NetworkInterface(self.env, self.network, (ROWS, COLS), at, 8)
            self.ports[at] = MemoryPort(self.env)
            self.checkers.append(ProtocolChecker(self.env, self.ports[at].socket, interface.socket))

    def run(self) -> None:
        with ExitStack() as open_at_the_end:
            for checker in self.checkers:
                open_at_the_end.enter_context(checker)
            self.env.run()


def run(writes: list[Write]) -> list[PhaseTimes]:
    """Phase times of writes, each sent as soon as its port is free."""
    mesh = Mesh()
    found: dict[int, PhaseTimes] = {}

    def client(
        number: int, cycle: int, tile: Tile, goal: TileSet | ReductionGoal, length: int
    ) -> Generator[Any]:
        yield mesh.env.timeout(cycle)
        payload = write(goal, length)
        found[number] = yield from mesh.ports[tile].access(payload)
        assert payload.response_status is ResponseStatus.OK

    for number, one in enumerate(writes):
        mesh.env.process(client(number, *one))
    mesh.run()
    return [found[number] for number in range(len(writes))]


def flits_of(length_bytes: int) -> int:
    return -(-length_bytes // TIMING.flit_bytes)


def packets_of(writes: list[Write]) -> tuple[Packets, list[int]]:
    """The packets of the writes, and the number of each one's last."""
    items, last = [], []
    for cycle, (row, col), goal, length in writes:
        flits = flits_of(length)
        whole = isinstance(goal, TileSet) and len(goal) == 1
        for part in cut(flits, flits if whole else TIMING.fifo_depth):
            items.append((cycle, row * COLS + col, goal, part))
        last.append(len(items) - 1)
    return Packets.of(items), last


tiles = st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLS - 1))


@st.composite
def spans(draw: st.DrawFn, size: int) -> range:
    first, last = sorted((draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))))
    return range(first, last + 1, draw(st.integers(1, 2)))


tile_sets = st.builds(TileSet, spans(ROWS), spans(COLS))


@st.composite
def crowds(draw: st.DrawFn) -> list[Write]:
    """Writes to one tile and to several, and reductions of one group, close together.

    The group's tiles issue their operands in the same order, each some cycles late.
    """
    cycles, lengths = st.integers(0, 30), st.integers(1, 100)
    writes: list[Write] = draw(st.lists(st.tuples(cycles, tiles, tile_sets, lengths), max_size=20))
    group = draw(tile_sets)
    members = [divmod(node, COLS) for node in group.nodes(COLS)]
    late = draw(st.lists(cycles, min_size=len(members), max_size=len(members)))
    for cycle in sorted(draw(st.lists(cycles, max_size=4))):
        goal = ReductionGoal(
            group, draw(st.integers(0, ROWS * COLS - 1)), draw(st.sampled_from(REDUCTIONS))
        )
        length = draw(lengths)
        writes += [
            (cycle + after, at, goal, length) for at, after in zip(members, late, strict=True)
        ]
    return sorted(writes, key=lambda one: one[0])


@given(tiles, tiles, st.integers(1, 200), st.integers(0, 20))
def test_a_write_to_a_tile_takes_the_closed_form(
    source: Tile, target: Tile, length: int, cycle: int
) -> None:
    hops, flits = abs(source[0] - target[0]) + abs(source[1] - target[1]), flits_of(length)
    # The tail's handshakes have their effect a cycle later.
    left, written = cycle + flits, cycle + TIMING.unicast_cycles(hops, flits) + 1
    where = TileSet.tile(*target)
    assert run([(cycle, source, where, length)]) == [PhaseTimes(cycle, left, written, written)]


@given(st.integers(0, COLS - 2), st.integers(1, 200))
def test_a_write_to_several_tiles_takes_the_closed_form(col: int, length: int) -> None:
    where = TileSet(range(1), range(col + 1, COLS))
    [seen] = run([(0, (0, col), TileSet(range(1), range(col, COLS)), length)])
    assert seen.begin_resp == TIMING.multicast_cycles(len(where), flits_of(length)) + 1


def test_a_busy_port_withholds_end_req() -> None:
    # From both sides into the middle. The port takes 8 flits from the right first, until 10; 8 of
    # the 12 from the left have room in two buffers, the ninth finds a place at 12.
    middle = TileSet.tile(0, 1)
    assert run([(0, (0, 0), middle, 96), (0, (0, 2), middle, 64), (0, (0, 2), middle, 8)]) == [
        PhaseTimes(0, 16, 22, 22),
        PhaseTimes(0, 8, 10, 10),
        PhaseTimes(8, 9, 23, 23),
    ]


@given(tile_sets, tiles, st.integers(1, 200))
def test_operands_offered_together_take_the_closed_form(
    group: TileSet, root: Tile, length: int
) -> None:
    goal = ReductionGoal(group, root[0] * COLS + root[1])
    members = [divmod(node, COLS) for node in group.nodes(COLS)]
    hops = max(abs(row - root[0]) + abs(col - root[1]) for row, col in members)
    for seen in run([(5, tile, goal, length) for tile in members]):
        assert seen.begin_resp == 5 + TIMING.reduction_cycles(hops, flits_of(length)) + 1


def test_all_operands_are_answered_when_the_result_has_been_written() -> None:
    # The first and the last are 40 cycles apart; nobody's interface is held up by it.
    row = ReductionGoal(TileSet(range(1), range(3)), root=0)
    answered = 40 + TIMING.reduction_cycles(2, 2) + 1
    assert run([(0, (0, 0), row, 16), (20, (0, 1), row, 16), (40, (0, 2), row, 16)]) == [
        PhaseTimes(0, 2, answered, answered),
        PhaseTimes(20, 22, answered, answered),
        PhaseTimes(40, 42, answered, answered),
    ]


@given(crowds())
def test_writes_take_the_cycles_of_the_network_by_itself(writes: list[Write]) -> None:
    """Any contention: the same as all packets at once, each tile's in the order of its requests."""
    packets, last = packets_of(writes)
    alone = HandshakeMesh(ROWS, COLS, TIMING).simulate(packets)
    times = run(writes)
    written = alone.last_ejected()[packets.joint[last]]
    assert [t.end_req for t in times] == (alone.tail_injected[last] + 1).tolist()
    assert [t.begin_resp for t in times] == (written + 1).tolist()


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (32, "operand of node 1: found 4 flits; allowed: 8, as those that it meets"),
        (48, "packet 3: found 2 flits and kind SUM; allowed: those of the reduction's first"),
    ],
)
def test_operands_that_meet_are_of_one_length(length: int, message: str) -> None:
    # Of 64 bytes, which go as two packets.
    pair = ReductionGoal(TileSet(range(1), range(2)), root=0)
    with pytest.raises(InputError, match=message):
        run([(0, (0, 0), pair, 64), (0, (0, 1), pair, length)])


def test_an_operand_without_partners_is_not_answered() -> None:
    mesh, payload = Mesh(), write(ReductionGoal(TileSet(range(1), range(2)), root=0), 8)
    end = mesh.env.process(mesh.ports[0, 0].socket.b_transport(payload, 0))
    mesh.env.run()
    assert end.is_alive
    assert payload.response_status is ResponseStatus.INCOMPLETE


def test_blocking_writes_wait_for_their_delay_and_the_network() -> None:
    mesh = Mesh()
    seen = []

    def client(source: Tile, delay: int) -> Generator[Any]:
        payload = write(TileSet.tile(0, 1), 64)
        left = yield from mesh.ports[source].socket.b_transport(payload, delay)
        assert payload.response_status is ResponseStatus.OK
        seen.append((mesh.env.now, left))

    mesh.env.process(client((0, 0), 5))
    mesh.env.process(client((0, 2), 5))
    mesh.run()
    assert seen == [(15, 0), (23, 0)]


class Listener:
    """An initiator that notes what it is told, and takes answers some cycles later."""

    def __init__(self, env: SteppedEnvironment, hold_cycles: int, by_call: bool) -> None:
        self.socket = InitiatorSocket(self)
        self.seen: list[tuple[float, Phase]] = []
        self._env = env
        self._hold_cycles = hold_cycles
        self._by_call = by_call

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        self.seen.append((self._env.now, phase))
        if phase is Phase.END_REQ:
            return Sync.ACCEPTED, phase, delay_cycles
        if self._by_call:
            self.socket.nb_transport_fw(payload, Phase.END_RESP, self._hold_cycles)
            return Sync.ACCEPTED, phase, delay_cycles
        return Sync.UPDATED, Phase.END_RESP, self._hold_cycles


@pytest.mark.parametrize("by_call", [False, True])
def test_requests_may_be_offered_and_answers_taken_ahead_of_time(by_call: bool) -> None:
    env = SteppedEnvironment()
    network = SimpyNetwork(env, HandshakeMesh(ROWS, COLS, TIMING), TIMING.fifo_depth)
    interface = NetworkInterface(env, network, (ROWS, COLS), (0, 0), 8)
    listener = Listener(env, 100, by_call)
    with ProtocolChecker(env, listener.socket, interface.socket):
        for delay in (30, 40):
            payload = write(TileSet.tile(0, 1), 8)
            answer = listener.socket.nb_transport_fw(payload, Phase.BEGIN_REQ, delay)
            assert answer == (Sync.ACCEPTED, Phase.BEGIN_REQ, delay)
            env.run(until=35 + delay)
        env.run()
    # The second answer is there at 78, but the first is open until 133.
    assert listener.seen == [
        (31, Phase.END_REQ),
        (33, Phase.BEGIN_RESP),
        (106, Phase.END_REQ),
        (133, Phase.BEGIN_RESP),
    ]


PAIR = TileSet(range(1), range(2))


NOWHERE = [
    [],
    [Destinations(TileSet.tile(0, COLS))],
    [Destinations(TileSet(range(-1, 1), range(1)))],
    [Destinations(TileSet(range(0), range(1)))],
    [Operand(ReductionGoal(PAIR, ROWS * COLS))],
    [Operand(ReductionGoal(PAIR, -1))],
    [Operand(ReductionGoal(TileSet.tile(0, 1), 0))],  # not brought by this tile
    [Operand(ReductionGoal(TileSet(range(1), range(COLS + 1)), 0))],
    [Destinations(PAIR), Operand(ReductionGoal(PAIR, 0))],
]


@pytest.mark.parametrize(
    ("command", "extensions", "status"),
    [(Command.READ, [Destinations(PAIR)], ResponseStatus.COMMAND_ERROR)]
    + [(Command.WRITE, extensions, ResponseStatus.ADDRESS_ERROR) for extensions in NOWHERE],
)
def test_what_cannot_be_done_is_answered_at_once(
    command: Command, extensions: list[object], status: ResponseStatus
) -> None:
    mesh = Mesh()
    payload, blocking = (GenericPayload(command, address=0, length_bytes=8) for _ in range(2))
    for extension in extensions:
        payload.extend(extension)
        blocking.extend(extension)
    socket = mesh.ports[0, 0].socket
    assert socket.nb_transport_fw(payload, Phase.BEGIN_REQ, 3) == (
        Sync.COMPLETED,
        Phase.END_RESP,
        3,
    )
    assert payload.response_status is status
    end = mesh.env.process(socket.b_transport(blocking, 7))
    mesh.run()
    assert (end.value, blocking.response_status) == (7, status)


def test_nothing_to_write_is_a_burst_error() -> None:
    env = SteppedEnvironment()
    network = SimpyNetwork(env, HandshakeMesh(1, 1, TIMING), TIMING.fifo_depth)
    interface = NetworkInterface(env, network, (1, 1), (0, 0), 8)
    payload = write(TileSet.tile(0, 0), 0)
    assert interface.nb_transport_fw(payload, Phase.BEGIN_REQ, 0)[0] is Sync.COMPLETED
    assert payload.response_status is ResponseStatus.BURST_ERROR
