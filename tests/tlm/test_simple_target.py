"""A target that writes blocking transport answers to phases too, one request at a time."""

from collections.abc import Generator
from typing import Any

import simpy

from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.simple_target import SimpleTarget
from tlm.sockets import BlockingCall


class Slow(SimpleTarget):
    """Waits as many cycles as the address says, and tells a delay of two more."""

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        yield self._env.timeout(delay_cycles + payload.address)
        payload.response_status = ResponseStatus.OK
        return 2


def test_phases_follow_from_blocking_transport() -> None:
    env = simpy.Environment()
    port, target = MemoryPort(env), Slow(env)
    times: list[PhaseTimes] = []

    def one(cycles: int) -> Generator[Any, Any, None]:
        times.append((yield from port.access(GenericPayload(Command.READ, cycles, 4))))

    with ProtocolChecker(env, port.socket, target.socket) as checker:
        for cycles in (5, 0, 1):
            env.process(one(cycles))
        env.run()
    assert checker.completed == 3
    assert [each.end_resp for each in times] == [7, 9, 12]
