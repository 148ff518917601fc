"""The course of time in a DRAM channel: from a tick in which something may happen to the next."""

from tlm.compiled import compiled, inlined
from tlm.memory.dram.state import Head, Records


@compiled
def next_tick(m: Records) -> int:
    """The next tick in which something may happen."""
    t = min(m[Head.ACCEPT_AT], m[Head.RESPONSE_AT], m[Head.REFRESH_AT], m[Head.MOVE_AT])
    if not m[Head.PENDING_REFRESH]:
        t = min(t, m[Head.COLUMN_AT], m[Head.ROW_AT])
    elif m[Head.OWED]:
        t = min(t, m[Head.COLUMN_AT])
    return int(max(t, m[Head.CLOCK] + 1))


@inlined
def begins(m: Records, t: int, until: int) -> bool:
    """A tick begins, unless all is done, it is too late, or the log of commands is full."""
    full = m[Head.LOG_ROWS] and m[Head.LOGGED] + 2 > m[Head.LOG_ROWS]
    if m[Head.LEFT] <= 0 or t > until or full:
        return False
    m[Head.CLOCK] = t
    m[Head.TAKEN] = -1
    return True


@inlined
def is_told(m: Records) -> bool:
    """The caller is to hear of the tick: it takes answers by hand, and TAKEN or SHOWN is set."""
    return bool(m[Head.BY_HAND] and (m[Head.TAKEN] >= 0 or m[Head.SHOWN] >= 0))


@inlined
def refresh_falls_due(m: Records, t: int) -> bool:
    """A refresh falls due, or its next step may be made."""
    if m[Head.REFRESH_AT] > t:
        return False
    m[Head.PENDING_REFRESH] = 1
    return True
