"""What the experiments make of measurements: the constants, or that there are none."""

from collections.abc import Sequence
from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS
from calibration.experiment import Experiment, LawContradictedError
from calibration.solve import solve_exactly


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([[1, 1], [2, 2]], [3, 6]),  # one equation twice
        ([[2], [4]], [1, 2]),  # a half
        ([[1], [1]], [4, 5]),  # two truths
    ],
)
def test_only_whole_and_only_constants_solve_exactly(
    rows: list[list[int]], values: list[float]
) -> None:
    with pytest.raises(LawContradictedError):
        solve_exactly(rows, values)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: str(experiment.name))
def test_checks_are_blind(experiment: Experiment[Any]) -> None:
    def labels(cases: Sequence[Any]) -> list[str]:
        return [experiment.label(case) for case in cases]

    fitted = labels(experiment.fit_cases())
    quick, full = (labels(experiment.check_cases(quick=quick)) for quick in (True, False))
    for cases in (fitted, quick, full):
        assert len(set(cases)) == len(cases)
    assert not set(fitted) & set(full)
    assert full[: len(quick)] == quick
    assert len(full) > len(quick) > 0
    assert full == labels(experiment.check_cases(quick=False))
