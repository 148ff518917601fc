"""A checker of the base protocol, to be put between an initiator and a target (IEEE 1666).

It passes every call of both transports on, of debug transport and of direct memory too, and raises
`ProtocolError` at the first that breaks one of the rules of `Rule`.

The standard lets an interconnect component change an address; none does here, so it may not change.
Different transactions may use both transports of a socket at once, and a payload that is over may
be sent again.
"""

from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

from simpy import Environment

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


class Rule(Enum):
    """A rule of the base protocol, for one hop; the value is its clause in IEEE 1666-2011."""

    PATH = "15.2.3"  # BEGIN_REQ, END_RESP go forward; END_REQ, BEGIN_RESP backward
    ORDER = "15.2.4"  # a transaction's phases come in order; BEGIN_RESP implies END_REQ
    REQUEST_EXCLUSION = "15.2.6, requests"  # no BEGIN_REQ before the END_REQ of the one before
    RESPONSE_EXCLUSION = "15.2.6, responses"  # no BEGIN_RESP before the END_RESP of the one before
    NEGATIVE_DELAY = "11.1.3"  # a delay is an offset into the future
    DECREASING_TIME = "15.2.7"  # time + delay of a transaction's calls and returns never decreases
    TRANSPORT = "15.2.10"  # a transaction in progress is not given to b_transport, or anew
    AFTER_COMPLETION = "11.1.2, COMPLETED"  # no call or new phase for one that is over
    ACCEPTED_CHANGE = "11.1.2, ACCEPTED"  # ACCEPTED leaves phase and delay as they were
    ATTRIBUTES = "14.7"  # command, address, length, enables, data to write stay as they were
    LENGTH = "14.12"  # a read or a write moves at least one byte
    STATUS_AT_BEGIN = "14.17, request"  # the status is INCOMPLETE when the request begins
    STATUS_AT_RESPONSE = "14.17, response"  # and it is not when the response begins
    DIRECT = "11.2"  # direct access covers the address and the command, at no negative cost
    DEBUG = "11.3"  # debug transport moves no more than was asked for, and a read brings it
    UNFINISHED = "none"  # of ours: at the end of a run every transaction is over


class ProtocolError(RuntimeError):
    """A model that breaks the protocol: a fault in its code, never in a user's input.

    Attributes:
        rule: The rule that it breaks.
        payload: The transaction with which it does.
    """

    def __init__(self, rule: Rule, payload: GenericPayload, found: str) -> None:
        super().__init__(rule, payload, found)  # SimPy makes a copy from these arguments
        self.rule = rule
        self.payload = payload
        self._found = found

    def __str__(self) -> str:
        return (
            f"{self.rule.name} (clause {self.rule.value}): {self._found}; "
            f"{self.payload.command.name} of {self.payload.length_bytes} bytes "
            f"at {self.payload.address:#x}"
        )


@dataclass(slots=True)
class _Transaction:
    """What is known of one in progress: the last phase (none: blocking) and its time."""

    phase: Phase | None
    time: int
    attributes: tuple[object, ...]


@dataclass(slots=True)
class _Channel:
    """Requests, or responses, of the hop: the open one, and since when there is none."""

    rule: Rule
    open: GenericPayload | None = None
    free_from: int = 0

    def begin(self, payload: GenericPayload, time: int) -> None:
        if self.open is not None:
            raise ProtocolError(self.rule, payload, "begins while the one before is open")
        if time < self.free_from:
            found = f"begins at {time}, while the one before is open until {self.free_from}"
            raise ProtocolError(self.rule, payload, found)
        self.open = payload

    def end(self, payload: GenericPayload, time: int) -> None:
        """Close the channel, if it is this payload that holds it."""
        if self.open is payload:
            self.open, self.free_from = None, time


_PRECEDING = {
    Phase.END_REQ: (Phase.BEGIN_REQ,),
    Phase.BEGIN_RESP: (Phase.BEGIN_REQ, Phase.END_REQ),
    Phase.END_RESP: (Phase.BEGIN_RESP,),
}


class ProtocolChecker:
    """Stands between two sockets and checks what passes; `Rule` says what is asked.

    Example: ``with ProtocolChecker(env, port.socket, memory.socket): env.run()``. At the end of the
    block every transaction must be over. For tests: it keeps every payload that it has seen.

    Args:
        env: Clock of both sides.
        initiator: Its socket, not yet bound.
        target: Its socket, not yet bound.

    Attributes:
        completed: Transactions that passed from their beginning to their end.
    """

    def __init__(self, env: Environment, initiator: InitiatorSocket, target: TargetSocket) -> None:
        self.completed = 0
        self._env = env
        self._front = TargetSocket(self)
        self._back = InitiatorSocket(self)
        self._in_progress: dict[GenericPayload, _Transaction] = {}
        self._over: set[GenericPayload] = set()
        self._requests = _Channel(Rule.REQUEST_EXCLUSION)
        self._responses = _Channel(Rule.RESPONSE_EXCLUSION)
        initiator.bind(self._front)
        self._back.bind(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()

    def finish(self) -> None:
        """Check that every transaction is over.

        Raises:
            ProtocolError: naming the first that is not.
        """
        for payload, transaction in self._in_progress.items():
            last = transaction.phase.name if transaction.phase else "b_transport"
            found = f"last seen: {last} at {transaction.time}; in all {len(self._in_progress)} open"
            raise ProtocolError(Rule.UNFINISHED, payload, found)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Pass a blocking call on."""
        self._begin(payload, None, delay_cycles)
        delay = yield from self._back.b_transport(payload, delay_cycles)
        self._move(payload, None, delay)
        self._check_answered(payload)
        self._end(payload)
        return delay

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Pass a call of the initiator on."""
        if phase is Phase.BEGIN_REQ:
            self._begin(payload, phase, delay_cycles)
        elif phase is Phase.END_RESP:
            self._enter(payload, phase, delay_cycles)
        else:
            raise ProtocolError(Rule.PATH, payload, f"{phase.name} by nb_transport_fw")
        answer = self._back.nb_transport_fw(payload, phase, delay_cycles)
        self._check_answer(
            payload, (phase, delay_cycles), answer, (Phase.END_REQ, Phase.BEGIN_RESP)
        )
        return answer

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Pass a call of the target on."""
        if phase not in (Phase.END_REQ, Phase.BEGIN_RESP):
            raise ProtocolError(Rule.PATH, payload, f"{phase.name} by nb_transport_bw")
        self._enter(payload, phase, delay_cycles)
        answer = self._front.nb_transport_bw(payload, phase, delay_cycles)
        self._check_answer(payload, (phase, delay_cycles), answer, (Phase.END_RESP,))
        return answer

    def transport_dbg(self, payload: GenericPayload) -> int:
        """Pass a debug access on."""
        moved = self._back.transport_dbg(payload)
        brought = len(payload.data) if payload.command is Command.READ else payload.length_bytes
        if not 0 <= moved <= min(payload.length_bytes, brought):
            found = f"{moved} bytes moved by debug transport, {brought} there"
            raise ProtocolError(Rule.DEBUG, payload, found)
        return moved

    def get_direct_mem_ptr(self, payload: GenericPayload) -> DirectMemory | None:
        """Pass a question for direct access on."""
        direct = self._back.get_direct_mem_ptr(payload)
        if direct is None:
            return None
        allowed = direct.readable if payload.command is Command.READ else direct.writable
        if not (allowed and direct.start <= payload.address < direct.stop):
            rights = f"read {direct.readable}, write {direct.writable}"
            found = f"given {direct.start:#x} to {direct.stop:#x}, {rights}"
            raise ProtocolError(Rule.DIRECT, payload, found)
        if min(direct.read_cycles, direct.write_cycles) < 0:
            raise ProtocolError(Rule.DIRECT, payload, "given at a negative number of cycles")
        if direct.writable and direct.data.readonly:
            raise ProtocolError(Rule.DIRECT, payload, "writable bytes that cannot be written")
        return direct

    def invalidate_direct_mem_ptr(self, start: int, stop: int) -> None:
        """Pass on that direct access is over."""
        self._front.invalidate_direct_mem_ptr(start, stop)

    def _begin(self, payload: GenericPayload, phase: Phase | None, delay: int) -> None:
        """A transaction is sent by one of the transports."""
        if payload in self._in_progress:
            raise ProtocolError(Rule.TRANSPORT, payload, "sent while it is in progress")
        if payload.response_status is not ResponseStatus.INCOMPLETE:
            raise ProtocolError(
                Rule.STATUS_AT_BEGIN, payload, f"sent with status {payload.response_status.name}"
            )
        if payload.length_bytes < 1 and payload.command is not Command.IGNORE:
            raise ProtocolError(Rule.LENGTH, payload, "nothing to move")
        time = self._time(payload, delay)
        if phase is Phase.BEGIN_REQ:
            self._requests.begin(payload, time)
        self._over.discard(payload)
        self._in_progress[payload] = _Transaction(phase, time, _attributes(payload))

    def _enter(self, payload: GenericPayload, phase: Phase, delay: int) -> None:
        """A transaction comes to a phase but the first."""
        transaction = self._move(payload, phase, delay)
        if transaction.phase not in _PRECEDING[phase]:
            before = transaction.phase.name if transaction.phase else "b_transport"
            raise ProtocolError(Rule.ORDER, payload, f"{phase.name} after {before}")
        transaction.phase = phase
        if phase is Phase.END_RESP:
            self._responses.end(payload, transaction.time)
            self._end(payload)
            return
        self._requests.end(payload, transaction.time)
        if phase is Phase.BEGIN_RESP:
            self._check_answered(payload)
            self._responses.begin(payload, transaction.time)

    def _check_answer(
        self,
        payload: GenericPayload,
        call: tuple[Phase, int],
        answer: Answer,
        phases: tuple[Phase, ...],
    ) -> None:
        """What a call gives back; ``phases`` are those that the callee may go on to."""
        sync, phase, delay = answer
        if sync is Sync.ACCEPTED:
            if (phase, delay) != call:
                found = f"called with {call[0].name} + {call[1]}, ACCEPTED {phase.name} + {delay}"
                raise ProtocolError(Rule.ACCEPTED_CHANGE, payload, found)
        elif sync is Sync.UPDATED:
            if phase not in phases:
                raise ProtocolError(Rule.PATH, payload, f"{call[0].name} UPDATED to {phase.name}")
            self._enter(payload, phase, delay)
        elif call[0] is Phase.END_REQ:
            raise ProtocolError(Rule.ORDER, payload, "COMPLETED at END_REQ")
        elif call[0] is not Phase.END_RESP:
            transaction = self._move(payload, Phase.END_RESP, delay)
            self._check_answered(payload)
            self._requests.end(payload, transaction.time)
            self._responses.end(payload, transaction.time)
            self._end(payload)

    def _move(self, payload: GenericPayload, phase: Phase | None, delay: int) -> _Transaction:
        """Advance a transaction's time, and check that it is in progress and as it was."""
        name = phase.name if phase else "the return of b_transport"
        if payload in self._over:
            raise ProtocolError(Rule.AFTER_COMPLETION, payload, f"{name} after the end")
        if payload not in self._in_progress:
            raise ProtocolError(Rule.ORDER, payload, f"{name} without BEGIN_REQ")
        transaction = self._in_progress[payload]
        if (phase is None) != (transaction.phase is None):
            raise ProtocolError(Rule.TRANSPORT, payload, f"{name} during b_transport")
        time = self._time(payload, delay)
        if time < transaction.time:
            found = f"{name} at {time}, after {transaction.time}"
            raise ProtocolError(Rule.DECREASING_TIME, payload, found)
        transaction.time = time
        now = _attributes(payload)
        if now != transaction.attributes:
            found = f"were {transaction.attributes}, are {now} at {name}"
            raise ProtocolError(Rule.ATTRIBUTES, payload, found)
        return transaction

    def _time(self, payload: GenericPayload, delay: int) -> int:
        if delay < 0:
            raise ProtocolError(Rule.NEGATIVE_DELAY, payload, f"delay {delay}")
        return int(self._env.now) + delay

    def _end(self, payload: GenericPayload) -> None:
        del self._in_progress[payload]
        self._over.add(payload)
        self.completed += 1

    @staticmethod
    def _check_answered(payload: GenericPayload) -> None:
        if payload.response_status is ResponseStatus.INCOMPLETE:
            raise ProtocolError(Rule.STATUS_AT_RESPONSE, payload, "answered with status INCOMPLETE")


def _attributes(payload: GenericPayload) -> tuple[object, ...]:
    """What no one may change; the data only of a write, as a read brings it."""
    data = bytes(payload.data) if payload.command is Command.WRITE else None
    return (payload.command, payload.address, payload.length_bytes, payload.byte_enables, data)
