"""Where the units of a program's tokens lie in the state of the loosely-timed engine.

Which unit an operation takes or gives depends on the program alone, not on times. So while all
operations on a token are on all tiles, its units are counted here, and a step names the one place
that it reads or writes. A token that some operation takes or gives at fewer tiles becomes a queue
at every tile, which the compiled steps keep in order.
"""

from collections.abc import Iterable


from tlm.engines.lt_queues import EMPTY, FIRST_TOKEN, FROM_THE_START, Times
from tlm.program import Token


class TokenFaultError(Exception):
    """A unit that no operation has given, or one too many; the argument says so."""


class Units:
    """Units of one token.

    Attributes:
        name: Of the token.
        slot: Its first place in the state.
        depth: Its places.
        queued: Whether it is a queue at every tile.
    """

    def __init__(self, name: str, slot: int, token: Token) -> None:
        self.name, self.slot, self.depth = name, slot, token.depth
        self.queued = False
        self._head, self._count = 0, token.initial

    def take(self) -> int:
        """Place of the oldest unit, which is taken everywhere.

        Raises:
            TokenFaultError: if there is none.
        """
        if not self._count:
            raise TokenFaultError(self.taken_too_soon)
        place = self.slot + self._head
        self._head = (self._head + 1) % self.depth
        self._count -= 1
        return place

    def give(self) -> int:
        """Place of the next unit, which is given everywhere.

        Raises:
            TokenFaultError: if the token holds no more.
        """
        if self._count == self.depth:
            raise TokenFaultError(self.given_too_often)
        self._count += 1
        return self.slot + (self._head + self._count - 1) % self.depth

    def to_queue(self, state: Times) -> None:
        """Put the units in order, the oldest first, and mark the free places."""
        self.queued = True
        places = [(self._head + i) % self.depth for i in range(self.depth)]
        mine = state[:, self.slot : self.slot + self.depth]
        if places[: self._count] != list(range(self._count)):
            mine[:, : self._count] = mine[:, places[: self._count]]
        mine[:, self._count :] = EMPTY

    @property
    def taken_too_soon(self) -> str:
        """What is wrong with a take of a unit that is not there."""
        return f"takes token '{self.name}', which no earlier operation has given there"

    @property
    def given_too_often(self) -> str:
        """What is wrong with a give beyond the depth."""
        return f"gives token '{self.name}' beyond its depth of {self.depth}"


def place_units(tokens: Iterable[tuple[str, Token]]) -> dict[str, Units]:
    """The units of all tokens, one behind the other."""
    units: dict[str, Units] = {}
    slot = FIRST_TOKEN
    for name, token in tokens:
        units[name] = Units(name, slot, token)
        slot += token.depth
    return units


def initial_state(state: Times, units: Iterable[tuple[Units, Token]]) -> None:
    """Set the state before a program."""
    state[:, :FIRST_TOKEN] = 0
    for each, token in units:
        state[:, each.slot : each.slot + token.initial] = FROM_THE_START


