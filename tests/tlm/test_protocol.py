"""The checker of the base protocol: each rule broken by one side, and traffic that keeps all."""

from collections.abc import Callable, Generator
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker, ProtocolError, Rule
from tlm.sockets import (
    Answer,
    BlockingCall,
    DirectMemory,
    InitiatorSocket,
    Phase,
    Sync,
    TargetSocket,
)

BEGIN_REQ, END_REQ, BEGIN_RESP, END_RESP = Phase
ACCEPTED, UPDATED, COMPLETED = Sync


def read(**attributes: Any) -> GenericPayload:
    return GenericPayload(
        **{"command": Command.READ, "address": 64, "length_bytes": 8} | attributes
    )


def answered(payload: GenericPayload) -> GenericPayload:
    payload.response_status = ResponseStatus.OK
    return payload


def unchanged(payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
    return ACCEPTED, phase, delay_cycles


class Hop:
    """Two sides that do what a test tells them, and the checker between them.

    Attributes:
        forward: Answer of the target to a call; by default ACCEPTED.
        backward: Answer of the initiator.
        blocking: What the target does in b_transport.
        look: The same in debug transport; by default nothing.
        direct: Direct access that the target gives.
        taken_back: Ranges of it that the initiator was told of.
    """

    def __init__(self) -> None:
        self.env = simpy.Environment()
        self.front, self.back = InitiatorSocket(self), TargetSocket(self)
        self.checker = ProtocolChecker(self.env, self.front, self.back)
        self.forward: Callable[..., Answer] = unchanged
        self.backward: Callable[..., Answer] = unchanged
        self.blocking: Callable[[GenericPayload, int], BlockingCall]
        self.look: Callable[[GenericPayload], int] = lambda payload: 0
        self.direct: DirectMemory | None = None
        self.taken_back: list[tuple[int, int]] = []

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        return self.forward(payload, phase, delay_cycles)

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        return self.backward(payload, phase, delay_cycles)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        return self.blocking(payload, delay_cycles)

    def transport_dbg(self, payload: GenericPayload) -> int:
        return self.look(payload)

    def get_direct_mem_ptr(self, payload: GenericPayload) -> DirectMemory | None:
        return self.direct

    def invalidate_direct_mem_ptr(self, start: int, stop: int) -> None:
        self.taken_back.append((start, stop))

    def fw(self, payload: GenericPayload, phase: Phase = BEGIN_REQ, delay: int = 0) -> Answer:
        return self.front.nb_transport_fw(payload, phase, delay)

    def bw(self, payload: GenericPayload, phase: Phase, delay: int = 0) -> Answer:
        return self.back.nb_transport_bw(payload, phase, delay)

    def begun(self, delay: int = 0, **attributes: Any) -> GenericPayload:
        payload = read(**attributes)
        self.fw(payload, delay=delay)
        return payload

    def accepted(self, delay: int = 0) -> GenericPayload:
        payload = self.begun()
        self.bw(payload, END_REQ, delay)
        return payload

    def responding(self, delay: int = 0) -> GenericPayload:
        payload = answered(self.accepted())
        self.bw(payload, BEGIN_RESP, delay)
        return payload

    def over(self) -> GenericPayload:
        payload = self.responding()
        self.fw(payload, END_RESP)
        return payload

    def block(self, payload: GenericPayload, delay: int = 0) -> None:
        """A blocking call, run to its end."""
        self.env.run(self.env.process(self.front.b_transport(payload, delay)))


def give(*answer: object) -> Callable[..., Any]:
    return lambda *_: answer


def change(name: str, value: object) -> Callable[[Hop], object]:
    """The target changes an attribute of a write before it accepts it."""

    def act(hop: Hop) -> None:
        payload = hop.begun(command=Command.WRITE, data=bytearray(8))
        setattr(payload, name, value)
        hop.bw(payload, END_REQ)

    return act


def change_data(hop: Hop) -> None:
    payload = hop.begun(command=Command.WRITE, data=bytearray(8))
    payload.data[3] = 1
    answered(payload)
    hop.bw(payload, BEGIN_RESP)


def answer_forward(*answer: object) -> Callable[[Hop], object]:
    def act(hop: Hop) -> None:
        hop.forward = give(*answer)
        hop.fw(read())

    return act


def answer_backward(phase: Phase, *answer: object) -> Callable[[Hop], object]:
    def act(hop: Hop) -> None:
        payload = answered(hop.begun())
        hop.backward = give(*answer)
        hop.bw(payload, phase)

    return act


def updated_at_end_resp(hop: Hop) -> None:
    payload = hop.responding()
    hop.forward = give(UPDATED, BEGIN_RESP, 0)
    hop.fw(payload, END_RESP)


def blocking(
    *, delay: int = 0, end: int = 0, wait: int = 0, status: bool = True
) -> Callable[[Hop], object]:
    """A blocking call whose target waits and returns ``end``."""

    def act(hop: Hop) -> None:
        def target(payload: GenericPayload, _: int) -> BlockingCall:
            yield hop.env.timeout(wait)
            if status:
                answered(payload)
            return end

        hop.blocking = target
        hop.block(read(), delay)

    return act


def during_blocking(act: Callable[[Hop, GenericPayload], object]) -> Callable[[Hop], object]:
    def run(hop: Hop) -> None:
        def target(payload: GenericPayload, delay: int) -> BlockingCall:
            yield hop.env.timeout(1)
            act(hop, payload)
            return delay

        hop.blocking = target
        hop.block(read())

    return run


def again_after_a_second_request(hop: Hop) -> None:
    """The first request is accepted only five cycles from now."""
    hop.accepted(delay=5)
    hop.begun(delay=4)


def response_before_the_end_of_another(hop: Hop) -> None:
    first, second = hop.accepted(), hop.accepted()
    hop.bw(answered(first), BEGIN_RESP)
    hop.fw(first, END_RESP, 5)
    hop.bw(answered(second), BEGIN_RESP, 4)


def two_responses(hop: Hop) -> None:
    first, second = hop.accepted(), hop.accepted()
    hop.bw(answered(first), BEGIN_RESP)
    hop.bw(answered(second), BEGIN_RESP)


def response_completed_later(hop: Hop) -> None:
    first, second = hop.accepted(), hop.accepted()
    hop.backward = give(COMPLETED, END_RESP, 9)
    hop.bw(answered(first), BEGIN_RESP)
    hop.bw(answered(second), BEGIN_RESP, 8)


def completed_before_answered(hop: Hop) -> None:
    payload = answered(hop.accepted())
    hop.backward = give(COMPLETED, END_RESP, 3)
    hop.bw(payload, BEGIN_RESP, 4)


def grant(**given: Any) -> Callable[[Hop], object]:
    """The target gives direct access, wrong in one thing, to who wants to read at address 64."""
    right = {"data": memoryview(bytearray(16)), "start": 56, "readable": True, "writable": True}
    right |= {"read_cycles": 1, "write_cycles": 1}

    def act(hop: Hop) -> None:
        hop.direct = DirectMemory(**right | given)
        hop.front.get_direct_mem_ptr(read())

    return act


def debug(moved: int, data: bytes) -> Callable[[Hop], object]:
    """Debug transport of 8 bytes that brings some, and says how many."""

    def act(hop: Hop) -> None:
        def look(payload: GenericPayload) -> int:
            payload.data = bytearray(data)
            return moved

        hop.look = look
        hop.front.transport_dbg(read())

    return act


def later(cycles: int, act: Callable[[Hop], object]) -> Callable[[Hop], object]:
    def run(hop: Hop) -> None:
        hop.env.run(until=cycles)
        act(hop)

    return run


FAULTS: list[tuple[str, Rule, Callable[[Hop], object]]] = [
    ("initiator sends END_REQ", Rule.PATH, lambda h: h.fw(h.begun(), END_REQ)),
    ("initiator sends BEGIN_RESP", Rule.PATH, lambda h: h.fw(h.begun(), BEGIN_RESP)),
    ("target sends BEGIN_REQ", Rule.PATH, lambda h: h.bw(h.begun(), BEGIN_REQ)),
    ("target sends END_RESP", Rule.PATH, lambda h: h.bw(h.responding(), END_RESP)),
    ("target returns BEGIN_REQ", Rule.PATH, answer_forward(UPDATED, BEGIN_REQ, 0)),
    ("target returns END_RESP", Rule.PATH, answer_forward(UPDATED, END_RESP, 0)),
    ("initiator returns END_REQ", Rule.PATH, answer_backward(END_REQ, UPDATED, END_REQ, 0)),
    ("END_REQ out of the blue", Rule.ORDER, lambda h: h.bw(read(), END_REQ)),
    ("END_RESP out of the blue", Rule.ORDER, lambda h: h.fw(read(), END_RESP)),
    ("END_REQ twice", Rule.ORDER, lambda h: h.bw(h.accepted(), END_REQ)),
    ("END_REQ after BEGIN_RESP", Rule.ORDER, lambda h: h.bw(h.responding(), END_REQ)),
    ("BEGIN_RESP twice", Rule.ORDER, lambda h: h.bw(h.responding(), BEGIN_RESP)),
    ("END_RESP after BEGIN_REQ", Rule.ORDER, lambda h: h.fw(h.begun(), END_RESP)),
    ("END_RESP after END_REQ", Rule.ORDER, lambda h: h.fw(h.accepted(), END_RESP)),
    ("END_RESP at END_REQ", Rule.ORDER, answer_backward(END_REQ, UPDATED, END_RESP, 0)),
    ("over at END_REQ", Rule.ORDER, answer_backward(END_REQ, COMPLETED, END_RESP, 0)),
    ("second request", Rule.REQUEST_EXCLUSION, lambda h: (h.begun(), h.begun())),
    ("request too soon", Rule.REQUEST_EXCLUSION, again_after_a_second_request),
    ("second response", Rule.RESPONSE_EXCLUSION, two_responses),
    ("response too soon", Rule.RESPONSE_EXCLUSION, response_before_the_end_of_another),
    ("response before COMPLETED", Rule.RESPONSE_EXCLUSION, response_completed_later),
    ("request in the past", Rule.NEGATIVE_DELAY, lambda h: h.fw(read(), delay=-1)),
    ("acceptance in the past", Rule.NEGATIVE_DELAY, lambda h: h.bw(h.begun(), END_REQ, -1)),
    ("returned past", Rule.NEGATIVE_DELAY, answer_forward(UPDATED, END_REQ, -2)),
    ("blocking into the past", Rule.NEGATIVE_DELAY, blocking(delay=-1)),
    ("blocking returns the past", Rule.NEGATIVE_DELAY, blocking(end=-1, wait=5)),
    ("accepted before offered", Rule.DECREASING_TIME, lambda h: h.bw(h.begun(3), END_REQ, 2)),
    ("taken before answered", Rule.DECREASING_TIME, lambda h: h.fw(h.responding(7), END_RESP, 6)),
    ("completed before answered", Rule.DECREASING_TIME, completed_before_answered),
    ("blocking returns too early", Rule.DECREASING_TIME, blocking(delay=9, end=3, wait=5)),
    ("BEGIN_REQ twice", Rule.TRANSPORT, lambda h: h.fw(h.accepted())),
    ("blocking call of one begun", Rule.TRANSPORT, lambda h: h.block(h.begun())),
    ("begun in a blocking call", Rule.TRANSPORT, during_blocking(lambda h, p: h.fw(p))),
    ("accepted in one", Rule.TRANSPORT, during_blocking(lambda h, p: h.bw(p, END_REQ))),
    ("END_RESP twice", Rule.AFTER_COMPLETION, lambda h: h.fw(h.over(), END_RESP)),
    ("BEGIN_RESP at the end", Rule.AFTER_COMPLETION, lambda h: h.bw(h.over(), BEGIN_RESP)),
    ("BEGIN_RESP returned at the end", Rule.AFTER_COMPLETION, updated_at_end_resp),
    ("ACCEPTED END_REQ", Rule.ACCEPTED_CHANGE, answer_forward(ACCEPTED, END_REQ, 0)),
    ("ACCEPTED later", Rule.ACCEPTED_CHANGE, answer_forward(ACCEPTED, BEGIN_REQ, 1)),
    ("initiator too", Rule.ACCEPTED_CHANGE, answer_backward(END_REQ, ACCEPTED, END_RESP, 0)),
    ("command", Rule.ATTRIBUTES, change("command", Command.READ)),
    ("address", Rule.ATTRIBUTES, change("address", 65)),
    ("length", Rule.ATTRIBUTES, change("length_bytes", 9)),
    ("byte enables", Rule.ATTRIBUTES, change("byte_enables", b"\x01")),
    ("data pointer", Rule.ATTRIBUTES, change("data", bytearray(9))),
    ("data", Rule.ATTRIBUTES, change_data),
    ("no bytes", Rule.LENGTH, lambda h: h.begun(length_bytes=0)),
    ("an old payload", Rule.STATUS_AT_BEGIN, lambda h: h.fw(answered(read()))),
    ("blocking, too", Rule.STATUS_AT_BEGIN, lambda h: h.block(answered(read()))),
    ("no answer", Rule.STATUS_AT_RESPONSE, lambda h: h.bw(h.accepted(), BEGIN_RESP)),
    ("early, none", Rule.STATUS_AT_RESPONSE, answer_forward(COMPLETED, END_RESP, 0)),
    ("returned, none", Rule.STATUS_AT_RESPONSE, answer_forward(UPDATED, BEGIN_RESP, 0)),
    ("blocking, none", Rule.STATUS_AT_RESPONSE, blocking(status=False)),
    ("access elsewhere", Rule.DIRECT, grant(start=72)),
    ("access behind its end", Rule.DIRECT, grant(start=48)),
    ("access to write alone", Rule.DIRECT, grant(readable=False)),
    ("access that takes time back", Rule.DIRECT, grant(write_cycles=-1)),
    ("bytes that cannot be written", Rule.DIRECT, grant(data=memoryview(bytes(16)))),
    ("more than asked for", Rule.DEBUG, debug(9, bytes(9))),
    ("less than told", Rule.DEBUG, debug(8, bytes(7))),
    ("fewer than none", Rule.DEBUG, debug(-1, b"")),
    ("begun only", Rule.UNFINISHED, lambda h: (h.begun(), h.checker.finish())),
    ("not taken", Rule.UNFINISHED, lambda h: (h.responding(), h.checker.finish())),
]


@pytest.mark.parametrize(("rule", "act"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
@pytest.mark.parametrize("start", [0, 100])
def test_the_rule_broken_is_named(rule: Rule, act: Callable[[Hop], object], start: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        later(start, act)(Hop()) if start else act(Hop())
    assert caught.value.rule is rule
    assert str(caught.value).startswith(f"{rule.name} (clause {rule.value}): ")


def test_every_rule_has_a_fault() -> None:
    assert {rule for _, rule, _ in FAULTS} == set(Rule)


def test_what_takes_no_time_passes_both_ways() -> None:
    hop = Hop()
    assert hop.front.get_direct_mem_ptr(read()) is None
    hop.direct = DirectMemory(memoryview(bytearray(16)), 56, True, False, 1, 1)
    assert hop.front.get_direct_mem_ptr(read()) is hop.direct
    assert hop.front.transport_dbg(read()) == 0
    hop.back.invalidate_direct_mem_ptr(56, 72)
    assert hop.taken_back == [(56, 72)]


def test_the_message_says_what_was_found_where() -> None:
    hop = Hop()
    with pytest.raises(ProtocolError) as caught:
        hop.bw(hop.begun(delay=12), END_REQ, 11)
    assert str(caught.value) == (
        "DECREASING_TIME (clause 15.2.7): END_REQ at 11, after 12; READ of 8 bytes at 0x40"
    )


def test_a_fault_in_a_process_arrives_whole() -> None:
    hop = Hop()

    def client() -> Generator[Any]:
        yield hop.env.timeout(1)
        hop.begun(length_bytes=0)

    hop.env.process(client())
    with pytest.raises(ProtocolError, match="LENGTH .clause 14.12.: nothing to move; READ of 0"):
        hop.env.run()


def test_leaving_the_block_asks_for_the_end_of_every_transaction() -> None:
    hop = Hop()
    with pytest.raises(ProtocolError, match="UNFINISHED.* last seen: END_REQ at 0"), hop.checker:
        hop.accepted()
    with pytest.raises(KeyError), hop.checker:
        raise KeyError("the first fault is the one to see")


def test_ways_through_the_phases() -> None:
    """All that the standard's table of transitions allows."""
    hop = Hop()
    with hop.checker:
        hop.over()  # four calls
        first = answered(hop.begun(delay=2))
        hop.bw(first, BEGIN_RESP, 2)  # implies END_REQ
        second = answered(hop.begun(delay=2))  # while a response is open
        hop.fw(first, END_RESP, 4)
        hop.backward = give(UPDATED, END_RESP, 5)
        hop.bw(second, BEGIN_RESP, 4)
        hop.backward = give(COMPLETED, END_RESP, 6)  # implies END_RESP
        hop.bw(answered(hop.begun(delay=4)), BEGIN_RESP, 5)
        hop.forward = give(UPDATED, END_REQ, 7)
        third = answered(hop.begun(delay=6))
        hop.backward = give(COMPLETED, END_RESP, 9)
        hop.bw(third, BEGIN_RESP, 8)
        hop.fw(completed_early(hop, 10), delay=9)
        third.response_status = ResponseStatus.INCOMPLETE
        hop.forward = give(UPDATED, END_REQ, 10)
        hop.fw(third, delay=10)  # sent again
        hop.backward = give(COMPLETED, END_RESP, 11)
        hop.bw(answered(third), BEGIN_RESP, 10)
        hop.fw(completed_early(hop, 12, command=Command.IGNORE, length_bytes=0), delay=12)
        last = completed_early(hop, 13)
        early = hop.forward
        hop.forward = lambda *call: (UPDATED, BEGIN_RESP, early(*call)[2])
        hop.fw(last, delay=12)  # answered on the return path
        hop.forward = give(COMPLETED, END_RESP, 13)
        hop.fw(last, END_RESP, 13)
    assert hop.checker.completed == 9


def completed_early(hop: Hop, delay: int, **attributes: Any) -> GenericPayload:
    """A payload that the target will answer as it is sent."""

    def forward(payload: GenericPayload, *_: object) -> Answer:
        answered(payload)
        return COMPLETED, END_RESP, delay

    hop.forward = forward
    return read(**attributes)


def test_both_transports_may_be_in_use_at_once() -> None:
    hop = Hop()

    def target(payload: GenericPayload, delay: int) -> BlockingCall:
        yield hop.env.timeout(5)
        hop.over()
        answered(payload)
        return delay - 5  # waited for: time + delay is as it was

    hop.blocking = target
    with hop.checker:
        hop.env.process(hop.front.b_transport(read(), 5))
        hop.env.process(hop.front.b_transport(read(), 8))
        hop.env.run()
    assert hop.checker.completed == 4


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 5, *[st.booleans()] * 3), max_size=30))
def test_traffic_that_keeps_the_rules_passes(
    plans: list[tuple[int, int, int, int, int, bool, bool, bool]],
) -> None:
    """Requests one after the other, answered out of order, by calls and by returned values."""
    hop = Hop()
    response_free = simpy.Resource(hop.env)
    completed = []

    def answer(payload: GenericPayload, wait: int, hold: int, by_return: bool) -> Generator[Any]:
        yield hop.env.timeout(wait)
        with response_free.request() as turn:
            yield turn
            if by_return:
                hop.backward = give(COMPLETED, END_RESP, 0)
            hop.bw(answered(payload), BEGIN_RESP)
            hop.backward = unchanged
            if not by_return:
                yield hop.env.timeout(hold)
                hop.fw(payload, END_RESP)
        completed.append(payload)

    def requests() -> Generator[Any]:
        for gap, accept, ahead, wait, hold, early, at_once, by_return in plans:
            yield hop.env.timeout(gap)
            payload = completed_early(hop, ahead)
            if early:
                hop.fw(payload)
                completed.append(payload)
                yield hop.env.timeout(ahead)
                continue
            hop.forward = give(UPDATED, END_REQ, ahead) if at_once else unchanged
            hop.fw(payload)
            hop.forward = unchanged
            if at_once:
                yield hop.env.timeout(ahead)
            else:
                yield hop.env.timeout(accept)
                hop.bw(payload, END_REQ)
            hop.env.process(answer(payload, wait, hold, by_return))

    with hop.checker:
        hop.env.process(requests())
        hop.env.run()
    assert hop.checker.completed == len(completed) == len(plans)
