"""A target that is written once, as blocking transport, and answers to both transports."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any

from simpy import Environment

from tlm.payload import GenericPayload
from tlm.sockets import Answer, BlockingCall, Phase, ResponseQueue, Sync, TargetSocket


class SimpleTarget(ABC):
    """What the standard calls a simple target socket (IEEE 1666, clause 16.1).

    A subclass writes `b_transport`. A request by phases is carried out in a process of its own: it
    stays open until it has been, so that one is under way at a time.

    Args:
        env: The clock.

    Attributes:
        socket: To be bound to an initiator.
    """

    def __init__(self, env: Environment) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._responses = ResponseQueue(env, self.socket)

    @abstractmethod
    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Carry the transaction out and set its status; the generator's value is the new delay."""

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Begin with a request, or be told that an answer was taken."""
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        self._env.process(self._carry_out(payload, delay_cycles))
        return Sync.ACCEPTED, phase, delay_cycles

    def _carry_out(self, payload: GenericPayload, delay_cycles: int) -> Generator[Any, Any, None]:
        delay = yield from self.b_transport(payload, delay_cycles)
        yield self._env.timeout(delay)
        self.socket.nb_transport_bw(payload, Phase.END_REQ, 0)
        self._responses.put(payload)
