"""The Verilated memory channel among SimPy processes: phases of the model, and the data."""

from collections.abc import Generator, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pytest
import simpy

from calibration.memory.channel import RtlMemory
from calibration.memory.model import memory_model
from cosim.errors import SimulationError
from cosim.memory.target import RtlMemoryTarget
from tlm.errors import InputError
from tlm.memory.base import MemoryPort, MemoryTarget, PhaseTimes
from tlm.memory.dram.target import DramMemory
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import Answer, InitiatorSocket, PayloadEventQueue, Phase, Sync

pytestmark = pytest.mark.rtl

MEMORY = RtlMemory()
BURST_BYTES = MEMORY.data_width // 8


def accesses(seed: int, count: int) -> list[tuple[int, Command, int, int]]:
    """Time, command, address and bytes: in crowds and with long pauses, of one and many bursts."""
    rng = np.random.default_rng(seed)
    found, time = [], 0
    for _ in range(count):
        pause = rng.random()
        time += int(rng.integers(2000, 9000)) if pause < 0.02 else int(rng.integers(0, 4))
        bursts = int(rng.integers(1, 9)) if rng.random() < 0.2 else 1
        command = Command.WRITE if rng.random() < 0.4 else Command.READ
        place = int(rng.integers(0, 512)) if rng.random() < 0.5 else int(rng.integers(0, 2**14))
        found.append((time, command, place * BURST_BYTES, bursts * BURST_BYTES))
    return found


def phases_at(memory: MemoryTarget, env: simpy.Environment, seed: int) -> list[PhaseTimes]:
    """When the phases of all accesses begin, each sent through one port at its time."""
    port = MemoryPort(env)
    checker = ProtocolChecker(env, port.socket, memory.socket)
    found: dict[int, PhaseTimes] = {}

    def client(number: int, time: int, payload: GenericPayload) -> Generator[Any, Any, None]:
        yield env.timeout(time)
        found[number] = yield from port.access(payload)
        assert payload.response_status is ResponseStatus.OK

    for number, (time, command, address, length) in enumerate(accesses(seed, 400)):
        env.process(client(number, time, GenericPayload(command, address, length)))
    with checker:
        env.run()
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("seed", [1, 2])
def test_phases_are_those_of_the_model(seed: int) -> None:
    env = simpy.Environment()
    model = phases_at(DramMemory(env, memory_model(MEMORY)), env, seed)
    env = simpy.Environment()
    with RtlMemoryTarget(env, MEMORY) as target:
        assert phases_at(target, env, seed) == model


def test_what_is_written_is_read() -> None:
    env = simpy.Environment()
    data = np.random.default_rng(3).bytes(4 * BURST_BYTES)
    with RtlMemoryTarget(env, MEMORY) as target:
        port = MemoryPort(env)

        def client() -> Generator[Any, Any, bytes]:
            write = GenericPayload(Command.WRITE, 96 * BURST_BYTES, len(data), bytearray(data))
            yield from port.socket.b_transport(write, 0)
            read = GenericPayload(Command.READ, 97 * BURST_BYTES, 2 * BURST_BYTES)
            yield from port.socket.b_transport(read, 0)
            return bytes(read.data)

        ProtocolChecker(env, port.socket, target.socket)
        assert env.run(env.process(client())) == data[BURST_BYTES : 3 * BURST_BYTES]


def test_reads_of_many_bursts_at_a_time_get_their_data() -> None:
    env = simpy.Environment()
    count, length = 8, 4 * BURST_BYTES
    data = [np.random.default_rng(place).bytes(length) for place in range(count)]
    # All have rows of their own in the same banks, but not as many bursts: they leave their order.
    starts = [(512 * place + 120 + place) * BURST_BYTES for place in range(count)]
    reads = [GenericPayload(Command.READ, start, length) for start in starts]
    reads[1].data = bytearray(b"left from before")
    with RtlMemoryTarget(env, MEMORY) as target:
        port = MemoryPort(env)
        port.socket.bind(target.socket)
        for start, block in zip(starts, data, strict=True):
            write = GenericPayload(Command.WRITE, start, length, bytearray(block))
            env.run(env.process(port.socket.b_transport(write, 0)))
        env.run(simpy.AllOf(env, [env.process(port.socket.b_transport(read, 0)) for read in reads]))
    assert [bytes(read.data) for read in reads] == data


class Slow:
    """An initiator of reads that takes a response after some cycles."""

    def __init__(self, env: simpy.Environment, reads: int, delays: Iterator[int]) -> None:
        self.env, self.socket, self.left, self.delays = env, InitiatorSocket(self), reads, delays
        self.seen: list[tuple[int, Phase]] = []

    def offer(self) -> None:
        if self.left:
            self.left -= 1
            read = GenericPayload(Command.READ, self.left * BURST_BYTES, BURST_BYTES)
            self.socket.nb_transport_fw(read, Phase.BEGIN_REQ, 0)

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        self.seen.append((int(self.env.now), phase))
        if phase is Phase.END_REQ:
            self.offer()
        else:
            delay = next(self.delays)
            PayloadEventQueue(self.env, self._take).notify(payload, Phase.END_RESP, delay)
        return Sync.ACCEPTED, phase, 0

    def _take(self, payload: GenericPayload, phase: Phase) -> None:
        self.socket.nb_transport_fw(payload, phase, 0)


def seen_by_slow(
    memory: MemoryTarget, env: simpy.Environment, reads: int, delays: Iterator[int]
) -> list[tuple[int, Phase]]:
    slow = Slow(env, reads, delays)
    with ProtocolChecker(env, slow.socket, memory.socket):
        slow.offer()
        env.run()
    return sorted(slow.seen, key=lambda one: (one[0], one[1].value))  # whatever a cycle's order


def test_a_response_that_is_not_taken_keeps_its_place() -> None:
    env = simpy.Environment()
    model = seen_by_slow(DramMemory(env, memory_model(MEMORY)), env, 4, repeat(100))
    assert sum(phase is Phase.BEGIN_RESP for _, phase in model) == 4
    env = simpy.Environment()
    with RtlMemoryTarget(env, MEMORY) as target:
        assert seen_by_slow(target, env, 4, repeat(100)) == model


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_places_of_responses_are_free_a_cycle_after_they_are_taken(seed: int) -> None:
    """More reads than places, so that the next command waits for one."""
    delays = np.random.default_rng(seed).integers(1, 9, 300).tolist()
    env = simpy.Environment()
    model = seen_by_slow(DramMemory(env, memory_model(MEMORY)), env, 300, iter(delays))
    env = simpy.Environment()
    with RtlMemoryTarget(env, MEMORY) as target:
        assert seen_by_slow(target, env, 300, iter(delays)) == model


def test_accesses_that_do_not_fit_are_refused() -> None:
    env = simpy.Environment()
    with RtlMemoryTarget(env, MEMORY) as target:
        port = MemoryPort(env)
        port.socket.bind(target.socket)
        beyond = GenericPayload(Command.READ, MEMORY.bursts * BURST_BYTES, BURST_BYTES)
        with pytest.raises(InputError, match="up to 131072 of them"):
            port.socket.nb_transport_fw(beyond, Phase.BEGIN_REQ, 0)


def test_a_closed_memory_says_so() -> None:
    env = simpy.Environment()
    with RtlMemoryTarget(env, MEMORY) as target:
        port = MemoryPort(env)
        port.socket.bind(target.socket)
    read = GenericPayload(Command.READ, 0, BURST_BYTES)
    with pytest.raises(SimulationError, match=r"^memory_channel: the model is closed$"):
        env.run(env.process(port.socket.b_transport(read, 0)))
