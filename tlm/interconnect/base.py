"""The swap point of the network: what every implementation of an interconnect does."""

from enum import Enum
from typing import NamedTuple, Protocol

from tlm.interconnect.packets import ReductionGoal, TileSet


class EventKind(Enum):
    """What happened at a tile's port, or in a tile that is part of the model.

    MATRIX, VECTOR and READ are ends of a job of the matrix engine, of one of the vector engine, and
    of reading a transfer's words. With TAKEN a node without a tile has taken as many flits as it
    was let.
    """

    INJECTED = "injected"
    EJECTED = "ejected"
    MATRIX = "matrix"
    VECTOR = "vector"
    READ = "read"
    TAKEN = "taken"


NO_PACKET = -1
"""Packet of an event within a tile."""


class Event(NamedTuple):
    """The tail flit of a packet went in at its source or came out at a destination.

    The result of a reduction comes out at its root, as the lowest packet among its operands. The
    handshake takes place in ``cycle``; its effect is there at time ``cycle + 1``.
    """

    kind: EventKind
    packet: int
    node: int
    cycle: int


class Interconnect(Protocol):
    """A network that is told packets and advanced in time."""

    @property
    def idle(self) -> bool:
        """Nothing moves: no packet is on its way, or those that are wait for operands."""

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        """Queue a packet at the interface of node ``source``; returns its number.

        ``goal`` are its destinations, or the reduction of which it is an operand.

        A node's packets go in in the order of these calls, a flit a cycle, none before its
        ``cycle``. That must not lie before a cycle that has already been simulated.
        """

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event; the events of that cycle.

        Returns an empty list when ``until_cycle`` (itself not simulated) is reached first, or when
        the network has become idle. Raises an error if packets wait for each other for ever.
        """
