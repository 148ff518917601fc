"""Compiled requesters of a banked SRAM: their queues, when they ask and when they are done."""

from tlm.compiled import inlined
from tlm.heap import pop, push
from tlm.memory.sram.state import NEVER, Access, Now, Requester, SramBank, SramState


@inlined
def queue(s: SramState, count: int) -> None:
    """Append the accesses up to number ``count - 1`` to the queues of their requesters."""
    for access in range(s.now[Now.QUEUED], count):
        requester = s.accesses[access, Access.REQUESTER]
        s.accesses[access, Access.NEXT] = -1
        if s.requesters[Requester.HEAD, requester] < 0:
            s.requesters[Requester.HEAD, requester] = access
            _begin_later(s, requester, s.accesses[access, Access.CYCLE])
        else:
            s.accesses[s.requesters[Requester.TAIL, requester], Access.NEXT] = access
        s.requesters[Requester.TAIL, requester] = access
    s.now[Now.QUEUED] = count


@inlined
def _begin_later(s: SramState, requester: int, cycle: int) -> None:
    s.requesters[Requester.LATER, requester] = cycle
    push(s.later, cycle)


@inlined
def begin(s: SramState) -> None:
    """All requesters ask whose accesses begin up to this cycle."""
    now, clock = s.now, s.now[Now.CLOCK]
    more = requester = 0
    while s.later[0] > 0 and s.later[1] <= clock:
        pop(s.later)
        more += 1
    while more > 0:  # in any order, as no word is served before all of them ask
        if s.requesters[Requester.LATER, requester] <= clock:
            s.requesters[Requester.LATER, requester] = NEVER
            _ask(s, requester)
            more -= 1
        requester += 1
    for place in range(now[Now.BEGINNING]):
        _ask(s, s.requesters[Requester.BEGINNING, place])
    now[Now.BEGINNING] = 0


@inlined
def _ask(s: SramState, requester: int) -> None:
    """The access at the head of a requester's queue asks for its words."""
    access = s.requesters[Requester.HEAD, requester]
    words, banks = s.accesses[access, Access.WORDS], s.banks.shape[1]
    bank = s.accesses[access, Access.FIRST_WORD] % banks
    column, bit = SramBank.ASKER_BITS + (requester >> 5), 1 << (requester & 31)
    each, more = (words // banks, words % banks) if words > banks else (1, 0)
    for place in range(min(words, banks)):
        count = each + (place < more)
        s.wanted[requester, bank] = count
        s.banks[SramBank.WORDS_ASKED, bank] += count
        s.banks[SramBank.ASKERS, bank] += 1
        s.banks[column, bank] |= bit
        s.banks[SramBank.ASKED, bank >> 5] |= 1 << (bank & 31)
        bank = bank + 1 if bank + 1 < banks else 0
    s.requesters[Requester.BANKS_LEFT, requester] = min(words, banks)
    s.now[Now.ASKING] += 1


@inlined
def complete(s: SramState, requester: int, clock: int) -> None:
    """The last word of a requester's access is served; the next may ask in the next cycle."""
    access = s.requesters[Requester.HEAD, requester]
    following = s.accesses[access, Access.NEXT]
    s.accesses[access, Access.SERVED_AT] = clock
    s.requesters[Requester.HEAD, requester] = following
    s.now[Now.ASKING] -= 1
    if following < 0:
        return
    if s.accesses[following, Access.CYCLE] <= clock + 1:
        s.requesters[Requester.BEGINNING, s.now[Now.BEGINNING]] = requester
        s.now[Now.BEGINNING] += 1
    else:
        _begin_later(s, requester, s.accesses[following, Access.CYCLE])
