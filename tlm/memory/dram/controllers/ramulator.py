"""Ramulator's HBM controllers, after those and the FRFCFS scheduler of CMU-SAFARI/ramulator2, 2.1.

- Queues: a read and a write buffer. A request is looked at in the tick after it is taken.
- Writes: the mode decides which buffer is served: writes from above 0.8 of theirs, or without
  reads, down to below 0.2. A write is answered by its command, a read of a waiting write by that
  write; a write to an address that waits is absorbed.
- Order: column bus first, then row bus; on each the oldest request whose next command is ready. A
  request leaves its buffer at its activate, and its column comes before those of the buffer.
- Rows: stay open; one with hits may be closed, but not before the column it was opened for.
- Refresh: when due it stops both buffers; when the activated requests are served, all rows are
  closed at once.
- A tick: commands, answers, then a request; who is answered offers in the same tick.
"""

from dataclasses import dataclass
from enum import IntEnum, auto
from typing import ClassVar

from tlm.compiled import Address, address, compiled, inlined
from tlm.memory.dram import banks, clock, ports, queues, state
from tlm.memory.dram.controllers.controller import Advance, Controller, QueuePlaces
from tlm.memory.dram.state import Asked, Bank, Head, Queue, Records, Slot, Table


class _Own(IntEnum):
    """The controller's columns."""

    READ_DEPTH = state.OWN
    WRITE_DEPTH = auto()
    WRITE_ABOVE = auto()
    WRITE_BELOW = auto()
    READS = auto()  # that wait in their buffer
    WRITES = auto()
    WRITE_MODE = auto()  # 1 while writes are served


class _OwnOfBank(IntEnum):
    """The controller's columns of a bank."""

    ACTIVE = Bank.OWN  # slot of the request that it was opened for, until its column, or NOBODY


@compiled
def _meets_write(m: Records, requests: Table, request: int) -> bool:
    """A write to the request's address waits."""
    queue = address(requests[request, Asked.BANK] + Bank.WRITE_QUEUE)
    return queues.waits_in(m, queue, requests, request, 1)


@compiled
def has_room(m: Records, requests: Table, request: int) -> bool:
    """A place of its buffer is free, or a waiting write answers it."""
    write = requests[request, Asked.WRITE]
    if (
        m[Head.RESPONSES] < m[Head.RESPONSE_DEPTH]
        and m[_Own.READS + write] < m[_Own.READ_DEPTH + write]
    ):
        return True
    return _meets_write(m, requests, request)


@inlined
def enter(m: Records, requests: Table, t: int, request: int, port: int) -> None:
    """Put a request into its buffer, unless a waiting write answers it."""
    if _meets_write(m, requests, request):
        ports.respond(m, t + 1, request, port)
        return
    slot = queues.take_slot(m, requests, request, port)
    write = m[slot + Slot.WRITE]
    m[_Own.READS + write] += 1
    queue = address(m[slot + Slot.BANK] + Bank.QUEUE + state.QUEUE_COLUMNS * write)
    queues.push(m, t + 1, queue, slot, Head.ROW_AT)


@compiled
def choose_mode(m: Records, column_tick: int, row_tick: int) -> None:
    """Serve reads or writes from the buses' next choices on."""
    if m[_Own.WRITE_MODE]:
        changes = m[_Own.WRITES] < m[_Own.WRITE_BELOW] and m[_Own.READS] > 0
    else:
        changes = m[_Own.WRITES] > m[_Own.WRITE_ABOVE] or m[_Own.READS] == 0
    if changes:
        m[_Own.WRITE_MODE] ^= 1
        state.lower(m, Head.COLUMN_AT, column_tick)
        state.lower(m, Head.ROW_AT, row_tick)


@compiled
def _leave_buffer(m: Records, t: int, queue: Address, slot: Address) -> None:
    queues.take_out(m, queue, slot)
    m[_Own.READS + m[_Own.WRITE_MODE]] -= 1
    state.lower(m, Head.ACCEPT_AT, t)


@inlined
def serve(m: Records, t: int, slot: Address) -> None:
    """Give a request its column, and its answer: a write's at once."""
    queues.give_column(m, t, slot, t if m[slot + Slot.WRITE] else t + m[Head.RL] + m[Head.BL])


@compiled
def _choose_column(m: Records, t: int) -> None:
    queue = Bank.QUEUE + m[_Own.WRITE_MODE] * state.QUEUE_COLUMNS
    buffers = not m[Head.PENDING_REFRESH]
    active, best, after = state.NOBODY, state.NOBODY, state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + _OwnOfBank.ACTIVE]
        if slot >= 0:
            time = banks.column_from(m, t, bank, m[slot + Slot.WRITE])
            if time > t:
                after = min(after, time)
            elif queues.is_older(m, slot, active):
                active = slot
        slot = m[bank + queue + Queue.HIT]
        if slot >= 0 and buffers:
            time = banks.column_from(m, t, bank, m[_Own.WRITE_MODE])
            if time > t:
                after = min(after, time)
            elif queues.is_older(m, slot, best):
                best = slot
    if active < 0 and best < 0:
        m[Head.COLUMN_AT] = after
        return
    m[Head.COLUMN_AT] = t + m[Head.CCD_S]
    if active >= 0:
        bank = address(m[active + Slot.BANK])
        m[bank + _OwnOfBank.ACTIVE] = state.NOBODY
        m[Head.OWED] -= 1
        serve(m, t, active)
        if m[Head.OWED] == 0 and m[Head.PENDING_REFRESH]:
            m[Head.REFRESH_AT] = t
    else:
        bank = address(m[best + Slot.BANK])
        _leave_buffer(m, t, bank + queue, best)
        serve(m, t, best)
        choose_mode(m, t + 1, t)
    if m[bank + queue + Queue.MISS] >= 0:
        state.lower(m, Head.ROW_AT, banks.precharge_from(m, t, bank))


@compiled
def _choose_row(m: Records, t: int) -> None:
    queue = Bank.QUEUE + m[_Own.WRITE_MODE] * state.QUEUE_COLUMNS
    best, after = state.NOBODY, state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + queue + Queue.MISS]
        if slot < 0 or m[bank + _OwnOfBank.ACTIVE] >= 0:
            continue
        time = banks.row_from(m, t, bank)
        if time > t:
            after = min(after, time)
        elif queues.is_older(m, slot, best):
            best = slot
    m[Head.ROW_AT] = after
    if best < 0:
        return
    bank = address(m[best + Slot.BANK])
    if queues.give_row_command(m, t, best):
        _leave_buffer(m, t, bank + queue, best)
        m[bank + _OwnOfBank.ACTIVE] = best
        m[Head.OWED] += 1
    queues.find(m, bank + Bank.WRITE_QUEUE, bank)
    if m[bank + _OwnOfBank.ACTIVE] >= 0:
        _wake_columns(m, t, bank)


@compiled
def _wake_columns(m: Records, t: int, bank: Address) -> None:
    """A row has been opened: whom it was opened for may come, and who else hits it."""
    hits = m[bank + Bank.QUEUE + Queue.HIT] >= 0 or m[bank + Bank.WRITE_QUEUE + Queue.HIT] >= 0
    if hits:
        queues.wake_columns(m, t, bank)
    else:
        write = m[m[bank + _OwnOfBank.ACTIVE] + Slot.WRITE]
        state.lower(m, Head.COLUMN_AT, banks.column_from(m, t + 1, bank, write))


@inlined
def choose(m: Records, t: int) -> None:
    """A column, then a row command."""
    if m[Head.COLUMN_AT] <= t:
        _choose_column(m, t)
    if m[Head.ROW_AT] <= t and not m[Head.PENDING_REFRESH]:
        _choose_row(m, t)


@compiled
def refresh(m: Records, t: int) -> None:
    """The next step of a refresh; the last of the activated requests calls it."""
    if m[Head.OWED]:
        m[Head.REFRESH_AT] = state.NEVER
    else:
        queues.close_and_refresh(m, t)


@inlined
def tick(m: Records, requests: Table, t: int) -> None:
    """Commands, answers, a request."""
    clock.refresh_falls_due(m, t)
    choose(m, t)
    if m[Head.REFRESH_AT] <= t:
        refresh(m, t)
    ports.show_responses(m, requests, t)
    ports.accept(m, requests, t, has_room, enter)
    # A refresh that falls due comes before the choice.
    if not m[Head.PENDING_REFRESH] and t + 1 < m[Head.REFRESH_DUE]:
        choose_mode(m, t + 1, t + 1)
    ports.show_responses(m, requests, t)


@compiled
def advance(m: Records, requests: Table, until: int) -> None:
    """The controller's ticks."""
    clock.run(m, requests, until, tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramulator(Controller):
    """A controller as Ramulator's.

    Attributes:
        read_depth: Places for reads that wait.
        write_depth: Places for writes that wait.
        write_above: Writes above which they are served: 0.8 of 32, rounded down.
        write_below: Writes below which reads are served again: 0.2 of 32, rounded up.
    """

    read_depth: int = 32
    write_depth: int = 32
    write_above: int = 25
    write_below: int = 7
    offer_after_answer: ClassVar[int] = 0
    own: ClassVar[type[IntEnum]] = _Own
    advance: ClassVar[Advance] = staticmethod(advance)

    def places(self, banks: int) -> QueuePlaces:
        """The buffers, of which all may be for one bank, and an activated request a bank."""
        total = self.read_depth + self.write_depth + banks
        return QueuePlaces(total, max(self.read_depth, self.write_depth))
