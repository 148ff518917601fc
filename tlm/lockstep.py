"""Models that simulate cycles by themselves, among SimPy processes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from simpy import Environment, Event
from simpy.core import EmptySchedule
from simpy.events import NORMAL, EventPriority

# SimPy's own are 0 and 1. In a cycle, when all that happens there has:
#: a tile's sequencer offers a credit;
CREDITS_LEAVE = EventPriority(2)
#: a memory channel's node looks whether an answer may leave;
NODE_LOOKS = EventPriority(3)
#: the channel takes and gives what it can, which its node and with it the network goes by;
CHANNEL_WORKS = EventPriority(4)
#: models simulate it.
_BEHIND_ALL, _BEHIND_MODELS = EventPriority(5), EventPriority(6)

_FOREVER = 2**62
_cycle_of = attrgetter("cycle")


class Dated(Protocol):
    """Something that happened in a cycle; its effect is there at time ``cycle + 1``."""

    @property
    def cycle(self) -> int:
        """When it happened."""


DatedT = TypeVar("DatedT", bound=Dated)
DatedCo = TypeVar("DatedCo", bound=Dated, covariant=True)


class Moment(Event):
    """Something that happens once, and cannot fail.

    Where it is known who waits, as in a program's run, it takes no turn of the clock (`happen`).
    """

    _ok, _value = True, None  # what SimPy asks of an event that happens
    callbacks: Any

    def __init__(self) -> None:
        self.callbacks = []

    def happen(self, value: object = None) -> None:
        """It happens now: whoever waits for it goes on at once, in the order of asking."""
        callbacks, self.callbacks = self.callbacks, None
        self._value = value
        for callback in callbacks:
            callback(self)


def go_on(waits: Iterator[Event], _happened: Event | None = None) -> None:
    """Run a generator on to the next event that it waits for.

    A process of SimPy's takes an event to begin and one to end, each with a turn of the clock.
    """
    for event in waits:
        if event.callbacks is not None:
            event.callbacks.append(partial(go_on, waits))
            return


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

    now: int = 0  # SimPy's own is a property: a call each of the many times it is asked for

    def __init__(self) -> None:
        super().__init__()
        self._models: list[tuple[Stepped[Any], Callable[[Sequence[Any]], None]]] = []
        self._running = False
        self._behind_models: float = -1

    def step(self) -> None:
        """Take the next event, as SimPy does."""
        if not self._queue:
            raise EmptySchedule
        now, _, _, event = heappop(self._queue)
        self.now = self._now = int(now)
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]  # as SimPy
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def after(self, cycles: int) -> Event:
        """Happens so many cycles later."""
        return self._later(NORMAL, cycles)

    def _later(self, priority: EventPriority, cycles: int = 0) -> Event:
        moment = Moment()
        heappush(self._queue, (self.now + cycles, priority, next(self._eid), moment))
        return moment

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
        return self._later(_BEHIND_ALL)

    def behind_models(self) -> Event:
        """Happens now, when models have simulated this cycle, too.

        What is given to a model then must begin in the next cycle at the earliest.
        """
        self._behind_models = self.now
        return self._later(_BEHIND_MODELS)

    def _wake(self) -> None:
        if not self._running:
            self._running = True
            go_on(self._advance())

    def _advance(self) -> Iterator[Event]:
        yield self.behind_all()
        while True:
            if self.peek() == self.now:
                yield self.behind_all()
            now = self.now
            busy = [(model, dispatch) for model, dispatch in self._models if not model.idle]
            if not busy:
                break
            until = now + 1
            if len(busy) == 1 and now != self._behind_models:
                until = int(min(self.peek(), _FOREVER))
            happened: list[tuple[int, Callable[[Sequence[Any]], None], Sequence[Any]]] = []
            for model, dispatch in busy:
                for cycle, here in groupby(model.advance(until), _cycle_of):
                    if cycle < now and len(busy) > 1:
                        dispatch([*here])  # before the models behind simulate this cycle
                        yield self.behind_all()
                    else:
                        happened.append((cycle, dispatch, [*here]))
            for cycle, dispatch, events in happened:  # of one model, or all of this cycle
                if cycle >= self.now:
                    if self.peek() == self.now:
                        yield self.behind_all()
                    yield self.after(cycle + 1 - self.now)
                dispatch(events)
            if not happened and any(not model.idle for model, _ in busy):
                yield self.after(until - now)
        self._running = False


def call_after(env: Environment, cycles: int, call: Callable[[], object]) -> None:
    """Have something called so many cycles later."""
    call_behind(env, NORMAL, cycles, call)


def call_behind(
    env: Environment, priority: EventPriority, after_cycles: int, call: Callable[[], object]
) -> None:
    """Have something called in a later cycle, or in this one, behind what has a lower priority."""
    moment = Moment()
    moment.callbacks = [lambda _: call()]
    env.schedule(moment, priority, after_cycles)
