"""Initiators ahead of the clock: the same times without neighbours, fewer events, direct access."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from tlm.data_memory import DataMemory
from tlm.loosely_timed import LooselyTimedPort, QuantumKeeper
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import TargetSocket

_TIMING = ChannelTiming(latency_cycles=20, bytes_per_cycle=8, queue_depth=4)
_SIZE_BYTES = 1 << 12

Step = tuple[int, int, int]
"""Cycles of work, then a read of so many bytes from an address."""
STEPS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 1000), st.integers(1, 200)), max_size=12
)


class ToOne:
    """An end for an initiator of several at one memory."""

    def __init__(self, memory: BandwidthLatencyMemory) -> None:
        self.socket = TargetSocket(memory)


def run(
    quantum_cycles: int, plans: list[list[Step]], shared: bool = False
) -> tuple[list[int], int]:
    """When each initiator's last access ends, and how many events SimPy had."""
    env = simpy.Environment()
    ends: dict[int, int] = {}
    memories = [BandwidthLatencyMemory(env, _TIMING) for _ in plans]

    def initiator(number: int, port: LooselyTimedPort) -> Generator[Any, Any, None]:
        for work, address, length in plans[number]:
            yield from port.work(work)
            yield from port.access(GenericPayload(Command.READ, address, length))
        ends[number] = port.keeper.current_cycle
        yield from port.keeper.sync()
        assert env.now == ends[number]

    for number, memory in enumerate(memories):
        port = LooselyTimedPort(env, quantum_cycles)
        front = ToOne(memories[0]) if shared else memory
        ProtocolChecker(env, port.socket, front.socket)
        env.process(initiator(number, port))
    events = 0
    while env.peek() < float("inf"):
        env.step()
        events += 1
    return [ends[number] for number in range(len(plans))], events


@given(st.lists(STEPS, min_size=1, max_size=4), st.integers(0, 3000))
def test_initiators_that_share_nothing_end_at_the_same_time_with_any_quantum(
    plans: list[list[Step]], quantum_cycles: int
) -> None:
    assert run(quantum_cycles, plans)[0] == run(0, plans)[0]


def test_a_quantum_saves_events() -> None:
    plans = [[(5, 64 * step, 64) for step in range(200)]] * 3
    (_, exact), (_, ahead) = run(0, plans), run(1000, plans)
    assert ahead < exact / 20


def test_initiators_that_share_a_memory_meet_in_the_order_of_their_turns() -> None:
    """Within a quantum the first has the memory to itself: the price of fewer events."""
    plans = [[(0, 0, 800)] * 4, [(0, 0, 8)]]
    exact, _ = run(0, plans, shared=True)
    ahead, _ = run(10_000, plans, shared=True)
    assert exact == [480, 121] and ahead == [480, 481]


def test_keepers_of_a_quantum_meet_at_its_multiples() -> None:
    env = simpy.Environment(initial_time=130)
    keeper = QuantumKeeper(env, 100)
    keeper.inc(69)
    assert (keeper.current_cycle, keeper.need_sync()) == (199, False)
    keeper.inc(26)
    assert (keeper.local_cycles, keeper.need_sync()) == (95, True)
    env.run(env.process(keeper.sync()))
    assert (env.now, keeper.local_cycles, keeper.need_sync()) == (225, 0, False)
    keeper.set(75)
    assert keeper.need_sync()
    keeper.reset()
    assert (keeper.current_cycle, keeper.need_sync()) == (225, False)


def test_a_keeper_without_a_quantum_always_meets() -> None:
    env = simpy.Environment()
    keeper = QuantumKeeper(env, 0)
    assert keeper.need_sync()
    keeper.inc(1)
    env.run(env.process(keeper.sync()))
    assert env.now == 1


def test_clocks_do_not_go_back() -> None:
    keeper = QuantumKeeper(simpy.Environment(), 10)
    keeper.inc(4)
    with pytest.raises(ValueError, match="ahead of the others: found -1 cycles"):
        keeper.inc(-5)
    with pytest.raises(ValueError, match="quantum_cycles: found -1; allowed: 0 or more"):
        QuantumKeeper(simpy.Environment(), -1)


class Direct:
    """A port before a memory with data, and a checker between them."""

    def __init__(self, direct: bool = True) -> None:
        self.env = simpy.Environment()
        self.memory = DataMemory(BandwidthLatencyMemory(self.env, _TIMING), _SIZE_BYTES, start=256)
        self.port = LooselyTimedPort(self.env, 1_000_000, direct=direct)
        self.checker = ProtocolChecker(self.env, self.port.socket, self.memory.socket)

    def access(self, command: Command, address: int, data: bytes | int) -> tuple[bytes, int]:
        """What was read or written, and the cycles that it took."""
        length = data if isinstance(data, int) else len(data)
        payload = GenericPayload(command, address, length)
        if not isinstance(data, int):
            payload.data = bytearray(data)
        before = self.port.keeper.current_cycle
        self.env.run(self.env.process(self.port.access(payload)))
        assert payload.response_status is ResponseStatus.OK
        return bytes(payload.data), self.port.keeper.current_cycle - before

    def write(self, address: int, data: bytes) -> int:
        return self.access(Command.WRITE, address, data)[1]

    def read(self, address: int, length: int) -> tuple[bytes, int]:
        return self.access(Command.READ, address, length)


def test_direct_reads_see_what_transport_wrote_and_the_other_way_round() -> None:
    at = Direct()
    at.write(512, b"by transport")
    at.memory.allow_direct(read_cycles=3, write_cycles=2)
    assert at.read(512, 4) == (b"by t", 21)  # a last one by transport, which tells of the offer
    assert at.read(515, 9) == (b"transport", 3)
    assert at.write(520, b"!!") == 2
    assert at.checker.completed == 2
    at.memory.forbid_direct()
    assert at.read(515, 9) == (b"trans!!rt", 22)
    assert at.checker.completed == 3


def test_direct_access_is_given_back_and_may_be_given_anew() -> None:
    at = Direct()
    at.memory.allow_direct(1, 1)
    at.write(256, b"a")
    assert at.read(256, 1) == (b"a", 1)
    given = at.port._direct[0]
    at.memory.forbid_direct()
    with pytest.raises(ValueError, match="released memoryview"):
        given.data[0]
    assert at.read(256, 1)[1] > 20
    at.memory.allow_direct(5, 5)
    at.read(256, 1)
    assert at.read(256, 1) == (b"a", 5)


def test_a_port_that_wants_no_direct_access_asks_for_none() -> None:
    at = Direct(direct=False)
    at.memory.allow_direct(1, 1)
    for number in range(3):
        at.read(256, 8)
        assert at.checker.completed == number + 1


def test_what_a_grant_does_not_cover_goes_by_transport() -> None:
    at = Direct()
    at.memory.allow_direct(1, 1)
    at.read(256, 1)
    payload = GenericPayload(Command.READ, 255, 4)
    at.env.run(at.env.process(at.port.access(payload)))
    assert payload.response_status is ResponseStatus.ADDRESS_ERROR
