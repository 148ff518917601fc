"""Events of a mesh of dies come out in the order of their times, equal ones as they came up."""

import random
from heapq import heappop, heappush

import pytest

from tlm.compiled import allocating, compiled
from tlm.dies.queues import (
    NOBODY,
    Queues,
    earliest,
    grown,
    is_before,
    is_full,
    last_number,
    new_queues,
    pop,
    push,
)


@allocating
def entered(queues: Queues, time: int, name: int, what: int) -> tuple[Queues, bool]:
    """Whether an event fits a queue, and with it if it does."""
    if is_full(queues):
        queues = grown(queues)
    return queues, push(queues, time, name, what)


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


@pytest.mark.parametrize(("kinds", "fit"), [(2, True), (50, False)])
def test_the_order_is_that_of_a_heap(kinds: int, fit: bool) -> None:
    """Of few kinds all fit a queue; of many some are left to a heap."""
    rng, now, number, fitted = random.Random(kinds), 0, 0, True
    ahead = [rng.randrange(100) for _ in range(kinds)]
    queues, heap, beside = new_queues(), list[tuple[int, ...]](), list[tuple[int, ...]]()
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
