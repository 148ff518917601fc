"""Compiled core of a banked SRAM: who asks which bank, and who is served when.

Only what can do something is looked at. Requesters whose next access begins later stand in a heap;
the banks that are asked, and the requesters that ask a bank, are sets of bits. So a cycle costs
what its words cost, and cycles without a word cost nothing. Where one requester alone asks, nobody
has to take turns: all that it gets until another begins is served at once.

All is in one file because the cache of compiled code does not see a change in another.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, inlined

Int64s = NDArray[np.int64]
NEVER = 2**62
# Columns of `State.accesses`; an access is served in the cycle of its last word.
CYCLE, REQUESTER, FIRST_WORD, WORDS, NEXT, SERVED_AT, ACCESS_COLUMNS = range(7)
# Rows of `State.requesters`: the access that asks or is the next to, and the last one behind it,
# or -1; banks that it still asks; cycle from which the next access may ask. Then lists: requesters
# whose access begins in this cycle, a heap by BEGIN of those that begin later, and the accesses
# served in the last cycle.
HEAD, TAIL, BANKS_LEFT, BEGIN, BEGINNING, LATER, SERVED, REQUESTER_ROWS = range(8)
# Rows of `State.banks`: requester whose turn it is; words asked of it so far; the set of the banks
# that are asked; requesters that ask a bank, how many, and from there on their set.
TURN, WORDS_ASKED, ASKED, ASKERS, ASKER_BITS = range(5)
# Places of `State.now`: cycle to simulate next; accesses that stand in the requesters' queues, and
# that are served, so far; requesters that ask; lengths of the first two lists.
CLOCK, QUEUED, DONE, ASKING, BEGINNING_COUNT, LATER_COUNT, NOW_PLACES = range(7)
# A set has 32 bits a row, so that no sign is in the way: number n is bit n & 31 of row n >> 5. The
# number of a bit follows from the top five of the lower 32 bits of its product with a de Bruijn
# sequence.
_DE_BRUIJN = 0x077CB531
_NUMBERS = np.argsort([_DE_BRUIJN << bit >> 27 & 31 for bit in range(32)])


class State(NamedTuple):
    """All that is known of B banks and R requesters."""

    accesses: Int64s  # [n, 6]
    requesters: Int64s  # [7, R]
    banks: Int64s  # [ASKER_BITS + a row for 32 requesters, B]
    wanted: Int64s  # [R, B]: words that a requester asks of a bank
    now: Int64s  # [6]


def new_state(banks: int, requesters: int) -> State:
    """Banks of which nothing has been asked yet."""
    state = State(
        accesses=np.zeros((64, ACCESS_COLUMNS), dtype=np.int64),
        requesters=np.zeros((REQUESTER_ROWS, requesters), dtype=np.int64),
        banks=np.zeros((ASKER_BITS + ((requesters + 31) >> 5), banks), dtype=np.int64),
        wanted=np.zeros((requesters, banks), dtype=np.int64),
        now=np.zeros(NOW_PLACES, dtype=np.int64),
    )
    state.requesters[[HEAD, TAIL]] = -1
    return state


@inlined
def _lowest(bits: int) -> int:
    """The lowest bit that is set."""
    return int(_NUMBERS[((bits & -bits) * _DE_BRUIJN >> 27) & 31])


@compiled
def _put_later(s: State, requester: int) -> None:
    """Put a requester into the heap."""
    begin, place = s.requesters[BEGIN, requester], s.now[LATER_COUNT]
    s.now[LATER_COUNT] += 1
    while place > 0:
        above = (place - 1) >> 1
        if s.requesters[BEGIN, s.requesters[LATER, above]] <= begin:
            break
        s.requesters[LATER, place] = s.requesters[LATER, above]
        place = above
    s.requesters[LATER, place] = requester


@compiled
def _take_later(s: State) -> int:
    """Take the requester that begins first out of the heap."""
    first = s.requesters[LATER, 0]
    s.now[LATER_COUNT] -= 1
    count = s.now[LATER_COUNT]
    moved, place = s.requesters[LATER, count], 0
    begin = s.requesters[BEGIN, moved]
    while 2 * place + 1 < count:
        below = 2 * place + 1
        if below + 1 < count:
            other = s.requesters[BEGIN, s.requesters[LATER, below + 1]]
            below += other < s.requesters[BEGIN, s.requesters[LATER, below]]
        if begin <= s.requesters[BEGIN, s.requesters[LATER, below]]:
            break
        s.requesters[LATER, place] = s.requesters[LATER, below]
        place = below
    s.requesters[LATER, place] = moved
    return int(first)


@inlined
def _queue(s: State, count: int) -> None:
    """Append the accesses up to number ``count - 1`` to the queues of their requesters."""
    for access in range(s.now[QUEUED], count):
        requester = s.accesses[access, REQUESTER]
        s.accesses[access, NEXT] = -1
        if s.requesters[HEAD, requester] < 0:
            s.requesters[HEAD, requester] = access
            s.requesters[BEGIN, requester] = s.accesses[access, CYCLE]
            _put_later(s, requester)
        else:
            s.accesses[s.requesters[TAIL, requester], NEXT] = access
        s.requesters[TAIL, requester] = access
    s.now[QUEUED] = count


@inlined
def _ask(s: State, requester: int) -> None:
    """The access at the head of a requester's queue asks for its words."""
    access = s.requesters[HEAD, requester]
    words, banks = s.accesses[access, WORDS], s.banks.shape[1]
    bank = s.accesses[access, FIRST_WORD] % banks
    column, bit = ASKER_BITS + (requester >> 5), 1 << (requester & 31)
    each, more = (words // banks, words % banks) if words > banks else (1, 0)
    for place in range(min(words, banks)):
        count = each + (place < more)
        s.wanted[requester, bank] = count
        s.banks[WORDS_ASKED, bank] += count
        s.banks[ASKERS, bank] += 1
        s.banks[column, bank] |= bit
        s.banks[ASKED, bank >> 5] |= 1 << (bank & 31)
        bank = bank + 1 if bank + 1 < banks else 0
    s.requesters[BANKS_LEFT, requester] = min(words, banks)
    s.now[ASKING] += 1


@inlined
def _next_asker(s: State, bank: int, turn: int) -> int:
    """The first of the requesters that ask a bank, from the one on whose turn it is."""
    column = ASKER_BITS + (turn >> 5)
    bits = s.banks[column, bank] & -(1 << (turn & 31))
    while bits == 0:
        column = column + 1 if column + 1 < len(s.banks) else ASKER_BITS
        bits = s.banks[column, bank]
    return int((column - ASKER_BITS << 5) + _lowest(bits))


@inlined
def _complete(s: State, requester: int, clock: int) -> None:
    """The last word of a requester's access is served; the next may ask in the next cycle."""
    access = s.requesters[HEAD, requester]
    following = s.accesses[access, NEXT]
    s.accesses[access, SERVED_AT] = clock
    s.requesters[HEAD, requester] = following
    s.now[ASKING] -= 1
    if following < 0:
        return
    s.requesters[BEGIN, requester] = s.accesses[following, CYCLE]
    if s.accesses[following, CYCLE] <= clock + 1:
        s.requesters[BEGINNING, s.now[BEGINNING_COUNT]] = requester
        s.now[BEGINNING_COUNT] += 1
    else:
        _put_later(s, requester)


@inlined
def _serve(s: State, ports: int) -> int:
    """Every bank that is asked serves a word by each port; returns how many accesses are served."""
    banks, wanted, requesters = s.banks, s.wanted, s.requesters
    members, clock, found = requesters.shape[1], s.now[CLOCK], 0
    for row in range((banks.shape[1] + 31) >> 5):
        bits, bank = banks[ASKED, row], row << 5
        while bits:
            if bits & 1 == 0:
                skipped = _lowest(bits)
                bits >>= skipped
                bank += skipped
            asker, askers = banks[TURN, bank], banks[ASKERS, bank]
            for _ in range(ports):
                words = wanted[asker, bank]
                if words == 0:
                    asker = _next_asker(s, bank, asker)
                    words = wanted[asker, bank]
                wanted[asker, bank] = words - 1
                if words == 1:
                    askers -= 1
                    banks[ASKERS, bank] = askers
                    banks[ASKER_BITS + (asker >> 5), bank] ^= 1 << (asker & 31)
                    banks_left = requesters[BANKS_LEFT, asker] - 1
                    requesters[BANKS_LEFT, asker] = banks_left
                    if banks_left == 0:
                        requesters[SERVED, found] = requesters[HEAD, asker]
                        found += 1
                        _complete(s, asker, clock)
                asker = asker + 1 if asker + 1 < members else 0
                if askers == 0:
                    banks[ASKED, row] ^= 1 << (bank & 31)
                    break
            banks[TURN, bank] = asker
            bits >>= 1
            bank += 1
    s.now[CLOCK] = clock + 1
    return found


@inlined
def _serve_alone(s: State, ports: int, stop: int) -> int:
    """All that the only requester that asks gets before the cycle ``stop``; as `_serve`."""
    banks, wanted, clock, most, alone = s.banks, s.wanted, s.now[CLOCK], 0, -1
    members = s.requesters.shape[1]
    limit = (stop - clock) * ports if stop - clock < NEVER // ports else NEVER
    for row in range((banks.shape[1] + 31) >> 5):
        bits, bank = banks[ASKED, row], row << 5
        while bits:
            if bits & 1 == 0:
                skipped = _lowest(bits)
                bits >>= skipped
                bank += skipped
            if alone < 0:
                alone = _next_asker(s, bank, banks[TURN, bank])
            words = wanted[alone, bank]
            taken = min(words, limit)
            most = max(most, taken)
            wanted[alone, bank] = words - taken
            banks[TURN, bank] = alone + 1 if alone + 1 < members else 0
            if taken == words:
                banks[ASKERS, bank] = banks[ASKER_BITS + (alone >> 5), bank] = 0
                banks[ASKED, row] ^= 1 << (bank & 31)
                s.requesters[BANKS_LEFT, alone] -= 1
            bits >>= 1
            bank += 1
    s.now[CLOCK] = clock + (most + ports - 1) // ports
    if s.requesters[BANKS_LEFT, alone] > 0:
        return 0
    s.requesters[SERVED, 0] = s.requesters[HEAD, alone]
    _complete(s, alone, s.now[CLOCK] - 1)
    return 1


@compiled
def run(s: State, count: int, ports: int, until: int, one_event: bool) -> int:
    """Simulate up to ``until``, the end, or if so asked the first cycle that completes an access.

    Args:
        s: The banks; the cycle to simulate first is ``now[CLOCK]``.
        count: Accesses in the table; those that are new get into their requesters' queues.
        ports: Words that a bank serves in a cycle.
        until: First cycle that is not simulated.
        one_event: Whether to stop behind a cycle that completes accesses.

    Returns:
        How many the last cycle completes; their numbers are in ``requesters[SERVED]``.
    """
    _queue(s, count)
    now, requesters, found = s.now, s.requesters, 0
    while now[DONE] < count and now[CLOCK] < until and (found == 0 or not one_event):
        stop = until
        while now[LATER_COUNT] > 0:
            begin = requesters[BEGIN, requesters[LATER, 0]]
            if begin > now[CLOCK]:
                stop = min(stop, begin)
                break
            requesters[BEGINNING, now[BEGINNING_COUNT]] = _take_later(s)
            now[BEGINNING_COUNT] += 1
        for place in range(now[BEGINNING_COUNT]):
            _ask(s, requesters[BEGINNING, place])
        now[BEGINNING_COUNT] = found = 0
        if now[ASKING] == 0:
            now[CLOCK] = stop
        elif now[ASKING] == 1:
            found = _serve_alone(s, ports, stop)
        else:
            found = _serve(s, ports)
        now[DONE] += found
    return found
