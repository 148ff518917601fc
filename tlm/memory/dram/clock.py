"""The course of time in a DRAM channel: from a tick in which something may happen to the next."""

from collections.abc import Callable

from tlm.compiled import compiled, inlined
from tlm.memory.dram.state import Head, Records, Table

Tick = Callable[[Records, Table, int], None]


@compiled
def next_tick(m: Records) -> int:
    """The next tick in which something may happen."""
    t = min(m[Head.ACCEPT_AT], m[Head.RESPONSE_AT], m[Head.REFRESH_AT], m[Head.MOVE_AT])
    if not m[Head.PENDING_REFRESH]:
        t = min(t, m[Head.COLUMN_AT], m[Head.ROW_AT])
    elif m[Head.OWED]:
        t = min(t, m[Head.COLUMN_AT])
    return max(t, m[Head.CLOCK] + 1)


@inlined
def run(m: Records, requests: Table, until: int, tick: Tick) -> None:
    """Go from tick to tick, as `Advance` says; ``tick``: the controller's."""
    t = next_tick(m)
    while m[Head.LEFT] > 0 and t <= until:
        if m[Head.LOG_ROWS] and m[Head.LOGGED] + 2 > m[Head.LOG_ROWS]:
            break  # the log is full
        m[Head.CLOCK] = t
        m[Head.TAKEN] = -1
        tick(m, requests, t)
        t = next_tick(m)
        if m[Head.BY_HAND] and (m[Head.TAKEN] >= 0 or m[Head.SHOWN] >= 0):
            break


@inlined
def refresh_falls_due(m: Records, t: int) -> bool:
    """A refresh falls due, or its next step may be made."""
    if m[Head.REFRESH_AT] > t:
        return False
    m[Head.PENDING_REFRESH] = 1
    return True
