"""DRAMSys' controller, after tukl-msd/DRAMSys: FrFcfs, Bankwise, Oldest, Fifo, AllBank, Simple.

- Queues: a buffer a bank. A request that fills its bank's buffer stops those behind it.
- Requesters: served in the order in which they began to offer.
- Order: a bank's oldest hit, or else its oldest request, asks for its command. A bus goes to the
  command that would end first, then to the oldest request, and stays idle if that one is not ready.
- Writes: as reads; answered at their last beat.
- Rows: stay open while anybody hits them.
- Refresh: when due it stops all, and all rows are closed at once.
- A tick: answers, a request, commands, all in no time. An answer, the request that follows it and
  that one's first command may fall in one tick. A column makes place for a request, which may have
  its row command in the same tick.
"""

from dataclasses import dataclass
from enum import IntEnum, auto
from typing import ClassVar

from tlm.compiled import address, compiled, inlined
from tlm.memory.dram import banks, clock, ports, queues, state
from tlm.memory.dram.controllers.controller import Advance, Controller, QueuePlaces
from tlm.memory.dram.state import Asked, Bank, Head, Port, Queue, Records, Slot, Table


class _Own(IntEnum):
    """The controller's columns."""

    BANK_DEPTH = state.OWN
    LAST_BANK = auto()  # of the last request taken


@compiled
def has_room(m: Records) -> bool:
    """The buffer of the last request taken has a free place."""
    return m[m[_Own.LAST_BANK] + Bank.QUEUE + Queue.COUNT] < m[_Own.BANK_DEPTH]


@inlined
def enter(m: Records, requests: Table, t: int, request: int, port: int) -> None:
    """Put a request into its bank's buffer."""
    slot = queues.take_slot(m, requests, request, port)
    bank = address(m[slot + Slot.BANK])
    m[_Own.LAST_BANK] = bank
    queues.push(m, t, bank + Bank.QUEUE, slot, Head.ROW_AT)


@compiled
def _first_offered(m: Records, requests: Table, t: int) -> int:
    """The port that holds the turn, or else that which began to offer first, or NOBODY."""
    port = ports.port_in_turn(m)
    first, first_begin = state.NOBODY, state.NEVER
    for _ in range(m[Head.PORTS], m[Head.PORTS_END], state.PORT_COLUMNS):
        request = ports.offered(m, requests, t, port)
        if request >= 0 and has_room(m):
            if m[Head.HELD] and port == m[Head.HOLDER]:
                return int(port)
            begin = max(m[port + Port.OFFER_FROM], requests[request, Asked.BEGIN_REQ])
            if begin < first_begin or (
                begin == first_begin and m[port + Port.TICKET] < m[first + Port.TICKET]
            ):
                first, first_begin = int(port), begin
        port = ports.next_port(m, port)
    return first


@compiled
def accept(m: Records, requests: Table, t: int) -> None:
    """Take one request a tick, if somebody offers one and there is room."""
    if m[Head.TAKEN] >= 0:
        m[Head.ACCEPT_AT] = t + 1
        return
    port = _first_offered(m, requests, t)
    if port >= 0:
        request = m[port + Port.NEXT]
        ports.take(m, requests, t, address(port))
        enter(m, requests, t, request, port)


@compiled
def _choose_column(m: Records, t: int) -> None:
    """The oldest ready column of the banks' oldest hits, behind an older request's row command."""
    if m[Head.COLUMN_AT] > t:
        return
    best, after = state.NOBODY, state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + Bank.QUEUE + Queue.HIT]
        if slot < 0:
            continue
        time = banks.column_from(m, t, bank, m[slot + Slot.WRITE])
        if time > t:
            after = min(after, time)
        elif queues.is_older(m, slot, best):
            best = slot
    if best < 0:
        m[Head.COLUMN_AT] = after
        return
    _choose_row(m, t, m[best + Slot.AGE])
    queues.read_or_write(m, t, best)
    state.lower(m, Head.ACCEPT_AT, t)


@compiled
def _choose_row(m: Records, t: int, before: int) -> None:
    """The command that would end first, then the oldest; nobody steps in if it is not ready.

    Only requests older than an age are served, ``before``: the others after that one's column.
    """
    if m[Head.ROW_AT] > t:
        return
    best, best_end, best_time, after = state.NOBODY, state.NEVER, state.NEVER, state.NEVER
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        slot = m[bank + Bank.QUEUE + Queue.MISS]
        if slot < 0 or m[bank + Bank.QUEUE + Queue.HIT] >= 0:
            continue
        if m[bank + Bank.OPEN_ROW] < 0:
            time = banks.activate_from(m, t, bank)
            end = time + m[Head.ACTIVATE_TICKS]
        else:
            time = banks.precharge_from(m, t, bank)
            end = time + 1
        after = min(after, time)
        if end < best_end or (end == best_end and m[slot + Slot.AGE] < m[best + Slot.AGE]):
            best, best_end, best_time = slot, end, time
    if best_time > t:
        # Who steps back now may be the first of all in the next tick.
        m[Head.ROW_AT] = max(after, t + 1)
    elif m[best + Slot.AGE] < before and queues.give_row_command(m, t, best):
        queues.wake_columns(m, t, address(m[best + Slot.BANK]))


@inlined
def choose(m: Records, requests: Table, t: int) -> None:
    """A column, a request for whom it has made place, a row command."""
    _choose_column(m, t)
    if m[Head.ACCEPT_AT] <= t:
        accept(m, requests, t)
    _choose_row(m, t, state.NEVER)


@inlined
def tick(m: Records, requests: Table, t: int) -> None:
    """Answers, a request, commands, answers."""
    ports.show_responses(m, requests, t)
    if m[Head.ACCEPT_AT] <= t:
        accept(m, requests, t)
    if clock.refresh_falls_due(m, t):
        queues.close_and_refresh(m, t)
    elif not m[Head.PENDING_REFRESH]:
        choose(m, requests, t)
    ports.show_responses(m, requests, t)


@compiled
def advance(m: Records, requests: Table, until: int) -> None:
    """The controller's ticks."""
    clock.run(m, requests, until, tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dramsys(Controller):
    """A controller as DRAMSys'; its activate takes two ticks.

    Attributes:
        bank_depth: Places of a bank's buffer.
    """

    bank_depth: int = 8
    activate_ticks: int | None = 2
    half_clocks: bool = False
    offer_after_taken: ClassVar[int] = 0
    offer_after_answer: ClassVar[int] = 0
    own: ClassVar[type[IntEnum]] = _Own
    last_bank: ClassVar[int] = state.BANKS
    advance: ClassVar[Advance] = staticmethod(advance)

    def places(self, banks: int) -> QueuePlaces:
        """Each bank's buffer."""
        return QueuePlaces(banks * self.bank_depth, self.bank_depth)
