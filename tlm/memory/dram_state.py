"""Compiled core of a DRAM channel: its state, and what every command does to banks and buses.

All that is known of a channel is in one int64 array, ``m``, but for the table of requests, which
grows. A record is named by its address, the index of its first column, and records name each other
so: ``m[m[slot + BANK] + OPEN_ROW]``. tlm/memory/dram_layout.py lays them out. Times are ticks.
Which command is given, and when, is chosen in tlm/memory/dram_choice.py and run by
tlm/memory/dram_core.py.
"""

from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import Address, address, compiled

# mypy: disable-error-code="no-any-return"
# What comes out of an array is no int to the type checker, as it is to Numba.

Int64s = NDArray[np.int64]
Records = Annotated[Int64s, types.int64[::1]]
Table = Annotated[Int64s, types.int64[:, ::1]]
NEVER = 2**62
NOBODY = -1  # where a slot could be named
# A queue: how many slots are in it; the oldest that hits the open row, and the oldest that does
# not; where its places are. They hold slots in order of age.
COUNT, HIT, MISS, PLACES, QUEUE_COLUMNS = range(5)

# The first record. Times, as in `Device`; bits of a bank's number in its group; columns of a
# group's banks, less one.
RCD_RD, RCD_WR, RP, RAS, RC, RRD_S, RRD_L, FAW, CCD_S, CCD_L, RTW, WTR_S, WTR_L = range(13)
RTP, WTP, RFC, REFI, RP_REF, RC_REF, RL, WL, BL, PPD, ACTIVATE_TICKS, EDGE_MASK = range(13, 25)
BANK_BITS, GROUP_MASK = 25, 26
# Rules, as in `Policy`; requests taken from a requester in a row.
KIND, READ_DEPTH, WRITE_DEPTH, BANK_DEPTH, RESPONSE_DEPTH, PASS_LIMIT = range(27, 33)
WRITE_ABOVE, WRITE_BELOW, ROW_HIT_CAP, DRAIN_LEVEL, GRAIN, BY_HAND = range(33, 39)
# Clock; earliest ticks at which something may happen.
CLOCK, COLUMN_AT, ROW_AT, ACCEPT_AT, RESPONSE_AT, REFRESH_AT, SCHEDULE_AT = range(39, 46)
# Earliest next commands so far as the channel goes; reads, then writes.
ANY_ACT, ANY_READ, ANY_WRITE, ANY_PRE, ROW_BUS, REF_FROM = range(46, 52)
# The last four activates, and which of them is the oldest.
WINDOW, WINDOW_OLDEST = 52, 56
OPEN_BANKS, ACTIVES, PENDING_REFRESH, REFRESH_DUE = range(57, 61)
# Requests that wait, reads and writes; as they were when the tick began; free slots; age to give.
WAITING, WAITING_BEFORE, FREE_SLOT, NEXT_AGE, LEFT = 61, 63, 64, 65, 66
# Responses under way or not taken: the number of the first, and how many.
FIRST_RESPONSE, RESPONSES, SHOW_FROM, SHOWN = range(67, 71)
HOLDER, HELD, LAST_TAKEN, TAKEN = range(71, 75)
# DRAMsim3: no drain begins in this tick, as a write waits for a read that must move first.
WRITE_MODE, PASSES, OLDEST, ROBIN, DRAINING, LAST_BANK, READ_FIRST = range(75, 82)
COLUMNS, HITS, REFRESH_TICKS, LOGGED = range(82, 86)
# Queues of reads and of writes in front of the banks'.
FRONT_READS = 86
FRONT_WRITES = FRONT_READS + QUEUE_COLUMNS
# Where the banks end, and other tables begin or end; a ring's responses, less one; rows of the log,
# 0 if commands are not noted. The next ticket of a port.
BANKS_END, PORTS, PORTS_END, RING, RING_MASK, LOG, LOG_ROWS, NEXT_TICKET = range(94, 102)
HEADER_COLUMNS = 104  # whole lines of a cache

# The banks stand behind the header, so that their addresses are known when the core is compiled.
# A bank: earliest next commands so far as it and its group go; columns since its activate; the slot
# that waits for its column since it was taken from its buffer, or NOBODY; DRAMsim3: no command of
# its queue is ready before this tick. Then its queue, and Ramulator's for its writes.
OPEN_ROW, ACT_FROM, PRE_FROM, READ_FROM, WRITE_FROM, SERVED, ACTIVE, LOOK_FROM = range(8)
QUEUE, BANK_COLUMNS = 8, 16
WRITE_QUEUE = QUEUE + QUEUE_COLUMNS
BANKS = HEADER_COLUMNS
# A slot: a request that waits.
REQUEST, AGE, WRITE, BANK, ROW, COLUMN, PORT, NEXT_FREE, SLOT_COLUMNS = range(9)
# A port: requests of a requester not yet offered, from NEXT to STOP; how many are taken and not
# answered, and how many may be; tick from which the next may be offered; the number of the event
# that set it, a request taken or an answer.
NEXT, STOP, OUTSTANDING, DEPTH, OFFER_FROM, TICKET, PORT_COLUMNS = range(7)
# A response in the ring, in which they are in order of time.
RESPONSE_TIME, RESPONSE_REQUEST, RESPONSE_PORT, RESPONSE_COLUMNS = range(4)
# A row of the log: commands, numbered as in calibration/benches/dram_rules.py.
LOG_COLUMNS = 7
ACTIVATE, PRECHARGE, PRECHARGE_ALL, REFRESH, READ = range(5)
# The table of requests, shape (n, columns); until it is taken, BEGIN_REQ holds the tick before
# which it is not offered.
ASKED_WRITE, ASKED_BANK, ASKED_ROW, ASKED_COLUMN = range(4)
BEGIN_REQ, END_REQ, BEGIN_RESP, END_RESP, REQUEST_COLUMNS = range(4, 9)
# Kinds of policies, as `policies.Kind`.
RTL, RAMULATOR, DRAMSIM3, DRAMSYS = range(4)


@compiled
def lower(m: Records, which: int, tick: int) -> None:
    """Look at something in a tick, at the latest; ``which``: the column of its next one."""
    m[which] = min(m[which], tick)


@compiled
def column_from(m: Records, t: int, bank: Address, write: int) -> int:
    """Earliest read or write of a bank's open row, from tick t on."""
    edge = m[EDGE_MASK]
    return (max(t, m[bank + READ_FROM + write], m[ANY_READ + write]) + edge) & ~edge


@compiled
def activate_from(m: Records, t: int, bank: Address) -> int:
    """Earliest activate of a closed bank, from tick t on."""
    edge = m[EDGE_MASK]
    return (max(t, m[bank + ACT_FROM], m[ANY_ACT], m[ROW_BUS]) + edge) & ~edge


@compiled
def precharge_from(m: Records, t: int, bank: Address) -> int:
    """Earliest precharge of an open bank, from tick t on."""
    return max(t, m[bank + PRE_FROM], m[ANY_PRE], m[ROW_BUS])


@compiled
def log(m: Records, t: int, kind: int, bank: int, row: int, column: int, request: int) -> None:
    """Note a command, if commands are noted; bank -1: to all of them."""
    if m[LOG_ROWS] == 0:
        return
    place = m[LOG] + m[LOGGED] * LOG_COLUMNS
    m[LOGGED] += 1
    group = within = -1
    if bank >= 0:
        number = (bank - BANKS) // BANK_COLUMNS
        group = number >> m[BANK_BITS]
        within = number - (group << m[BANK_BITS])
    m[place], m[place + 1], m[place + 2], m[place + 3] = t, kind, group, within
    m[place + 4], m[place + 5], m[place + 6] = row, column, request


@compiled
def _delay_group(m: Records, bank: Address, command: int, time: int) -> None:
    """No bank of the group has this next command before a time; ``command``: its column."""
    first = bank - ((bank - BANKS) & m[GROUP_MASK])
    for place in range(first, first + m[GROUP_MASK], BANK_COLUMNS):
        other = address(place)
        m[other + command] = max(m[other + command], time)


@compiled
def activate(m: Records, t: int, bank: Address, row: int) -> None:
    """Open a row."""
    m[bank + OPEN_ROW] = row
    m[bank + ACT_FROM] = t + m[RC]
    m[bank + PRE_FROM] = t + m[RAS]
    m[bank + READ_FROM] = max(m[bank + READ_FROM], t + m[RCD_RD])
    m[bank + WRITE_FROM] = max(m[bank + WRITE_FROM], t + m[RCD_WR])
    m[bank + SERVED] = 0
    _delay_group(m, bank, ACT_FROM, t + m[RRD_L])
    place = m[WINDOW_OLDEST]
    m[WINDOW + place] = t
    m[WINDOW_OLDEST] = place = (place + 1) & 3
    m[ANY_ACT] = max(t + m[RRD_S], m[WINDOW + place] + m[FAW])
    m[ROW_BUS] = t + m[ACTIVATE_TICKS]
    m[REF_FROM] = max(m[REF_FROM], t + m[RC_REF])
    m[OPEN_BANKS] += 1
    log(m, t, ACTIVATE, bank, row, -1, -1)


@compiled
def close(m: Records, t: int, bank: Address) -> None:
    """What a precharge does to a bank."""
    m[bank + OPEN_ROW] = -1
    m[bank + ACT_FROM] = max(m[bank + ACT_FROM], t + m[RP])
    m[OPEN_BANKS] -= 1


@compiled
def note_precharge(m: Records, t: int) -> None:
    """What a precharge does to the channel."""
    m[ANY_PRE] = t + m[PPD]
    m[ROW_BUS] = t + 1
    m[REF_FROM] = max(m[REF_FROM], t + m[RP_REF])


@compiled
def precharge(m: Records, t: int, bank: Address) -> None:
    """Close a bank's row."""
    close(m, t, bank)
    note_precharge(m, t)
    log(m, t, PRECHARGE, bank, -1, -1, -1)


@compiled
def refresh(m: Records, t: int) -> None:
    """Refresh all banks."""
    m[ANY_ACT] = max(m[ANY_ACT], t + m[RFC])
    m[REF_FROM] = t + m[RFC]
    m[ROW_BUS] = t + 1
    m[REFRESH_TICKS] += t + m[RFC] - m[REFRESH_DUE]
    log(m, t, REFRESH, -1, -1, -1, -1)


@compiled
def column(m: Records, t: int, slot: Address) -> None:
    """Read or write the burst of the request in a slot."""
    bank, write = address(m[slot + BANK]), m[slot + WRITE]
    if write:
        m[bank + PRE_FROM] = max(m[bank + PRE_FROM], t + m[WTP])
        _delay_group(m, bank, READ_FROM, t + m[WTR_L])
        _delay_group(m, bank, WRITE_FROM, t + m[CCD_L])
        m[ANY_READ] = max(m[ANY_READ], t + m[WTR_S])
        m[ANY_WRITE] = max(m[ANY_WRITE], t + m[CCD_S])
    else:
        m[bank + PRE_FROM] = max(m[bank + PRE_FROM], t + m[RTP])
        _delay_group(m, bank, READ_FROM, t + m[CCD_L])
        m[ANY_READ] = max(m[ANY_READ], t + m[CCD_S])
        m[ANY_WRITE] = max(m[ANY_WRITE], t + m[RTW])
    m[COLUMNS] += 1
    m[HITS] += m[bank + SERVED] > 0
    m[bank + SERVED] += 1
    log(m, t, READ + write, bank, m[slot + ROW], m[slot + COLUMN], m[slot + REQUEST])


@compiled
def find(m: Records, queue: Address, bank: Address) -> None:
    """Find a queue's oldest requests again, after its bank's row or the queue has changed."""
    row, first = m[bank + OPEN_ROW], m[queue + PLACES]
    hit, miss = NOBODY, NOBODY
    for place in range(first, first + m[queue + COUNT]):
        slot = m[place]
        if row >= 0 and m[slot + ROW] == row:
            if hit < 0:
                hit = slot
                if miss >= 0:
                    break
        elif miss < 0:
            miss = slot
            if hit >= 0 or row < 0:
                break
    m[queue + HIT] = hit
    m[queue + MISS] = miss


@compiled
def append(m: Records, queue: Address, slot: Address) -> None:
    """Put a request behind all others of any queue."""
    m[m[queue + PLACES] + m[queue + COUNT]] = slot
    m[queue + COUNT] += 1


@compiled
def remove(m: Records, queue: Address, slot: Address) -> None:
    """Take a request out of any queue."""
    place = m[queue + PLACES]
    last = place + m[queue + COUNT] - 1
    while m[place] != slot:
        place += 1
    for at in range(place, last):
        m[at] = m[at + 1]
    m[queue + COUNT] -= 1


@compiled
def push(m: Records, queue: Address, slot: Address) -> None:
    """Put a request behind all others of a bank's queue."""
    append(m, queue, slot)
    row = m[address(m[slot + BANK]) + OPEN_ROW]
    kind = HIT if row >= 0 and m[slot + ROW] == row else MISS
    if m[queue + kind] < 0:
        m[queue + kind] = slot


@compiled
def take_out(m: Records, queue: Address, slot: Address) -> None:
    """Take a request from a bank's queue."""
    remove(m, queue, slot)
    if slot == m[queue + HIT] or slot == m[queue + MISS]:
        find(m, queue, address(m[slot + BANK]))


@compiled
def release(m: Records, slot: Address) -> None:
    """Give a slot back."""
    m[slot + NEXT_FREE] = m[FREE_SLOT]
    m[FREE_SLOT] = slot


@compiled
def response(m: Records, number: int) -> int:
    """Where the ring holds a response."""
    return m[RING] + (number & m[RING_MASK]) * RESPONSE_COLUMNS


@compiled
def respond(m: Records, time: int, request: int, port: int) -> None:
    """Have an answer at a time; answers leave in order of time."""
    first = m[FIRST_RESPONSE]
    number = first + m[RESPONSES]
    m[RESPONSES] += 1
    place = response(m, number)
    while number > first:
        before = response(m, number - 1)
        if m[before + RESPONSE_TIME] <= time:
            break
        for field in range(RESPONSE_COLUMNS):
            m[place + field] = m[before + field]
        place = before
        number -= 1
    m[place + RESPONSE_TIME] = time
    m[place + RESPONSE_REQUEST] = request
    m[place + RESPONSE_PORT] = port
    if number == first and m[SHOWN] < 0:
        m[RESPONSE_AT] = time


@compiled
def serve(m: Records, t: int, slot: Address) -> None:
    """Give a request its column command, and its answer when that is done."""
    column(m, t, slot)
    kind, write = m[KIND], m[slot + WRITE]
    time = t + m[RL] + m[BL]
    if write:
        time = t if kind == RAMULATOR else t + m[WL] + m[BL]
    # DRAMsim3 has answered a write long ago.
    if kind != DRAMSIM3 or not write:
        respond(m, time, m[slot + REQUEST], m[slot + PORT])
    release(m, slot)
