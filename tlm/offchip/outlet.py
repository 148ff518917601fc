"""What leaves by the router of a memory channel's node: a packet at a time."""

from collections.abc import Callable
from dataclasses import dataclass

from simpy import Environment

from tlm.interconnect.packets import TileSet
from tlm.lockstep import NODE_LOOKS, call_after, call_behind

#: Sends flits to a tile, to be written from an address (in flits) on; calls back when they have
#: left, and when they have come.
SendFlits = Callable[[TileSet, int, int, Callable[[], object], Callable[[], object]], object]


@dataclass(slots=True)
class Reply:
    """What a tile waits for.

    Attributes:
        tile: The tile.
        arrived: Called when all of it has come.
        left: Packets not yet taken to be sent.
        target: Where it is written in the tile.
    """

    tile: TileSet
    arrived: Callable[[], object]
    left: int
    target: int


@dataclass(slots=True)
class Part:
    """A packet: a part of a reply, from one of its flits on."""

    reply: Reply
    first: int
    flits: int


class Outlet:
    """The register from which packets leave.

    It takes the next packet in the cycle in which the last flit leaves. A router in step with tiles
    says in which cycle that is; else it is known a cycle later, and the next packet leaves at once.

    Args:
        env: The clock.
        send: Sends from the node's router.
        sends_last: Says before a cycle whether nothing is left to send after it; None: nobody can
            say.
        freed: Called when the register is free that was found full: takes what is next, to leave
            in so many cycles.
    """

    def __init__(
        self,
        env: Environment,
        send: SendFlits,
        sends_last: Callable[[], bool] | None,
        freed: Callable[[int], object],
    ) -> None:
        self._env, self._send = env, send
        self._sends_last, self._freed = sends_last, freed
        self._full = False
        self._last_from = 0  # cycle of the packet's last flit, if the router takes all at once
        self._looking = False

    def may_take(self) -> bool:
        """Whether a packet can be taken in this cycle; else `freed` is called when one can."""
        if self._sends_last is None:
            return not self._full
        if not self._full and self._env.now >= self._last_from and self._sends_last():
            return True
        if not self._looking:
            self._looking = True
            after_cycles = max(1, self._last_from - int(self._env.now))
            call_behind(self._env, NODE_LOOKS, after_cycles, self._look)
        return False

    def take(self, part: Part, after_cycles: int = 1) -> None:
        """Take a packet, which begins to leave in so many cycles."""
        self._full = True
        self._last_from = int(self._env.now) + after_cycles + part.flits - 1
        part.reply.left -= 1
        arrived = _nothing if part.reply.left else part.reply.arrived
        call_after(self._env, after_cycles, lambda: self._begin(part, arrived))

    def _begin(self, part: Part, arrived: Callable[[], object]) -> None:
        self._full = self._sends_last is None
        place = part.reply.target + part.first
        self._send(part.reply.tile, place, part.flits, self._left, arrived)

    def _left(self) -> None:
        """A packet has left."""
        if self._sends_last is None:
            self._full = False
            self._freed(0)

    def _look(self) -> None:
        self._looking = False
        if self.may_take():
            self._freed(1)


def _nothing() -> None:
    """Nobody waits for this packet."""
