"""The Verilated memory channel behind a TLM-2.0 socket, clocked in step with SimPy."""

from collections import deque
from collections.abc import Callable
from typing import Self

from simpy import Environment, Event

from cosim.block import RtlBlock, block_model
from cosim.errors import SimulationError
from cosim.memory.channel import ChannelParameters
from cosim.verilog import MEMORY_SOURCES
from tlm.errors import InputError
from tlm.lockstep import CHANNEL_WORKS, call_behind
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import Answer, BlockingCall, Phase, Sync, TargetSocket

_ID_BITS = 8
_PATIENCE_CYCLES = 100_000  # without an answer; a refresh takes some hundred


class RtlMemoryTarget:
    """A memory channel of rtl/memory as a memory; a cycle of SimPy's is one of the channel's.

    Takes and gives the phases in the cycles of the handshakes: END_REQ with the request's,
    BEGIN_RESP when the response is offered first. A transaction longer than a burst is so many
    requests, ended by the last; it begins and ends with whole bursts. Writes carry the payload's
    data, if it has any, and reads fill it.

    Args:
        env: The clock.
        memory: The channel's parameters; built if it is not yet.

    Raises:
        SimulationError: if the Verilog cannot be built, or stops.
    """

    posts_writes: bool = True

    def __init__(self, env: Environment, memory: ChannelParameters) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._memory = memory
        self._block = RtlBlock(block_model(MEMORY_SOURCES, memory.parameters()))
        self._clocked = 0  # cycles
        self._burst_bytes = memory.data_width // 8
        self._requests: deque[tuple[GenericPayload, int]] = deque()  # with the number of the burst
        self._under_way: dict[int, tuple[GenericPayload, int]] = {}  # by the request's name
        self._unanswered: dict[int, int] = {}  # bursts left, by the identity of the payload
        self._ended: dict[int, Event] = {}  # blocking transport
        self._name = 0
        self._open = False  # a response is offered and not taken
        self._taken = False
        self._looking = False
        self._last_answer = 0

    def __enter__(self) -> Self:
        """The memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the model go."""
        self._block.close()

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Carry the transaction out, after the delay; the caller's new delay is 0."""
        yield self._env.timeout(delay_cycles)
        ended = self._ended[id(payload)] = self._env.event()
        self._ask(payload)
        yield ended
        return 0

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be offered a request, or be told that an answer was taken."""
        assert delay_cycles == 0, "this memory is told of phases when they begin"
        if phase is Phase.END_RESP:
            self._taken = True
            self._look()
            return Sync.COMPLETED, phase, 0
        self._ask(payload)
        return Sync.ACCEPTED, phase, 0

    def _ask(self, payload: GenericPayload) -> None:
        count, rest = divmod(payload.length_bytes, self._burst_bytes)
        first, off = divmod(payload.address, self._burst_bytes)
        if rest or off or count < 1 or first + count > self._memory.bursts:
            raise InputError(
                f"transaction of {payload.length_bytes} bytes at {payload.address}: must be whole "
                f"bursts of {self._burst_bytes} bytes, up to {self._memory.bursts} of them"
            )
        if payload.command is Command.READ and len(payload.data) != payload.length_bytes:
            payload.data = bytearray(payload.length_bytes)  # bursts come in any order
        self._unanswered[id(payload)] = count
        if not self._under_way and not self._requests:
            self._last_answer = int(self._env.now)
        self._requests.extend((payload, number) for number in range(count))
        self._look()

    def _look(self) -> None:
        """Clock this cycle when all else in it has happened."""
        if not self._looking:
            self._looking = True
            self._at_end(self._work, 0)

    def _at_end(self, work: Callable[[], None], after_cycles: int) -> None:
        call_behind(self._env, CHANNEL_WORKS, after_cycles, work)

    def _work(self) -> None:
        self._looking = False
        now, block = int(self._env.now), self._block
        if now < self._clocked:  # this cycle is over: what came since belongs to the next
            self._looking = True
            self._at_end(self._work, self._clocked - now)
            return
        if now > self._clocked:  # nothing was asked meanwhile; refreshes go on
            block.put("req_valid_i", 0)
            block.put("resp_ready_i", 0)
            block.settle()
            block.clock(now - self._clocked - 1)
            self._clocked = now
        self._offer()
        block.settle()
        asked = self._request_taken() if block.get("req_ready_o") and self._requests else None
        self._respond()
        block.clock()
        self._clocked += 1
        if asked is not None and id(asked) not in self._ended:
            self.socket.nb_transport_bw(asked, Phase.END_REQ, 0)
        if self._under_way or self._requests:
            if now - self._last_answer > _PATIENCE_CYCLES:
                raise SimulationError(f"memory_channel: no answer since cycle {self._last_answer}")
            if not self._looking:
                self._looking = True
                self._at_end(self._work, 1)

    def _offer(self) -> None:
        """Offer the first request that waits."""
        block = self._block
        block.put("req_valid_i", bool(self._requests))
        if not self._requests:
            return
        payload, number = self._requests[0]
        start = number * self._burst_bytes
        data = bytes(payload.data[start : start + self._burst_bytes])
        block.put("req_write_i", payload.command is Command.WRITE)
        block.put("req_address_i", payload.address // self._burst_bytes + number)
        block.put("req_data_i", int.from_bytes(data, "little"))
        block.put("req_id_i", self._name)

    def _request_taken(self) -> GenericPayload | None:
        """The transaction whose last request has been taken."""
        payload, number = self._requests.popleft()
        self._under_way[self._name] = payload, number
        self._name = (self._name + 1) % (1 << _ID_BITS)
        last = (number + 1) * self._burst_bytes == payload.length_bytes
        return payload if last else None

    def _respond(self) -> None:
        """Show a response that is offered; take it in this cycle if its initiator does."""
        block = self._block
        taken, self._taken = self._taken, False
        if block.get("resp_valid_o") and not self._open:
            taken = self._shown()
            self._open = not taken
        elif taken:
            self._open = False
        block.put("resp_ready_i", taken)
        if taken:
            del self._under_way[block.get("resp_id_o")]
            self._last_answer = int(self._env.now)
        block.settle()

    def _shown(self) -> bool:
        """Hand a response over; whether it is taken at once."""
        payload, number = self._under_way[self._block.get("resp_id_o")]
        if payload.command is Command.READ:
            start = number * self._burst_bytes
            payload.data[start : start + self._burst_bytes] = self._block.get(
                "resp_data_o"
            ).to_bytes(self._burst_bytes, "little")
        self._unanswered[id(payload)] -= 1
        if self._unanswered[id(payload)]:
            return True
        del self._unanswered[id(payload)]
        payload.response_status = ResponseStatus.OK
        ended = self._ended.pop(id(payload), None)
        if ended is not None:
            ended.succeed()
            return True
        return self.socket.nb_transport_bw(payload, Phase.BEGIN_RESP, 0)[0] is Sync.COMPLETED
