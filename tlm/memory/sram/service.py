"""Compiled service of a banked SRAM: whose word each bank serves in a cycle.

Only what can do something is looked at. Cycles in which requesters begin stand in a heap; the banks
that are asked, and the requesters that ask a bank, are sets of bits. So a cycle costs what its
words cost, and cycles without a word cost nothing. Where one requester alone asks, nobody has to
take turns: all that it gets until another begins is served at once.
"""

import numpy as np

from tlm.compiled import compiled, forget_stale, inlined
from tlm.memory.sram.requesters import begin, complete, queue
from tlm.memory.sram.state import NEVER, Now, Requester, SramBank, SramState

# The number of a bit follows from the top five of the lower 32 bits of its product with a de Bruijn
# sequence.
_DE_BRUIJN = 0x077CB531
_NUMBERS = np.argsort([_DE_BRUIJN << bit >> 27 & 31 for bit in range(32)])


@inlined
def _lowest(bits: int) -> int:
    """The lowest bit that is set."""
    return int(_NUMBERS[((bits & -bits) * _DE_BRUIJN >> 27) & 31])


@inlined
def _next_asker(s: SramState, bank: int, turn: int) -> int:
    """The first of the requesters that ask a bank, from the one on whose turn it is."""
    column = SramBank.ASKER_BITS + (turn >> 5)
    bits = s.banks[column, bank] & -(1 << (turn & 31))
    while bits == 0:
        column = column + 1 if column + 1 < len(s.banks) else SramBank.ASKER_BITS
        bits = s.banks[column, bank]
    return int((column - SramBank.ASKER_BITS << 5) + _lowest(bits))


@inlined
def _serve(s: SramState, ports: int) -> int:
    """Every bank that is asked serves a word by each port; returns how many accesses are served."""
    banks, wanted, requesters = s.banks, s.wanted, s.requesters
    members, clock, found = requesters.shape[1], s.now[Now.CLOCK], 0
    for row in range((banks.shape[1] + 31) >> 5):
        bits, bank = banks[SramBank.ASKED, row], row << 5
        while bits:
            if bits & 1 == 0:
                skipped = _lowest(bits)
                bits >>= skipped
                bank += skipped
            asker, askers = banks[SramBank.TURN, bank], banks[SramBank.ASKERS, bank]
            for _ in range(ports):
                words = wanted[asker, bank]
                if words == 0:
                    asker = _next_asker(s, bank, asker)
                    words = wanted[asker, bank]
                wanted[asker, bank] = words - 1
                if words == 1:
                    askers -= 1
                    banks[SramBank.ASKERS, bank] = askers
                    banks[SramBank.ASKER_BITS + (asker >> 5), bank] ^= 1 << (asker & 31)
                    banks_left = requesters[Requester.BANKS_LEFT, asker] - 1
                    requesters[Requester.BANKS_LEFT, asker] = banks_left
                    if banks_left == 0:
                        requesters[Requester.SERVED, found] = requesters[Requester.HEAD, asker]
                        found += 1
                        complete(s, asker, clock)
                asker = asker + 1 if asker + 1 < members else 0
                if askers == 0:
                    banks[SramBank.ASKED, row] ^= 1 << (bank & 31)
                    break
            banks[SramBank.TURN, bank] = asker
            bits >>= 1
            bank += 1
    s.now[Now.CLOCK] = clock + 1
    return found


@inlined
def _serve_alone(s: SramState, ports: int, stop: int) -> int:
    """All that the only requester that asks gets before the cycle ``stop``; as `_serve`."""
    banks, wanted, clock, most, alone = s.banks, s.wanted, s.now[Now.CLOCK], 0, -1
    members = s.requesters.shape[1]
    limit = (stop - clock) * ports if stop - clock < NEVER // ports else NEVER
    for row in range((banks.shape[1] + 31) >> 5):
        bits, bank = banks[SramBank.ASKED, row], row << 5
        while bits:
            if bits & 1 == 0:
                skipped = _lowest(bits)
                bits >>= skipped
                bank += skipped
            if alone < 0:
                alone = _next_asker(s, bank, banks[SramBank.TURN, bank])
            words = wanted[alone, bank]
            taken = min(words, limit)
            most = max(most, taken)
            wanted[alone, bank] = words - taken
            banks[SramBank.TURN, bank] = alone + 1 if alone + 1 < members else 0
            if taken == words:
                banks[SramBank.ASKERS, bank] = banks[SramBank.ASKER_BITS + (alone >> 5), bank] = 0
                banks[SramBank.ASKED, row] ^= 1 << (bank & 31)
                s.requesters[Requester.BANKS_LEFT, alone] -= 1
            bits >>= 1
            bank += 1
    s.now[Now.CLOCK] = clock + (most + ports - 1) // ports
    if s.requesters[Requester.BANKS_LEFT, alone] > 0:
        return 0
    s.requesters[Requester.SERVED, 0] = s.requesters[Requester.HEAD, alone]
    complete(s, alone, s.now[Now.CLOCK] - 1)
    return 1


@compiled
def run(s: SramState, count: int, ports: int, until: int, one_event: bool) -> int:
    """Simulate up to ``until``, the end, or if so asked the first cycle that completes an access.

    Args:
        s: The banks; the cycle to simulate first is ``now[Now.CLOCK]``.
        count: Accesses in the table; those that are new get into their requesters' queues.
        ports: Words that a bank serves in a cycle.
        until: First cycle that is not simulated.
        one_event: Whether to stop behind a cycle that completes accesses.

    Returns:
        How many the last cycle completes; their numbers are in the requesters' row SERVED.
    """
    queue(s, count)
    now, found = s.now, 0
    while now[Now.DONE] < count and now[Now.CLOCK] < until and (found == 0 or not one_event):
        begin(s)
        stop, found = until, 0
        if s.later[0] > 0:
            stop = min(stop, s.later[1])
        if now[Now.ASKING] == 0:
            now[Now.CLOCK] = stop
        elif now[Now.ASKING] == 1:
            found = _serve_alone(s, ports, stop)
        else:
            found = _serve(s, ports)
        now[Now.DONE] += found
    return found


forget_stale(run)
