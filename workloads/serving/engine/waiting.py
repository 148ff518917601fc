"""The requests that wait, first come first served.

A trace's requests become objects when they are taken, so that a long queue needs no memory.
"""

from collections import deque

from workloads.serving.load.request import Request
from workloads.serving.load.traces import Trace

_ROWS = 4096


class Waiting:
    """Requests of a trace, behind those that were given back.

    Args:
        trace: The requests, in order of arrival; None where all are put here by others.
        replica: Which of them wait here: of as many as there are replicas the one in this place.
        replicas: How many there are.
    """

    def __init__(self, trace: Trace | None = None, replica: int = 0, replicas: int = 1) -> None:
        self._trace = trace
        self._total = 0 if trace is None else len(trace)
        self._taken, self._step = replica, replicas
        self._rows: list[tuple[int, int, int]] = []
        self._first_row = 0
        self._next = self._row()
        self._returned: deque[tuple[int, Request]] = deque()

    def __getstate__(self) -> dict[str, object]:
        """All but the trace, which whoever resumes has."""
        return {**self.__dict__, "_trace": None, "_rows": [], "_first_row": 0, "_next": None}

    def resume(self, trace: Trace) -> None:
        """Go on with the trace that was left out, if it had one."""
        if self._total:
            self._trace = trace
            self._next = self._row()

    def next_ps(self, now_ps: int) -> int | None:
        """When somebody else will be next in line; None if nobody, as far as is known.

        Who is there stays next in line whoever comes behind.
        """
        arrival = None if self._next is None else self._next[0]
        if arrival is not None and arrival <= now_ps:
            arrival = None
        if not self._returned:
            return arrival
        back = self._returned[0][0]
        if back <= now_ps:
            return None
        return back if arrival is None else min(back, arrival)

    def first(self, now_ps: int) -> Request | None:
        """The request that is next in line; None if nobody is there yet."""
        if self._returned and self._returned[0][0] <= now_ps:
            return self._returned[0][1]
        if self._next is not None and self._next[0] <= now_ps:
            return Request(self._taken, *self._next)
        return None

    def take(self, request: Request) -> None:
        """The request, which is next in line, waits no more."""
        if self._returned and self._returned[0][1] is request:
            self._returned.popleft()
        else:
            self._taken += self._step
            self._next = self._row()

    def put_first(self, request: Request, from_ps: int) -> None:
        """A request is back, before all others, and can be taken from a time on."""
        self._returned.appendleft((from_ps, request))

    def put_last(self, request: Request, from_ps: int) -> None:
        """A request comes after those that were put here, and can be taken from a time on."""
        self._returned.append((from_ps, request))

    def _row(self) -> tuple[int, int, int] | None:
        """Arrival, prompt and output of the next one of the trace; None: there is no more."""
        if self._trace is None or self._taken >= self._total:
            return None
        place = self._taken - self._first_row
        if place >= len(self._rows):
            self._first_row, place = self._taken, 0
            self._rows = self._trace.rows(self._taken, self._taken + _ROWS)
        return self._rows[place]
