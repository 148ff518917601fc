"""What an experiment is, and how one is run: measure, identify, check blind.

An experiment is data and a few short functions; everything else (errors, hashes, the stored form)
happens here, so that all experiments are judged alike. How to write one: docs/experiments.md.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import (
    CalibrationResult,
    CheckPoint,
    FitPoint,
    Parameter,
    Situation,
    Status,
    combined_hash,
    source_hashes,
)

Case = TypeVar("Case")
Parameters = Mapping[str, Parameter]


class LawContradictedError(Exception):
    """The measurements do not follow the law whose constants were to be identified."""


class NothingMeasuredError(LawContradictedError):
    """Too little was measured: what went wrong on RTL has no figure."""


class RtlModel(Hashable, Protocol):
    """Verilog with its parameters; equal ones are built once."""

    def build(self) -> object:
        """Build it, if it is not in the cache."""
        ...


@dataclass(frozen=True, slots=True)
class Targets:
    """Largest errors that are allowed over the check cases, in per cent."""

    mean_pct: float
    worst_pct: float


#: Every check case to the cycle.
EXACT = Targets(mean_pct=0.0, worst_pct=0.0)


class Experiment(Protocol[Case]):
    """One subject of calibration.

    Attributes:
        name: Name of the stored result.
        subject: What is measured, in words.
        seed: Seed of everything random in its cases.
        targets: What its errors may be.
        untried: Situations of its subject that no case is about, in words.
    """

    name: str
    subject: str
    seed: int
    targets: Targets

    @property
    def untried(self) -> Sequence[str]:
        """Situations of its subject that no case is about."""

    @property
    def sources(self) -> Sequence[Path]:
        """Verilog files the measurement rests on."""

    def fit_cases(self) -> Sequence[Case]:
        """Cases from which the parameters are identified."""
        ...

    def check_cases(self, *, quick: bool) -> Sequence[Case]:
        """Cases the fit has not seen; ``quick`` keeps to the models that the fit has built."""
        ...

    def rtl(self, case: Case) -> RtlModel:
        """What has to be built for a case."""
        ...

    def measure(self, cases: Sequence[Case]) -> list[float]:
        """Run the cases on RTL; one figure each, in order; NaN of a case that went wrong."""
        ...

    def identify(self, cases: Sequence[Case], values: Sequence[float]) -> dict[str, Parameter]:
        """Parameters that explain the measurements.

        Raises:
            LawContradictedError: if none do.
        """
        ...

    def predict(self, parameters: Parameters, cases: Sequence[Case]) -> list[float]:
        """What the model says of the cases, in order; NaN where it cannot be played."""
        ...

    def label(self, case: Case) -> str:
        """The case in words that let a reader repeat it."""
        ...

    def situation(self, case: Case) -> str:
        """What the case has in common with others, in words."""
        ...


def run(
    experiment: Experiment[Any], *, quick: bool, folder: Path | None = None
) -> CalibrationResult:
    """Measure, identify on one set of cases, check on another.

    Args:
        experiment: What is measured.
        quick: Fewer check cases.
        folder: From where the names of its sources are seen; None: the repository.

    Raises:
        LawContradictedError: if no parameters explain the measurements, or none was made.
    """
    fit_cases = experiment.fit_cases()
    fit_values = experiment.measure(fit_cases) if fit_cases else []
    parameters = experiment.identify(fit_cases, fit_values)
    cases = experiment.check_cases(quick=quick)
    seen = {experiment.label(case) for case in fit_cases}
    assert not seen & {experiment.label(case) for case in cases}, "a check case was fitted"
    pairs = zip(cases, experiment.measure(cases), strict=True)
    there = [(case, rtl) for case, rtl in pairs if not isnan(rtl)]
    predicted = experiment.predict(parameters, [case for case, _ in there])
    points = [
        (case, CheckPoint(case=experiment.label(case), rtl=rtl, model=model))
        for (case, rtl), model in zip(there, predicted, strict=True)
    ]
    check = [point for _, point in points if not isnan(point.model)]
    if not check:
        raise NothingMeasuredError("none of its check cases has a figure")
    fitted = [pair for pair in zip(fit_cases, fit_values, strict=True) if not isnan(pair[1])]
    errors = [abs(point.error_pct) for point in check]
    worst = max(range(len(check)), key=lambda index: errors[index])
    hashes = source_hashes(experiment.sources, folder)
    return CalibrationResult(
        name=experiment.name,
        subject=experiment.subject,
        rtl_hash=combined_hash(hashes),
        sources=hashes,
        tools=tool_versions(),
        seed=experiment.seed,
        parameters=parameters,
        fit=[FitPoint(case=experiment.label(case), rtl=value) for case, value in fitted],
        check=check,
        situations=_situations(experiment, parameters, fitted, points, [*fit_cases, *cases]),
        mean_abs_error_pct=sum(errors) / len(errors),
        max_abs_error_pct=errors[worst],
        worst_case=check[worst].case,
    )


def _situations(
    experiment: Experiment[Any],
    parameters: Parameters,
    fit: Sequence[tuple[Any, float]],
    check: Sequence[tuple[Any, CheckPoint]],
    asked: Sequence[Any],
) -> list[Situation]:
    """What was tried, how often and how well; then what was not. The model may have no figure.

    Args:
        experiment: What was measured.
        parameters: What was identified.
        fit: Cases from which that was, and their figures on RTL.
        check: Other cases with a figure on RTL, and both figures.
        asked: All cases; those of some situations may all have gone wrong.
    """
    fitted = Counter(experiment.situation(case) for case, _ in fit)
    off: dict[str, list[float]] = {experiment.situation(case): [] for case in asked}
    for case, point in check:
        off[experiment.situation(case)].append(abs(point.error_pct))
    # Of what no check is about, the fit itself says whether it is explained.
    missed = set[str]()
    if any(fitted[name] and not of_checks for name, of_checks in off.items()):
        missed = _missed(experiment, parameters, fit)
    tried = [
        _tried(experiment, name, fitted[name], of_checks, explained=name not in missed)
        for name, of_checks in off.items()
    ]
    untried = [
        Situation(name=name, fit=0, check=0, max_abs_error_pct=None, status="not tried")
        for name in experiment.untried
    ]
    return [*tried, *untried]


def _missed(
    experiment: Experiment[Any], parameters: Parameters, fit: Sequence[tuple[Any, float]]
) -> set[str]:
    """Situations with a fit case that the model is off by more than the experiment's target."""
    predicted = experiment.predict(parameters, [case for case, _ in fit])
    most = experiment.targets.worst_pct / 100.0
    return {
        experiment.situation(case)
        for (case, rtl), model in zip(fit, predicted, strict=True)
        if not abs(model - rtl) <= most * abs(rtl)  # NaN is off, too
    }


def _tried(
    experiment: Experiment[Any], name: str, fit: int, errors: Sequence[float], *, explained: bool
) -> Situation:
    worst = max((error for error in errors if not isnan(error)), default=None)
    lost = any(map(isnan, errors))
    if not (fit or errors):
        status: Status = "went wrong on RTL"
    elif lost or (worst is not None and worst > experiment.targets.worst_pct):
        status = "not represented"
    elif worst is None:
        status = "identified" if explained else "not represented"
    else:
        status = "identified and checked" if fit else "checked"
    return Situation(name=name, fit=fit, check=len(errors), max_abs_error_pct=worst, status=status)


def misses(experiment: Experiment[Any], result: CalibrationResult) -> list[str]:
    """Targets that a result misses, a line each."""
    targets, name = experiment.targets, experiment.name
    lines = []
    if result.mean_abs_error_pct > targets.mean_pct:
        lines.append(
            f"{name}: mean error {result.mean_abs_error_pct:.3g} %, allowed {targets.mean_pct:g} %"
        )
    if result.max_abs_error_pct > targets.worst_pct:
        lines.append(
            f"{name}: {result.worst_case}: error {result.max_abs_error_pct:.3g} %, "
            f"allowed {targets.worst_pct:g} %"
        )
    return lines
