"""Optuna's samplers, made to depend on a trial's number and on finished trials alone.

So a trial that was chosen twice, as the first time died in between, is the same trial.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from wafertlm.explore.file import ExploreFile
from wafertlm.explore.space import Space


def sampler_of(asked: ExploreFile, space: Space) -> BaseSampler:
    """The sampler that a file asks for."""
    if asked.sampler.kind in ("tpe", "nsga2"):
        return LearningSampler(asked)
    return PointSampler(space)


def learns(asked: ExploreFile) -> bool:
    """Whether points depend on what others have found."""
    return asked.sampler.kind in ("tpe", "nsga2")


class _StatelessSampler(BaseSampler):
    """What both have in common: all is in the study."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Nothing is held."""

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Nothing is held."""


class PointSampler(_StatelessSampler):
    """Points that their numbers tell."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters."""
        return self._space.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point of the trial."""
        return self._space.point(trial.number)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The point's value."""
        return self._space.point(trial.number)[param_name]


class LearningSampler(_StatelessSampler):
    """Optuna's, with random numbers that hang on the trial's number and the parameter."""

    def __init__(self, asked: ExploreFile) -> None:
        self._asked = asked

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """As Optuna's."""
        return self._sampler(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As Optuna's."""
        return self._sampler(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """As Optuna's."""
        place = 1 + list(self._asked.parameters).index(param_name)
        sampler = self._sampler(trial, place)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _sampler(self, trial: FrozenTrial, place: int = 0) -> BaseSampler:
        sequence = np.random.SeedSequence((self._asked.sampler.seed, trial.number, place))
        seed = int(sequence.generate_state(1)[0])
        if self._asked.sampler.kind == "nsga2":
            return NSGAIISampler(population_size=max(2, self._asked.batch), seed=seed)
        return TPESampler(seed=seed)
