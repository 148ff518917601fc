"""Compiled core of a DRAM channel: requests in, answers out, refresh, and the course of time.

Time goes from one tick in which something may happen to the next. In a tick come first the
commands, then what moves into the queues, then answers; a request that is taken is looked at in
the next tick (DRAMSys: in the same).
"""

import sys

from tlm.compiled import compiled, forget_stale, inlined
from tlm.memory import dram_choice as choice
from tlm.memory import dram_state as d
from tlm.memory.dram_state import NEVER, State


@compiled
def _waits_in(s: State, which: int, request: int, write: int) -> bool:
    """A read or write to the request's address waits in a bank's list."""
    for place in range(d.ENTRY, d.ENTRY + s.lists[which, d.COUNT]):
        slot = s.lists[which, place]
        if (
            s.slots[slot, d.COLUMN] == s.requests[request, d.ASKED_COLUMN]
            and s.slots[slot, d.ROW] == s.requests[request, d.ASKED_ROW]
            and s.slots[slot, d.WRITE] == write
        ):
            return True
    return False


@compiled
def _waits_in_front(s: State, request: int, write: int) -> bool:
    """A read or write to the request's address waits in front of the bank queues."""
    slots, requests = s.slots, s.requests
    for place in range(1, 1 + s.entry[write, 0]):
        slot = s.entry[write, place]
        if (
            slots[slot, d.COLUMN] == requests[request, d.ASKED_COLUMN]
            and slots[slot, d.ROW] == requests[request, d.ASKED_ROW]
            and slots[slot, d.BANK] == requests[request, d.ASKED_BANK]
        ):
            return True
    return False


@inlined
def _needs_no_place(s: State, request: int) -> bool:
    """A waiting write to the same address answers the request."""
    kind, bank = s.rules[d.KIND], s.requests[request, d.ASKED_BANK]
    if kind == d.RAMULATOR:
        return bool(s.now[d.WAITING + 1]) and _waits_in(s, len(s.banks) + bank, request, 1)
    if kind == d.DRAMSIM3:
        return _waits_in_front(s, request, 1) or _waits_in(s, bank, request, 1)
    return False


@inlined
def _has_place(s: State, write: int) -> bool:
    kind, rules, now = s.rules[d.KIND], s.rules, s.now
    if kind == d.RTL:
        return bool(now[d.WAITING_BEFORE] < rules[d.READ_DEPTH])
    if kind == d.DRAMSYS:
        return bool(s.lists[now[d.LAST_BANK], d.COUNT] < rules[d.BANK_DEPTH])
    if now[d.RESPONSES] >= rules[d.RESPONSE_DEPTH]:
        return False
    return bool(now[d.WAITING + write] < rules[d.READ_DEPTH + write])


@inlined
def _enter(s: State, t: int, request: int, port: int, seen_from: int) -> None:
    """Put a request into a slot and where it is to wait."""
    now, slots, requests = s.now, s.slots, s.requests
    kind, write = s.rules[d.KIND], requests[request, d.ASKED_WRITE]
    bank = requests[request, d.ASKED_BANK]
    slot = now[d.FREE_SLOT]
    now[d.FREE_SLOT] = slots[slot, d.NEXT_FREE]
    slots[slot, d.REQUEST] = request
    slots[slot, d.AGE] = now[d.NEXT_AGE]
    slots[slot, d.WRITE] = write
    slots[slot, d.BANK] = bank
    slots[slot, d.ROW] = requests[request, d.ASKED_ROW]
    slots[slot, d.COLUMN] = requests[request, d.ASKED_COLUMN]
    slots[slot, d.PORT] = port
    now[d.NEXT_AGE] += 1
    if kind == d.DRAMSIM3:
        s.entry[write, 0] += 1
        s.entry[write, s.entry[write, 0]] = slot
        now[d.WAITING + write] += 1
        now[d.SCHEDULE_AT] = min(now[d.SCHEDULE_AT], t + 1)
        if write:
            d.respond(s, t + 1, request, port)
        return
    which = bank
    if kind == d.RAMULATOR:
        now[d.WAITING + write] += 1
        which += len(s.banks) * write
    else:
        now[d.WAITING] += 1
    if now[d.OLDEST] < 0:
        now[d.OLDEST] = slot
    now[d.LAST_BANK] = bank
    d.push(s, which, bank, slot)
    choice.wake_newcomer(s, seen_from, which, slot)


@compiled
def accept(s: State, t: int, seen_from: int) -> None:
    """Take one request, if somebody offers one and there is a place: requesters in turn."""
    now, ports = s.now, s.ports
    if now[d.LAST_TAKEN] == t:
        now[d.ACCEPT_AT] = t + 1
        return
    port = now[d.HOLDER]
    if now[d.HELD] >= s.rules[d.GRAIN]:
        port = port + 1 if port + 1 < len(ports) else 0
        now[d.HOLDER], now[d.HELD] = port, 0
    now[d.ACCEPT_AT] = NEVER
    begin, absorbed = 0, False
    for _ in range(len(ports)):
        request = ports[port, d.NEXT]
        if request < ports[port, d.STOP] and ports[port, d.OUTSTANDING] < ports[port, d.DEPTH]:
            begin = max(ports[port, d.OFFER_FROM], s.requests[request, d.BEGIN_REQ])
            if begin > t:
                now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], begin)
            else:
                absorbed = _needs_no_place(s, request)
                if absorbed or _has_place(s, s.requests[request, d.ASKED_WRITE]):
                    break
                if now[d.WAITING] < now[d.WAITING_BEFORE]:
                    now[d.ACCEPT_AT] = t + 1  # RTL: the place that is left in this tick
        port = port + 1 if port + 1 < len(ports) else 0
    else:
        return
    s.requests[request, d.BEGIN_REQ] = begin
    s.requests[request, d.END_REQ] = t
    ports[port, d.NEXT] += 1
    ports[port, d.OUTSTANDING] += 1
    ports[port, d.OFFER_FROM] = t + 1
    if port != now[d.HOLDER]:
        now[d.HOLDER], now[d.HELD] = port, 0
    now[d.HELD] += 1
    now[d.LAST_TAKEN] = t
    now[d.TAKEN] = request
    now[d.ACCEPT_AT] = t + 1
    if absorbed:
        d.respond(s, t + 1, request, port)
    else:
        _enter(s, t, request, port, seen_from)


@inlined
def _schedule(s: State, t: int) -> None:
    """DRAMsim3: move one transaction on into its bank's queue."""
    now, rules, entry = s.now, s.rules, s.entry
    now[d.SCHEDULE_AT] = NEVER
    if now[d.DRAINING] == 0 and not now[d.READ_FIRST]:
        writes = entry[1, 0]
        if writes >= rules[d.WRITE_DEPTH] or (
            writes > rules[d.DRAIN_LEVEL] and choice.find_oldest(s) < 0
        ):
            now[d.DRAINING] = writes
    now[d.READ_FIRST] = 0
    write = 1 if now[d.DRAINING] > 0 else 0
    for place in range(1, 1 + entry[write, 0]):
        slot = entry[write, place]
        bank = s.slots[slot, d.BANK]
        if s.lists[bank, d.COUNT] >= rules[d.BANK_DEPTH]:
            continue
        now[d.SCHEDULE_AT] = t + 1
        if write:
            request = s.slots[slot, d.REQUEST]
            now[d.READ_FIRST] = int(_waits_in_front(s, request, 0))
            if now[d.READ_FIRST] or _waits_in(s, bank, request, 0):
                now[d.DRAINING] = 0
                return
            now[d.DRAINING] -= 1
        for at in range(place, entry[write, 0]):
            entry[write, at] = entry[write, at + 1]
        entry[write, 0] -= 1
        now[d.WAITING + write] -= 1
        now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t)
        d.push(s, bank, bank, slot)
        s.banks[bank, d.LOOK_FROM] = 0
        choice.wake_newcomer(s, t + 1, bank, slot)
        return


@inlined
def take_response(s: State, t: int) -> None:
    """The oldest answer, which is shown, is taken."""
    now = s.now
    place = now[d.FIRST_RESPONSE] & (len(s.responses) - 1)
    port = s.responses[place, d.RESPONSE_PORT]
    s.requests[s.responses[place, d.RESPONSE_REQUEST], d.END_RESP] = t
    if now[d.RESPONSES] >= s.rules[d.RESPONSE_DEPTH]:
        now[d.COLUMN_AT] = min(now[d.COLUMN_AT], t + 1)
        now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t + 1)
    now[d.FIRST_RESPONSE] += 1
    now[d.RESPONSES] -= 1
    now[d.LEFT] -= 1
    now[d.SHOWN] = -1
    # The Verilog shows one a cycle; nobody shows the next while one is held back.
    begun = s.requests[s.responses[place, d.RESPONSE_REQUEST], d.BEGIN_RESP]
    now[d.SHOW_FROM] = t + 1 if begun < t or s.rules[d.KIND] == d.RTL else t
    if s.ports[port, d.OUTSTANDING] == s.ports[port, d.DEPTH]:
        s.ports[port, d.OFFER_FROM] = max(s.ports[port, d.OFFER_FROM], t + 1)
        now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t + 1)
    s.ports[port, d.OUTSTANDING] -= 1
    if now[d.RESPONSES]:
        place = now[d.FIRST_RESPONSE] & (len(s.responses) - 1)
        now[d.RESPONSE_AT] = s.responses[place, d.RESPONSE_TIME]
        if s.rules[d.BY_HAND]:
            now[d.RESPONSE_AT] = max(now[d.RESPONSE_AT], now[d.SHOW_FROM])
    else:
        now[d.RESPONSE_AT] = NEVER


@inlined
def show_responses(s: State, t: int) -> None:
    """Answers whose time has come begin, and are taken at once if nobody takes them by hand."""
    now = s.now
    while now[d.RESPONSE_AT] <= t:
        place = now[d.FIRST_RESPONSE] & (len(s.responses) - 1)
        request = s.responses[place, d.RESPONSE_REQUEST]
        s.requests[request, d.BEGIN_RESP] = t
        if s.rules[d.BY_HAND]:
            now[d.SHOWN] = request
            now[d.RESPONSE_AT] = NEVER
        else:
            take_response(s, t)


@compiled
def _refresh(s: State, t: int) -> None:
    """A refresh is due: close all rows as soon as they may be, then refresh."""
    now, kind = s.now, s.rules[d.KIND]
    now[d.REFRESH_AT] = NEVER
    if now[d.ACTIVES]:
        return  # the last of them calls again
    if now[d.OPEN_BANKS]:
        ready = NEVER if kind == d.DRAMSIM3 else max(now[d.ANY_PRE], now[d.ROW_BUS])
        for bank in range(len(s.banks)):
            if s.banks[bank, d.OPEN_ROW] < 0:
                continue
            if kind != d.DRAMSIM3:
                ready = max(ready, s.banks[bank, d.PRE_FROM])
                continue
            time = d.precharge_from(s, t, bank)
            if time <= t:
                d.precharge(s, t, bank)
                now[d.REFRESH_AT] = t + 1
                return
            ready = min(ready, time)
        if ready > t:
            now[d.REFRESH_AT] = ready
            return
        for bank in range(len(s.banks)):
            if s.banks[bank, d.OPEN_ROW] >= 0:
                d.close(s, t, bank)
        d.note_precharge(s, t)
        d.log(s, t, d.PRECHARGE_ALL, -1, -1, -1, -1)
    edge = s.times[d.EDGE_MASK]
    ready = (max(t, now[d.REF_FROM], now[d.ROW_BUS]) + edge) & ~edge
    if ready > t:
        now[d.REFRESH_AT] = ready
        return
    d.refresh(s, t)
    for which in range(len(s.lists)):
        d.find(s, which, which if which < len(s.banks) else which - len(s.banks))
    now[d.PENDING_REFRESH] = 0
    now[d.REFRESH_DUE] += s.times[d.REFI]
    now[d.REFRESH_AT] = now[d.REFRESH_DUE]
    now[d.COLUMN_AT] = now[d.ROW_AT] = t + 1
    if kind == d.DRAMSIM3:
        now[d.ROW_AT] = NEVER
        s.banks[:, d.LOOK_FROM] = 0


@inlined
def next_tick(s: State) -> int:
    """The next tick in which something may happen."""
    now = s.now
    t = min(now[d.ACCEPT_AT], now[d.RESPONSE_AT], now[d.REFRESH_AT], now[d.SCHEDULE_AT])
    if not now[d.PENDING_REFRESH]:
        t = min(t, now[d.COLUMN_AT], now[d.ROW_AT])
    elif now[d.ACTIVES]:
        t = min(t, now[d.COLUMN_AT])
    return int(max(t, now[d.CLOCK] + 1))


@compiled
def run(s: State, until: int) -> int:
    """Simulate to a tick, inclusive, or until no request is left; returns the next tick.

    With answers taken by hand it stops after a tick in which a request was taken or an answer is
    shown: TAKEN and SHOWN tell which. It also stops when the log of commands is full.
    """
    now, kind = s.now, s.rules[d.KIND]
    while now[d.LEFT] > 0:
        t = next_tick(s)
        if t > until or (s.rules[d.LOGGING] and now[d.LOGGED] + 2 > len(s.log)):
            return t
        now[d.CLOCK] = t
        now[d.TAKEN] = -1
        now[d.WAITING_BEFORE] = now[d.WAITING]
        if kind == d.DRAMSYS and now[d.ACCEPT_AT] <= t:
            accept(s, t, t)
        due = now[d.REFRESH_AT] <= t
        if due and not now[d.PENDING_REFRESH]:
            now[d.PENDING_REFRESH] = 1
        if kind == d.RAMULATOR:
            choice.ramulator(s, t)
            if now[d.PENDING_REFRESH] and now[d.REFRESH_AT] <= t:
                _refresh(s, t)
        elif due:
            _refresh(s, t)
        elif not now[d.PENDING_REFRESH]:
            if kind == d.RTL:
                choice.rtl(s, t)
            elif kind == d.DRAMSYS:
                choice.dramsys(s, t)
            elif now[d.COLUMN_AT] <= t:
                choice.dramsim3(s, t)
        if now[d.SCHEDULE_AT] <= t:
            _schedule(s, t)
        if now[d.ACCEPT_AT] <= t:
            accept(s, t, t + 1)
        if kind == d.RAMULATOR and not now[d.PENDING_REFRESH]:
            choice.choose_mode(s, t + 1, t + 1)
        if now[d.RESPONSE_AT] <= t:
            show_responses(s, t)
        if s.rules[d.BY_HAND] and (now[d.TAKEN] >= 0 or now[d.SHOWN] >= 0):
            break
    return next_tick(s)


forget_stale(run, [sys.modules[__name__], choice, d])
