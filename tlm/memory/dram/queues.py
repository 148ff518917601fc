"""Requests that wait in a DRAM channel: slots, queues, and when what they wait for may come."""

from tlm.compiled import Address, address, compiled, inlined
from tlm.memory.dram import banks, ports, state
from tlm.memory.dram.state import Asked, Bank, Head, Queue, Records, Slot, Table


@compiled
def is_older(m: Records, slot: Address, other: int) -> bool:
    """A request is older than another, or there is no other."""
    return other < 0 or m[slot + Slot.AGE] < m[other + Slot.AGE]


@compiled
def is_first(m: Records, place: int, first: int) -> bool:
    """No older request of the queue has the address of the one in a place; ``first``: its first."""
    slot = m[place]
    for other_place in range(first, place):
        other = m[other_place]
        if (
            m[other + Slot.COLUMN] == m[slot + Slot.COLUMN]
            and m[other + Slot.ROW] == m[slot + Slot.ROW]
        ):
            return False
    return True


@compiled
def waits_in(m: Records, queue: Address, requests: Table, request: int, write: int) -> bool:
    """A read or write to a request's address waits in a queue, a bank's or one in front."""
    first = m[queue + Queue.PLACES]
    for place in range(first, first + m[queue + Queue.COUNT]):
        slot = m[place]
        if (
            m[slot + Slot.COLUMN] == requests[request, Asked.COLUMN]
            and m[slot + Slot.ROW] == requests[request, Asked.ROW]
            and m[slot + Slot.BANK] == requests[request, Asked.BANK]
            and m[slot + Slot.WRITE] == write
        ):
            return True
    return False


@compiled
def oldest_of_banks(m: Records) -> int:
    """Slot of the oldest request in the banks' queues, or NOBODY."""
    oldest = state.NOBODY
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        if m[bank + Bank.QUEUE + Queue.COUNT]:
            slot = m[m[bank + Bank.QUEUE + Queue.PLACES]]
            if is_older(m, slot, oldest):
                oldest = slot
    return oldest


@compiled
def find(m: Records, queue: Address, bank: Address) -> None:
    """Find a queue's oldest requests again, after its bank's row or the queue has changed."""
    row, first = m[bank + Bank.OPEN_ROW], m[queue + Queue.PLACES]
    hit, miss = state.NOBODY, state.NOBODY
    for place in range(first, first + m[queue + Queue.COUNT]):
        slot = m[place]
        if m[slot + Slot.ROW] != row:
            miss = slot if miss < 0 else miss
        elif hit < 0:
            hit = slot
        if miss >= 0 and (hit >= 0 or row < 0):
            break
    m[queue + Queue.HIT] = hit
    m[queue + Queue.MISS] = miss


@inlined
def take_slot(m: Records, requests: Table, request: int, port: int) -> Address:
    """A slot for a request, filled."""
    slot = address(m[Head.FREE_SLOT])
    m[Head.FREE_SLOT] = m[slot + Slot.NEXT_FREE]
    m[slot + Slot.REQUEST] = request
    m[slot + Slot.AGE] = m[Head.NEXT_AGE]
    m[slot + Slot.WRITE] = requests[request, Asked.WRITE]
    m[slot + Slot.BANK] = requests[request, Asked.BANK]
    m[slot + Slot.ROW] = requests[request, Asked.ROW]
    m[slot + Slot.COLUMN] = requests[request, Asked.COLUMN]
    m[slot + Slot.PORT] = port
    m[Head.NEXT_AGE] += 1
    return slot


@compiled
def release(m: Records, slot: Address) -> None:
    """Give a slot back."""
    m[slot + Slot.NEXT_FREE] = m[Head.FREE_SLOT]
    m[Head.FREE_SLOT] = slot


@compiled
def append(m: Records, queue: Address, slot: Address) -> None:
    """Put a request behind all others of any queue."""
    m[m[queue + Queue.PLACES] + m[queue + Queue.COUNT]] = slot
    m[queue + Queue.COUNT] += 1


@compiled
def remove(m: Records, queue: Address, slot: Address) -> None:
    """Take a request out of any queue."""
    place = m[queue + Queue.PLACES]
    last = place + m[queue + Queue.COUNT] - 1
    while m[place] != slot:
        place += 1
    for at in range(place, last):
        m[at] = m[at + 1]
    m[queue + Queue.COUNT] -= 1


@compiled
def take_out(m: Records, queue: Address, slot: Address) -> None:
    """Take a request from a bank's queue."""
    remove(m, queue, slot)
    if slot == m[queue + Queue.HIT] or slot == m[queue + Queue.MISS]:
        find(m, queue, address(m[slot + Slot.BANK]))


@compiled
def push(m: Records, t: int, queue: Address, slot: Address, row_command: int) -> None:
    """Put a request behind all others of a bank's queue; it is looked at from tick t on.

    ``row_command``: the column of the tick in which its activate or precharge is looked for.
    """
    append(m, queue, slot)
    bank = address(m[slot + Slot.BANK])
    if m[slot + Slot.ROW] == m[bank + Bank.OPEN_ROW]:
        if m[queue + Queue.HIT] < 0:
            m[queue + Queue.HIT] = slot
        state.lower(m, Head.COLUMN_AT, banks.column_from(m, t, bank, m[slot + Slot.WRITE]))
    elif m[queue + Queue.MISS] < 0:
        m[queue + Queue.MISS] = slot
        state.lower(m, row_command, banks.row_from(m, t, bank))


@inlined
def give_column(m: Records, t: int, slot: Address, done: int) -> None:
    """Read or write the burst of a request, which is answered when that is done."""
    banks.column(m, t, slot)
    ports.respond(m, done, m[slot + Slot.REQUEST], m[slot + Slot.PORT])
    release(m, slot)


@inlined
def read_or_write(m: Records, t: int, slot: Address) -> None:
    """Give a request of a bank's only queue its column, and its answer at the last beat."""
    bank, write = address(m[slot + Slot.BANK]), m[slot + Slot.WRITE]
    take_out(m, bank + Bank.QUEUE, slot)
    give_column(m, t, slot, t + (m[Head.WL] if write else m[Head.RL]) + m[Head.BL])
    m[Head.COLUMN_AT] = t + m[Head.CCD_S]
    # If the row is hit no more, who waits may close it.
    if m[bank + Bank.QUEUE + Queue.HIT] < 0 and m[bank + Bank.QUEUE + Queue.MISS] >= 0:
        state.lower(m, Head.ROW_AT, banks.precharge_from(m, t, bank))


@compiled
def give_row_command(m: Records, t: int, slot: Address) -> bool:
    """Open the bank of a request, or close it; whether it was opened."""
    bank = address(m[slot + Slot.BANK])
    opens = m[bank + Bank.OPEN_ROW] < 0
    if opens:
        banks.activate(m, t, bank, m[slot + Slot.ROW])
    else:
        banks.precharge(m, t, bank)
    find(m, bank + Bank.QUEUE, bank)
    m[Head.ROW_AT] = m[Head.ROW_BUS]
    return opens


@compiled
def wake_columns(m: Records, t: int, bank: Address) -> None:
    """A row has been opened in tick t: its columns may come after their time."""
    time = min(banks.column_from(m, t + 1, bank, 0), banks.column_from(m, t + 1, bank, 1))
    state.lower(m, Head.COLUMN_AT, time)


@compiled
def refresh_closed(m: Records, t: int) -> bool:
    """Refresh closed banks, if it may be; whether it was."""
    m[Head.REFRESH_AT] = banks.refresh(m, t)
    if m[Head.REFRESH_AT] > t:
        return False
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        find(m, bank + Bank.QUEUE, bank)
        find(m, bank + Bank.WRITE_QUEUE, bank)
    m[Head.PENDING_REFRESH] = 0
    m[Head.REFRESH_DUE] += m[Head.REFI]
    m[Head.REFRESH_AT] = m[Head.REFRESH_DUE]
    m[Head.COLUMN_AT] = m[Head.ROW_AT] = t + 1
    return True


@compiled
def close_and_refresh(m: Records, t: int) -> None:
    """Close all rows at once, as soon as all may be, then refresh."""
    if m[Head.OPEN_BANKS]:
        m[Head.REFRESH_AT] = banks.precharge_all(m, t)
        if m[Head.REFRESH_AT] > t:
            return
    refresh_closed(m, t)
