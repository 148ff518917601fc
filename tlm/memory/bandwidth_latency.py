"""Memory as a performance model: a latency, a bandwidth, and a bounded queue."""

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from simpy import Environment

from tlm.memory.base import OfBlock
from tlm.memory.block_costs import BlockCosts
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

#: Of a cycle: a data bus is busy by the byte, and a block need not end with a cycle. A block of
#: which some of them are no whole number counts up to one of them less.
PARTS_OF_A_CYCLE = 1 << 20


@dataclass(frozen=True, slots=True)
class ChannelTiming:
    """Figures of a channel.

    Attributes:
        latency_cycles: From the acceptance of a request to its first byte, unloaded.
        bytes_per_cycle: Bandwidth of the data bus at its peak; any ratio.
        queue_depth: Requests accepted and not yet answered.
        costs: What blocks get of it; None: the peak.
    """

    latency_cycles: int
    bytes_per_cycle: int | Fraction
    queue_depth: int
    costs: BlockCosts | None = None

    def __hash__(self) -> int:
        """Of some fields: what bursts take is kept by channels, and many are asked for."""
        return hash((self.latency_cycles, self.queue_depth))

    def busy_bytes(self, length_bytes: Any, *, writes: bool) -> Any:
        """What the data bus could have moved while it moves a block, or each of an array."""
        if self.costs is None:
            return length_bytes
        return self.costs.busy_bytes(length_bytes, writes=writes)

    def transfer_cycles(self, busy_bytes: Any, parts: Any = 1, moved: int = 1) -> Any:
        """Cycles until the data bus has moved so many bytes; of equal parts of them the first."""
        whole, cycles = self.bytes_per_cycle.as_integer_ratio()
        return -(-busy_bytes * moved * cycles // (whole * parts))

    def transfer_parts(self, busy_bytes: Any, parts: Any = 1, moved: int = 1) -> Any:
        """`transfer_cycles` in parts of a cycle."""
        whole, cycles = self.bytes_per_cycle.as_integer_ratio()
        of_all = whole * parts
        full = busy_bytes * moved * cycles
        # The one product of all could exceed 64 bits.
        return full // of_all * PARTS_OF_A_CYCLE + full % of_all * PARTS_OF_A_CYCLE // of_all


class BandwidthLatencyMemory:
    """A channel that answers in order: max(latency, turn on the data bus) + transfer.

    The data bus is busy by the byte: a cycle that one transaction does not fill serves the next,
    too. One that is a part of a block costs its part of it; another is a block of its own. With the
    queue full it withholds END_REQ. Its blocking transport is the same formula without the queue,
    for initiators that run ahead on their own clock.

    Attributes:
        timing: Its figures.
    """

    posts_writes: bool = False

    def __init__(self, env: Environment, timing: ChannelTiming) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self.timing = timing
        # Bytes that the bus could have moved until it is free.
        self._bus_free_bytes: int | Fraction = 0
        self._held: deque[GenericPayload] = deque()
        self._in_flight = 0
        self._events = PayloadEventQueue(env, self._data_ready)
        self._responses = ResponseQueue(env, self.socket, self._response_taken)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Complete the transaction without waiting; returns the delay after its last byte."""
        end = self._last_byte(int(self._env.now) + delay_cycles, payload)
        payload.response_status = ResponseStatus.OK
        return end - int(self._env.now)
        yield  # a generator, though this model never waits

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Accept a request if there is room for it, or be told that an answer was taken."""
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        assert delay_cycles == 0, "this memory is told of requests when they begin"
        if self._in_flight == self.timing.queue_depth:
            self._held.append(payload)
            return Sync.ACCEPTED, phase, 0
        self._accept(payload)
        return Sync.UPDATED, Phase.END_REQ, 0

    def _accept(self, payload: GenericPayload) -> None:
        self._in_flight += 1
        now = int(self._env.now)
        end = self._last_byte(now, payload)
        self._events.notify(payload, Phase.BEGIN_RESP, end - now)

    def _last_byte(self, accepted_cycle: int, payload: GenericPayload) -> int:
        timing, length = self.timing, payload.length_bytes
        of_block = payload.extensions.get(OfBlock)
        block = length if of_block is None else of_block.length_bytes
        busy = timing.busy_bytes(block, writes=payload.command is Command.WRITE)
        first = (accepted_cycle + timing.latency_cycles) * timing.bytes_per_cycle
        self._bus_free_bytes = max(first, self._bus_free_bytes) + Fraction(busy * length, block)
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
