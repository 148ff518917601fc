"""A tile's SRAM in banks: what several requesters cost each other.

Words are interleaved: word ``w`` (of the width of a bank) lies in bank ``w`` modulo the number of
banks. A requester has one access open at a time and asks for all its words at once. In a cycle each
of a bank's ports serves one word, a read or a write alike. If more words ask, requesters take turns
(round-robin, a bank by itself, from the one behind the last one served). A second word of the same
requester is served only after everyone else's first. The next access of a requester begins a cycle
after the last word of the one before it was served.

The tightly coupled memories of processor clusters are of this kind: A. Rahimi et al., "A fully-
synthesizable single-cycle interconnection network for Shared-L1 processor clusters", DATE 2011.
"""

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.memory.sram.service import run
from tlm.memory.sram.state import NEVER, Access, Now, Requester, SramBank, new_state
from tlm.memory.tables import Int64s, grown

_Bytes = TypeVar("_Bytes", int, Int64s)


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

    def words(self, address: _Bytes, length_bytes: _Bytes) -> tuple[_Bytes, _Bytes]:
        """The first word that an access touches, and how many; of one access or of arrays."""
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
        self._requesters = requesters
        self._state = new_state(timing.banks, requesters)
        self._count = 0

    @property
    def idle(self) -> bool:
        """Every access has been served."""
        return int(self._state.now[Now.DONE]) == self._count

    @property
    def words_served(self) -> Int64s:
        """Words that each bank has served, shape (banks,)."""
        served: Int64s = self._state.banks[SramBank.WORDS_ASKED] - self._state.wanted.sum(axis=0)
        return served

    def access(self, cycle: int, requester: int, address: int, length_bytes: int) -> int:
        """Queue an access behind the others of its requester; returns its number.

        Args:
            cycle: First cycle in which it may ask; none that has been simulated.
            requester: Who asks.
            address: First byte.
            length_bytes: Bytes, at least one.
        """
        first, words = self._timing.words(address, length_bytes)
        return self._queue(1, cycle, requester, first, words)

    def advance(self, until_cycle: int) -> list[Served]:
        """Simulate up to the first cycle in which an access's last word is served."""
        state = self._state
        found = run(state, self._count, self._timing.ports, until_cycle, True)
        table = state.accesses
        return [
            Served(
                number, int(table[number, Access.REQUESTER]), int(table[number, Access.SERVED_AT])
            )
            for number in state.requesters[Requester.SERVED, :found].tolist()
        ]

    def simulate(self, accesses: Accesses) -> Int64s:
        """Run accesses to their end; the times at which they are complete, shape (accesses,).

        Each requester's are served in the order of their numbers. A read is complete when its last
        word is there, a write in the cycle after its last word was served.

        Raises:
            InputError: for arrays of unequal shapes, or an access that cannot be.
        """
        _check(accesses, self._requesters)
        words = self._timing.words(accesses.address, accesses.length_bytes)
        first = self._queue(len(accesses.cycle), accesses.cycle, accesses.requester, *words)
        run(self._state, self._count, self._timing.ports, NEVER, False)
        served: Int64s = self._state.accesses[first : self._count, Access.SERVED_AT]
        return served + np.where(accesses.write, 1, self._timing.read_latency_cycles)

    def _queue(self, count: int, *columns: int | Int64s) -> int:
        """Queue accesses by their first columns; returns the number of the first."""
        start, stop = self._count, self._count + count
        if stop > len(self._state.accesses):
            self._state = self._state._replace(accesses=grown(self._state.accesses, stop))
        for column, values in enumerate(columns):
            self._state.accesses[start:stop, column] = values
        self._count = stop
        return start


def _check(accesses: Accesses, requesters: int) -> None:
    """Hold that there are such accesses."""
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
