"""Units of tokens at level at: which have been given, and when."""

from collections.abc import Iterable

from tlm.lockstep import Moment, SteppedEnvironment
from tlm.program import Program
from tlm.program.steps import Unit

_FROM_THE_START = -(2**62)
"""Time of an initial unit: longer ago than any credit takes."""


class GivenUnits:
    """Which units have been given, and when.

    Args:
        env: The clock.
        program: What is run.
    """

    def __init__(self, env: SteppedEnvironment, program: Program) -> None:
        self._env = env
        self._initial = {name: token.initial for name, token in program.tokens.items()}
        self._given: dict[Unit, int] = {}
        self._waiting: dict[Unit, Moment] = {}

    def initial(self, unit: Unit) -> bool:
        """Whether a unit is there from the start."""
        return unit.number < self._initial[unit.token]

    def awaited(self, unit: Unit) -> Moment | None:
        """What happens when a unit is given; None if it has been."""
        if self.initial(unit) or unit in self._given:
            return None
        if unit not in self._waiting:
            self._waiting[unit] = Moment()
        return self._waiting[unit]

    def given(self, unit: Unit) -> int:
        """When a unit has been given."""
        return self._given.get(unit, _FROM_THE_START)

    def give(self, units: Iterable[Unit]) -> None:
        """Give units now."""
        now = self._env.now
        for unit in units:
            self._given[unit] = now
            waiting = self._waiting.pop(unit, None)
            if waiting is not None:
                waiting.happen()
