"""The points of an exploration: each parameter an axis, each trial a point, told by its number."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial

from tlm.errors import InputError
from wafertlm.explore.file import Choice, Kind, Parameter

_LARGEST_GRID = 10**6
_DIGITS = 12
_NEAR = 1e-9

Point = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """A parameter under its name."""

    name: str
    parameter: Parameter

    @cached_property
    def distribution(self) -> BaseDistribution:
        """As Optuna knows it."""
        each = self.parameter
        if each.choices is not None:
            return CategoricalDistribution(each.choices)
        if each.is_whole:
            return IntDistribution(each.low, self._top, each.log, each.step or 1)
        return FloatDistribution(each.low, self._top, each.log, each.step)

    def suggest(self, trial: Trial) -> None:
        """Have a trial choose its value, unless it has."""
        each = self.parameter
        if each.choices is not None:
            trial.suggest_categorical(self.name, each.choices)
        elif each.is_whole:
            trial.suggest_int(self.name, each.low, self._top, step=each.step or 1, log=each.log)
        else:
            trial.suggest_float(self.name, each.low, self._top, step=each.step, log=each.log)

    @property
    def size(self) -> int | None:
        """How many values there are; None of a range of numbers without steps."""
        each = self.parameter
        if each.choices is not None:
            return len(each.choices)
        return None if self._step is None else 1 + int((each.high - each.low) / self._step + _NEAR)

    def value(self, number: int) -> Any:
        """One of them."""
        each = self.parameter
        if each.choices is not None:
            return each.choices[number]
        value = each.low + number * self._step
        return value if each.is_whole else _rounded(value)

    @property
    def ends(self) -> tuple[Choice, ...]:
        """All choices, or both ends of the range."""
        each = self.parameter
        return (each.low, self._top) if each.choices is None else each.choices

    def at(self, share: float) -> Any:
        """The value at a share of the way, 0 to 1 without the end."""
        each = self.parameter
        if each.log:
            half = 0.5 if each.is_whole else 0.0
            low, high = math.log(each.low - half), math.log(each.high + half)
            value = math.exp(low + share * (high - low))
            value = round(value) if each.is_whole else _rounded(value)
            return min(max(value, each.low), each.high)
        if self.size is not None:
            return self.value(int(share * self.size))
        return _rounded(each.low + share * (each.high - each.low))

    @property
    def _step(self) -> Any:
        each = self.parameter
        return 1 if each.is_whole and each.step is None else each.step

    @property
    def _top(self) -> Any:
        """The highest value that steps reach."""
        return self.parameter.high if self.size is None else self.value(self.size - 1)


@dataclass(frozen=True)
class Space:
    """All parameters, and how points lie in it.

    Attributes:
        axes: The parameters.
        kind: How points lie, if by their number alone.
        seed: Seed of it.
        told: The file, for messages.
    """

    axes: tuple[Axis, ...]
    kind: Kind
    seed: int
    told: str

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter], kind: Kind, seed: int, told: str) -> "Space":
        """The space of a file's parameters.

        Raises:
            InputError: for a grid of a range without steps, or of too many points.
        """
        space = cls(tuple(Axis(*each) for each in parameters.items()), kind, seed, told)
        if kind == "grid":
            space._hold_grid()
        return space

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """As Optuna knows it."""
        return {axis.name: axis.distribution for axis in self.axes}

    @property
    def grid_points(self) -> int | None:
        """How many points there are; None where it is no grid."""
        return math.prod(self._sizes) if self.kind == "grid" else None

    @property
    def first(self) -> Point:
        """A point to look at before any is run: the first value of each parameter."""
        return {axis.name: axis.ends[0] for axis in self.axes}

    def point(self, number: int) -> Point:
        """The point of a trial; of points that do not depend on what others have found."""
        if self.kind == "grid":
            places = np.unravel_index(self._order[number], self._sizes)
            chosen = zip(self.axes, places, strict=True)
            return {axis.name: axis.value(int(place)) for axis, place in chosen}
        dimensions = len(self.axes)
        if self.kind == "qmc":
            from scipy.stats.qmc import Sobol  # slow to import: for this sampler only

            sequence = Sobol(dimensions, scramble=True, rng=self.seed)
            if number:
                sequence.fast_forward(number)
            shares = sequence.random(1)[0]
        else:
            shares = np.random.default_rng((self.seed, number)).random(dimensions)
        return {a.name: a.at(float(s)) for a, s in zip(self.axes, shares, strict=True)}

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(axis.size or 0 for axis in self.axes)

    @cached_property
    def _order(self) -> Any:
        """A grid's points in no order: some of them are already spread over all."""
        return np.random.default_rng(self.seed).permutation(math.prod(self._sizes))

    def _hold_grid(self) -> None:
        for axis in self.axes:
            if axis.size is None:
                raise InputError(
                    f"{self.told}: parameters.{axis.name}: found a range without steps; allowed "
                    "with sampler.kind = 'grid': step, or choices"
                )
        if (points := math.prod(self._sizes)) > _LARGEST_GRID:
            raise InputError(
                f"{self.told}: sampler.kind: found a grid of {points} points; allowed: "
                f"{_LARGEST_GRID}; or sampler.kind = 'random'"
            )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
