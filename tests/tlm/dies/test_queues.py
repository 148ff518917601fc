"""Events of a mesh of dies come out in the order of their times, equal ones as they came up."""

import random
from heapq import heappop, heappush

import pytest

from tlm.compiled import allocating, compiled
from tlm.dies.queues import (
    NOBODY,
    Pushed,
    Queues,
    earliest,
    grown,
    is_before,
    last_number,
    new_queues,
    pop,
    push,
)


@allocating
def entered(queues: Queues, time: int, name: int, what: int) -> tuple[Queues, bool]:
    """Whether an event fits a queue, and with it if it does."""
    pushed = push(queues, time, name, what)
    if pushed == Pushed.NO_ROOM:
        queues = grown(queues)
        pushed = push(queues, time, name, what)
    return queues, pushed == Pushed.ENTERED


@compiled
def first_of(queues: Queues, time: int, number: int) -> tuple[int, bool]:
    """The queue with the next event, and whether another one comes before that."""
    queue = earliest(queues)
    return queue, is_before(queues, queue, time, number)


@compiled
def left(queues: Queues, queue: int) -> tuple[int, int, int]:
    """The first event of a queue."""
    return pop(queues, queue)


@compiled
def number_of(queues: Queues) -> int:
    """The number of the last event."""
    return last_number(queues)


@pytest.mark.parametrize(("kinds", "sizes", "fit"), [(2, 1, True), (50, 1, False), (10, 4, True)])
def test_the_order_is_that_of_a_heap(kinds: int, sizes: int, fit: bool) -> None:
    """Of few kinds all fit a queue; of many some are left to a heap."""
    rng, now, number, fitted = random.Random(kinds), 0, 0, True
    ahead = [rng.randrange(100) for _ in range(kinds)]
    queues, heap, beside = new_queues(sizes), list[tuple[int, ...]](), list[tuple[int, ...]]()
    while number < 5000 or heap:
        for _ in range(rng.randrange(4) if number < 5000 else 0):
            event = now + rng.choice(ahead), number, number % 7, rng.randrange(9)
            heappush(heap, event)
            queues, fits = entered(queues, event[0], *event[2:])
            assert number_of(queues) == number
            if not fits:
                heappush(beside, event)
            fitted &= fits
            number += 1
        if heap:
            expected = heappop(heap)
            now = expected[0]
            queue, before = first_of(queues, *(beside[0][:2] if beside else (1 << 62, 0)))
            if before:
                assert heappop(beside) == expected
            else:
                assert left(queues, queue) == (now, *expected[2:])
    assert first_of(queues, 0, 0)[0] == NOBODY
    assert fitted == fit


def test_a_ring_that_has_gone_round_grows_in_order() -> None:
    """Its first event does not lie in its first place, and there are more than places."""
    queues, places = new_queues(1), new_queues(1).events.shape[1]
    for time in range(places):
        queues, _ = entered(queues, time, 0, time)
    for time in range(places // 2):
        assert left(queues, 0) == (time, 0, time)
    for time in range(places, 3 * places):
        queues, _ = entered(queues, time, 0, time)
    assert queues.events.shape[1] == 4 * places
    assert [left(queues, 0)[2] for _ in range(5 * places // 2)] == [*range(places // 2, 3 * places)]
