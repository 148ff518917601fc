"""The banked SRAM behind TLM sockets, one for each requester."""

from collections.abc import Callable, Sequence

from tlm.lockstep import SteppedEnvironment
from tlm.memory.sram.banks import Served, SramBanks, SramTiming
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import (
    Answer,
    BlockingCall,
    PayloadEventQueue,
    Phase,
    ResponseQueue,
    Sync,
    TargetSocket,
)


class BankedSram:
    """Banks shared by several requesters, which conflict as `SramBanks` says.

    A request is open while its words wait for their banks: END_REQ comes when the last one has been
    served, so that a conflict holds the requester back. BEGIN_RESP comes when the access is done.
    An access of no bytes is answered with BURST_ERROR, one below address 0 with ADDRESS_ERROR, and
    one that is to do nothing (IGNORE) with OK.

    Args:
        env: Clock of the requesters.
        timing: Figures of the memory.
        requesters: How many share it.

    Attributes:
        ports: The requesters' ends, each with its ``socket``.
    """

    def __init__(self, env: SteppedEnvironment, timing: SramTiming, requesters: int) -> None:
        self._banks = SramBanks(timing, requesters)
        self._env = env
        self._wake = env.attach(self._banks, self._dispatch)
        self._when_served: dict[int, Callable[[], object]] = {}
        self.ports = [SramPort(env, self, timing, number) for number in range(requesters)]

    def access(self, requester: int, payload: GenericPayload, served: Callable[[], object]) -> None:
        """Begin an access now; ``served`` is called when its port is free again."""
        number = self._banks.access(
            int(self._env.now), requester, payload.address, payload.length_bytes
        )
        self._when_served[number] = served
        self._wake()

    def _dispatch(self, events: Sequence[Served]) -> None:
        for event in events:
            self._when_served.pop(event.access)()


class SramPort:
    """A requester's port of a `BankedSram`."""

    def __init__(
        self, env: SteppedEnvironment, sram: BankedSram, timing: SramTiming, number: int
    ) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._sram = sram
        self._timing = timing
        self._number = number
        self._events = PayloadEventQueue(env, self._handle)
        self._responses = ResponseQueue(env, self.socket)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Wait for the banks; returns the cycles from the last word's service to the end."""
        payload.response_status = _status(payload)
        if payload.response_status is not ResponseStatus.INCOMPLETE:
            return delay_cycles
        yield self._env.timeout(delay_cycles)
        served = self._env.event()
        self._sram.access(self._number, payload, served.succeed)
        yield served
        payload.response_status = ResponseStatus.OK
        return self._rest(payload)

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Take a request, or be told that an answer was taken."""
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        payload.response_status = _status(payload)
        if payload.response_status is not ResponseStatus.INCOMPLETE:
            return Sync.COMPLETED, Phase.END_RESP, delay_cycles
        self._events.notify(payload, phase, delay_cycles)
        return Sync.ACCEPTED, phase, delay_cycles

    def _handle(self, payload: GenericPayload, phase: Phase) -> None:
        if phase is Phase.BEGIN_REQ:
            self._sram.access(self._number, payload, lambda: self._served(payload))
        else:
            payload.response_status = ResponseStatus.OK
            self._responses.put(payload)

    def _served(self, payload: GenericPayload) -> None:
        self._events.notify(payload, Phase.BEGIN_RESP, self._rest(payload))
        self.socket.nb_transport_bw(payload, Phase.END_REQ, 0)

    def _rest(self, payload: GenericPayload) -> int:
        """Cycles from a cycle after the last word's service to the end of the access."""
        return self._timing.latency_cycles(payload.command is Command.WRITE) - 1


def _status(payload: GenericPayload) -> ResponseStatus:
    """The answer that needs no access; INCOMPLETE if one is needed."""
    if payload.command is Command.IGNORE:
        return ResponseStatus.OK
    if payload.address < 0:
        return ResponseStatus.ADDRESS_ERROR
    return ResponseStatus.BURST_ERROR if payload.length_bytes < 1 else ResponseStatus.INCOMPLETE
