"""Units of tokens at level at: which have been given, when, and when others know of it."""

from collections.abc import Iterable, Sequence

from simpy import Environment, Event

from tlm.interconnect.lines import hops
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.program.operations import Tile
from tlm.program.steps import Step, Unit

_FROM_THE_START = -(2**62)
"""Time of an initial unit: longer ago than any credit takes."""


class GivenUnits:
    """Which units have been given, and when.

    Args:
        env: The clock.
        program: What is run.
        timing: Latency of credits.
        credit_interval_cycles: Between credits that a step gives at its end.
    """

    def __init__(
        self, env: Environment, program: Program, timing: NocTiming, credit_interval_cycles: int
    ) -> None:
        self._env = env
        self._initial = {name: token.initial for name, token in program.tokens.items()}
        self._given: dict[Unit, int] = {}
        self._waiting: dict[Unit, Event] = {}
        farthest = program.rows + program.cols
        self._credit_cycles = [credit_cycles(timing, count) for count in range(farthest)]
        self._interval_cycles = credit_interval_cycles
        self._credit_places: dict[tuple[Tile, Unit], int] = {}

    def line_up_credits(self, steps: Sequence[Step]) -> None:
        """Give credits their places among those that the same step gives at its end."""
        if not self._interval_cycles:
            return
        takers: dict[Unit, list[Tile]] = {}
        for step in steps:
            for unit in step.slots:
                if unit.tile != step.tile:
                    takers.setdefault(unit, []).append(step.tile)
        for step in steps:
            credits = [(tile, unit) for unit in step.gives for tile in takers.get(unit, ())]
            self._credit_places |= {credit: place for place, credit in enumerate(credits)}

    def awaited(self, unit: Unit) -> Event | None:
        """What happens when a unit is given; None if it has been."""
        if unit.number < self._initial[unit.token] or unit in self._given:
            return None
        if unit not in self._waiting:
            self._waiting[unit] = self._env.event()
        return self._waiting[unit]

    def known(self, unit: Unit, tile: Tile) -> int:
        """When another tile knows of a unit that has been given."""
        place = self._credit_places.get((tile, unit), 0)
        given = self._given.get(unit, _FROM_THE_START)
        return given + self._credit_cycles[hops(tile, unit.tile)] + place * self._interval_cycles

    def give(self, units: Iterable[Unit]) -> None:
        """Give units now."""
        for unit in units:
            self._given[unit] = int(self._env.now)
            waiting = self._waiting.pop(unit, None)
            if waiting is not None:
                waiting.succeed()
