"""Bytes before models of times: data as of the order of requests, times as of the model behind."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from tlm.data_memory import DataMemory
from tlm.lockstep import SteppedEnvironment
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory, ChannelTiming
from tlm.memory.base import MemoryPort, MemoryTarget, PhaseTimes
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import HBM3
from tlm.memory.dram.target import DramMemory
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import InitiatorSocket

_BURST = HBM3.burst_bytes
_BURSTS = 8


@dataclass(frozen=True)
class Access:
    """A request of a whole burst after some cycles."""

    after: int
    writes: bool
    burst: int
    enables: bytes = b""


ACCESSES = st.lists(
    st.builds(
        Access,
        st.integers(0, 60),
        st.booleans(),
        st.integers(0, _BURSTS - 1),
        st.sampled_from([b"", b"\xff", b"\x00\xff", b"\xff\xff\x00"]),
    ),
    max_size=16,
)


def memory_of(kind: str, env: simpy.Environment) -> MemoryTarget:
    if kind == "formula":
        timing = ChannelTiming(latency_cycles=30, bytes_per_cycle=16, queue_depth=2)
        return BandwidthLatencyMemory(env, timing)
    return DramMemory(env, DramChannel.of(HBM3, CONTROLLERS[kind]))


def run(kind: str, accesses: list[Access], held: bool) -> tuple[list[bytes], list[PhaseTimes]]:
    """What each request read or wrote, and when its phases began."""
    env = SteppedEnvironment()
    memory = memory_of(kind, env)
    seen: dict[int, tuple[GenericPayload, PhaseTimes]] = {}
    port = MemoryPort(env)
    target = DataMemory(memory, _BURSTS * _BURST) if held else memory
    behind = ProtocolChecker(env, port.socket, target.socket)

    def one(number: int, access: Access) -> Generator[Any, Any, None]:
        command = Command.WRITE if access.writes else Command.READ
        data = bytearray([number + 1]) * _BURST if access.writes else bytearray()
        payload = GenericPayload(command, access.burst * _BURST, _BURST, data, access.enables)
        seen[number] = payload, (yield from port.access(payload))

    def all_of_them() -> Generator[Any, Any, None]:
        for number, access in enumerate(accesses):
            yield env.timeout(access.after)
            env.process(one(number, access))

    env.process(all_of_them())
    with behind:
        env.run()
    in_order = [seen[number] for number in range(len(accesses))]
    return [bytes(payload.data) for payload, _ in in_order], [times for _, times in in_order]


@pytest.mark.parametrize("kind", ["formula", *CONTROLLERS])
@given(ACCESSES)
def test_reads_see_all_writes_before_them_at_the_times_of_the_memory(
    kind: str, accesses: list[Access]
) -> None:
    found, times = run(kind, accesses, held=True)
    assert times == run(kind, accesses, held=False)[1]
    content = bytearray(_BURSTS * _BURST)
    for number, access in enumerate(accesses):  # a port has one request open at a time
        enables = access.enables or b"\xff"
        moved = [enables[place % len(enables)] > 0 for place in range(_BURST)]
        window = slice(access.burst * _BURST, (access.burst + 1) * _BURST)
        old = content[window]
        if access.writes:
            content[window] = bytes(
                number + 1 if is_moved else byte for is_moved, byte in zip(moved, old, strict=True)
            )
        else:
            expected = [byte if is_moved else 0 for is_moved, byte in zip(moved, old, strict=True)]
            assert found[number] == bytes(expected)


class Held:
    """A memory of bytes with addresses from 64 on."""

    def __init__(self) -> None:
        self.env = simpy.Environment()
        self.memory = DataMemory(memory_of("formula", self.env), 32, start=64)
        self.socket = InitiatorSocket(self)
        self.checker = ProtocolChecker(self.env, self.socket, self.memory.socket)

    def send(self, payload: GenericPayload) -> GenericPayload:
        self.env.run(self.env.process(self.socket.b_transport(payload, 0)))
        return payload


def test_debug_transport_moves_what_is_there_in_no_time() -> None:
    held = Held()
    written = GenericPayload(Command.WRITE, 88, 12, bytearray(b"twelve bytes"))
    assert held.socket.transport_dbg(written) == 8  # there are no more
    assert held.env.now == 0
    assert held.send(GenericPayload(Command.READ, 86, 10)).data == b"\0\0twelve b"
    read = GenericPayload(Command.READ, 90, 3)
    assert held.socket.transport_dbg(read) == 3 and read.data == b"elv"
    for payload in (
        GenericPayload(Command.READ, 63, 3),
        GenericPayload(Command.READ, 96, 3),
        GenericPayload(Command.IGNORE, 64, 3),
        GenericPayload(Command.WRITE, 64, 3),
    ):
        assert held.socket.transport_dbg(payload) == 0


def test_debug_transport_sees_data_while_transactions_are_under_way() -> None:
    held = Held()
    write = GenericPayload(Command.WRITE, 64, 4, bytearray(b"soon"))
    sending = held.env.process(held.socket.b_transport(write, 0))
    held.env.run(until=1)
    read = GenericPayload(Command.READ, 64, 4)
    held.socket.transport_dbg(read)
    assert (bytes(read.data), sending.is_alive) == (b"soon", False)  # a formula never waits


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (GenericPayload(Command.READ, 63, 1), ResponseStatus.ADDRESS_ERROR),
        (GenericPayload(Command.READ, 90, 7), ResponseStatus.ADDRESS_ERROR),
        (GenericPayload(Command.WRITE, 64, 3, bytearray(2)), ResponseStatus.BURST_ERROR),
        (GenericPayload(Command.READ, 64, 3, byte_enables=b"\1"), ResponseStatus.BYTE_ENABLE_ERROR),
        (GenericPayload(Command.IGNORE, 0, 3), ResponseStatus.OK),
    ],
)
def test_requests_that_do_not_fit_are_answered_at_once(
    payload: GenericPayload, status: ResponseStatus
) -> None:
    assert Held().send(payload).response_status is status


def test_a_write_without_data_leaves_the_bytes_as_they_are() -> None:
    held = Held()
    held.send(GenericPayload(Command.WRITE, 64, 2, bytearray(b"ab")))
    held.send(GenericPayload(Command.WRITE, 64, 2))
    assert held.send(GenericPayload(Command.READ, 64, 2)).data == b"ab"


def test_direct_access_is_given_only_where_it_is_allowed() -> None:
    held = Held()
    read = GenericPayload(Command.READ, 64, 1)
    assert held.socket.get_direct_mem_ptr(read) is None
    assert not held.send(read).dmi_allowed
    held.memory.allow_direct(1, 1)
    given = held.socket.get_direct_mem_ptr(GenericPayload(Command.READ, 95, 1))
    assert given is not None and (given.start, given.stop) == (64, 96)
    assert held.socket.get_direct_mem_ptr(GenericPayload(Command.READ, 96, 1)) is None
