"""Where the units of a program's tokens lie in the state of the loosely-timed engine.

Which unit an operation takes or gives depends on the program alone, not on times. So the units of a
token that is only taken and given everywhere at once are counted here. A step names the one place
that it reads or writes, and tokens that it gives together share one. A token that some operation
takes or gives at fewer tiles is a queue at every tile, which the compiled steps keep in order.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tlm.engines.lt.state import EMPTY, FROM_THE_START, Indices, TileSlot, Times
from tlm.program import Operation, Token

Place = tuple[int, int]
"""Of a token in the state: its first slot, and the depth of its queue; 0 if it is no queue."""
Places = dict[str, tuple[Place, ...]]
"""Where the units lie that an operation takes and gives, by field."""
Fault = tuple[int, Operation, int]
"""An operation's number, the operation, and what is wrong with a queue (`queue`)."""


def flat(places: Sequence[Place]) -> Indices:
    """Places one after the other, as the compiled steps read them."""
    return np.array(places, dtype=np.int64).ravel()


class TokenFaultError(Exception):
    """A unit that no operation has given, or one too many; the argument says so."""


class Units:
    """Places of all units, in slots of the state from ``first_slot`` on.

    Attributes:
        slots: Slots of the state, those of engines and ports included.
    """

    def __init__(self, tokens: Mapping[str, Token], queued: Iterable[str], first_slot: int) -> None:
        self._tokens = tokens
        self._queues: dict[str, Place] = {}
        self.slots = first_slot
        for name in sorted(set(queued) & tokens.keys()):
            self._queues[name] = (self.slots, tokens[name].depth)
            self.slots += tokens[name].depth
        counted = {name: token for name, token in tokens.items() if name not in self._queues}
        last = self.slots + sum(token.depth for token in counted.values())
        self._free = list(reversed(range(self.slots, last)))
        self.slots = last
        self._taken: list[int] = []
        self._sharers: Counter[int] = Counter()
        self._given: dict[str, deque[int]] = {name: deque() for name in counted}
        for name, token in counted.items():
            for _ in range(token.initial):
                self._add((name,), self._free.pop())

    @property
    def initial(self) -> Times:
        """Times of any tile before a program: shape (slots, 1)."""
        row = np.zeros((self.slots, 1), dtype=np.int32)
        row[[TileSlot.PORT, TileSlot.BUSY]] = FROM_THE_START
        for name, (slot, depth) in self._queues.items():
            row[slot : slot + depth] = EMPTY
            row[slot : slot + self._tokens[name].initial] = FROM_THE_START
        row[list(self._sharers)] = FROM_THE_START
        return row

    def take(self, names: tuple[str, ...]) -> tuple[Place, ...]:
        """Places from which a step takes units.

        Raises:
            TokenFaultError: if a unit has not been given anywhere.
        """
        return tuple([self._queues.get(name) or self._oldest(name) for name in names])

    def _oldest(self, name: str) -> Place:
        if not self._given[name]:
            raise TokenFaultError(taken_too_soon(name))
        place = self._given[name].popleft()
        self._sharers[place] -= 1
        if not self._sharers[place]:
            self._taken.append(place)
        return place, 0

    def give(self, names: tuple[str, ...]) -> tuple[Place, ...]:
        """Places to which a step gives units.

        Raises:
            TokenFaultError: if a token is given everywhere beyond its depth.
        """
        places = tuple([self._queues[name] for name in names if name in self._queues])
        if len(places) == len(names):
            return places
        counts = Counter(name for name in names if name not in self._queues)
        for name, count in counts.items():
            if len(self._given[name]) + count > self._tokens[name].depth:
                raise TokenFaultError(self.given_too_often(name))
        place = (self._free or self._taken).pop()
        for name, count in counts.items():
            self._add((name,) * count, place)
        return *places, (place, 0)

    def has_room(self, operation: Operation) -> bool:
        """Whether what an operation gives needs no place of what has been taken just now."""
        return len(self._free) >= bool(operation.gives) + bool(operation.arrivals)

    def settle(self) -> None:
        """End an operation: what it has taken may be given to.

        Not before, where there is another place: then its tiles may be done in any order.
        """
        self._free += self._taken
        self._taken.clear()

    def _add(self, names: tuple[str, ...], place: int) -> None:
        for name in names:
            self._given[name].append(place)
            self._sharers[place] += 1

    def fault(self, slot: int) -> str:
        """What is wrong with a queue, as the compiled steps tell it."""
        name = next(name for name, place in self._queues.items() if place[0] == abs(slot))
        return taken_too_soon(name) if slot > 0 else self.given_too_often(name)

    def given_too_often(self, name: str) -> str:
        """What is wrong with a give beyond the depth."""
        return f"gives token '{name}' beyond its depth of {self._tokens[name].depth}"


def taken_too_soon(name: str) -> str:
    """What is wrong with a take of a unit that is not there."""
    return f"takes token '{name}', which no earlier operation has given there"
