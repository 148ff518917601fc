"""A port before targets that shorten the four phases, as the base protocol lets them."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy

from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import Answer, BlockingCall, PayloadEventQueue, Phase, Sync, TargetSocket


class Short:
    """Answers at once, in the call or by return, or after as many cycles as the address says."""

    def __init__(self, env: simpy.Environment, how: str) -> None:
        self.socket = TargetSocket(self)
        self._how = how
        self._later = PayloadEventQueue(env, self._answer)

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        if phase is Phase.END_RESP:
            return Sync.COMPLETED, phase, delay_cycles
        if self._how == "later":
            self._later.notify(payload, Phase.BEGIN_RESP, payload.address)
            return Sync.ACCEPTED, phase, delay_cycles
        payload.response_status = ResponseStatus.OK
        if self._how == "over":
            return Sync.COMPLETED, Phase.END_RESP, delay_cycles
        return Sync.UPDATED, Phase.BEGIN_RESP, delay_cycles

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        raise AssertionError("a port uses the other transport")
        yield

    def _answer(self, payload: GenericPayload, phase: Phase) -> None:
        payload.response_status = ResponseStatus.OK
        self.socket.nb_transport_bw(payload, phase, 0)


@pytest.mark.parametrize(
    ("how", "ends"), [("over", [0, 0, 0]), ("answers", [0, 0, 0]), ("later", [4, 4, 6])]
)
def test_an_answer_ends_a_request_that_nothing_ended_before(how: str, ends: list[int]) -> None:
    env = simpy.Environment()
    port, target = MemoryPort(env), Short(env, how)
    seen: list[PhaseTimes] = []

    def one(address: int) -> Generator[Any, Any, None]:
        seen.append((yield from port.access(GenericPayload(Command.READ, address, 4))))

    with ProtocolChecker(env, port.socket, target.socket) as checker:
        for address in (4, 0, 2):
            env.process(one(address))
        env.run()
    assert checker.completed == 3
    assert [each.end_resp for each in seen] == [each.end_req for each in seen] == ends
