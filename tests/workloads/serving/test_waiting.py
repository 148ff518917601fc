"""Who is next in line, and when that changes."""

from tests.workloads.serving.served import trace_of
from workloads.serving.engine.waiting import Waiting
from workloads.serving.load.request import Request

_S = 10**12


def test_arrivals_come_in_order_and_those_given_back_come_first() -> None:
    waiting = Waiting(trace_of((0, 1, 1), (2, 2, 1), (2, 3, 1)))
    assert waiting.first(-1) is None
    first = waiting.first(0)
    assert first is not None
    assert (first.index, first.prompt_tokens) == (0, 1)
    waiting.take(first)
    assert waiting.first(0) is None
    assert waiting.next_ps(0) == 2 * _S
    waiting.put_first(first, _S)
    assert waiting.first(0) is None
    assert waiting.next_ps(0) == _S
    assert waiting.first(2 * _S) is first
    assert waiting.next_ps(2 * _S) is None  # it stays next whoever comes
    waiting.take(first)
    second = waiting.first(2 * _S)
    assert second is not None
    assert second.index == 1


def test_one_given_back_for_later_goes_before_one_that_is_there() -> None:
    waiting = Waiting(trace_of((0, 1, 1)))
    back = Request(7, 0, 5, 5)
    waiting.put_first(back, 3)
    there = waiting.first(2)
    assert there is not None
    assert there.index == 0
    assert waiting.next_ps(2) == 3
    assert waiting.first(3) is back


def test_long_traces_are_read_in_pieces() -> None:
    waiting = Waiting(trace_of(*[(second, second + 1, 1) for second in range(10_000)]))
    for index in range(10_000):
        request = waiting.first(10_000 * _S)
        assert request is not None
        assert (request.index, request.prompt_tokens) == (index, index + 1)
        waiting.take(request)
    assert waiting.first(10_000 * _S) is None
    assert waiting.next_ps(0) is None


def test_replicas_get_requests_in_turns() -> None:
    trace = trace_of(*[(0, 10 + number, 1) for number in range(5)])
    for replica, expected in ((0, [0, 2, 4]), (1, [1, 3])):
        waiting, taken = Waiting(trace, replica, 2), []
        while (request := waiting.first(0)) is not None:
            waiting.take(request)
            taken.append(request.index)
            assert request.prompt_tokens == 10 + request.index
        assert taken == expected
        assert waiting.next_ps(0) is None
