"""DRAMsim3's controller, after umd-memsys/DRAMsim3.

- Queues: a read queue and a write buffer in front. From these one request a tick moves on into its
  bank's queue, in order but for those whose bank queue is full. A request moves in the tick in
  which it is taken, and its first command comes in the next. A request to the address of a waiting
  write is answered by that write; reads of one address are not merged here.
- Writes: answered when taken; moved when the buffer is full, or above 8 with all bank queues empty,
  until those there at that time are gone. A write that waits for a read in front of the queues ends
  the drain, and a read moves next, where the simulator would begin the same drain for ever.
- Order: round robin over banks. The first command ready goes, be it row or column. In the same tick
  goes one more if the next bank in turn with a ready one has it for the other bus. In a bank queue
  the first ready in order.
- Rows: the oldest of a bank queue closes the row if nobody waits for it or after 4 columns.
- Refresh: when due it stops all, and rows are closed one by one.
- A tick: a request is taken, commands, it moves on, answers; the next is offered a tick later.
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
    BANK_DEPTH = auto()
    ROW_HIT_CAP = auto()
    DRAIN_LEVEL = auto()
    ROBIN = auto()  # the bank that had the last command
    DRAINING = auto()  # writes still to be moved in this drain
    READ_FIRST = auto()  # no drain begins, as a write waits for a read that must move first


class _OwnOfBank(IntEnum):
    """The controller's columns of a bank."""

    LOOK_FROM = Bank.OWN  # no command of its queue is ready before this tick


@inlined
def _front(write: int) -> Address:
    """The queue in front for reads or writes."""
    return address(state.FRONT_READS + write * state.QUEUE_COLUMNS)


@compiled
def has_room(m: Records, requests: Table, request: int) -> bool:
    """A place in front is free; that is asked before a waiting write is looked for."""
    write = requests[request, Asked.WRITE]
    waiting = m[_front(write) + Queue.COUNT]
    return m[Head.RESPONSES] < m[Head.RESPONSE_DEPTH] and waiting < m[_Own.READ_DEPTH + write]


@inlined
def enter(m: Records, requests: Table, t: int, request: int, port: int) -> None:
    """Put a request into a queue in front, unless a waiting write answers it."""
    writes, queue = _front(1), address(requests[request, Asked.BANK] + Bank.QUEUE)
    if queues.waits_in(m, writes, requests, request, 1) or queues.waits_in(
        m, queue, requests, request, 1
    ):
        ports.respond(m, t + 1, request, port)
        return
    slot = queues.take_slot(m, requests, request, port)
    write = m[slot + Slot.WRITE]
    queues.append(m, _front(write), slot)
    state.lower(m, Head.MOVE_AT, t)
    if write:
        ports.respond(m, t + 1, request, port)


@compiled
def _begin_drain(m: Records) -> None:
    """Move the writes that are there, if there are enough."""
    writes = m[_front(1) + Queue.COUNT]
    if m[_Own.DRAINING] == 0 and not m[_Own.READ_FIRST]:
        many = writes > m[_Own.DRAIN_LEVEL] and queues.oldest_of_banks(m) < 0
        if writes >= m[_Own.WRITE_DEPTH] or many:
            m[_Own.DRAINING] = writes
    m[_Own.READ_FIRST] = 0


@compiled
def move(m: Records, requests: Table, t: int) -> None:
    """Move one request on into its bank's queue."""
    m[Head.MOVE_AT] = state.NEVER
    _begin_drain(m)
    write = m[_Own.DRAINING] > 0
    front = _front(write)
    first = m[front + Queue.PLACES]
    for place in range(first, first + m[front + Queue.COUNT]):
        slot = address(m[place])
        bank = address(m[slot + Slot.BANK])
        queue = address(bank + Bank.QUEUE)
        if m[queue + Queue.COUNT] >= m[_Own.BANK_DEPTH]:
            continue
        m[Head.MOVE_AT] = t + 1
        if write:
            request = m[slot + Slot.REQUEST]
            m[_Own.READ_FIRST] = queues.waits_in(m, _front(0), requests, request, 0)
            if m[_Own.READ_FIRST] or queues.waits_in(m, queue, requests, request, 0):
                m[_Own.DRAINING] = 0
                return
            m[_Own.DRAINING] -= 1
        queues.remove(m, front, slot)
        state.lower(m, Head.ACCEPT_AT, t)
        m[bank + _OwnOfBank.LOOK_FROM] = 0
        queues.push(m, t + 1, queue, slot, Head.COLUMN_AT)
        return


@compiled
def _ready_in(m: Records, t: int, bank: Address) -> tuple[int, int]:
    """Slot of the first request of a bank queue whose next command is ready, or NOBODY and when."""
    if not m[bank + Bank.QUEUE + Queue.COUNT]:
        return state.NOBODY, state.NEVER
    first = m[bank + Bank.QUEUE + Queue.PLACES]
    head = m[first]
    row = m[bank + Bank.OPEN_ROW]
    if row < 0:
        time = banks.activate_from(m, t, bank)
        return (head, t) if time <= t else (state.NOBODY, time)
    after = state.NEVER
    hit = m[bank + Bank.QUEUE + Queue.HIT]
    if m[head + Slot.ROW] != row and (hit < 0 or m[bank + Bank.SERVED] >= m[_Own.ROW_HIT_CAP]):
        after = banks.precharge_from(m, t, bank)
        if after <= t:
            return head, t
    if hit < 0:
        return state.NOBODY, after
    read_at, write_at = banks.column_from(m, t, bank, 0), banks.column_from(m, t, bank, 1)
    if read_at > t and write_at > t:
        return state.NOBODY, min(after, read_at, write_at)
    for place in range(first, first + m[bank + Bank.QUEUE + Queue.COUNT]):
        slot = m[place]
        if m[slot + Slot.ROW] != row:
            continue
        time = write_at if m[slot + Slot.WRITE] else read_at
        if time > t:
            after = min(after, time)
        elif not m[slot + Slot.WRITE] or queues.is_first(m, place, first):
            return slot, t
    return state.NOBODY, after


@compiled
def _next_in_turn(m: Records, t: int) -> int:
    """Slot of the next bank's request with a ready command, or NOBODY; sets COLUMN_AT."""
    after = state.NEVER
    record = m[_Own.ROBIN]
    for _ in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        record += state.BANK_COLUMNS
        if record == m[Head.BANKS_END]:
            record = state.BANKS
        bank = address(record)
        time = m[bank + _OwnOfBank.LOOK_FROM]
        if time <= t:
            slot, time = _ready_in(m, t, bank)
            if slot >= 0:
                m[_Own.ROBIN] = record
                m[Head.COLUMN_AT] = t + 1
                return slot
            # Commands to others make it no earlier.
            m[bank + _OwnOfBank.LOOK_FROM] = time
        after = min(after, time)
    m[Head.COLUMN_AT] = after
    return state.NOBODY


@inlined
def serve(m: Records, t: int, slot: Address) -> None:
    """Give a request its column; a read is answered when that is done, a write was long ago."""
    bank = address(m[slot + Slot.BANK])
    queues.take_out(m, bank + Bank.QUEUE, slot)
    banks.column(m, t, slot)
    if not m[slot + Slot.WRITE]:
        done = t + m[Head.RL] + m[Head.BL]
        ports.respond(m, done, m[slot + Slot.REQUEST], m[slot + Slot.PORT])
    queues.release(m, slot)
    state.lower(m, Head.MOVE_AT, t)


@inlined
def choose(m: Records, t: int) -> None:
    """A command of the next bank in turn, and one more for the other bus."""
    first_is_column = False
    for turn in range(2):
        slot = _next_in_turn(m, t)
        if slot < 0:
            return
        is_column = m[address(m[slot + Slot.BANK]) + Bank.OPEN_ROW] == m[slot + Slot.ROW]
        if turn and is_column == first_is_column:
            return
        first_is_column = is_column
        if is_column:
            serve(m, t, slot)
        else:
            queues.give_row_command(m, t, slot)
            m[Head.ROW_AT] = state.NEVER


@compiled
def refresh(m: Records, t: int) -> None:
    """Close the next row that may be, or refresh when none is open."""
    m[Head.REFRESH_AT] = state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        if m[bank + Bank.OPEN_ROW] >= 0:
            time = banks.precharge_from(m, t, bank)
            if time <= t:
                banks.precharge(m, t, bank)
                m[Head.REFRESH_AT] = t + 1
                return
            state.lower(m, Head.REFRESH_AT, time)
    if not m[Head.OPEN_BANKS] and queues.refresh_closed(m, t):
        m[Head.ROW_AT] = state.NEVER
        for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
            m[address(record) + _OwnOfBank.LOOK_FROM] = 0


@inlined
def tick(m: Records, requests: Table, t: int) -> None:
    """A request, commands, a request moves on, answers."""
    ports.accept(m, requests, t, has_room, enter)
    if clock.refresh_falls_due(m, t):
        refresh(m, t)
    elif not m[Head.PENDING_REFRESH] and m[Head.COLUMN_AT] <= t:
        choose(m, t)
    if m[Head.MOVE_AT] <= t:
        move(m, requests, t)
    ports.show_responses(m, requests, t)


@compiled
def advance(m: Records, requests: Table, until: int) -> None:
    """The controller's ticks."""
    clock.run(m, requests, until, tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dramsim3(Controller):
    """A controller as DRAMsim3's.

    Attributes:
        read_depth: Places for reads in front of the banks' queues.
        write_depth: Places for writes there.
        bank_depth: Places of a bank's queue.
        row_hit_cap: Columns after which a row may be closed in spite of hits.
        drain_level: Writes above which they are moved if the bank queues are empty.
    """

    read_depth: int = 32
    write_depth: int = 32
    bank_depth: int = 8
    row_hit_cap: int = 4
    drain_level: int = 8
    activate_ticks: int | None = 1
    half_clocks: bool = False
    own: ClassVar[type[IntEnum]] = _Own
    robin: ClassVar[int] = state.BANKS
    advance: ClassVar[Advance] = staticmethod(advance)

    def places(self, banks: int) -> QueuePlaces:
        """The queues in front, and each bank's."""
        total = self.read_depth + self.write_depth + banks * self.bank_depth
        return QueuePlaces(total, self.bank_depth, max(self.read_depth, self.write_depth))
