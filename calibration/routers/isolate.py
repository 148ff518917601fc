"""Scenes of which some fail: the others are played all the same.

A scene that cannot be played has the figure NaN, of which laws and forms know nothing.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from calibration.routers.scenes import Scene, Simulate, play_on

Failures = tuple[type[Exception], ...]


class Told(Protocol):
    """Who is told of scenes that fail."""

    @property
    def room(self) -> bool:
        """Whether another one would be looked into."""

    def failed(self, before: Sequence[Scene], scene: Scene, error: Exception) -> None:
        """A scene fails, after those before it in its run."""

    def left_out(self, count: int) -> None:
        """So many scenes are not played: too many others have failed."""


def play_apart(
    scenes: Sequence[Scene], simulate: Simulate, failures: Failures, told: Told
) -> list[float]:
    """The figure of each scene, a run a size; NaN for one that fails.

    Args:
        scenes: What is played.
        simulate: Delivers packets.
        failures: What it raises of scenes that fail.
        told: Who is told of them.
    """
    figures = [math.nan] * len(scenes)
    for size in dict.fromkeys(scene.size for scene in scenes):
        chosen = [index for index, scene in enumerate(scenes) if scene.size == size]
        played = _Run([scenes[i] for i in chosen], simulate, failures, told)
        for at, figure in played.figures().items():
            figures[chosen[at]] = figure
    return figures


class _Run:
    """Scenes of one size."""

    def __init__(
        self, scenes: Sequence[Scene], simulate: Simulate, failures: Failures, told: Told
    ) -> None:
        self._scenes, self._simulate = scenes, simulate
        self._failures, self._told = failures, told

    def figures(self) -> dict[int, float]:
        """Figures of the scenes that do not fail, by their places."""
        left, good = list(range(len(self._scenes))), 0
        while left:
            try:
                return dict(zip(left, self._play(left), strict=True))
            except self._failures as error:
                if not self._told.room:
                    self._told.left_out(len(left) - good)
                    left = left[:good]
                    continue
                good, failure = self._first_failing(left, good, error)
            before = [self._scenes[at] for at in left[:good]]
            self._told.failed(before, self._scenes[left.pop(good)], failure)
        return {}

    def _first_failing(
        self, places: Sequence[int], good: int, failure: Exception
    ) -> tuple[int, Exception]:
        """The first of some scenes with which a run fails, and how.

        Args:
            places: The scenes.
            good: So many of them, from the first on, do not fail.
            failure: Of them all.
        """
        bad = len(places)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._play(places[:middle])
            except self._failures as error:
                bad, failure = middle, error
            else:
                good = middle
        return bad - 1, failure

    def _play(self, places: Sequence[int]) -> list[float]:
        scenes = [self._scenes[at] for at in places]
        return play_on(scenes, scenes[0].size, self._simulate)
