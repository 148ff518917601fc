"""Our own channel in Verilog, after rtl/memory/README.md.

- Queue: one, of reads and writes. A request is looked at in the tick after it is taken.
- Order: FR-FCFS. A column goes to the oldest ready request to an open row, but to none while an
  older one to its address waits; an activate or precharge to the oldest that may have it. The two
  are chosen at once, on the state before either.
- Rows: stay open while any request waits for them.
- Starvation: when the oldest has been passed ``pass_limit`` times it is urgent. Its bank serves no
  row but its own, which is opened in spite of hits. Then nobody goes in the other direction.
- Writes: as reads; answered at their last beat.
- Refresh: when due all stops; all rows are closed at once as soon as all may be.
- A tick: commands, then a request is taken, then answers, one a tick; who is answered offers in the
  next.
"""

from dataclasses import dataclass
from enum import IntEnum, auto
from typing import ClassVar

from tlm.compiled import Address, address, compiled, inlined
from tlm.memory.dram import banks, clock, ports, queues, state
from tlm.memory.dram.controllers.controller import Advance, Controller, QueuePlaces
from tlm.memory.dram.state import Bank, Head, Queue, Records, Slot, Table


class _Own(IntEnum):
    """The controller's columns."""

    QUEUE_DEPTH = state.OWN
    PASS_LIMIT = auto()
    WAITING = auto()  # requests in the queue
    WAITING_BEFORE = auto()  # the same when the tick began
    OLDEST = auto()  # slot of the oldest, or NOBODY
    PASSES = auto()  # requests served before it


@compiled
def has_room(m: Records, _requests: Table, _request: int) -> bool:
    """A place is free; one that is left in this tick is free in the next."""
    if m[_Own.WAITING_BEFORE] < m[_Own.QUEUE_DEPTH]:
        return True
    if m[_Own.WAITING] < m[_Own.WAITING_BEFORE]:
        m[Head.ACCEPT_AT] = m[Head.CLOCK] + 1
    return False


@inlined
def enter(m: Records, requests: Table, t: int, request: int, port: int) -> None:
    """Put a request into the queue."""
    slot = queues.take_slot(m, requests, request, port)
    m[_Own.WAITING] += 1
    if m[_Own.OLDEST] < 0:
        m[_Own.OLDEST] = slot
    bank = address(m[slot + Slot.BANK])
    queues.push(m, t + 1, bank + Bank.QUEUE, slot, Head.ROW_AT)


@compiled
def _choose_column(m: Records, t: int, urgent: bool, oldest: int) -> int:
    """Slot of the oldest request whose column may come now, or NOBODY; sets COLUMN_AT."""
    best, after = state.NOBODY, state.NEVER
    held_bank, one_way = state.NOBODY, False
    if urgent:
        held_bank = address(m[oldest + Slot.BANK])
        one_way = m[held_bank + Bank.OPEN_ROW] == m[oldest + Slot.ROW]
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        if m[bank + Bank.QUEUE + Queue.HIT] < 0:
            continue
        row = m[bank + Bank.OPEN_ROW]
        if bank == held_bank and row != m[oldest + Slot.ROW]:
            continue
        first = m[bank + Bank.QUEUE + Queue.PLACES]
        for place in range(first, first + m[bank + Bank.QUEUE + Queue.COUNT]):
            slot = m[place]
            if m[slot + Slot.ROW] != row:
                continue
            if one_way and m[slot + Slot.WRITE] != m[oldest + Slot.WRITE]:
                continue
            time = banks.column_from(m, t, bank, m[slot + Slot.WRITE])
            if time > t:
                after = min(after, time)
            elif queues.is_first(m, place, first):
                if queues.is_older(m, slot, best):
                    best = slot
                break
    m[Head.COLUMN_AT] = after
    return best


@inlined
def serve(m: Records, t: int, slot: Address, urgent: bool, oldest: int) -> None:
    """Give a request its column, and its answer when that is done."""
    queues.read_or_write(m, t, slot)
    m[_Own.WAITING] -= 1
    if slot == oldest:
        m[_Own.PASSES] = 0
        m[_Own.OLDEST] = queues.oldest_of_banks(m)
    elif not urgent:
        m[_Own.PASSES] += 1
    state.lower(m, Head.ACCEPT_AT, t + 1)


@compiled
def _choose_row(m: Records, t: int, urgent: bool, oldest: int) -> int:
    """Slot of the oldest request whose row command may come now, or NOBODY; sets ROW_AT."""
    best, after = state.NOBODY, state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + Bank.QUEUE + Queue.MISS]
        if slot < 0:
            continue
        if m[bank + Bank.QUEUE + Queue.HIT] >= 0 and not (urgent and slot == oldest):
            continue
        time = banks.row_from(m, t, bank)
        if time > t:
            after = min(after, time)
        elif queues.is_older(m, slot, best):
            best = slot
    m[Head.ROW_AT] = after
    return best


@inlined
def choose(m: Records, t: int) -> None:
    """A column and a row command."""
    urgent, oldest = m[_Own.PASSES] >= m[_Own.PASS_LIMIT], m[_Own.OLDEST]
    if m[Head.COLUMN_AT] <= t:
        m[Head.COLUMN_AT] = state.NEVER
        if m[Head.RESPONSES] < m[Head.RESPONSE_DEPTH]:
            slot = _choose_column(m, t, urgent, oldest)
            if slot >= 0:
                serve(m, t, slot, urgent, oldest)
    if m[Head.ROW_AT] <= t:
        slot = _choose_row(m, t, urgent, oldest)
        if slot >= 0 and queues.give_row_command(m, t, slot):
            queues.wake_columns(m, t, address(m[slot + Slot.BANK]))
    if not urgent and m[_Own.PASSES] >= m[_Own.PASS_LIMIT]:
        state.lower(m, Head.ROW_AT, t + 1)


@inlined
def tick(m: Records, requests: Table, t: int) -> None:
    """Commands, a request, answers."""
    m[_Own.WAITING_BEFORE] = m[_Own.WAITING]
    if clock.refresh_falls_due(m, t):
        queues.close_and_refresh(m, t)
    elif not m[Head.PENDING_REFRESH]:
        choose(m, t)
    ports.accept(m, requests, t, has_room, enter)
    ports.show_responses(m, requests, t)


@compiled
def advance(m: Records, requests: Table, until: int) -> None:
    """The controller's ticks."""
    clock.run(m, requests, until, tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rtl(Controller):
    """The channel of rtl/memory.

    Attributes:
        queue_depth: Places for requests that wait.
        pass_limit: Requests served before the oldest after which it is urgent.
    """

    queue_depth: int = 32
    response_depth: int = 16
    pass_limit: int = 32
    show_after: ClassVar[int] = 1
    own: ClassVar[type[IntEnum]] = _Own
    oldest: ClassVar[int] = state.NOBODY
    advance: ClassVar[Advance] = staticmethod(advance)

    def places(self, banks: int) -> QueuePlaces:
        """All may be for one bank."""
        return QueuePlaces(self.queue_depth, self.queue_depth)
