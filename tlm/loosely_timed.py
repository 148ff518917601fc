"""Initiators that run ahead of SimPy's clock: temporal decoupling (IEEE 1666, clauses 12 and 16.2).

An initiator with a clock of its own does not wait for each access. It passes its offset to the
blocking transport, adds what it does itself, and lets SimPy catch up where it has to. A larger
quantum costs fewer events; initiators that meet at a target then meet in the order of their turns.
"""

from collections.abc import Generator
from typing import Any

from simpy import Environment, Event

from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import Answer, DirectMemory, InitiatorSocket, Phase


class QuantumKeeper:
    """The local clock of an initiator, and how far it may run ahead.

    All keepers of one quantum meet at its multiples, as with the standard's global quantum. An
    initiator asks `need_sync` whenever its clock has moved.

    Args:
        env: The clock of all.
        quantum_cycles: Cycles between two meetings; 0: never ahead.

    Attributes:
        quantum_cycles: The same.
        local_cycles: How far the initiator is ahead.

    Raises:
        ValueError: for a negative quantum.
    """

    def __init__(self, env: Environment, quantum_cycles: int) -> None:
        if quantum_cycles < 0:
            raise ValueError(f"quantum_cycles: found {quantum_cycles}; allowed: 0 or more")
        self.quantum_cycles = quantum_cycles
        self._env = env
        self.reset()

    @property
    def current_cycle(self) -> int:
        """The initiator's own time."""
        return int(self._env.now) + self.local_cycles

    def inc(self, cycles: int) -> None:
        """Go ahead by so much."""
        self.set(self.local_cycles + cycles)

    def set(self, cycles: int) -> None:
        """Be ahead by so much: what the blocking transport gives back.

        Raises:
            ValueError: if it is negative.
        """
        if cycles < 0:
            raise ValueError(f"a local clock is ahead of the others: found {cycles} cycles")
        self.local_cycles = cycles

    def need_sync(self) -> bool:
        """Whether the next meeting is reached."""
        return self.current_cycle >= self._meet_at

    def sync(self) -> Generator[Event, Any, None]:
        """Wait until SimPy's clock is where the local one is."""
        if self.local_cycles:
            yield self._env.timeout(self.local_cycles)
        self.reset()

    def reset(self) -> None:
        """Be at SimPy's time, whose next multiple of the quantum is the next meeting."""
        self.local_cycles = 0
        now, quantum = int(self._env.now), self.quantum_cycles
        self._meet_at = now + quantum - now % quantum if quantum else now


class LooselyTimedPort:
    """An initiator of blocking transport: ahead within its quantum, by direct access where it may.

    Example: ``yield from port.access(payload)`` inside a SimPy process, and ``yield from
    port.work(12)`` for what it does itself.

    Args:
        env: The clock of all.
        quantum_cycles: As of `QuantumKeeper`.
        direct: Whether direct access is asked for where a target offers it.

    Attributes:
        socket: To be bound to a target.
        keeper: The local clock.
    """

    def __init__(self, env: Environment, quantum_cycles: int, *, direct: bool = True) -> None:
        self.socket = InitiatorSocket(self)
        self.keeper = QuantumKeeper(env, quantum_cycles)
        self._wants_direct = direct
        self._direct: list[DirectMemory] = []

    def access(self, payload: GenericPayload) -> Generator[Event, Any, None]:
        """Carry a transaction out; its status tells what became of it."""
        if direct := next((each for each in self._direct if each.covers(payload)), None):
            self.keeper.inc(_use(direct, payload))
        else:
            delay = yield from self.socket.b_transport(payload, self.keeper.local_cycles)
            self.keeper.set(delay)
            if payload.dmi_allowed and self._wants_direct:
                given = self.socket.get_direct_mem_ptr(payload)
                self._direct += [given] if given is not None else []
        yield from self._meet()

    def work(self, cycles: int) -> Generator[Event, Any, None]:
        """Be busy without the target."""
        self.keeper.inc(cycles)
        yield from self._meet()

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Nothing that this initiator sends is answered by phases."""
        raise AssertionError("a loosely timed port uses blocking transport alone")

    def invalidate_direct_mem_ptr(self, start: int, stop: int) -> None:
        """Forget direct access to any of these addresses."""
        self._direct = [each for each in self._direct if each.stop <= start or stop <= each.start]

    def _meet(self) -> Generator[Event, Any, None]:
        if self.keeper.need_sync():
            yield from self.keeper.sync()


def _use(direct: DirectMemory, payload: GenericPayload) -> int:
    """Move a transaction's bytes without its target; the cycles that it takes."""
    begin = payload.address - direct.start
    with direct.data[begin : begin + payload.length_bytes] as window:
        payload.move(window)
    payload.response_status = ResponseStatus.OK
    return direct.write_cycles if payload.command is Command.WRITE else direct.read_cycles
