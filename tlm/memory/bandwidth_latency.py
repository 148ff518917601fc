"""Memory as a performance model: a latency, a bandwidth, and a bounded queue."""

from collections import deque
from dataclasses import dataclass
from fractions import Fraction

from simpy import Environment

from tlm.payload import GenericPayload, ResponseStatus
from tlm.sockets import (
    Answer,
    BlockingCall,
    PayloadEventQueue,
    Phase,
    ResponseQueue,
    Sync,
    TargetSocket,
)


@dataclass(frozen=True, slots=True)
class ChannelTiming:
    """Figures of a channel.

    Attributes:
        latency_cycles: From the acceptance of a request to its first byte, unloaded.
        bytes_per_cycle: Bandwidth of the data bus; any ratio.
        queue_depth: Requests accepted and not yet answered.
    """

    latency_cycles: int
    bytes_per_cycle: int | Fraction
    queue_depth: int

    def transfer_cycles(self, length_bytes: int) -> int:
        """Cycles that so many bytes, one after the other, hold the data bus."""
        whole, parts = self.bytes_per_cycle.as_integer_ratio()
        return -(-length_bytes * parts // whole)


class BandwidthLatencyMemory:
    """A channel that answers in order: max(latency, turn on the data bus) + transfer.

    The data bus is busy by the byte: a cycle that one transaction does not fill serves the next,
    too. With the queue full it withholds END_REQ. Its blocking transport is the same formula
    without the queue, for initiators that run ahead on their own clock.
    """

    posts_writes: bool = False

    def __init__(self, env: Environment, timing: ChannelTiming) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._timing = timing
        # Bytes that the bus could have moved until it is free.
        self._bus_free_bytes: int | Fraction = 0
        self._held: deque[GenericPayload] = deque()
        self._in_flight = 0
        self._events = PayloadEventQueue(env, self._data_ready)
        self._responses = ResponseQueue(env, self.socket, self._response_taken)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Complete the transaction without waiting; returns the delay after its last byte."""
        end = self._last_byte(int(self._env.now) + delay_cycles, payload.length_bytes)
        payload.response_status = ResponseStatus.OK
        return end - int(self._env.now)
        yield  # a generator, though this model never waits

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Accept a request if there is room for it, or be told that an answer was taken."""
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        assert delay_cycles == 0, "this memory is told of requests when they begin"
        if self._in_flight == self._timing.queue_depth:
            self._held.append(payload)
            return Sync.ACCEPTED, phase, 0
        self._accept(payload)
        return Sync.UPDATED, Phase.END_REQ, 0

    def _accept(self, payload: GenericPayload) -> None:
        self._in_flight += 1
        now = int(self._env.now)
        end = self._last_byte(now, payload.length_bytes)
        self._events.notify(payload, Phase.BEGIN_RESP, end - now)

    def _last_byte(self, accepted_cycle: int, length_bytes: int) -> int:
        timing = self._timing
        first = (accepted_cycle + timing.latency_cycles) * timing.bytes_per_cycle
        self._bus_free_bytes = max(first, self._bus_free_bytes) + length_bytes
        return -int(-self._bus_free_bytes // timing.bytes_per_cycle)

    def _data_ready(self, payload: GenericPayload, phase: Phase) -> None:
        payload.response_status = ResponseStatus.OK
        self._responses.put(payload)

    def _response_taken(self) -> None:
        self._in_flight -= 1
        if self._held:
            payload = self._held.popleft()
            self._accept(payload)
            self.socket.nb_transport_bw(payload, Phase.END_REQ, 0)
