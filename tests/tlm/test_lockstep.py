"""Models that are advanced in step with SimPy: none misses what happens before it looks."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Event

from tlm.lockstep import Moment, SteppedEnvironment, call_after, go_on


@dataclass(frozen=True)
class Rang:
    name: int
    cycle: int


class Alarms:
    """Rings at given cycles; it refuses an alarm for a cycle that it has simulated.

    ``simulated`` counts the calls that advance it.
    """

    def __init__(self, env: SteppedEnvironment, rings: Any) -> None:
        self.simulated = 0
        self._env, self._rings = env, rings
        self._alarms: list[Rang] = []
        self._clock = 0
        self._wake = env.attach(self, self._dispatch)

    @property
    def idle(self) -> bool:
        return not self._alarms

    def set(self, name: int, cycle: int) -> None:
        assert self._env.now >= self._clock
        assert cycle >= self._env.now
        self._alarms.append(Rang(name, cycle))
        self._wake()

    def advance(self, until_cycle: int) -> list[Rang]:
        self.simulated += 1
        first = min(alarm.cycle for alarm in self._alarms)
        if first >= until_cycle:
            self._clock = until_cycle
            return []
        self._clock = first + 1
        found = [alarm for alarm in self._alarms if alarm.cycle == first]
        self._alarms = [alarm for alarm in self._alarms if alarm.cycle != first]
        return found

    def _dispatch(self, events: Sequence[Rang]) -> None:
        for event in events:
            assert self._env.now == event.cycle + 1
            self._rings(event.name)


plans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 30), st.integers(0, 1), st.integers(0, 4)),
    min_size=1,
    max_size=12,
)


@given(plans)
def test_two_models_act_on_each_other(plans: list[tuple[int, int, int, int]]) -> None:
    """A ring of one sets an alarm of the other, again and again, at the very time of its effect."""
    env = SteppedEnvironment()
    seen: list[tuple[int, int, int]] = []
    left = {name: plan[3] for name, plan in enumerate(plans)}

    def rings(model: int) -> Any:
        def ring(name: int) -> None:
            seen.append((name, model, int(env.now)))
            if left[name]:
                left[name] -= 1
                models[1 - model].set(name, int(env.now) + plans[name][1])

        return ring

    models = [Alarms(env, rings(0)), Alarms(env, rings(1))]

    def client(name: int, start: int, delay: int, model: int) -> Generator[Any]:
        yield env.timeout(start)
        models[model].set(name, start + delay)

    expected = []
    for name, (start, delay, model, again) in enumerate(plans):
        env.process(client(name, start, delay, model))
        for turn in range(again + 1):
            expected.append((name, (model + turn) % 2, start + (turn + 1) * (delay + 1)))
    env.run()
    assert sorted(seen) == sorted(expected)
    assert [time for _, _, time in seen] == sorted(time for _, _, time in seen)


def test_a_model_that_is_busy_alone_runs_ahead() -> None:
    env = SteppedEnvironment()
    seen: list[tuple[int, int]] = []
    busy = Alarms(env, lambda name: seen.append((name, int(env.now))))
    resting = Alarms(env, lambda _: None)
    busy.set(1, 10**6)
    env.timeout(500)
    env.run()
    assert seen == [(1, 10**6 + 1)]
    assert (busy.simulated, resting.simulated) == (2, 0)


@pytest.mark.parametrize("others", [0, 1])
def test_what_happens_at_the_present_time_comes_first(others: int) -> None:
    """An alarm set behind ten events of no duration still rings in this cycle."""
    env = SteppedEnvironment()
    seen: list[int] = []
    alarms = Alarms(env, seen.append)
    for name in range(others):
        Alarms(env, lambda _: None).set(name, 20)

    def client() -> Generator[Any]:
        alarms.set(1, 7)
        yield env.timeout(7)
        for _ in range(10):
            yield env.timeout(0)
        alarms.set(2, 7)

    env.process(client())
    env.run(until=9)
    assert seen == [1, 2]


def test_what_takes_effect_in_its_very_cycle_is_told_then() -> None:
    """Beside a model that is busy too, whose own event of the same cycle comes a cycle later.

    That one has not simulated the cycle yet, and may be given more to do in it.
    """
    env, told = SteppedEnvironment(), []

    class Both:
        left = 1

        @property
        def idle(self) -> bool:
            return self.left == 0

        def advance(self, until_cycle: int) -> list[Rang]:
            self.left = 0
            return [Rang(1, until_cycle - 2), Rang(2, until_cycle - 1)]

    both = Both()

    def tell(events: Sequence[Rang]) -> None:
        told.extend((int(env.now), event.name) for event in events)
        if events[0].name == 1:
            alarms.set(4, 7)

    wake = env.attach(both, tell)
    alarms = Alarms(env, lambda name: told.append((int(env.now), name)))

    def start() -> Generator[Any, Any, None]:
        yield env.timeout(7)
        alarms.set(3, 7)
        wake()

    env.process(start())
    env.run()
    assert told == [(7, 1), (8, 2), (8, 3), (8, 4)]


def test_whoever_waits_for_a_moment_goes_on_at_once() -> None:
    """In the order of asking, and before what follows; nobody waits for what has happened."""
    env, moment, told = SteppedEnvironment(), Moment(), []

    def waits(cycles: int) -> Iterator[Event]:
        yield env.after(cycles)
        yield moment
        told.append((cycles, env.now, moment.value))

    def happen() -> None:
        moment.happen("value")
        told.append("then")

    for cycles in (2, 1, 7):
        go_on(waits(cycles))
    call_after(env, 5, happen)
    env.run()
    assert told == [(1, 5, "value"), (2, 5, "value"), "then", (7, 7, "value")]


def test_an_error_is_told_as_it_is() -> None:
    env, error = SteppedEnvironment(), ValueError("at fault")

    def fails() -> Iterator[Event]:
        yield env.after(3)
        raise error

    go_on(fails())
    with pytest.raises(ValueError, match="at fault") as told:
        env.run()
    assert told.value is error


def test_a_process_that_fails_stops_the_run() -> None:
    env = SteppedEnvironment()

    def fails() -> Generator[Any]:
        yield env.timeout(3)
        raise ValueError("at fault")

    env.process(fails())
    with pytest.raises(ValueError, match="at fault"):
        env.run()
    assert env.now == 3
