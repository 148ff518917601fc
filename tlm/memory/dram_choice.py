"""Compiled choice of commands, a function a policy; `policies.Kind` tells what each is to do.

A function is called in a tick in which something may be allowed. It gives the commands of the tick
and sets COLUMN_AT and ROW_AT to the next tick that can see another; whatever changes the state
elsewhere lowers them. They may be too early, never too late.
"""

from tlm.compiled import Address, address, compiled
from tlm.memory import dram_state as d
from tlm.memory.dram_state import NEVER, Records

# mypy: disable-error-code="no-any-return"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def _is_older(m: Records, slot: Address, other: int) -> bool:
    """A request is older than another, or there is no other."""
    return other < 0 or m[slot + d.AGE] < m[other + d.AGE]


@compiled
def _row_from(m: Records, t: int, bank: Address) -> int:
    """Earliest command that opens a bank for another row, from tick t on."""
    return d.activate_from(m, t, bank) if m[bank + d.OPEN_ROW] < 0 else d.precharge_from(m, t, bank)


@compiled
def wake_columns(m: Records, t: int, bank: Address) -> None:
    """A row has been opened: its columns may come after their time."""
    if m[d.KIND] == d.RAMULATOR and m[bank + d.QUEUE + d.HIT] < 0:
        active = m[bank + d.ACTIVE]
        if m[bank + d.WRITE_QUEUE + d.HIT] < 0 and active >= 0:
            time = d.column_from(m, t + 1, bank, m[active + d.WRITE])
            d.lower(m, d.COLUMN_AT, time)
            return
    time = min(d.column_from(m, t + 1, bank, 0), d.column_from(m, t + 1, bank, 1))
    d.lower(m, d.COLUMN_AT, time)


@compiled
def wake_newcomer(m: Records, t: int, queue: Address, slot: Address) -> None:
    """A request has been put into a bank's queue and is looked at from tick t on."""
    bank = address(m[slot + d.BANK])
    row = m[bank + d.OPEN_ROW]
    if row >= 0 and m[slot + d.ROW] == row:
        time = d.column_from(m, t, bank, m[slot + d.WRITE])
        d.lower(m, d.COLUMN_AT, time)
    elif m[queue + d.MISS] == slot:
        which = d.COLUMN_AT if m[d.KIND] == d.DRAMSIM3 else d.ROW_AT
        d.lower(m, which, _row_from(m, t, bank))


@compiled
def give_row_command(m: Records, t: int, slot: Address) -> bool:
    """Open the bank of a request, or close it; whether it was opened."""
    bank = address(m[slot + d.BANK])
    opens = m[bank + d.OPEN_ROW] < 0
    if opens:
        d.activate(m, t, bank, m[slot + d.ROW])
    else:
        d.precharge(m, t, bank)
    d.find(m, bank + d.QUEUE, bank)
    m[d.ROW_AT] = m[d.ROW_BUS]
    return opens


# ---- RTL ----


@compiled
def _is_first(m: Records, place: int, first: int) -> bool:
    """No older request of the queue has the address of the one in a place; ``first``: its first."""
    slot = m[place]
    for other_place in range(first, place):
        other = m[other_place]
        if m[other + d.COLUMN] == m[slot + d.COLUMN] and m[other + d.ROW] == m[slot + d.ROW]:
            return False
    return True


@compiled
def find_oldest(m: Records) -> int:
    """Slot of the oldest request in the banks' queues, or NOBODY."""
    oldest = d.NOBODY
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        if m[bank + d.QUEUE + d.COUNT]:
            slot = m[m[bank + d.QUEUE + d.PLACES]]
            if _is_older(m, slot, oldest):
                oldest = slot
    return oldest


@compiled
def _rtl_column(m: Records, t: int, urgent: bool, oldest: int) -> None:
    m[d.COLUMN_AT] = NEVER
    if m[d.RESPONSES] >= m[d.RESPONSE_DEPTH]:
        return
    best, after = d.NOBODY, NEVER
    held_bank, one_way = d.NOBODY, False
    if urgent:
        held_bank = address(m[oldest + d.BANK])
        one_way = m[held_bank + d.OPEN_ROW] == m[oldest + d.ROW]
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        if m[bank + d.QUEUE + d.HIT] < 0:
            continue
        row = m[bank + d.OPEN_ROW]
        if bank == held_bank and row != m[oldest + d.ROW]:
            continue
        first = m[bank + d.QUEUE + d.PLACES]
        for place in range(first, first + m[bank + d.QUEUE + d.COUNT]):
            slot = m[place]
            if m[slot + d.ROW] != row:
                continue
            if one_way and m[slot + d.WRITE] != m[oldest + d.WRITE]:
                continue
            time = d.column_from(m, t, bank, m[slot + d.WRITE])
            if time > t:
                after = min(after, time)
            elif _is_first(m, place, first):
                if _is_older(m, slot, best):
                    best = slot
                break
    if best < 0:
        m[d.COLUMN_AT] = after
        return
    bank = address(m[best + d.BANK])
    d.take_out(m, bank + d.QUEUE, best)
    m[d.WAITING] -= 1
    if best == oldest:
        m[d.PASSES] = 0
        m[d.OLDEST] = find_oldest(m)
    elif not urgent:
        m[d.PASSES] += 1
    d.serve(m, t, best)
    m[d.COLUMN_AT] = t + m[d.CCD_S]
    d.lower(m, d.ACCEPT_AT, t + 1)
    if m[bank + d.QUEUE + d.HIT] < 0 and m[bank + d.QUEUE + d.MISS] >= 0:
        d.lower(m, d.ROW_AT, d.precharge_from(m, t, bank))


@compiled
def _rtl_row(m: Records, t: int, urgent: bool, oldest: int) -> None:
    best, after = d.NOBODY, NEVER
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + d.QUEUE + d.MISS]
        if slot < 0:
            continue
        if m[bank + d.OPEN_ROW] < 0:
            time = d.activate_from(m, t, bank)
        elif m[bank + d.QUEUE + d.HIT] < 0 or (urgent and slot == oldest):
            time = d.precharge_from(m, t, bank)
        else:
            continue
        if time > t:
            after = min(after, time)
        elif _is_older(m, slot, best):
            best = slot
    m[d.ROW_AT] = after
    if best >= 0 and give_row_command(m, t, best):
        wake_columns(m, t, address(m[best + d.BANK]))


@compiled
def rtl(m: Records, t: int) -> None:
    """Both commands are chosen at once, on the state before either."""
    urgent, oldest = m[d.PASSES] >= m[d.PASS_LIMIT], m[d.OLDEST]
    if m[d.COLUMN_AT] <= t:
        _rtl_column(m, t, urgent, oldest)
    if m[d.ROW_AT] <= t:
        _rtl_row(m, t, urgent, oldest)
    if not urgent and m[d.PASSES] >= m[d.PASS_LIMIT]:
        d.lower(m, d.ROW_AT, t + 1)


# ---- Ramulator ----


@compiled
def choose_mode(m: Records, column_tick: int, row_tick: int) -> None:
    """Serve reads or writes from the buses' next choices on."""
    reads, writes = m[d.WAITING], m[d.WAITING + 1]
    if m[d.WRITE_MODE]:
        changes = writes < m[d.WRITE_BELOW] and reads > 0
    else:
        changes = writes > m[d.WRITE_ABOVE] or reads == 0
    if changes:
        m[d.WRITE_MODE] ^= 1
        d.lower(m, d.COLUMN_AT, column_tick)
        d.lower(m, d.ROW_AT, row_tick)


@compiled
def _ramulator_column(m: Records, t: int) -> None:
    queue = d.QUEUE + m[d.WRITE_MODE] * d.QUEUE_COLUMNS
    buffers = not m[d.PENDING_REFRESH]
    active, best, after = d.NOBODY, d.NOBODY, NEVER
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + d.ACTIVE]
        if slot >= 0:
            time = d.column_from(m, t, bank, m[slot + d.WRITE])
            if time > t:
                after = min(after, time)
            elif _is_older(m, slot, active):
                active = slot
        slot = m[bank + queue + d.HIT]
        if slot >= 0 and buffers:
            time = d.column_from(m, t, bank, m[d.WRITE_MODE])
            if time > t:
                after = min(after, time)
            elif _is_older(m, slot, best):
                best = slot
    if active < 0 and best < 0:
        m[d.COLUMN_AT] = after
        return
    m[d.COLUMN_AT] = t + m[d.CCD_S]
    if active >= 0:
        bank = address(m[active + d.BANK])
        m[bank + d.ACTIVE] = d.NOBODY
        m[d.ACTIVES] -= 1
        d.serve(m, t, active)
        if m[d.ACTIVES] == 0 and m[d.PENDING_REFRESH]:
            m[d.REFRESH_AT] = t
    else:
        bank = address(m[best + d.BANK])
        d.take_out(m, bank + queue, best)
        m[d.WAITING + m[d.WRITE_MODE]] -= 1
        d.lower(m, d.ACCEPT_AT, t)
        d.serve(m, t, best)
        choose_mode(m, t + 1, t)
    if m[bank + queue + d.MISS] >= 0:
        d.lower(m, d.ROW_AT, d.precharge_from(m, t, bank))


@compiled
def _ramulator_row(m: Records, t: int) -> None:
    queue = d.QUEUE + m[d.WRITE_MODE] * d.QUEUE_COLUMNS
    best, after = d.NOBODY, NEVER
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + queue + d.MISS]
        if slot < 0 or m[bank + d.ACTIVE] >= 0:
            continue
        time = _row_from(m, t, bank)
        if time > t:
            after = min(after, time)
        elif _is_older(m, slot, best):
            best = slot
    m[d.ROW_AT] = after
    if best < 0:
        return
    bank = address(m[best + d.BANK])
    if give_row_command(m, t, best):
        d.take_out(m, bank + queue, best)
        m[bank + d.ACTIVE] = best
        m[d.ACTIVES] += 1
        m[d.WAITING + m[d.WRITE_MODE]] -= 1
        d.lower(m, d.ACCEPT_AT, t)
    d.find(m, bank + d.WRITE_QUEUE, bank)
    if m[bank + d.ACTIVE] >= 0:
        wake_columns(m, t, bank)


@compiled
def ramulator(m: Records, t: int) -> None:
    """The column bus chooses first."""
    if m[d.COLUMN_AT] <= t:
        _ramulator_column(m, t)
    if m[d.ROW_AT] <= t and not m[d.PENDING_REFRESH]:
        _ramulator_row(m, t)


# ---- DRAMsim3 ----


@compiled
def _in_bank_queue(m: Records, t: int, bank: Address) -> tuple[int, int]:
    """Slot of the first request of a bank queue whose next command is ready, or NOBODY and when."""
    if not m[bank + d.QUEUE + d.COUNT]:
        return d.NOBODY, NEVER
    first = m[bank + d.QUEUE + d.PLACES]
    head = m[first]
    row = m[bank + d.OPEN_ROW]
    if row < 0:
        time = d.activate_from(m, t, bank)
        return (head, t) if time <= t else (d.NOBODY, time)
    after = NEVER
    hit = m[bank + d.QUEUE + d.HIT]
    if m[head + d.ROW] != row and (hit < 0 or m[bank + d.SERVED] >= m[d.ROW_HIT_CAP]):
        after = d.precharge_from(m, t, bank)
        if after <= t:
            return head, t
    if hit < 0:
        return d.NOBODY, after
    read_at, write_at = d.column_from(m, t, bank, 0), d.column_from(m, t, bank, 1)
    if read_at > t and write_at > t:
        return d.NOBODY, min(after, read_at, write_at)
    for place in range(first, first + m[bank + d.QUEUE + d.COUNT]):
        slot = m[place]
        if m[slot + d.ROW] != row:
            continue
        time = write_at if m[slot + d.WRITE] else read_at
        if time > t:
            after = min(after, time)
        elif not m[slot + d.WRITE] or _is_first(m, place, first):
            return slot, t
    return d.NOBODY, after


@compiled
def dramsim3(m: Records, t: int) -> None:
    """Round robin over bank queues, once more for the other bus."""
    first_is_column = False
    for turn in range(2):
        slot, after = d.NOBODY, NEVER
        record = m[d.ROBIN]
        for _ in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
            record += d.BANK_COLUMNS
            if record == m[d.BANKS_END]:
                record = d.BANKS
            bank = address(record)
            time = m[bank + d.LOOK_FROM]
            if time <= t:
                slot, time = _in_bank_queue(m, t, bank)
                if slot >= 0:
                    break
                # Commands to others make it no earlier.
                m[bank + d.LOOK_FROM] = time
            after = min(after, time)
        if slot < 0:
            m[d.COLUMN_AT] = after
            return
        m[d.ROBIN] = bank
        is_column = m[bank + d.OPEN_ROW] == m[slot + d.ROW]
        m[d.COLUMN_AT] = t + 1
        if turn and is_column == first_is_column:
            return
        first_is_column = is_column
        if is_column:
            d.take_out(m, bank + d.QUEUE, slot)
            d.serve(m, t, slot)
            d.lower(m, d.SCHEDULE_AT, t)
        else:
            give_row_command(m, t, slot)
            m[d.ROW_AT] = NEVER


# ---- DRAMSys ----


@compiled
def dramsys_column(m: Records, t: int) -> None:
    """The oldest ready column of the banks' oldest hits, behind an older request's row command."""
    if m[d.COLUMN_AT] > t:
        return
    best, after = d.NOBODY, NEVER
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + d.QUEUE + d.HIT]
        if slot < 0:
            continue
        time = d.column_from(m, t, bank, m[slot + d.WRITE])
        if time > t:
            after = min(after, time)
        elif _is_older(m, slot, best):
            best = slot
    if best < 0:
        m[d.COLUMN_AT] = after
        return
    dramsys_row(m, t, m[best + d.AGE])
    bank = address(m[best + d.BANK])
    d.take_out(m, bank + d.QUEUE, best)
    d.serve(m, t, best)
    m[d.COLUMN_AT] = t + m[d.CCD_S]
    d.lower(m, d.ACCEPT_AT, t)
    if m[bank + d.QUEUE + d.HIT] < 0 and m[bank + d.QUEUE + d.MISS] >= 0:
        d.lower(m, d.ROW_AT, d.precharge_from(m, t, bank))


@compiled
def dramsys_row(m: Records, t: int, before: int) -> None:
    """The command that would end first, then the oldest; nobody steps in if it is not ready.

    Only requests older than an age are served, ``before``: the others after that one's column.
    """
    if m[d.ROW_AT] > t:
        return
    best, best_end, best_time, after = d.NOBODY, NEVER, NEVER, NEVER
    for record in range(d.BANKS, m[d.BANKS_END], d.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + d.QUEUE + d.MISS]
        if slot < 0 or m[bank + d.QUEUE + d.HIT] >= 0:
            continue
        if m[bank + d.OPEN_ROW] < 0:
            time = d.activate_from(m, t, bank)
            end = time + m[d.ACTIVATE_TICKS]
        else:
            time = d.precharge_from(m, t, bank)
            end = time + 1
        after = min(after, time)
        if end < best_end or (end == best_end and m[slot + d.AGE] < m[best + d.AGE]):
            best, best_end, best_time = slot, end, time
    if best_time > t:
        # Who steps back now may be the first of all in the next tick.
        m[d.ROW_AT] = max(after, t + 1)
    elif m[best + d.AGE] < before and give_row_command(m, t, best):
        wake_columns(m, t, address(m[best + d.BANK]))
