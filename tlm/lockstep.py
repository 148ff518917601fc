"""Models that simulate cycles by themselves, among SimPy processes."""

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from simpy import Environment, Event
from simpy.events import EventPriority

# SimPy's own are 0 and 1. In a cycle, when all that happens there has:
#: a tile's sequencer offers a credit;
CREDITS_LEAVE = EventPriority(2)
#: a memory channel's node looks whether an answer may leave;
NODE_LOOKS = EventPriority(3)
#: the channel takes and gives what it can, which its node and with it the network goes by;
CHANNEL_WORKS = EventPriority(4)
#: models simulate it.
_BEHIND_ALL, _BEHIND_MODELS = EventPriority(5), EventPriority(6)


class Dated(Protocol):
    """Something that happened in a cycle; its effect is there at time ``cycle + 1``."""

    @property
    def cycle(self) -> int:
        """When it happened."""


DatedT = TypeVar("DatedT", bound=Dated)
DatedCo = TypeVar("DatedCo", bound=Dated, covariant=True)


class Stepped(Protocol[DatedCo]):
    """A model that is given things to do and advanced in time."""

    @property
    def idle(self) -> bool:
        """There is nothing to do."""

    def advance(self, until_cycle: int) -> Sequence[DatedCo]:
        """Simulate up to the first cycle in which something happens; what happens in it.

        What takes effect in that very cycle comes first, as of the one before.

        Returns nothing when ``until_cycle`` (itself not simulated) comes first, or idleness.
        """


class SteppedEnvironment(Environment):
    """A SimPy clock, in cycles, that advances models in step with its events.

    No model simulates a cycle before everything that happens at that time has happened. One that is
    busy alone runs ahead to the next event; several go cycle by cycle, as each may act on another.
    """

    def __init__(self) -> None:
        super().__init__()
        self._models: list[tuple[Stepped[Any], Callable[[Sequence[Any]], None]]] = []
        self._running = False
        self._behind_models: float = -1

    def attach(
        self, model: Stepped[DatedT], dispatch: Callable[[Sequence[DatedT]], None]
    ) -> Callable[[], None]:
        """Take a model in.

        Args:
            model: What to advance; nobody else may.
            dispatch: Told what happened in a cycle, at the time of its effect.

        Returns:
            What to call when the model has been given something to do at the present time.
        """
        self._models.append((model, dispatch))
        return self._wake

    def behind_all(self) -> Event:
        """Happens now, behind everything else that does."""
        return _Behind(self, _BEHIND_ALL)

    def behind_models(self) -> Event:
        """Happens now, when models have simulated this cycle, too.

        What is given to a model then must begin in the next cycle at the earliest.
        """
        self._behind_models = self.now
        return _Behind(self, _BEHIND_MODELS)

    def _wake(self) -> None:
        if not self._running:
            self._running = True
            self.process(self._advance())

    def _advance(self) -> Generator[Event, Any, None]:
        while any(not model.idle for model, _ in self._models):
            if self.peek() == self.now:
                yield self.behind_all()
            now = int(self.now)
            busy = [(model, dispatch) for model, dispatch in self._models if not model.idle]
            until = now + 1
            if len(busy) == 1 and now != self._behind_models:
                next_event = self.peek()
                until = int(next_event) if math.isfinite(next_event) else 2**62
            happened: list[tuple[Callable[[Sequence[Any]], None], Sequence[Any]]] = []
            for model, dispatch in busy:
                events = model.advance(until)
                early = [event for event in events if event.cycle < now]
                if early and len(busy) > 1:  # before the models behind simulate this cycle
                    dispatch(early)
                    yield self.behind_all()
                    events = [event for event in events if event.cycle >= now]
                happened.append((dispatch, events))
            cycles = sorted({event.cycle for _, events in happened for event in events})
            for cycle in cycles:
                if self.peek() == self.now:
                    yield self.behind_all()
                yield self.timeout(cycle + 1 - int(self.now))
                for dispatch, events in happened:
                    if here := [event for event in events if event.cycle == cycle]:
                        dispatch(here)
            if cycles:
                continue
            if any(not model.idle for model, _ in busy):
                yield self.timeout(until - now)
        self._running = False


def call_behind(
    env: Environment, priority: EventPriority, after_cycles: int, call: Callable[[], None]
) -> None:
    """Have something called in a later cycle, or in this one, behind what has a lower priority."""
    event = Event(env)
    event._ok, event._value = True, None
    assert event.callbacks is not None
    event.callbacks.append(lambda _: call())
    env.schedule(event, priority, after_cycles)


class _Behind(Event):
    """Happens now, behind everything else of a higher priority."""

    def __init__(self, env: Environment, priority: EventPriority) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, priority)
