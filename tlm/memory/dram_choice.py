"""Compiled choice of commands, a function a policy; `policies.Kind` tells what each is to do.

A function is called in a tick in which something may be allowed. It gives the commands of the tick
and sets COLUMN_AT and ROW_AT to the next tick that can see another; whatever changes the state
elsewhere lowers them. They may be too early, never too late.
"""

from tlm.compiled import compiled, inlined
from tlm.memory import dram_state as d
from tlm.memory.dram_state import NEVER, State


@inlined
def wake_columns(s: State, t: int, bank: int) -> None:
    """A row has been opened: its columns may come after their time."""
    now = s.now
    if s.rules[d.KIND] == d.RAMULATOR and s.lists[bank, d.HIT] < 0:
        active = s.banks[bank, d.ACTIVE]
        if s.lists[len(s.banks) + bank, d.HIT] < 0 and active >= 0:
            time = d.column_from(s, t + 1, bank, s.slots[active, d.WRITE])
            now[d.COLUMN_AT] = min(now[d.COLUMN_AT], time)
            return
    time = min(d.column_from(s, t + 1, bank, 0), d.column_from(s, t + 1, bank, 1))
    now[d.COLUMN_AT] = min(now[d.COLUMN_AT], time)


@inlined
def wake_newcomer(s: State, t: int, which: int, slot: int) -> None:
    """A request has been put into a list and is looked at from tick t on."""
    now, bank = s.now, s.slots[slot, d.BANK]
    row = s.banks[bank, d.OPEN_ROW]
    if row >= 0 and s.slots[slot, d.ROW] == row:
        time = d.column_from(s, t, bank, s.slots[slot, d.WRITE])
        now[d.COLUMN_AT] = min(now[d.COLUMN_AT], time)
    elif s.lists[which, d.MISS] == slot:
        time = d.precharge_from(s, t, bank) if row >= 0 else d.activate_from(s, t, bank)
        at = d.COLUMN_AT if s.rules[d.KIND] == d.DRAMSIM3 else d.ROW_AT
        now[at] = min(now[at], time)


@inlined
def give_row_command(s: State, t: int, slot: int) -> bool:
    """Open the bank of a request, or close it; whether it was opened."""
    bank = s.slots[slot, d.BANK]
    opens = bool(s.banks[bank, d.OPEN_ROW] < 0)
    if opens:
        d.activate(s, t, bank, s.slots[slot, d.ROW])
    else:
        d.precharge(s, t, bank)
    d.find(s, bank, bank)
    s.now[d.ROW_AT] = s.now[d.ROW_BUS]
    return opens


# ---- RTL ----


@compiled
def _is_first(s: State, bank: int, place: int) -> bool:
    """No older request of the list has the address of the one in a place."""
    slots, slot = s.slots, s.lists[bank, place]
    for at in range(d.ENTRY, place):
        other = s.lists[bank, at]
        if (
            slots[other, d.COLUMN] == slots[slot, d.COLUMN]
            and slots[other, d.ROW] == slots[slot, d.ROW]
        ):
            return False
    return True


@compiled
def find_oldest(s: State) -> int:
    """Slot of the oldest request in the banks' lists, or -1."""
    oldest = -1
    for bank in range(len(s.banks)):
        if s.lists[bank, d.COUNT]:
            slot = s.lists[bank, d.ENTRY]
            if oldest < 0 or s.slots[slot, d.AGE] < s.slots[oldest, d.AGE]:
                oldest = slot
    return oldest


@inlined
def _rtl_column(s: State, t: int, urgent: bool, oldest: int) -> None:
    now, slots, lists = s.now, s.slots, s.lists
    now[d.COLUMN_AT] = NEVER
    if now[d.RESPONSES] >= s.rules[d.RESPONSE_DEPTH]:
        return
    best, after = -1, NEVER
    held_bank, one_way = -1, False
    if urgent:
        held_bank = slots[oldest, d.BANK]
        one_way = s.banks[held_bank, d.OPEN_ROW] == slots[oldest, d.ROW]
    for bank in range(len(s.banks)):
        if lists[bank, d.HIT] < 0:
            continue
        row = s.banks[bank, d.OPEN_ROW]
        if bank == held_bank and row != slots[oldest, d.ROW]:
            continue
        for place in range(d.ENTRY, d.ENTRY + lists[bank, d.COUNT]):
            slot = lists[bank, place]
            if slots[slot, d.ROW] != row:
                continue
            if one_way and slots[slot, d.WRITE] != slots[oldest, d.WRITE]:
                continue
            time = d.column_from(s, t, bank, slots[slot, d.WRITE])
            if time > t:
                after = min(after, time)
            elif _is_first(s, bank, place):
                if best < 0 or slots[slot, d.AGE] < slots[best, d.AGE]:
                    best = slot
                break
    if best < 0:
        now[d.COLUMN_AT] = after
        return
    bank = slots[best, d.BANK]
    d.take_out(s, bank, bank, best)
    now[d.WAITING] -= 1
    if best == oldest:
        now[d.PASSES] = 0
        now[d.OLDEST] = find_oldest(s)
    elif not urgent:
        now[d.PASSES] += 1
    d.serve(s, t, best)
    now[d.COLUMN_AT] = t + s.times[d.CCD_S]
    now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t + 1)
    if lists[bank, d.HIT] < 0 and lists[bank, d.MISS] >= 0:
        now[d.ROW_AT] = min(now[d.ROW_AT], d.precharge_from(s, t, bank))


@inlined
def _rtl_row(s: State, t: int, urgent: bool, oldest: int) -> None:
    lists, slots = s.lists, s.slots
    best, after = -1, NEVER
    for bank in range(len(s.banks)):
        slot = lists[bank, d.MISS]
        if slot < 0:
            continue
        if s.banks[bank, d.OPEN_ROW] < 0:
            time = d.activate_from(s, t, bank)
        elif lists[bank, d.HIT] < 0 or (urgent and slot == oldest):
            time = d.precharge_from(s, t, bank)
        else:
            continue
        if time > t:
            after = min(after, time)
        elif best < 0 or slots[slot, d.AGE] < slots[best, d.AGE]:
            best = slot
    s.now[d.ROW_AT] = after
    if best >= 0 and give_row_command(s, t, best):
        wake_columns(s, t, slots[best, d.BANK])


@inlined
def rtl(s: State, t: int) -> None:
    """Both commands are chosen at once, on the state before either."""
    now = s.now
    urgent, oldest = now[d.PASSES] >= s.rules[d.PASS_LIMIT], now[d.OLDEST]
    if now[d.COLUMN_AT] <= t:
        _rtl_column(s, t, urgent, oldest)
    if now[d.ROW_AT] <= t:
        _rtl_row(s, t, urgent, oldest)
    if not urgent and now[d.PASSES] >= s.rules[d.PASS_LIMIT]:
        now[d.ROW_AT] = min(now[d.ROW_AT], t + 1)


# ---- Ramulator ----


@inlined
def choose_mode(s: State, column_tick: int, row_tick: int) -> None:
    """Serve reads or writes from the buses' next choices on."""
    now, rules = s.now, s.rules
    reads, writes = now[d.WAITING], now[d.WAITING + 1]
    if now[d.WRITE_MODE]:
        changes = writes < rules[d.WRITE_BELOW] and reads > 0
    else:
        changes = writes > rules[d.WRITE_ABOVE] or reads == 0
    if changes:
        now[d.WRITE_MODE] ^= 1
        now[d.COLUMN_AT] = min(now[d.COLUMN_AT], column_tick)
        now[d.ROW_AT] = min(now[d.ROW_AT], row_tick)


@inlined
def _ramulator_column(s: State, t: int) -> None:
    now, slots, banks = s.now, s.slots, s.banks
    first = len(banks) * now[d.WRITE_MODE]
    buffers = not now[d.PENDING_REFRESH]
    active, best, after = -1, -1, NEVER
    for bank in range(len(banks)):
        slot = banks[bank, d.ACTIVE]
        if slot >= 0:
            time = d.column_from(s, t, bank, slots[slot, d.WRITE])
            if time > t:
                after = min(after, time)
            elif active < 0 or slots[slot, d.AGE] < slots[active, d.AGE]:
                active = slot
        slot = s.lists[first + bank, d.HIT]
        if slot >= 0 and buffers:
            time = d.column_from(s, t, bank, now[d.WRITE_MODE])
            if time > t:
                after = min(after, time)
            elif best < 0 or slots[slot, d.AGE] < slots[best, d.AGE]:
                best = slot
    if active < 0 and best < 0:
        now[d.COLUMN_AT] = after
        return
    now[d.COLUMN_AT] = t + s.times[d.CCD_S]
    if active >= 0:
        bank = slots[active, d.BANK]
        banks[bank, d.ACTIVE] = -1
        now[d.ACTIVES] -= 1
        d.serve(s, t, active)
        if now[d.ACTIVES] == 0 and now[d.PENDING_REFRESH]:
            now[d.REFRESH_AT] = t
    else:
        bank = slots[best, d.BANK]
        d.take_out(s, first + bank, bank, best)
        now[d.WAITING + now[d.WRITE_MODE]] -= 1
        now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t)
        d.serve(s, t, best)
        choose_mode(s, t + 1, t)
    if s.lists[first + bank, d.MISS] >= 0:
        now[d.ROW_AT] = min(now[d.ROW_AT], d.precharge_from(s, t, bank))


@inlined
def _ramulator_row(s: State, t: int) -> None:
    now, slots, banks = s.now, s.slots, s.banks
    first = len(banks) * now[d.WRITE_MODE]
    best, after = -1, NEVER
    for bank in range(len(banks)):
        slot = s.lists[first + bank, d.MISS]
        if slot < 0 or banks[bank, d.ACTIVE] >= 0:
            continue
        if banks[bank, d.OPEN_ROW] < 0:
            time = d.activate_from(s, t, bank)
        else:
            time = d.precharge_from(s, t, bank)
        if time > t:
            after = min(after, time)
        elif best < 0 or slots[slot, d.AGE] < slots[best, d.AGE]:
            best = slot
    now[d.ROW_AT] = after
    if best < 0:
        return
    bank = slots[best, d.BANK]
    if give_row_command(s, t, best):
        d.take_out(s, first + bank, bank, best)
        banks[bank, d.ACTIVE] = best
        now[d.ACTIVES] += 1
        now[d.WAITING + now[d.WRITE_MODE]] -= 1
        now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t)
    d.find(s, len(banks) + bank, bank)
    if banks[bank, d.ACTIVE] >= 0:
        wake_columns(s, t, bank)


@inlined
def ramulator(s: State, t: int) -> None:
    """The column bus chooses first."""
    if s.now[d.COLUMN_AT] <= t:
        _ramulator_column(s, t)
    if s.now[d.ROW_AT] <= t and not s.now[d.PENDING_REFRESH]:
        _ramulator_row(s, t)


# ---- DRAMsim3 ----


@inlined
def _in_bank_queue(s: State, t: int, bank: int) -> tuple[int, int]:
    """Slot of the first request of a bank queue whose next command is ready, or -1 and when."""
    lists, slots = s.lists, s.slots
    if not lists[bank, d.COUNT]:
        return -1, NEVER
    head = lists[bank, d.ENTRY]
    row = s.banks[bank, d.OPEN_ROW]
    if row < 0:
        time = d.activate_from(s, t, bank)
        return (head, t) if time <= t else (-1, time)
    after = NEVER
    hit = lists[bank, d.HIT]
    if slots[head, d.ROW] != row and (hit < 0 or s.banks[bank, d.SERVED] >= s.rules[d.ROW_HIT_CAP]):
        after = d.precharge_from(s, t, bank)
        if after <= t:
            return head, t
    if hit < 0:
        return -1, after
    read_at, write_at = d.column_from(s, t, bank, 0), d.column_from(s, t, bank, 1)
    if read_at > t and write_at > t:
        return -1, min(after, read_at, write_at)
    for place in range(d.ENTRY, d.ENTRY + lists[bank, d.COUNT]):
        slot = lists[bank, place]
        if slots[slot, d.ROW] != row:
            continue
        time = write_at if slots[slot, d.WRITE] else read_at
        if time > t:
            after = min(after, time)
        elif not slots[slot, d.WRITE] or _is_first(s, bank, place):
            return slot, t
    return -1, after


@inlined
def dramsim3(s: State, t: int) -> None:
    """Round robin over bank queues, once more for the other bus."""
    now, slots, banks = s.now, s.slots, s.banks
    first_is_column = False
    for turn in range(2):
        slot, after = -1, NEVER
        bank = now[d.ROBIN]
        for _ in range(len(banks)):
            bank = (bank + 1) & (len(banks) - 1)
            time = banks[bank, d.LOOK_FROM]
            if time <= t:
                slot, time = _in_bank_queue(s, t, bank)
                if slot >= 0:
                    break
                # Commands to others make it no earlier.
                banks[bank, d.LOOK_FROM] = time
            after = min(after, time)
        if slot < 0:
            now[d.COLUMN_AT] = after
            return
        now[d.ROBIN] = bank
        is_column = banks[bank, d.OPEN_ROW] == slots[slot, d.ROW]
        now[d.COLUMN_AT] = t + 1
        if turn and is_column == first_is_column:
            return
        first_is_column = is_column
        if is_column:
            d.take_out(s, bank, bank, slot)
            d.serve(s, t, slot)
            now[d.SCHEDULE_AT] = min(now[d.SCHEDULE_AT], t)
        else:
            give_row_command(s, t, slot)
            now[d.ROW_AT] = NEVER


# ---- DRAMSys ----


@inlined
def _dramsys_column(s: State, t: int) -> None:
    now, slots = s.now, s.slots
    best, after = -1, NEVER
    for bank in range(len(s.banks)):
        slot = s.lists[bank, d.HIT]
        if slot < 0:
            continue
        time = d.column_from(s, t, bank, slots[slot, d.WRITE])
        if time > t:
            after = min(after, time)
        elif best < 0 or slots[slot, d.AGE] < slots[best, d.AGE]:
            best = slot
    if best < 0:
        now[d.COLUMN_AT] = after
        return
    bank = slots[best, d.BANK]
    d.take_out(s, bank, bank, best)
    d.serve(s, t, best)
    now[d.COLUMN_AT] = t + s.times[d.CCD_S]
    now[d.ACCEPT_AT] = min(now[d.ACCEPT_AT], t)
    if s.lists[bank, d.HIT] < 0 and s.lists[bank, d.MISS] >= 0:
        now[d.ROW_AT] = min(now[d.ROW_AT], d.precharge_from(s, t, bank))


@inlined
def _dramsys_row(s: State, t: int) -> None:
    """The command that would end first, then the oldest; nobody steps in if it is not ready."""
    lists, slots = s.lists, s.slots
    best, best_end, best_time, after = -1, NEVER, NEVER, NEVER
    for bank in range(len(s.banks)):
        slot = lists[bank, d.MISS]
        if slot < 0 or lists[bank, d.HIT] >= 0:
            continue
        if s.banks[bank, d.OPEN_ROW] < 0:
            time = d.activate_from(s, t, bank)
            end = time + s.times[d.ACTIVATE_TICKS]
        else:
            time = d.precharge_from(s, t, bank)
            end = time + 1
        after = min(after, time)
        if end < best_end or (end == best_end and slots[slot, d.AGE] < slots[best, d.AGE]):
            best, best_end, best_time = slot, end, time
    if best_time > t:
        # Who steps back now may be the first of all in the next tick.
        s.now[d.ROW_AT] = max(after, t + 1)
    elif give_row_command(s, t, best):
        wake_columns(s, t, slots[best, d.BANK])


@inlined
def dramsys(s: State, t: int) -> None:
    """A row and a column command have a bus each."""
    if s.now[d.COLUMN_AT] <= t:
        _dramsys_column(s, t)
    if s.now[d.ROW_AT] <= t:
        _dramsys_row(s, t)
