"""Sockets, the delays they annotate, and a target's queue of answers."""

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import (
    Answer,
    BlockingCall,
    InitiatorSocket,
    PayloadEventQueue,
    Phase,
    ResponseQueue,
    Sync,
    TargetSocket,
)

How = str
"""How an initiator ends a response: "call", "update" or "complete"."""


def payload() -> GenericPayload:
    return GenericPayload(Command.READ, address=0, length_bytes=4)


class Echo:
    """Answers each request after so many cycles."""

    def __init__(self, env: simpy.Environment, after: dict[GenericPayload, int]) -> None:
        self.socket = TargetSocket(self)
        self._after = after
        self._responses = ResponseQueue(env, self.socket)
        self._events = PayloadEventQueue(env, self._answer)

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        self._events.notify(payload, Phase.BEGIN_RESP, delay_cycles + self._after[payload])
        return Sync.UPDATED, Phase.END_REQ, delay_cycles

    def _answer(self, payload: GenericPayload, phase: Phase) -> None:
        payload.response_status = ResponseStatus.OK
        self._responses.put(payload)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        raise AssertionError("these tests use the other transport")
        yield


class Taker:
    """Takes each answer in its own way, after its own time."""

    def __init__(self, env: simpy.Environment, ways: dict[GenericPayload, tuple[How, int]]) -> None:
        self.socket = InitiatorSocket(self)
        self.offered: dict[GenericPayload, int] = {}
        self._env = env
        self._ways = ways

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        assert phase is Phase.BEGIN_RESP
        self.offered[payload] = int(self._env.now)
        how, hold = self._ways[payload]
        if how != "call":
            return (Sync.UPDATED if how == "update" else Sync.COMPLETED), Phase.END_RESP, hold
        if hold % 2:  # ahead of its time
            self.socket.nb_transport_fw(payload, Phase.END_RESP, hold)
            return Sync.ACCEPTED, phase, delay_cycles
        timer = PayloadEventQueue(
            self._env, lambda p, at: (self.socket.nb_transport_fw(p, at, 0), None)[1]
        )
        timer.notify(payload, Phase.END_RESP, hold)
        return Sync.ACCEPTED, phase, delay_cycles


@given(
    st.lists(
        st.tuples(
            st.integers(0, 20),
            st.integers(0, 9),
            st.sampled_from(["call", "update", "complete"]),
        ),
        max_size=12,
    )
)
def test_answers_wait_for_the_one_before_to_be_taken(plans: list[tuple[int, int, How]]) -> None:
    env = simpy.Environment()
    requests = [payload() for _ in plans]
    echo = Echo(env, {p: after for p, (after, _, _) in zip(requests, plans, strict=True)})
    taker = Taker(env, {p: (how, hold) for p, (_, hold, how) in zip(requests, plans, strict=True)})
    with ProtocolChecker(env, taker.socket, echo.socket) as checker:
        for request in requests:
            taker.socket.nb_transport_fw(request, Phase.BEGIN_REQ, 0)
        env.run()
    assert checker.completed == len(plans)
    # In the order in which they are ready; each offered when it is and the one before is taken.
    free, expected = 0, []
    for number in sorted(range(len(plans)), key=lambda n: plans[n][0]):
        after, hold, _ = plans[number]
        expected.append((requests[number], max(after, free)))
        free = expected[-1][1] + hold
    assert list(taker.offered.items()) == expected


@pytest.mark.parametrize("how", ["update", "complete"])
def test_thousands_of_answers_are_taken_at_a_time(how: How) -> None:
    """All wait for the first; the others are taken the moment they are offered."""
    env, requests = simpy.Environment(), [payload() for _ in range(5000)]
    echo = Echo(env, dict.fromkeys(requests, 1))
    taker = Taker(env, dict.fromkeys(requests, (how, 0)) | {requests[0]: (how, 8)})
    taker.socket.bind(echo.socket)
    for request in requests:
        taker.socket.nb_transport_fw(request, Phase.BEGIN_REQ, 0)
    env.run()
    assert [*taker.offered] == requests
    assert sorted(taker.offered.values()) == [1] + [9] * 4999


def test_a_payload_event_queue_keeps_the_order_of_equal_times() -> None:
    env = simpy.Environment()
    seen: list[tuple[int, GenericPayload, Phase]] = []
    queue = PayloadEventQueue(env, lambda p, phase: seen.append((int(env.now), p, phase)))
    first, second = payload(), payload()
    queue.notify(first, Phase.BEGIN_RESP, 3)
    queue.notify(second, Phase.BEGIN_REQ, 0)
    queue.notify(second, Phase.END_REQ, 3)
    env.run()
    assert seen == [
        (0, second, Phase.BEGIN_REQ),
        (3, first, Phase.BEGIN_RESP),
        (3, second, Phase.END_REQ),
    ]


def test_a_socket_that_is_not_bound_says_so() -> None:
    env = simpy.Environment()
    echo, taker = Echo(env, {}), Taker(env, {})
    with pytest.raises(AssertionError, match="initiator socket is not bound"):
        taker.socket.nb_transport_fw(payload(), Phase.BEGIN_REQ, 0)
    with pytest.raises(AssertionError, match="target socket is not bound"):
        echo.socket.nb_transport_bw(payload(), Phase.END_REQ, 0)


def test_sides_without_data_move_none_and_give_none() -> None:
    env = simpy.Environment()
    echo, taker = Echo(env, {}), Taker(env, {})
    taker.socket.bind(echo.socket)
    assert taker.socket.transport_dbg(payload()) == 0
    assert taker.socket.get_direct_mem_ptr(payload()) is None
    echo.socket.invalidate_direct_mem_ptr(0, 4)
