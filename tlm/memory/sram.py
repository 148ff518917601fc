"""A tile's SRAM in banks: what several requesters cost each other.

Words are interleaved: word ``w`` (of the width of a bank) lies in bank ``w`` modulo the number of
banks. A requester has one access open at a time and asks for all its words at once. In a cycle each
of a bank's ports serves one word, a read or a write alike; if more words ask, requesters take turns
(round-robin, a bank by itself, from the one behind the last one served; a second word of the same
requester only after everyone else's first). The next access of a requester begins a cycle after the
last word of the one before it was served.

The tightly coupled memories of processor clusters are of this kind: A. Rahimi et al., "A fully-
synthesizable single-cycle interconnection network for Shared-L1 processor clusters", DATE 2011.
"""

from dataclasses import dataclass, fields

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tlm.errors import InputError

Int64s = NDArray[np.int64]
_NEVER = np.int64(2**62)

# Columns of the tables below: of accesses, requesters and banks, and places of `now`.
_CYCLE, _REQUESTER, _FIRST_WORD, _WORDS, _NEXT, _SERVED_AT = range(6)
_HEAD, _TAIL, _WORDS_LEFT = range(3)
_TURN, _ASKING, _SERVED = range(3)
_CLOCK, _OPEN = range(2)


@dataclass(frozen=True, slots=True)
class SramTiming:
    """Figures of the memory.

    Attributes:
        banks: Banks, over which words are interleaved.
        bank_width_bytes: A bank's word.
        ports: Words that a bank serves in a cycle.
        read_latency_cycles: From the cycle in which a word is served until it is there.

    Raises:
        InputError: if one of them is less than 1.
    """

    banks: int
    bank_width_bytes: int
    ports: int = 1
    read_latency_cycles: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InputError(f"SRAM: {field.name} is {value}; it must be 1 or more")

    def words(self, address: int, length_bytes: int) -> tuple[int, int]:
        """The first word that an access touches, and how many."""
        first = address // self.bank_width_bytes
        return first, (address + length_bytes - 1) // self.bank_width_bytes - first + 1

    def latency_cycles(self, write: bool) -> int:
        """From the cycle of an access's last word to its end; a write is done a cycle later."""
        return 1 if write else self.read_latency_cycles


@dataclass(frozen=True, slots=True)
class Served:
    """The last word of an access was served."""

    access: int
    requester: int
    cycle: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses in the order of their numbers; each field is an array of shape (accesses,).

    ``cycle`` is the first in which the access may ask, ``requester`` who asks, ``address`` its
    first byte, ``length_bytes`` at least one; ``write`` is true of a write.
    """

    cycle: Int64s
    requester: Int64s
    address: Int64s
    length_bytes: Int64s
    write: NDArray[np.bool_]


class SramBanks:
    """The banks and their arbiters.

    Fed access by access and advanced in time they serve a co-simulation (`tlm.lockstep.Stepped`);
    `simulate` runs a whole list of accesses at once.

    Args:
        timing: Figures of the memory.
        requesters: How many share it; they are numbered from 0.

    Raises:
        InputError: if there is no requester.
    """

    def __init__(self, timing: SramTiming, requesters: int) -> None:
        if requesters < 1:
            raise InputError(f"SRAM: {requesters} requesters; it must be 1 or more")
        self._timing = timing
        self._accesses = np.zeros((64, 6), dtype=np.int64)
        self._count = 0
        self._requesters = np.full((requesters, 3), -1, dtype=np.int64)
        self._requesters[:, _WORDS_LEFT] = 0
        self._wanted = np.zeros((requesters, timing.banks), dtype=np.int64)
        self._banks = np.zeros((timing.banks, 3), dtype=np.int64)
        self._now = np.zeros(2, dtype=np.int64)
        self._served = np.zeros(requesters, dtype=np.int64)

    @property
    def idle(self) -> bool:
        """Every access has been served."""
        return int(self._now[_OPEN]) == 0

    @property
    def words_served(self) -> Int64s:
        """Words that each bank has served, shape (banks,)."""
        return self._banks[:, _SERVED].copy()

    def access(self, cycle: int, requester: int, address: int, length_bytes: int) -> int:
        """Queue an access behind the others of its requester; returns its number.

        Args:
            cycle: First cycle in which it may ask; none that has been simulated.
            requester: Who asks.
            address: First byte.
            length_bytes: Bytes, at least one.
        """
        first, words = self._timing.words(address, length_bytes)
        row = np.array([[cycle, requester, first, words, -1, -1]], dtype=np.int64)
        self._queue(row)
        return self._count - 1

    def advance(self, until_cycle: int) -> list[Served]:
        """Simulate up to the first cycle in which an access's last word is served."""
        found = self._run(until_cycle, True)
        return [
            Served(int(number), *self._accesses[number, [_REQUESTER, _SERVED_AT]].tolist())
            for number in self._served[:found]
        ]

    def simulate(self, accesses: Accesses) -> Int64s:
        """Run accesses to their end; the times at which they are complete, shape (accesses,).

        Each requester's are served in the order of their numbers. A read is complete when its last
        word is there, a write in the cycle after its last word was served.

        Raises:
            InputError: for arrays of unequal shapes, or an access that cannot be.
        """
        first = self._count
        self._queue(_table(self._timing, len(self._requesters), accesses))
        self._run(int(_NEVER), False)
        served = self._accesses[first : self._count, _SERVED_AT]
        return served + np.where(accesses.write, 1, self._timing.read_latency_cycles)

    def _queue(self, rows: Int64s) -> None:
        start, stop = self._count, self._count + len(rows)
        if stop > len(self._accesses):
            grown = np.zeros((max(stop, 2 * len(self._accesses)), 6), dtype=np.int64)
            grown[:start] = self._accesses[:start]
            self._accesses = grown
        self._accesses[start:stop] = rows
        _enqueue(self._accesses, self._requesters, self._now, start, stop)
        self._count = stop

    def _run(self, until: int, one_event: bool) -> int:
        found = _run(
            self._accesses,
            self._requesters,
            self._wanted,
            self._banks,
            self._now,
            self._served,
            self._timing.ports,
            until,
            one_event,
        )
        return int(found)


def _table(timing: SramTiming, requesters: int, accesses: Accesses) -> Int64s:
    columns = [getattr(accesses, field.name) for field in fields(accesses)]
    shapes = [np.shape(column) for column in columns]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1:
        raise InputError(f"SRAM accesses: shapes {shapes}; they must be (accesses,), all alike")
    for field, lowest, below in (
        ("cycle", 0, 2**62),
        ("requester", 0, requesters),
        ("address", 0, 2**62),
        ("length_bytes", 1, 2**62),
    ):
        values = getattr(accesses, field)
        wrong = np.flatnonzero((values < lowest) | (values >= below))
        if len(wrong):
            raise InputError(
                f"SRAM access {wrong[0]}: {field} is {values[wrong[0]]}; "
                f"allowed are {lowest} to {below - 1}"
            )
    width = timing.bank_width_bytes
    first = accesses.address // width
    last = (accesses.address + accesses.length_bytes - 1) // width
    none = np.full(len(first), -1, dtype=np.int64)
    table = (accesses.cycle, accesses.requester, first, last - first + 1, none, none)
    return np.stack(table, axis=1).astype(np.int64)


@njit(cache=True)
def _enqueue(accesses: Int64s, requesters: Int64s, now: Int64s, start: int, stop: int) -> None:
    """Append the accesses ``start`` to ``stop - 1`` to the queues of their requesters."""
    for access in range(start, stop):
        requester = accesses[access, _REQUESTER]
        if requesters[requester, _HEAD] < 0:
            requesters[requester, _HEAD] = access
        else:
            accesses[requesters[requester, _TAIL], _NEXT] = access
        requesters[requester, _TAIL] = access
    now[_OPEN] += stop - start


@njit(cache=True)
def _ask(
    accesses: Int64s, requesters: Int64s, wanted: Int64s, banks: Int64s, requester: int
) -> None:
    """The access at the head of a requester's queue asks for its words."""
    access = requesters[requester, _HEAD]
    words, count = accesses[access, _WORDS], len(banks)
    each, rest = words // count, words % count
    bank = accesses[access, _FIRST_WORD] % count
    for place in range(count):
        asked = each + (place < rest)
        wanted[requester, bank] = asked
        banks[bank, _ASKING] += asked
        bank = bank + 1 if bank + 1 < count else 0
    requesters[requester, _WORDS_LEFT] = words


@njit(cache=True)
def _run(
    accesses: Int64s,
    requesters: Int64s,
    wanted: Int64s,
    banks: Int64s,
    now: Int64s,
    served: Int64s,
    ports: int,
    until: int,
    one_event: bool,
) -> int:
    """Simulate up to ``until``, the end, or if so asked the first cycle that completes an access.

    Returns how many it completes; their numbers are in ``served``.
    """
    members = len(requesters)
    found = 0
    while now[_OPEN] > 0 and now[_CLOCK] < until and (found == 0 or not one_event):
        clock = now[_CLOCK]
        found, busy, next_start = 0, False, _NEVER
        for requester in range(members):
            head = requesters[requester, _HEAD]
            if requesters[requester, _WORDS_LEFT] == 0 and head >= 0:
                if accesses[head, _CYCLE] > clock:
                    next_start = min(next_start, accesses[head, _CYCLE])
                    continue
                _ask(accesses, requesters, wanted, banks, requester)
            busy |= requesters[requester, _WORDS_LEFT] > 0
        if not busy:
            now[_CLOCK] = min(int(next_start), until)
            continue
        for bank in range(len(banks)):
            grants = min(ports, banks[bank, _ASKING])
            banks[bank, _ASKING] -= grants
            banks[bank, _SERVED] += grants
            turn = banks[bank, _TURN]
            while grants > 0:
                if wanted[turn, bank] > 0:
                    wanted[turn, bank] -= 1
                    requesters[turn, _WORDS_LEFT] -= 1
                    grants -= 1
                    if requesters[turn, _WORDS_LEFT] == 0:
                        served[found] = requesters[turn, _HEAD]
                        found += 1
                turn = turn + 1 if turn + 1 < members else 0
            banks[bank, _TURN] = turn
        for place in range(found):
            access = served[place]
            accesses[access, _SERVED_AT] = clock
            requesters[accesses[access, _REQUESTER], _HEAD] = accesses[access, _NEXT]
        now[_OPEN] -= found
        now[_CLOCK] = clock + 1
    return found
