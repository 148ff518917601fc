"""Compiled core of a DRAM channel: its state, and what every command does to banks and buses.

Times are ticks. Tables are two-dimensional int64 arrays whose columns have names below. Which
command is given, and when, is chosen in tlm/memory/dram_choice.py and run by
tlm/memory/dram_core.py.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, inlined

Int64s = NDArray[np.int64]
NEVER = 2**62
# Places of `State.times`, as in `Device`.
RCD_RD, RCD_WR, RP, RAS, RC, RRD_S, RRD_L, FAW, CCD_S, CCD_L, RTW, WTR_S, WTR_L = range(13)
RTP, WTP, RFC, REFI, RP_REF, RC_REF, RL, WL, BL, PPD, ACTIVATE_TICKS, EDGE_MASK = range(13, 25)
BANK_BITS = 25
# Places of `State.rules`, as in `Policy`; GRAIN: requests taken from a requester in a row.
KIND, READ_DEPTH, WRITE_DEPTH, BANK_DEPTH, RESPONSE_DEPTH, PASS_LIMIT = range(6)
WRITE_ABOVE, WRITE_BELOW, ROW_HIT_CAP, DRAIN_LEVEL, GRAIN, BY_HAND, LOGGING = range(6, 13)
# Places of `State.now`. Clock; earliest ticks at which something may happen.
CLOCK, COLUMN_AT, ROW_AT, ACCEPT_AT, RESPONSE_AT, REFRESH_AT, SCHEDULE_AT = range(7)
# Earliest next commands so far as the channel goes; reads, then writes.
ANY_ACT, ANY_READ, ANY_WRITE, ANY_PRE, ROW_BUS, REF_FROM = range(7, 13)
# The last four activates, and which of them is the oldest.
WINDOW, WINDOW_OLDEST = 13, 17
OPEN_BANKS, ACTIVES, PENDING_REFRESH, REFRESH_DUE = range(18, 22)
# Requests that wait, reads and writes; as they were when the tick began; free slots; age to give.
WAITING, WAITING_BEFORE, FREE_SLOT, NEXT_AGE, LEFT = 22, 24, 26, 27, 28
# Responses under way or not taken: the ring's first and their number.
FIRST_RESPONSE, RESPONSES, SHOW_FROM, SHOWN = range(29, 33)
HOLDER, HELD, LAST_TAKEN, TAKEN = range(33, 37)
WRITE_MODE, PASSES, OLDEST, ROBIN, DRAINING, LAST_BANK = range(37, 43)
COLUMNS, HITS, REFRESH_TICKS, LOGGED = range(43, 47)
# DRAMsim3: no drain begins in this tick, as a write waits for a read that must move first.
READ_FIRST, NOW_PLACES = 47, 48
# Columns of `State.banks`: earliest next commands so far as the bank goes; columns since its
# activate; the slot that waits for its column since it was taken from its buffer, or -1; DRAMsim3:
# no command of its queue is ready before this tick.
OPEN_ROW, ACT_FROM, PRE_FROM, READ_FROM, WRITE_FROM, SERVED, ACTIVE, LOOK_FROM = range(8)
BANK_COLUMNS = 8
# Columns of `State.groups`, as of banks.
GROUP_ACT, GROUP_READ, GROUP_WRITE = range(3)
# Columns of `State.lists`: requests in it; slot of the oldest that hits the open row, or -1; of
# the oldest that does not; then the slots in order of age.
COUNT, HIT, MISS, ENTRY = range(4)
# Columns of `State.slots`.
REQUEST, AGE, WRITE, BANK, ROW, COLUMN, PORT, NEXT_FREE = range(8)
# Columns of `State.requests`; until it is taken, BEGIN_REQ holds the tick before which it is not
# offered.
ASKED_WRITE, ASKED_BANK, ASKED_ROW, ASKED_COLUMN = range(4)
BEGIN_REQ, END_REQ, BEGIN_RESP, END_RESP = range(4, 8)
REQUEST_COLUMNS = 8
# Columns of `State.ports`: requests of a requester not yet offered, from NEXT to STOP; how many are
# taken and not answered, and how many may be; tick from which the next may be offered.
NEXT, STOP, OUTSTANDING, DEPTH, OFFER_FROM = range(5)
PORT_COLUMNS = 5
# Columns of `State.responses`, a ring in order of time.
RESPONSE_TIME, RESPONSE_REQUEST, RESPONSE_PORT = range(3)
# Columns of `State.log`: commands, numbered as in calibration/benches/dram_rules.py.
LOG_COLUMNS = 7
ACTIVATE, PRECHARGE, PRECHARGE_ALL, REFRESH, READ = range(5)
# Kinds of policies, as `policies.Kind`.
RTL, RAMULATOR, DRAMSIM3, DRAMSYS = range(4)


class State(NamedTuple):
    """All that is known of a channel of B banks in G groups with Q requesters."""

    times: Int64s
    rules: Int64s
    now: Int64s
    banks: Int64s  # [B, 8]
    groups: Int64s  # [G, 3]
    lists: Int64s  # [2 B, ENTRY + places]: requests of a bank; its writes apart where B + bank
    slots: Int64s  # [places, 8]
    requests: Int64s  # [n, 8]
    ports: Int64s  # [Q, 5]
    responses: Int64s  # [power of two, 3]
    entry: Int64s  # [2, 1 + places]: reads and writes in front of the bank queues
    log: Int64s  # [commands, 7], or no rows


@inlined
def column_from(s: State, t: int, bank: int, write: int) -> int:
    """Earliest read or write of a bank's open row, from tick t on."""
    group = bank >> s.times[BANK_BITS]
    time = max(s.banks[bank, READ_FROM + write], s.groups[group, GROUP_READ + write])
    edge = s.times[EDGE_MASK]
    return int((max(t, time, s.now[ANY_READ + write]) + edge) & ~edge)


@inlined
def activate_from(s: State, t: int, bank: int) -> int:
    """Earliest activate of a closed bank, from tick t on."""
    group = bank >> s.times[BANK_BITS]
    time = max(s.banks[bank, ACT_FROM], s.groups[group, GROUP_ACT])
    edge = s.times[EDGE_MASK]
    return int((max(t, time, s.now[ANY_ACT], s.now[ROW_BUS]) + edge) & ~edge)


@inlined
def precharge_from(s: State, t: int, bank: int) -> int:
    """Earliest precharge of an open bank, from tick t on."""
    return int(max(t, s.banks[bank, PRE_FROM], s.now[ANY_PRE], s.now[ROW_BUS]))


@inlined
def log(s: State, t: int, kind: int, bank: int, row: int, column: int, request: int) -> None:
    """Note a command, if commands are noted."""
    if s.rules[LOGGING]:
        _note(s, t, kind, bank, row, column, request)


@compiled
def _note(s: State, t: int, kind: int, bank: int, row: int, column: int, request: int) -> None:
    number = s.now[LOGGED]
    s.now[LOGGED] = number + 1
    bits = s.times[BANK_BITS]
    s.log[number, 0] = t
    s.log[number, 1] = kind
    s.log[number, 2] = bank >> bits if bank >= 0 else -1
    s.log[number, 3] = bank & ((1 << bits) - 1) if bank >= 0 else -1
    s.log[number, 4] = row
    s.log[number, 5] = column
    s.log[number, 6] = request


@inlined
def activate(s: State, t: int, bank: int, row: int) -> None:
    """Open a row."""
    times, now = s.times, s.now
    s.banks[bank, OPEN_ROW] = row
    s.banks[bank, ACT_FROM] = t + times[RC]
    s.banks[bank, PRE_FROM] = t + times[RAS]
    s.banks[bank, READ_FROM] = t + times[RCD_RD]
    s.banks[bank, WRITE_FROM] = t + times[RCD_WR]
    s.banks[bank, SERVED] = 0
    s.groups[bank >> times[BANK_BITS], GROUP_ACT] = t + times[RRD_L]
    place = now[WINDOW_OLDEST]
    now[WINDOW + place] = t
    now[WINDOW_OLDEST] = place = (place + 1) & 3
    now[ANY_ACT] = max(t + times[RRD_S], now[WINDOW + place] + times[FAW])
    now[ROW_BUS] = t + times[ACTIVATE_TICKS]
    now[REF_FROM] = max(now[REF_FROM], t + times[RC_REF])
    now[OPEN_BANKS] += 1
    log(s, t, ACTIVATE, bank, row, -1, -1)


@inlined
def close(s: State, t: int, bank: int) -> None:
    """What a precharge does to a bank."""
    s.banks[bank, OPEN_ROW] = -1
    s.banks[bank, ACT_FROM] = max(s.banks[bank, ACT_FROM], t + s.times[RP])
    s.now[OPEN_BANKS] -= 1


@inlined
def note_precharge(s: State, t: int) -> None:
    """What a precharge does to the channel."""
    s.now[ANY_PRE] = t + s.times[PPD]
    s.now[ROW_BUS] = t + 1
    s.now[REF_FROM] = max(s.now[REF_FROM], t + s.times[RP_REF])


@inlined
def precharge(s: State, t: int, bank: int) -> None:
    """Close a bank's row."""
    close(s, t, bank)
    note_precharge(s, t)
    log(s, t, PRECHARGE, bank, -1, -1, -1)


@compiled
def refresh(s: State, t: int) -> None:
    """Refresh all banks."""
    now = s.now
    now[ANY_ACT] = max(now[ANY_ACT], t + s.times[RFC])
    now[REF_FROM] = t + s.times[RFC]
    now[ROW_BUS] = t + 1
    now[REFRESH_TICKS] += t + s.times[RFC] - now[REFRESH_DUE]
    log(s, t, REFRESH, -1, -1, -1, -1)


@inlined
def column(s: State, t: int, slot: int) -> None:
    """Read or write the burst of the request in a slot."""
    times, now, banks = s.times, s.now, s.banks
    bank, write = s.slots[slot, BANK], s.slots[slot, WRITE]
    group = bank >> times[BANK_BITS]
    if write:
        banks[bank, PRE_FROM] = max(banks[bank, PRE_FROM], t + times[WTP])
        s.groups[group, GROUP_READ] = max(s.groups[group, GROUP_READ], t + times[WTR_L])
        s.groups[group, GROUP_WRITE] = t + times[CCD_L]
        now[ANY_READ] = max(now[ANY_READ], t + times[WTR_S])
        now[ANY_WRITE] = max(now[ANY_WRITE], t + times[CCD_S])
    else:
        banks[bank, PRE_FROM] = max(banks[bank, PRE_FROM], t + times[RTP])
        s.groups[group, GROUP_READ] = max(s.groups[group, GROUP_READ], t + times[CCD_L])
        now[ANY_READ] = max(now[ANY_READ], t + times[CCD_S])
        now[ANY_WRITE] = max(now[ANY_WRITE], t + times[RTW])
    now[COLUMNS] += 1
    now[HITS] += banks[bank, SERVED] > 0
    banks[bank, SERVED] += 1
    row, place = s.slots[slot, ROW], s.slots[slot, COLUMN]
    log(s, t, READ + write, bank, row, place, s.slots[slot, REQUEST])


@compiled
def find(s: State, which: int, bank: int) -> None:
    """Find a list's oldest requests again, after its bank's row or the list has changed."""
    lists, row = s.lists, s.banks[bank, OPEN_ROW]
    hit, miss = -1, -1
    for place in range(ENTRY, ENTRY + lists[which, COUNT]):
        slot = lists[which, place]
        if row >= 0 and s.slots[slot, ROW] == row:
            if hit < 0:
                hit = slot
                if miss >= 0:
                    break
        elif miss < 0:
            miss = slot
            if hit >= 0 or row < 0:
                break
    lists[which, HIT] = hit
    lists[which, MISS] = miss


@compiled
def push(s: State, which: int, bank: int, slot: int) -> None:
    """Put a request behind all others of a list."""
    lists = s.lists
    lists[which, ENTRY + lists[which, COUNT]] = slot
    lists[which, COUNT] += 1
    row = s.banks[bank, OPEN_ROW]
    kind = HIT if row >= 0 and s.slots[slot, ROW] == row else MISS
    if lists[which, kind] < 0:
        lists[which, kind] = slot


@compiled
def take_out(s: State, which: int, bank: int, slot: int) -> None:
    """Take a request from its list."""
    lists = s.lists
    last = ENTRY + lists[which, COUNT] - 1
    place = ENTRY
    while lists[which, place] != slot:
        place += 1
    for at in range(place, last):
        lists[which, at] = lists[which, at + 1]
    lists[which, COUNT] -= 1
    if slot == lists[which, HIT] or slot == lists[which, MISS]:
        find(s, which, bank)


@inlined
def release(s: State, slot: int) -> None:
    """Give a slot back."""
    s.slots[slot, NEXT_FREE] = s.now[FREE_SLOT]
    s.now[FREE_SLOT] = slot


@compiled
def respond(s: State, time: int, request: int, port: int) -> None:
    """Have an answer at a time; answers leave in order of time."""
    now, ring = s.now, s.responses
    mask = len(ring) - 1
    place = now[FIRST_RESPONSE] + now[RESPONSES]
    now[RESPONSES] += 1
    while place > now[FIRST_RESPONSE]:
        before = (place - 1) & mask
        if ring[before, RESPONSE_TIME] <= time:
            break
        at = place & mask
        ring[at, RESPONSE_TIME] = ring[before, RESPONSE_TIME]
        ring[at, RESPONSE_REQUEST] = ring[before, RESPONSE_REQUEST]
        ring[at, RESPONSE_PORT] = ring[before, RESPONSE_PORT]
        place -= 1
    at = place & mask
    ring[at, RESPONSE_TIME] = time
    ring[at, RESPONSE_REQUEST] = request
    ring[at, RESPONSE_PORT] = port
    if place == now[FIRST_RESPONSE] and now[SHOWN] < 0:
        now[RESPONSE_AT] = time


@inlined
def serve(s: State, t: int, slot: int) -> None:
    """Give a request its column command, and its answer when that is done."""
    column(s, t, slot)
    kind = s.rules[KIND]
    if not s.slots[slot, WRITE]:
        time = t + s.times[RL] + s.times[BL]
    else:
        time = t if kind == RAMULATOR else t + s.times[WL] + s.times[BL]
    # DRAMsim3 has answered a write long ago.
    if kind != DRAMSIM3 or not s.slots[slot, WRITE]:
        respond(s, time, s.slots[slot, REQUEST], s.slots[slot, PORT])
    release(s, slot)
