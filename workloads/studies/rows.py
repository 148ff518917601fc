"""Rows of a study: what a paper says, what the model says, and how far they are apart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

#: What ``fit`` says of a row that the model is given: no evidence of it.
GIVEN = "given"


class Row(NamedTuple):
    """A figure that a study predicts.

    Attributes:
        name: TABLE/MODEL/CASE/METRIC.
        case: Key of the case it is read from.
        figure: Name of the figure among those of the case.
        unit: Of the figure.
        paper: The published value; None if it is not at hand.
        fit: Whether the model was fitted to this figure of the case, by this value or another.
        note: What must be known to judge it.
        against: Key of a case whose figure this one is a change from, in per cent.
    """

    name: str
    case: str
    figure: str
    unit: str
    paper: float | None = None
    fit: bool = False
    note: str = ""
    against: str | None = None


class Ordering(NamedTuple):
    """A published order: the figure is lower in the first case than in the second.

    ``doubt`` says why it is no firm check: one of the two is at its capacity, where means depend on
    how long a run is, or the load is not the paper's.
    """

    name: str
    figure: str
    lower: str
    higher: str
    doubt: str = ""


# Of each case the figures of its runs with one seed each, in the order of the seeds.
Results = Mapping[str, Sequence[Mapping[str, float | None]]]


def evaluate(row: Row, results: Results) -> dict[str, Any]:
    """A row with the model's value, its 95 % interval over seeds and its error.

    A change from another case is taken seed by seed, as cases share their requests. Its
    ``error_pct`` is that of the ratio of the two cases, its ``error_points`` the model's change
    less the paper's. ``interval`` is by the error of the prices, of a change with both cases at the
    same end: they are on one chip.
    """
    values = values_of(row, results)
    mean = mean_of(values)
    low, high = (mean_of(values_of(row, results, end)) for end in ("low", "high"))
    return {
        "id": row.name,
        "paper": row.paper,
        "model": mean,
        "error_pct": _error_pct(mean, row),
        "error_points": _error_points(mean, row),
        "fit": row.fit,
        "unit": row.unit,
        "ci95": None if mean is None else interval(values),
        "interval": _around(mean, low, high),
        "note": row.note,
    }


def values_of(row: Row, results: Results, end: str = "") -> "np.ndarray[Any, np.dtype[np.float64]]":
    """The model's value of a row in each seed, at an end of the prices' error if one is named.

    NaN where a run does not have it, as runs on GPUs have no ends.
    """
    figure = f"{row.figure}_{end}" if end else row.figure
    if end and figure not in results[row.case][0]:
        return np.full(len(results[row.case]), np.nan)
    values = figures(results, row.case, figure)
    if row.against is not None:
        values = 100 * (values / figures(results, row.against, figure) - 1)
    return values


def figures(results: Results, case: str, figure: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """A figure of a case, one value a seed; NaN where a run does not have it."""
    return np.array([run[figure] for run in results[case]], dtype=np.float64)


def mean_of(values: "np.ndarray[Any, np.dtype[np.float64]]") -> float | None:
    """The mean over the seeds; None if one of them has no value."""
    return float(np.mean(values)) if np.isfinite(values).all() else None


def interval(values: "np.ndarray[Any, np.dtype[np.float64]]") -> list[float] | None:
    """95 % interval of the mean by Student's t; None of a single value."""
    if len(values) < 2:
        return None
    from scipy import stats  # slow to import: for several seeds only

    margin = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return [float(np.mean(values)) - margin, float(np.mean(values)) + margin]


def interval_of(figures: Mapping[str, float | None], name: str) -> list[float] | None:
    """The ends of a figure by the error of its level, ``NAME_low`` and ``NAME_high``, if known."""
    low, high = (figures.get(f"{name}_{end}") for end in ("low", "high"))
    return _around(figures[name], low, high)


def _around(value: float | None, low: float | None, high: float | None) -> list[float] | None:
    if low is None or high is None or value is None:
        return None
    return [min(low, high, value), max(low, high, value)]


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and worst absolute error of fitted and of predicted rows with a published value.

    Rows that are changes, whose errors are those of the ratios, are counted apart.
    """
    kinds: dict[str, list[tuple[float, str]]] = {"fitted": [], "predicted": [], "changes": []}
    for row in rows:
        if row["error_pct"] is not None:
            changed = row["unit"] == "% change"
            kind = "changes" if changed else "fitted" if row["fit"] else "predicted"
            kinds[kind].append((abs(row["error_pct"]), row["id"]))
    return {
        kind: {
            "rows": len(errors),
            "mean_abs_error_pct": float(np.mean([error for error, _ in errors])),
            "max_abs_error_pct": max(errors)[0],
            "worst_row": max(errors)[1],
        }
        for kind, errors in kinds.items()
        if errors
    }


def check_order(ordering: Ordering, results: Results) -> dict[str, Any]:
    """Whether the mean over seeds is in the published order, and in how many seeds it is."""
    lower = figures(results, ordering.lower, ordering.figure)
    higher = figures(results, ordering.higher, ordering.figure)
    return {
        "id": ordering.name,
        "kept": bool(lower.mean() < higher.mean()),
        "seeds_kept": int((lower < higher).sum()),
        "seeds": len(lower),
        "doubt": ordering.doubt,
    }


def _error_pct(model: float | None, row: Row) -> float | None:
    if model is None or row.paper is None:
        return None
    if row.against is not None:
        return 100 * ((100 + model) / (100 + row.paper) - 1)
    return 100 * (model / row.paper - 1)


def _error_points(model: float | None, row: Row) -> float | None:
    if model is None or row.paper is None or row.against is None:
        return None
    return model - row.paper
