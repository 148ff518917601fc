"""The clock of engines that serve together: who acts next, in order of time.

Engines that act at the same time do so in the order in which they said when they would.
"""

from heapq import heappop, heappush
from itertools import count
from typing import Protocol


class Stepping(Protocol):
    """What the clock moves on.

    Attributes:
        due: When it is to act next, and its turn then; the clock's own. None: once woken.
    """

    due: tuple[int, int] | None

    def step(self, now_ps: int) -> int | None:
        """Act at a time; returns when to act again, None: once woken."""
        ...


class EngineClock:
    """Moves engines on, each when it is due.

    Args:
        now_ps: Simulated time at which they begin.
    """

    def __init__(self, now_ps: int = 0) -> None:
        self.now_ps = now_ps
        self._queue: list[tuple[int, int, Stepping]] = []
        self._turns = count()

    def wake(self, engine: Stepping) -> None:
        """Let an engine act now, unless it is to do so anyhow."""
        if engine.due is None or engine.due[0] > self.now_ps:
            self._put(self.now_ps, engine)

    def run(self, steps: int) -> bool:
        """Take some steps; False if nobody will act any more."""
        queue = self._queue
        while steps > 0 and queue:
            time_ps, turn, engine = heappop(queue)
            if engine.due != (time_ps, turn):  # woken since
                continue
            engine.due = None
            again: int | None = time_ps
            while again is not None:
                self.now_ps = again
                again = engine.step(again)
                steps -= 1
                if again is not None and (steps <= 0 or (queue and queue[0][0] <= again)):
                    self._put(again, engine)
                    break
        return bool(queue)

    def _put(self, time_ps: int, engine: Stepping) -> None:
        engine.due = time_ps, next(self._turns)
        heappush(self._queue, (*engine.due, engine))
