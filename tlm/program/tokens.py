"""Tokens: the counting semaphores by which the operations of a program wait for each other."""

from dataclasses import dataclass

from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class Token:
    """A counting semaphore that every tile has one of.

    Attributes:
        initial: Units there from the start; as slots they need no credit to be known.
        depth: Most units given and not yet taken, counting in program order.

    Raises:
        InputError: if the depth is below 1, or does not hold the initial units.
    """

    initial: int = 0
    depth: int = 1

    def __post_init__(self) -> None:
        if self.depth < 1 or not 0 <= self.initial <= self.depth:
            raise InputError(
                f"token: initial {self.initial}, depth {self.depth}; "
                "allowed: a depth of 1 or more, initial from 0 to depth"
            )
