"""Sockets and the four phases of TLM-2.0 on SimPy (IEEE 1666-2023, clauses 11, 15 and 16).

A transaction passes a socket in four phases: BEGIN_REQ (offered), END_REQ (accepted), BEGIN_RESP
(answer offered), END_RESP (answer taken). A target that withholds END_REQ, or an initiator that
withholds END_RESP, exerts back-pressure: no second request, or response, may be open on a socket.

Two interfaces beside take no time: debug transport reads and writes data as it stands, and direct
memory gives an initiator a target's bytes to use without transactions. Either side may be without
them: a target then moves nothing and gives nothing.

Time is SimPy's: a whole number of cycles. ``delay_cycles`` is an offset to it.
docs/tlm2.md has the standard's terms with their names here, and an example.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from simpy import Environment

from tlm.payload import Command, GenericPayload


class Phase(Enum):
    """Points in the life of a non-blocking transaction."""

    BEGIN_REQ = "begin request"
    END_REQ = "end request"
    BEGIN_RESP = "begin response"
    END_RESP = "end response"


class Sync(Enum):
    """What a call of the non-blocking transport gives back.

    ACCEPTED: nothing changed yet, an answer comes by a call the other way. UPDATED: the phase and
    the delay returned are new. COMPLETED: the transaction is over.
    """

    ACCEPTED = "accepted"
    UPDATED = "updated"
    COMPLETED = "completed"


Answer = tuple[Sync, Phase, int]
BlockingCall = Generator[Any, Any, int]


class Target(Protocol):
    """What stands behind a target socket."""

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Carry the transaction out; a generator whose value is the caller's new delay."""
        ...

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be told BEGIN_REQ or END_RESP; never waits."""
        ...


class Initiator(Protocol):
    """What stands behind an initiator socket."""

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be told END_REQ or BEGIN_RESP; never waits."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DirectMemory:
    """Direct access to a target's bytes, until it is taken back.

    Attributes:
        data: The bytes; it can be written if ``writable``.
        start: Address of the first.
        readable: Whether the initiator may read.
        writable: Whether it may write.
        read_cycles: What a read as long as the transaction that asked takes.
        write_cycles: The same of a write.
    """

    data: memoryview
    start: int
    readable: bool
    writable: bool
    read_cycles: int
    write_cycles: int

    @property
    def stop(self) -> int:
        """The address behind the last byte."""
        return self.start + self.data.nbytes

    def covers(self, payload: GenericPayload) -> bool:
        """Whether a transaction may be carried out with it."""
        allowed = {Command.READ: self.readable, Command.WRITE: self.writable}
        inside = self.start <= payload.address
        inside = inside and payload.address + payload.length_bytes <= self.stop
        return inside and allowed.get(payload.command, False)


@runtime_checkable
class DebugTarget(Protocol):
    """A target whose data can be looked at."""

    def transport_dbg(self, payload: GenericPayload) -> int:
        """Read or write now, whatever is under way; the number of bytes that were moved."""
        ...


@runtime_checkable
class DirectTarget(Protocol):
    """A target that may give direct access to its data."""

    def get_direct_mem_ptr(self, payload: GenericPayload) -> DirectMemory | None:
        """Access for commands like this one around its address; None: none is given."""
        ...


@runtime_checkable
class DirectInitiator(Protocol):
    """An initiator that uses direct access."""

    def invalidate_direct_mem_ptr(self, start: int, stop: int) -> None:
        """Forget all access to any of these addresses; ``stop`` is behind the last."""
        ...


class TargetSocket:
    """The end of a connection at which requests arrive."""

    def __init__(self, owner: Target) -> None:
        self.owner = owner
        self._peer: InitiatorSocket | None = None

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Call the initiator."""
        return self._initiator().nb_transport_bw(payload, phase, delay_cycles)

    def invalidate_direct_mem_ptr(self, start: int, stop: int) -> None:
        """Take direct access to some addresses back; ``stop`` is behind the last."""
        initiator = self._initiator()
        if isinstance(initiator, DirectInitiator):
            initiator.invalidate_direct_mem_ptr(start, stop)

    def _initiator(self) -> Initiator:
        assert self._peer is not None, "target socket is not bound"
        return self._peer.owner


class InitiatorSocket:
    """The end of a connection from which requests are sent."""

    def __init__(self, owner: Initiator) -> None:
        self.owner = owner
        self._peer: TargetSocket | None = None

    def bind(self, target: TargetSocket) -> None:
        """Connect both ends, once.

        Raises:
            ValueError: if either end is connected already.
        """
        if self._peer is not None or target._peer is not None:
            raise ValueError("a socket is bound once")
        self._peer, target._peer = target, self

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Call the target and wait: ``delay = yield from socket.b_transport(payload, delay)``."""
        return self._target().b_transport(payload, delay_cycles)

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Call the target."""
        return self._target().nb_transport_fw(payload, phase, delay_cycles)

    def transport_dbg(self, payload: GenericPayload) -> int:
        """Read or write the target's data without time; the bytes moved, 0 if it has none."""
        target = self._target()
        return target.transport_dbg(payload) if isinstance(target, DebugTarget) else 0

    def get_direct_mem_ptr(self, payload: GenericPayload) -> DirectMemory | None:
        """Ask for direct access; None if the target gives none."""
        target = self._target()
        return target.get_direct_mem_ptr(payload) if isinstance(target, DirectTarget) else None

    def _target(self) -> Target:
        assert self._peer is not None, "initiator socket is not bound"
        return self._peer.owner


def _after(env: Environment, delay_cycles: int, call: Callable[[], None]) -> None:
    event = env.timeout(delay_cycles)
    assert event.callbacks is not None
    event.callbacks.append(lambda _: call())


class PayloadEventQueue:
    """Hands payloads back after their delay: ``handle(payload, phase)`` is called at that time."""

    def __init__(self, env: Environment, handle: Callable[[GenericPayload, Phase], None]) -> None:
        self._env = env
        self._handle = handle

    def notify(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> None:
        """Schedule the call; equal times keep the order of the notifications."""
        _after(self._env, delay_cycles, lambda: self._handle(payload, phase))


class ResponseQueue:
    """A target's answers: each is offered when the one before it has been taken.

    ``on_taken`` is called whenever one has been.
    """

    def __init__(
        self, env: Environment, socket: TargetSocket, on_taken: Callable[[], object] = lambda: None
    ) -> None:
        self._env = env
        self._socket = socket
        self._on_taken = on_taken
        self._waiting: deque[GenericPayload] = deque()
        self._open = False

    def put(self, payload: GenericPayload) -> None:
        """Answer with BEGIN_RESP now, or as soon as it is this payload's turn."""
        self._waiting.append(payload)
        self._offer()

    def taken(self, delay_cycles: int) -> None:
        """To be called at END_RESP: the answer that is open is taken after the delay."""
        if delay_cycles:
            _after(self._env, delay_cycles, lambda: self.taken(0))
            return
        self._open = False
        self._on_taken()
        self._offer()

    def _offer(self) -> None:
        # No call of itself: thousands of answers may be taken the moment they are offered.
        while self._waiting and not self._open:
            self._open = True
            payload = self._waiting.popleft()
            sync, _, delay = self._socket.nb_transport_bw(payload, Phase.BEGIN_RESP, 0)
            if sync is Sync.ACCEPTED:
                return
            if delay:
                self.taken(delay)
                return
            self._open = False
            self._on_taken()
