"""A memory's bytes, in front of a model of its times.

The models of memory know when an answer comes, not what is in it. `DataMemory` stands before any of
them and holds the data: transactions pass through it to the model behind and back, at its times.
"""

import numpy as np

from tlm.memory.base import MemoryTarget
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import (
    Answer,
    BlockingCall,
    DirectMemory,
    InitiatorSocket,
    Phase,
    Sync,
    TargetSocket,
)


class DataMemory:
    """Bytes behind a socket, which move at the times of the memory behind them.

    Requests move their data in the order in which the memory accepts them, so that a read sees all
    writes accepted before it. Reads fill the payload's ``data``; a write without data leaves the
    bytes as they are. A request outside, or whose data and byte enables do not fit its length, is
    answered at once: ADDRESS_ERROR, BURST_ERROR, BYTE_ENABLE_ERROR.

    Direct access is given once `allow_direct` has said what it costs. The memory behind, whose
    times depend on who else is there, is not asked then.

    Args:
        memory: What tells the times; bound to this one. Addresses stay as they are.
        size_bytes: Bytes held; zero at first.
        start: Address of the first.

    Attributes:
        socket: To be bound to an initiator.
        posts_writes: As of the memory behind.
    """

    def __init__(self, memory: MemoryTarget, size_bytes: int, start: int = 0) -> None:
        self.socket = TargetSocket(self)
        self.posts_writes = memory.posts_writes
        self._memory = InitiatorSocket(self)
        self._memory.bind(memory.socket)
        self._bytes = np.zeros(size_bytes, dtype=np.uint8)  # pages come when they are written
        self._start = start
        self._offered: set[GenericPayload] = set()  # and not yet accepted
        self._direct_cycles: tuple[int, int] | None = None
        self._given: list[memoryview] = []

    def allow_direct(self, read_cycles: int, write_cycles: int) -> None:
        """Give direct access from now on.

        Args:
            read_cycles: What a read is to take, of any length.
            write_cycles: The same of a write.
        """
        self._direct_cycles = read_cycles, write_cycles

    def forbid_direct(self) -> None:
        """Take all direct access back, so that the memory behind tells all times.

        Who goes on to use what it was given gets a ValueError. Slices of it, and arrays over it,
        are the initiator's own to drop when it is told.
        """
        self._direct_cycles = None
        self.socket.invalidate_direct_mem_ptr(self._start, self._start + len(self._bytes))
        for view in self._given:
            view.release()
        self._given.clear()

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Wait as long as the memory behind takes, then move the data."""
        fault = payload.response_status = self._fault(payload)
        if fault is not ResponseStatus.INCOMPLETE:
            return delay_cycles
        delay = yield from self._memory.b_transport(payload, delay_cycles)
        if payload.response_status is ResponseStatus.OK:
            self._move(payload)
        return delay

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Pass a call on; data moves when the request is accepted."""
        if phase is Phase.BEGIN_REQ:
            payload.response_status = self._fault(payload)
            if payload.response_status is not ResponseStatus.INCOMPLETE:
                return Sync.COMPLETED, Phase.END_RESP, delay_cycles
            self._offered.add(payload)
        answer = self._memory.nb_transport_fw(payload, phase, delay_cycles)
        if answer[0] is not Sync.ACCEPTED:
            self._accepted(payload)
        return answer

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Pass a call of the memory behind on."""
        self._accepted(payload)
        return self.socket.nb_transport_bw(payload, phase, delay_cycles)

    def transport_dbg(self, payload: GenericPayload) -> int:
        """Read or write as many of the bytes as there are from the address on."""
        count = min(payload.length_bytes, self._start + len(self._bytes) - payload.address)
        if payload.command is Command.WRITE:
            count = min(count, len(payload.data))
        if payload.address < self._start or count < 1 or payload.command is Command.IGNORE:
            return 0
        part = GenericPayload(payload.command, payload.address, count, payload.data[:count])
        part.move(self._window(part))
        if payload.command is Command.READ:
            payload.data[:count] = part.data
        return count

    def get_direct_mem_ptr(self, payload: GenericPayload) -> DirectMemory | None:
        """All bytes, for reads and writes, if that is allowed and the address is among them."""
        place = payload.address - self._start
        if self._direct_cycles is None or not 0 <= place < len(self._bytes):
            return None
        self._given.append(self._bytes.data)
        read_cycles, write_cycles = self._direct_cycles
        return DirectMemory(self._given[-1], self._start, True, True, read_cycles, write_cycles)

    def _accepted(self, payload: GenericPayload) -> None:
        if payload in self._offered:
            self._offered.remove(payload)
            self._move(payload)

    def _move(self, payload: GenericPayload) -> None:
        if payload.command is not Command.IGNORE:
            payload.move(self._window(payload))
        payload.dmi_allowed = self._direct_cycles is not None

    def _window(self, payload: GenericPayload) -> memoryview:
        begin = payload.address - self._start
        return self._bytes.data[begin : begin + payload.length_bytes]

    def _fault(self, payload: GenericPayload) -> ResponseStatus:
        """What is wrong with a request; INCOMPLETE if nothing is."""
        if payload.command is Command.IGNORE:
            return ResponseStatus.INCOMPLETE
        stop = payload.address + payload.length_bytes
        if payload.address < self._start or stop > self._start + len(self._bytes):
            return ResponseStatus.ADDRESS_ERROR
        written = payload.command is Command.WRITE and len(payload.data)
        if payload.length_bytes < 1 or (written and written != payload.length_bytes):
            return ResponseStatus.BURST_ERROR
        if set(payload.byte_enables) - {0, 0xFF}:
            return ResponseStatus.BYTE_ENABLE_ERROR
        return ResponseStatus.INCOMPLETE
