"""Credits at level at: how a tile learns of the units at other tiles that it takes as slots.

Tiles of rtl/tile send them over a mesh of their own, a flit each. A credit that stands there holds
up the next end of its engine (rtl/tile/engine_queue.sv). Where tiles cost nothing credits are on
their way undisturbed.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from simpy import Event

from tlm.engines.at.units import GivenUnits
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import CREDITS_LEAVE, Moment, SteppedEnvironment, call_behind
from tlm.program import Program
from tlm.program.operations import Engine, Tile
from tlm.program.steps import Step, Unit
from tlm.tiles.timing import QueueTiming

#: Who learns of which unit.
Credit = tuple[Tile, Unit]
_NO_CREDITS: list[list[Credit]] = [[]]


class Credits(Protocol):
    """Credits of a run."""

    def learn(self, unit: Unit, tile: Tile) -> Iterator[Event]:
        """Wait until a tile knows of a unit."""

    def end(self, step: Step) -> Iterable[Event]:
        """Wait until an operation whose engine is done with it may end."""

    def given_by(self, step: Step) -> list[list[Credit]]:
        """Credits of a step, first those of its own end; the others need waits of their own."""

    def send(self, step: Step, credits: list[Credit]) -> None:
        """Send credits that a step, or one of its waits, gives as it ends."""


class UndisturbedCredits:
    """Credits that have the routers for themselves (`Credits`).

    Args:
        env: The clock.
        units: The units that have been given.
        program: What is run.
        timing: Latency of credits.
    """

    def __init__(
        self, env: SteppedEnvironment, units: GivenUnits, program: Program, timing: NocTiming
    ) -> None:
        self._env, self._units = env, units
        farthest = program.rows + program.cols
        self._cycles = [credit_cycles(timing, count) for count in range(farthest)]

    def learn(self, unit: Unit, tile: Tile) -> Iterator[Event]:
        """Wait until a tile knows of a unit."""
        awaited = self._units.awaited(unit)
        if awaited is not None:
            yield awaited
        known = self._units.given(unit) + self._cycles[hops(tile, unit.tile)]
        if known > self._env.now:
            yield self._env.after(known - self._env.now)

    def end(self, step: Step) -> Iterable[Event]:
        """Wait for nothing."""
        return ()

    def given_by(self, step: Step) -> list[list[Credit]]:
        """None: all is known from the units' times."""
        return _NO_CREDITS

    def send(self, step: Step, credits: list[Credit]) -> None:
        """Nothing to send."""


@dataclass(slots=True)
class _Queue:
    """Credits of an engine that have not left.

    Attributes:
        owed: Those of its last end, the first one first.
        ended: When that was.
        left: What happens when they have left, if anybody waits for it.
    """

    owed: deque[Credit] = field(default_factory=deque)
    ended: int = -1
    left: Moment | None = None


@dataclass(slots=True)
class _Sender:
    """What a tile offers to the routers of credits.

    Attributes:
        queues: Its engines' credits.
        last: Whose credit was offered last.
        free: When the next one may be.
        busy: One is offered, or will be.
    """

    queues: list[_Queue] = field(default_factory=lambda: [_Queue() for _ in Engine])
    last: int = len(Engine) - 1
    free: int = 0
    busy: bool = False


class CreditMesh:
    """Credits in each other's way (`Credits`).

    Each tile offers one at a time, its engines in turn. An engine's next end waits until the
    credits of the last one have left the tile.

    Args:
        env: The clock.
        units: The units that have been given, of which their own tiles know.
        program: What is run.
        timing: Cycles of the routers.
        queues: What the tiles are like.
        steps: All of the run.
    """

    def __init__(
        self,
        env: SteppedEnvironment,
        units: GivenUnits,
        program: Program,
        timing: NocTiming,
        queues: QueueTiming,
        steps: Sequence[Step],
    ) -> None:
        self._env, self._units, self._timing = env, units, queues
        self._cols = program.cols
        routers = NocTiming(
            timing.hop_cycles,
            timing.ejection_cycles,
            fifo_depth=queues.credit_depth,
            multicast_gap_cycles=0,
            flit_bytes=1,
            y_first=timing.y_first,
        )
        mesh = HandshakeMesh(program.rows, program.cols, routers, reductions=False)
        self._network = SimpyNetwork(env, mesh, 1)
        self._takers: dict[Unit, list[Tile]] = {}
        for step in steps:
            for unit in step.slots:
                if unit.tile != step.tile:
                    self._takers.setdefault(unit, []).append(step.tile)
        self._known: set[Credit] = set()
        self._waiting: dict[Credit, Moment] = {}
        self._senders: dict[Tile, _Sender] = {}

    def learn(self, unit: Unit, tile: Tile) -> Iterator[Event]:
        """Wait until a tile knows of a unit; of its own it knows when it is given."""
        if tile == unit.tile:
            awaited = self._units.awaited(unit)
            if awaited is not None:
                yield awaited
        elif not self._units.initial(unit) and (tile, unit) not in self._known:
            self._waiting[tile, unit] = Moment()
            yield self._waiting[tile, unit]

    def end(self, step: Step) -> Iterator[Event]:
        """Wait until the credits of the engine's last end have left, and for its cycle to pass."""
        sender = self._senders.get(step.tile)
        if sender is None:
            return
        queue = sender.queues[step.engine]
        while True:
            if queue.owed:
                queue.left = Moment()
                yield queue.left
            elif queue.ended == self._env.now:
                yield self._env.after(1)
            else:
                return

    def given_by(self, step: Step) -> list[list[Credit]]:
        """Credits of a step, as many together as one end gives."""
        credits = [(tile, unit) for unit in step.gives for tile in self._takers.get(unit, ())]
        most = self._timing.credits_at_end
        return [credits[n : n + most] for n in range(0, len(credits), most)] or [[]]

    def send(self, step: Step, credits: list[Credit]) -> None:
        """Send the credits of an end, one after the other."""
        sender = self._senders.setdefault(step.tile, _Sender())
        queue = sender.queues[step.engine]
        queue.owed.extend(credits)
        queue.ended = self._env.now
        if credits:
            self._look(step.tile, sender)

    def _look(self, tile: Tile, sender: _Sender) -> None:
        """Offer a credit when all that end now have."""
        if not sender.busy:
            sender.busy = True
            later = max(sender.free - self._env.now, 0)
            call_behind(self._env, CREDITS_LEAVE, later, partial(self._offer, tile, sender))

    def _offer(self, tile: Tile, sender: _Sender) -> None:
        asking = [engine for engine in Engine if sender.queues[engine].owed]
        engine = min(asking, key=lambda asks: (asks - sender.last - 1) % len(Engine))
        sender.last = engine
        credit = sender.queues[engine].owed[0]
        self._network.send(
            self._node(tile),
            TileSet.tile(*credit[0]),
            1,
            lambda _: self._leaves(tile, sender, engine),
            {self._node(credit[0]): lambda _: self._comes(credit)},
        )

    def _leaves(self, tile: Tile, sender: _Sender, engine: Engine) -> None:
        """A credit has gone into the tile's router."""
        queue = sender.queues[engine]
        queue.owed.popleft()
        sender.busy = False
        sender.free = self._env.now + self._timing.credit_interval_cycles - 1
        if not queue.owed and queue.left is not None:
            left, queue.left = queue.left, None
            left.happen()
        if any(each.owed for each in sender.queues):
            self._look(tile, sender)

    def _comes(self, credit: Credit) -> None:
        self._known.add(credit)
        waiting = self._waiting.pop(credit, None)
        if waiting is not None:
            waiting.happen()

    def _node(self, tile: Tile) -> int:
        return tile[0] * self._cols + tile[1]
