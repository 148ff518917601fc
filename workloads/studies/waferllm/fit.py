"""Fits what the cores of WSE-2 do in software to published rows of Llama3-8B.

``python -m workloads.studies.waferllm.fit`` writes ``fit.json`` beside this file; the profile of
wse2 holds the values and names it as their source. The rows are those of Llama3-8B alone: tables 2,
3 and 4, and T10's decoding in table 4. All else is predicted. The structure was looked at with rows
of Llama2-13B and with the text's scale-ups from 480 to 720 tiles a side (1.4 of Llama3-8B, 1.6 of
QWen2-72B): these are no blind checks of it.

A multiply-accumulate and an element moved have published rates, and are not fitted. The price of a
row is linear in the five figures that are, but for rounding and the choice of trees. So slopes are
taken once, and a few rounds of linear least squares over relative errors, each row's over what the
study wants of it, find them. A stage is whole cycles in a program: its figure is rounded, and the
others are found again beside it.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from tlm.chips import load_chip
from tlm.files import whole_file
from tlm.sealed import sealed
from tlm.tables import Table
from workloads.studies.waferllm.cases import CHIP, LayerCase, RequestCase, timed
from workloads.studies.waferllm.facts import FITTED, Fact, facts

FIT_FILE = Path(__file__).with_name("fit.json")
Vector = NDArray[np.float64]


class Figure(NamedTuple):
    """A figure of the profile.

    Attributes:
        field: Its name.
        start: Where the slope is taken.
        step: And how far from there.
        digits: Decimals that the profile holds; none: it is an integer.
    """

    field: str
    start: float
    step: float
    digits: int

    def setting(self, value: float) -> str:
        """As ``--set`` takes it."""
        shown = str(round(value)) if self.digits == 0 else repr(round(float(value), self.digits))
        return f"{self.field}={shown}"


STAGE = Figure("software.stage_cycles", 16, 1, 0)
FREE = (
    Figure("tile.matrix.vector_cycles", 0.5, 0.5, 2),
    Figure("tile.matrix.inner_cycles", 8.0, 4.0, 2),
    Figure("software.step_cycles", 260.0, 40.0, 1),
    Figure("software.all_reduce_cycles", 340, 60, 0),
    STAGE,
)
#: Published rates: what the rows would say of them if they were free.
HELD = (
    Figure("tile.matrix.cycles_per_mac", 0.5, 0.1, 3),
    Figure("software.element_cycles", 1.0, 0.2, 3),
)
#: What is wanted of each table, in per cent: rows count by its inverse.
_WANTED_PCT = {"T2": 7.0, "T3": 3.0, "T4": 2.5, "T10": 6.0}
_ROUNDS = 3


class Fitted(Table):
    """A fitted figure, with its 95 % interval."""

    field: str
    value: float
    ci95: tuple[float, float]


class FittedRow(Table):
    """A row: published and modelled tokens a second, and the error of a fit without it."""

    id: str
    paper: float
    model: float
    error_pct: float
    left_out_error_pct: float


class Fit(Table):
    """The outcome.

    Attributes:
        parameters: The figures as the profile has them, and the intervals of the fit.
        correlations: Of each pair of figures.
        freed: What each held rate would be if it were free, all others found again beside it.
        rows: The rows.
    """

    chip: str
    parameters: tuple[Fitted, ...]
    correlations: dict[str, dict[str, float]]
    freed: tuple[Fitted, ...]
    rows: tuple[FittedRow, ...]


def fit(*, log: Any = None) -> Fit:
    """Find the figures."""
    rows = fitted_rows()
    weights = np.array([100.0 / _WANTED_PCT[_table(row)] for row in rows])
    start = np.array([figure.start for figure in FREE])
    slopes = _slopes(rows, FREE)
    values = start
    for turn in range(_ROUNDS):
        values = _solved(slopes, weights, _at_zero(rows, slopes, values))
        if log is not None:
            log(f"round {turn + 1}: {', '.join(f'{each:.4g}' for each in values)}")
    zero = _at_zero(rows, slopes, values)
    covariance = _covariance(slopes, weights, zero, values)
    whole = _rounded(slopes, weights, rows, values)
    found = _times(rows, FREE, whole)
    left_out = _left_out(slopes, weights, zero)
    return Fit(
        chip=CHIP,
        parameters=tuple(_intervals(FREE, whole, values, covariance, len(rows))),
        correlations=_correlations(covariance),
        freed=tuple(_freed(rows, slopes, weights, zero)),
        rows=tuple(
            FittedRow(
                id=row.name,
                paper=row.paper or 0.0,
                model=round((row.paper or 0.0) / float(ratio), 2),
                error_pct=round(100 * (1 / float(ratio) - 1), 3),
                left_out_error_pct=round(100 * (1 / float(without) - 1), 3),
            )
            for row, ratio, without in zip(rows, found, left_out, strict=True)
        ),
    )


def fitted_rows() -> list[Fact]:
    """The rows of layers and requests that are fitted."""
    timed_cases = (LayerCase, RequestCase)
    return [
        row
        for row in facts(quick=True)
        if row.fit == FITTED and row.paper is not None and isinstance(row.case, timed_cases)
    ]


def _table(row: Fact) -> str:
    return "T10" if row.name.endswith("T10_decode") else row.name.split("/")[0]


def _times(rows: list[Fact], figures: tuple[Figure, ...], values: Vector) -> Vector:
    """Time of the model over the published time, row by row."""
    pairs = zip(figures, values, strict=True)
    changes = tuple(figure.setting(float(value)) for figure, value in pairs)
    ratios = []
    for row in rows:
        assert isinstance(row.case, LayerCase | RequestCase)
        model = timed(row.case, changes)["tokens_per_s"]
        assert model is not None and row.paper is not None
        ratios.append(row.paper / model)
    return np.array(ratios)


def _slopes(rows: list[Fact], figures: tuple[Figure, ...]) -> Vector:
    """Shape (rows, figures): change of a row's time with each figure."""
    start = np.array([figure.start for figure in figures])
    at_start = _times(rows, figures, start)
    columns = []
    for index, figure in enumerate(figures):
        moved = start.copy()
        moved[index] += figure.step
        columns.append((_times(rows, figures, moved) - at_start) / figure.step)
    return np.stack(columns, axis=1)


def _at_zero(rows: list[Fact], slopes: Vector, values: Vector) -> Vector:
    """Times if all figures were zero, as the slopes have it from where the figures are."""
    pairs = zip(FREE, values, strict=True)
    near = np.array([round(float(value), figure.digits) for figure, value in pairs])
    zero: Vector = _times(rows, FREE, near) - slopes @ near
    return zero


def _solved(slopes: Vector, weights: Vector, zero: Vector) -> Vector:
    """Figures of the least squares of relative errors; none is below zero."""
    scale = np.abs(slopes).max(axis=0)
    found = optimize.lsq_linear(
        slopes / scale * weights[:, None], (1 - zero) * weights, bounds=(0, np.inf)
    )
    solved: Vector = found.x / scale
    return solved


def _rounded(slopes: Vector, weights: Vector, rows: list[Fact], values: Vector) -> Vector:
    """The figures as the profile holds them: a stage in whole cycles, and the others beside it."""
    whole = values.copy()
    for _ in range(_ROUNDS):
        whole[-1] = round(float(values[-1]))
        others = _at_zero(rows, slopes, whole) + slopes[:, -1] * whole[-1]
        whole[:-1] = _solved(slopes[:, :-1], weights, others)
    return np.array([round(float(v), figure.digits) for figure, v in zip(FREE, whole, strict=True)])


def _covariance(slopes: Vector, weights: Vector, zero: Vector, values: Vector) -> Vector:
    weighted = slopes * weights[:, None]
    rests = (zero + slopes @ values - 1) * weights
    variance = float(rests @ rests) / (len(rests) - len(values))
    return np.asarray(variance * np.linalg.inv(weighted.T @ weighted), dtype=np.float64)


def _intervals(
    figures: tuple[Figure, ...], shown: Vector, centre: Vector, covariance: Vector, rows: int
) -> list[Fitted]:
    """Figures as shown, with intervals about the centre of the fit."""
    reach = stats.t.ppf(0.975, rows - len(centre)) * np.sqrt(np.diag(covariance))
    return [
        Fitted(
            field=figure.field,
            value=float(value),
            ci95=(round(float(at - width), 3), round(float(at + width), 3)),
        )
        for figure, value, at, width in zip(figures, shown, centre, reach, strict=True)
    ]


def _correlations(covariance: Vector) -> dict[str, dict[str, float]]:
    spread = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(spread, spread)
    return {
        one.field: {
            other.field: round(float(matrix[i, j]), 3) for j, other in enumerate(FREE) if j > i
        }
        for i, one in enumerate(FREE[:-1])
    }


def _left_out(slopes: Vector, weights: Vector, zero: Vector) -> Vector:
    """Each row's time by the figures that all other rows give."""
    times = []
    for row in range(len(zero)):
        others = np.arange(len(zero)) != row
        values = _solved(slopes[others], weights[others], zero[others])
        times.append(zero[row] + slopes[row] @ values)
    return np.array(times)


def _freed(rows: list[Fact], slopes: Vector, weights: Vector, zero: Vector) -> list[Fitted]:
    """Each published rate as the rows would have it."""
    found = []
    for figure in HELD:
        own = _slopes(rows, (figure,))
        both = np.concatenate([slopes, own], axis=1)
        rest = zero - own[:, 0] * figure.start
        values = _solved(both, weights, rest)
        covariance = _covariance(both, weights, rest, values)
        found += _intervals((*FREE, figure), values.round(3), values, covariance, len(rows))[-1:]
    return found


def main() -> None:
    """Fit and write ``fit.json``."""
    load_chip(CHIP)
    found = fit(log=lambda text: print(text, file=sys.stderr))
    with whole_file(FIT_FILE) as scratch:
        scratch.write_text(sealed(found), encoding="utf-8")


if __name__ == "__main__":
    main()
