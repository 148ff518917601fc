"""Compiled core of a DRAM channel: requests in, answers out, refresh, and the course of time.

Time goes from one tick in which something may happen to the next. When in a tick a request is taken
and an answer frees its requester to offer the next one follows each simulator's loop:

- RTL: commands, then a request is taken, then answers; who is answered offers in the next tick.
- Ramulator: commands, answers, then a request, which is looked at in the next tick.
- DRAMsim3: a request, commands, then it moves on, then answers; the next is offered a tick later.
- DRAMSys: answers, a request, commands: all in no time.
"""

from functools import cache

from tlm.compiled import Address, address, compiled, prepare
from tlm.memory import dram_choice as choice
from tlm.memory import dram_state as d
from tlm.memory.dram_state import NEVER, Records, Table

# mypy: disable-error-code="no-any-return"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def _waits_in(m: Records, queue: Address, bank: Address, row: int, column: int, write: int) -> bool:
    """A read or write to an address waits in a queue, a bank's or one in front."""
    first = m[queue + d.PLACES]
    for place in range(first, first + m[queue + d.COUNT]):
        slot = m[place]
        if (
            m[slot + d.COLUMN] == column
            and m[slot + d.ROW] == row
            and m[slot + d.BANK] == bank
            and m[slot + d.WRITE] == write
        ):
            return True
    return False


@compiled
def _meets_write(m: Records, requests: Table, request: int) -> bool:
    """A waiting write to the same address answers the request."""
    kind, bank = m[d.KIND], address(requests[request, d.ASKED_BANK])
    row, column = requests[request, d.ASKED_ROW], requests[request, d.ASKED_COLUMN]
    if kind == d.RAMULATOR:
        return _waits_in(m, bank + d.WRITE_QUEUE, bank, row, column, 1)
    if kind == d.DRAMSIM3:
        return _waits_in(m, d.FRONT_WRITES, bank, row, column, 1) or _waits_in(
            m, bank + d.QUEUE, bank, row, column, 1
        )
    return False


@compiled
def _has_place(m: Records, requests: Table, request: int) -> bool:
    kind, write = m[d.KIND], requests[request, d.ASKED_WRITE]
    if kind == d.RTL:
        return m[d.WAITING_BEFORE] < m[d.READ_DEPTH]
    if kind == d.DRAMSYS:
        return m[m[d.LAST_BANK] + d.QUEUE + d.COUNT] < m[d.BANK_DEPTH]
    if m[d.RESPONSES] < m[d.RESPONSE_DEPTH] and m[d.WAITING + write] < m[d.READ_DEPTH + write]:
        return True
    # DRAMsim3 asks for a place before it looks for the write.
    return kind == d.RAMULATOR and _meets_write(m, requests, request)


@compiled
def _enter(m: Records, requests: Table, t: int, request: int, port: int, seen_from: int) -> None:
    """Put a request into a slot and where it is to wait."""
    kind, write = m[d.KIND], requests[request, d.ASKED_WRITE]
    bank = address(requests[request, d.ASKED_BANK])
    slot = m[d.FREE_SLOT]
    m[d.FREE_SLOT] = m[slot + d.NEXT_FREE]
    m[slot + d.REQUEST] = request
    m[slot + d.AGE] = m[d.NEXT_AGE]
    m[slot + d.WRITE] = write
    m[slot + d.BANK] = bank
    m[slot + d.ROW] = requests[request, d.ASKED_ROW]
    m[slot + d.COLUMN] = requests[request, d.ASKED_COLUMN]
    m[slot + d.PORT] = port
    m[d.NEXT_AGE] += 1
    if kind == d.DRAMSIM3:
        d.append(m, d.FRONT_WRITES if write else d.FRONT_READS, slot)
        m[d.WAITING + write] += 1
        d.lower(m, d.SCHEDULE_AT, t)
        if write:
            d.respond(m, t + 1, request, port)
        return
    queue = bank + d.QUEUE
    if kind == d.RAMULATOR:
        m[d.WAITING + write] += 1
        queue += d.QUEUE_COLUMNS * write
    else:
        m[d.WAITING] += 1
    if m[d.OLDEST] < 0:
        m[d.OLDEST] = slot
    m[d.LAST_BANK] = bank
    d.push(m, queue, slot)
    choice.wake_newcomer(m, seen_from, queue, slot)


@compiled
def _next_port(m: Records, port: int) -> int:
    """Whose turn it is after a port's."""
    port += d.PORT_COLUMNS
    return port if port < m[d.PORTS_END] else m[d.PORTS]


@compiled
def _may_offer_from(m: Records, port: int, t: int) -> None:
    """A port's next request may be offered from a tick on."""
    m[port + d.OFFER_FROM] = max(m[port + d.OFFER_FROM], t)
    m[port + d.TICKET] = m[d.NEXT_TICKET]
    m[d.NEXT_TICKET] += 1


@compiled
def _choose_port(m: Records, requests: Table, t: int) -> int:
    """Whose request is taken, or NOBODY: requesters in turn; DRAMSys: who began to offer first."""
    port = m[d.HOLDER]
    if m[d.HELD] >= m[d.GRAIN]:
        port = _next_port(m, port)
        m[d.HOLDER], m[d.HELD] = port, 0
    m[d.ACCEPT_AT] = NEVER
    first, first_begin = d.NOBODY, NEVER
    for _ in range(m[d.PORTS], m[d.PORTS_END], d.PORT_COLUMNS):
        request = m[port + d.NEXT]
        if request < m[port + d.STOP] and m[port + d.OUTSTANDING] < m[port + d.DEPTH]:
            begin = max(m[port + d.OFFER_FROM], requests[request, d.BEGIN_REQ])
            if begin > t:
                d.lower(m, d.ACCEPT_AT, begin)
            elif _has_place(m, requests, request):
                if m[d.KIND] != d.DRAMSYS or (m[d.HELD] and port == m[d.HOLDER]):
                    return int(port)
                if begin < first_begin or (
                    begin == first_begin and m[port + d.TICKET] < m[first + d.TICKET]
                ):
                    first, first_begin = port, begin
            elif m[d.WAITING] < m[d.WAITING_BEFORE]:
                m[d.ACCEPT_AT] = t + 1  # RTL: the place that is left in this tick
        port = _next_port(m, port)
    return int(first)


@compiled
def accept(m: Records, requests: Table, t: int, seen_from: int) -> None:
    """Take one request, if somebody offers one and there is a place."""
    if m[d.LAST_TAKEN] == t:
        m[d.ACCEPT_AT] = t + 1
        return
    port = _choose_port(m, requests, t)
    if port < 0:
        return
    request = m[port + d.NEXT]
    requests[request, d.BEGIN_REQ] = max(m[port + d.OFFER_FROM], requests[request, d.BEGIN_REQ])
    requests[request, d.END_REQ] = t
    m[port + d.NEXT] += 1
    m[port + d.OUTSTANDING] += 1
    _may_offer_from(m, port, t if m[d.KIND] == d.DRAMSYS else t + 1)
    if port != m[d.HOLDER]:
        m[d.HOLDER], m[d.HELD] = port, 0
    m[d.HELD] += 1
    m[d.LAST_TAKEN] = t
    m[d.TAKEN] = request
    m[d.ACCEPT_AT] = t + 1
    if _meets_write(m, requests, request):
        d.respond(m, t + 1, request, port)
    else:
        _enter(m, requests, t, request, port, seen_from)


@compiled
def _schedule(m: Records, t: int) -> None:
    """DRAMsim3: move one transaction on into its bank's queue."""
    m[d.SCHEDULE_AT] = NEVER
    if m[d.DRAINING] == 0 and not m[d.READ_FIRST]:
        writes = m[d.FRONT_WRITES + d.COUNT]
        if writes >= m[d.WRITE_DEPTH] or (writes > m[d.DRAIN_LEVEL] and choice.find_oldest(m) < 0):
            m[d.DRAINING] = writes
    m[d.READ_FIRST] = 0
    write = m[d.DRAINING] > 0
    front = d.FRONT_WRITES if write else d.FRONT_READS
    first = m[front + d.PLACES]
    for place in range(first, first + m[front + d.COUNT]):
        slot = m[place]
        bank = address(m[slot + d.BANK])
        if m[bank + d.QUEUE + d.COUNT] >= m[d.BANK_DEPTH]:
            continue
        m[d.SCHEDULE_AT] = t + 1
        if write:
            row, column = m[slot + d.ROW], m[slot + d.COLUMN]
            m[d.READ_FIRST] = _waits_in(m, d.FRONT_READS, bank, row, column, 0)
            if m[d.READ_FIRST] or _waits_in(m, bank + d.QUEUE, bank, row, column, 0):
                m[d.DRAINING] = 0
                return
            m[d.DRAINING] -= 1
        d.remove(m, front, slot)
        m[d.WAITING + write] -= 1
        d.lower(m, d.ACCEPT_AT, t)
        d.push(m, bank + d.QUEUE, slot)
        m[bank + d.LOOK_FROM] = 0
        choice.wake_newcomer(m, t + 1, bank + d.QUEUE, slot)
        return


@compiled
def take_response(m: Records, requests: Table, t: int) -> None:
    """The oldest answer, which is shown, is taken."""
    answer = d.response(m, m[d.FIRST_RESPONSE])
    port, request = m[answer + d.RESPONSE_PORT], m[answer + d.RESPONSE_REQUEST]
    requests[request, d.END_RESP] = t
    if m[d.RESPONSES] >= m[d.RESPONSE_DEPTH]:
        d.lower(m, d.COLUMN_AT, t + 1)
        d.lower(m, d.ACCEPT_AT, t + 1)
    m[d.FIRST_RESPONSE] += 1
    m[d.RESPONSES] -= 1
    m[d.LEFT] -= 1
    m[d.SHOWN] = -1
    # The Verilog shows one a cycle; nobody shows the next while one is held back.
    begun = requests[request, d.BEGIN_RESP]
    m[d.SHOW_FROM] = t + 1 if begun < t or m[d.KIND] == d.RTL else t
    if m[port + d.OUTSTANDING] == m[port + d.DEPTH]:
        at_once = m[d.KIND] == d.RAMULATOR or m[d.KIND] == d.DRAMSYS
        offer_from = t if at_once else t + 1
        _may_offer_from(m, port, offer_from)
        d.lower(m, d.ACCEPT_AT, offer_from)
    m[port + d.OUTSTANDING] -= 1
    if m[d.RESPONSES]:
        m[d.RESPONSE_AT] = m[d.response(m, m[d.FIRST_RESPONSE]) + d.RESPONSE_TIME]
        if m[d.BY_HAND]:
            m[d.RESPONSE_AT] = max(m[d.RESPONSE_AT], m[d.SHOW_FROM])
    else:
        m[d.RESPONSE_AT] = NEVER


@compiled
def show_responses(m: Records, requests: Table, t: int) -> None:
    """Answers whose time has come begin, and are taken at once if nobody takes them by hand."""
    while m[d.RESPONSE_AT] <= t:
        request = m[d.response(m, m[d.FIRST_RESPONSE]) + d.RESPONSE_REQUEST]
        requests[request, d.BEGIN_RESP] = t
        if m[d.BY_HAND]:
            m[d.SHOWN] = request
            m[d.RESPONSE_AT] = NEVER
        else:
            take_response(m, requests, t)


@compiled
def _refresh(m: Records, t: int) -> None:
    """A refresh is due: close all rows as soon as they may be, then refresh."""
    kind = m[d.KIND]
    m[d.REFRESH_AT] = NEVER
    if m[d.ACTIVES]:
        return  # the last of them calls again
    if m[d.OPEN_BANKS]:
        ready = NEVER if kind == d.DRAMSIM3 else max(m[d.ANY_PRE], m[d.ROW_BUS])
        for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
            bank = address(record)
            if m[bank + d.OPEN_ROW] < 0:
                continue
            if kind != d.DRAMSIM3:
                ready = max(ready, m[bank + d.PRE_FROM])
                continue
            time = d.precharge_from(m, t, bank)
            if time <= t:
                d.precharge(m, t, bank)
                m[d.REFRESH_AT] = t + 1
                return
            ready = min(ready, time)
        if ready > t:
            m[d.REFRESH_AT] = ready
            return
        for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
            bank = address(record)
            if m[bank + d.OPEN_ROW] >= 0:
                d.close(m, t, bank)
        d.note_precharge(m, t)
        d.log(m, t, d.PRECHARGE_ALL, -1, -1, -1, -1)
    edge = m[d.EDGE_MASK]
    ready = (max(t, m[d.REF_FROM], m[d.ROW_BUS]) + edge) & ~edge
    if ready > t:
        m[d.REFRESH_AT] = ready
        return
    d.refresh(m, t)
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        d.find(m, bank + d.QUEUE, bank)
        d.find(m, bank + d.WRITE_QUEUE, bank)
        m[bank + d.LOOK_FROM] = 0
    m[d.PENDING_REFRESH] = 0
    m[d.REFRESH_DUE] += m[d.REFI]
    m[d.REFRESH_AT] = m[d.REFRESH_DUE]
    m[d.COLUMN_AT] = m[d.ROW_AT] = t + 1
    if kind == d.DRAMSIM3:
        m[d.ROW_AT] = NEVER


@compiled
def next_tick(m: Records) -> int:
    """The next tick in which something may happen."""
    t = min(m[d.ACCEPT_AT], m[d.RESPONSE_AT], m[d.REFRESH_AT], m[d.SCHEDULE_AT])
    if not m[d.PENDING_REFRESH]:
        t = min(t, m[d.COLUMN_AT], m[d.ROW_AT])
    elif m[d.ACTIVES]:
        t = min(t, m[d.COLUMN_AT])
    return int(max(t, m[d.CLOCK] + 1))


@compiled
def run(m: Records, requests: Table, until: int) -> int:
    """Simulate to a tick, inclusive, or until no request is left; returns the next tick.

    With answers taken by hand it stops after a tick in which a request was taken or an answer is
    shown: TAKEN and SHOWN tell which. It also stops when the log of commands is full.
    """
    kind = m[d.KIND]
    while m[d.LEFT] > 0:
        t = next_tick(m)
        if t > until or (m[d.LOG_ROWS] and m[d.LOGGED] + 2 > m[d.LOG_ROWS]):
            return t
        m[d.CLOCK] = t
        m[d.TAKEN] = -1
        m[d.WAITING_BEFORE] = m[d.WAITING]
        if kind == d.DRAMSYS and m[d.RESPONSE_AT] <= t:
            show_responses(m, requests, t)
        if (kind == d.DRAMSIM3 or kind == d.DRAMSYS) and m[d.ACCEPT_AT] <= t:
            accept(m, requests, t, t)
        due = m[d.REFRESH_AT] <= t
        if due and not m[d.PENDING_REFRESH]:
            m[d.PENDING_REFRESH] = 1
        if kind == d.RAMULATOR:
            choice.ramulator(m, t)
            if m[d.PENDING_REFRESH] and m[d.REFRESH_AT] <= t:
                _refresh(m, t)
        elif due:
            _refresh(m, t)
        elif not m[d.PENDING_REFRESH]:
            if kind == d.RTL:
                choice.rtl(m, t)
            elif kind == d.DRAMSYS:
                choice.dramsys_column(m, t)
                if m[d.ACCEPT_AT] <= t:
                    accept(m, requests, t, t)
                choice.dramsys_row(m, t, NEVER)
            elif m[d.COLUMN_AT] <= t:
                choice.dramsim3(m, t)
        if m[d.SCHEDULE_AT] <= t:
            _schedule(m, t)
        if kind == d.RAMULATOR and m[d.RESPONSE_AT] <= t:
            show_responses(m, requests, t)
        if (kind == d.RTL or kind == d.RAMULATOR) and m[d.ACCEPT_AT] <= t:
            accept(m, requests, t, t + 1)
        # A refresh that falls due comes before the choice.
        if kind == d.RAMULATOR and not m[d.PENDING_REFRESH] and t + 1 < m[d.REFRESH_DUE]:
            choice.choose_mode(m, t + 1, t + 1)
        if m[d.RESPONSE_AT] <= t:
            show_responses(m, requests, t)
        if m[d.BY_HAND] and (m[d.TAKEN] >= 0 or m[d.SHOWN] >= 0):
            break
    return next_tick(m)


@cache
def ready() -> None:
    """Compile the channel, or load what was compiled."""
    prepare(run)
