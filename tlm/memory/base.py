"""The memory swap point, and the initiator's side of it."""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from simpy import Environment, Event

from tlm.payload import GenericPayload
from tlm.sockets import Answer, InitiatorSocket, Phase, Sync, Target, TargetSocket


class MemoryTarget(Target, Protocol):
    """A memory at some level of detail: a target that knows both transports.

    Attributes:
        posts_writes: A write that it has taken is as good as done, as its queue is short. Else only
            its answer tells.
    """

    socket: TargetSocket
    posts_writes: bool


@dataclass(frozen=True, slots=True)
class OfBlock:
    """The block that a transaction moves a part of: an extension of its payload."""

    length_bytes: int


@dataclass(slots=True)
class PhaseTimes:
    """Cycles in which the phases of one transaction began."""

    begin_req: int
    end_req: int = -1
    begin_resp: int = -1
    end_resp: int = -1


class MemoryPort:
    """An initiator that keeps the protocol: one open request at a time, answers taken at once.

    Example: ``times = yield from port.access(payload)`` inside a SimPy process.
    """

    def __init__(self, env: Environment) -> None:
        self.socket = InitiatorSocket(self)
        self._env = env
        self._waiting: deque[Event] = deque()
        self._open: GenericPayload | None = None
        self._times: dict[int, PhaseTimes] = {}
        self._answered: dict[int, Event] = {}

    def access(self, payload: GenericPayload) -> Generator[Event, Any, PhaseTimes]:
        """Send a transaction and wait for its response; returns when each phase began."""
        while self._open is not None:
            turn = self._env.event()
            self._waiting.append(turn)
            yield turn
        self._open = payload
        times = self._times[id(payload)] = PhaseTimes(int(self._env.now))
        answered = self._answered[id(payload)] = self._env.event()
        sync, phase, delay = self.socket.nb_transport_fw(payload, Phase.BEGIN_REQ, 0)
        assert delay == 0, "this port is told of phases when they begin"
        if sync is Sync.UPDATED and phase is Phase.END_REQ:
            self._request_taken(payload)
        elif sync is not Sync.ACCEPTED:
            self._answer_taken(payload)
            if sync is Sync.UPDATED:
                self.socket.nb_transport_fw(payload, Phase.END_RESP, 0)
        yield answered
        del self._times[id(payload)], self._answered[id(payload)]
        return times

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be told that the request was taken, or that the answer is there."""
        assert delay_cycles == 0, "this port is told of phases when they begin"
        if phase is Phase.END_REQ:
            self._request_taken(payload)
            return Sync.ACCEPTED, phase, 0
        self._answer_taken(payload)
        return Sync.COMPLETED, Phase.END_RESP, 0

    def _answer_taken(self, payload: GenericPayload) -> None:
        """An answer has come; it says that the request was taken, too, if nothing has before."""
        if self._open is payload:
            self._request_taken(payload)
        times = self._times[id(payload)]
        times.begin_resp = times.end_resp = int(self._env.now)
        self._answered[id(payload)].succeed()

    def _request_taken(self, payload: GenericPayload) -> None:
        assert self._open is payload, "END_REQ for a request that is not open"
        self._times[id(payload)].end_req = int(self._env.now)
        self._open = None
        if self._waiting:
            self._waiting.popleft().succeed()
