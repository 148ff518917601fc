"""The four phases of a bounded channel, as whole timelines."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import InitiatorSocket, Phase, Sync, TargetSocket

TIMING = ChannelTiming(latency_cycles=10, bytes_per_cycle=8, queue_depth=2)


def read(length_bytes: int = 32) -> GenericPayload:
    return GenericPayload(Command.READ, address=0, length_bytes=length_bytes)


def run(timing: ChannelTiming, requests: list[tuple[int, int]]) -> list[PhaseTimes]:
    """Times of requests (cycle, bytes), sent through one port."""
    env = simpy.Environment()
    port, memory = MemoryPort(env), BandwidthLatencyMemory(env, timing)
    checker = ProtocolChecker(env, port.socket, memory.socket)
    found: dict[int, PhaseTimes] = {}

    def client(number: int, cycle: int, length: int) -> Generator[Any, Any, None]:
        yield env.timeout(cycle)
        found[number] = yield from port.access(read(length))

    for number, (cycle, length) in enumerate(requests):
        env.process(client(number, cycle, length))
    with checker:
        env.run()
    assert checker.completed == len(requests)
    return [found[number] for number in range(len(requests))]


def test_a_lone_read_takes_latency_and_transfer() -> None:
    assert run(TIMING, [(5, 32)]) == [PhaseTimes(5, 5, 5 + 10 + 4, 5 + 10 + 4)]


def test_reads_share_the_data_bus_and_a_full_queue_withholds_end_req() -> None:
    # Two are accepted at once; the third waits for the first answer, the fourth for the third's
    # turn to be offered.
    assert run(TIMING, [(0, 32)] * 4) == [
        PhaseTimes(0, 0, 14, 14),
        PhaseTimes(0, 0, 18, 18),
        PhaseTimes(0, 14, 28, 28),
        PhaseTimes(14, 18, 32, 32),
    ]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 64)), min_size=1, max_size=20),
    st.integers(1, 4),
)
def test_phases_are_ordered_bounded_and_never_beat_the_bus(
    requests: list[tuple[int, int]], depth: int
) -> None:
    timing = ChannelTiming(latency_cycles=10, bytes_per_cycle=8, queue_depth=depth)
    times = run(timing, requests)
    for one, (_, length) in zip(times, requests, strict=True):
        assert one.begin_req <= one.end_req <= one.begin_resp == one.end_resp
        assert one.begin_resp - one.end_req >= 10 + timing.transfer_cycles(length)
    for one in times:
        open_at_acceptance = [t for t in times if t.end_req <= one.end_req < t.end_resp]
        assert len(open_at_acceptance) <= depth
    total = timing.transfer_cycles(sum(length for _, length in requests))
    assert max(t.begin_resp for t in times) >= min(t.end_req for t in times) + 10 + total


def test_a_cycle_of_the_data_bus_serves_two_reads() -> None:
    # 12 bytes each: the second one's first four come in the cycle of the first one's last four.
    timing = ChannelTiming(latency_cycles=10, bytes_per_cycle=8, queue_depth=4)
    assert [each.begin_resp for each in run(timing, [(0, 12)] * 4)] == [12, 13, 15, 16]


def test_blocking_transport_advances_the_callers_own_clock() -> None:
    env = simpy.Environment()
    port, memory = MemoryPort(env), BandwidthLatencyMemory(env, TIMING)
    checker = ProtocolChecker(env, port.socket, memory.socket)
    delays = []

    def client() -> Generator[Any, Any, None]:
        delay = 3
        for _ in range(2):
            payload = read()
            delay = yield from port.socket.b_transport(payload, delay)
            assert payload.response_status is ResponseStatus.OK
            delays.append((env.now, delay))

    env.process(client())
    with checker:
        env.run()
    assert delays == [(0, 17), (0, 31)]


def test_an_initiator_may_withhold_end_resp() -> None:
    """Answers queue up behind one that is not taken."""
    env = simpy.Environment()
    memory = BandwidthLatencyMemory(env, TIMING)
    seen: list[tuple[int, str]] = []

    class Slow:
        def __init__(self) -> None:
            self.socket = InitiatorSocket(self)

        def nb_transport_bw(
            self, payload: GenericPayload, phase: Phase, delay_cycles: int
        ) -> tuple[Sync, Phase, int]:
            seen.append((int(env.now), phase.value))
            if phase is Phase.BEGIN_RESP:
                taken = env.timeout(100)
                assert taken.callbacks is not None
                taken.callbacks.append(
                    lambda _: slow.socket.nb_transport_fw(payload, Phase.END_RESP, 0)
                )
            return Sync.ACCEPTED, phase, 0

    slow = Slow()
    with ProtocolChecker(env, slow.socket, memory.socket):
        for _ in range(2):
            assert slow.socket.nb_transport_fw(read(), Phase.BEGIN_REQ, 0)[0] is Sync.UPDATED
        env.run()
    assert seen == [(14, "begin response"), (114, "begin response")]


def test_a_socket_is_bound_once() -> None:
    env = simpy.Environment()
    port, memory = MemoryPort(env), BandwidthLatencyMemory(env, TIMING)
    port.socket.bind(memory.socket)
    with pytest.raises(ValueError, match="bound once"):
        MemoryPort(env).socket.bind(memory.socket)
    with pytest.raises(ValueError, match="bound once"):
        port.socket.bind(TargetSocket(memory))
