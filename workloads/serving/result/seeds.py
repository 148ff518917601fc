"""The mean of runs with other seeds, and how sure it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def mean_of(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean of every figure over runs, in the shape of one run, and its 95 % interval.

    ``ci95`` maps the dotted name of each figure that varies to [low, high] by Student's t; it is
    None for a single run. A figure that a run does not have (None), and a list that varies, has no
    mean.
    """
    if len(results) == 1:
        return {**results[0], "ci95": None}
    intervals: dict[str, list[float]] = {}
    return {**_merged(results, "", intervals), "ci95": intervals}


def _merged(
    results: Sequence[Mapping[str, Any]], table: str, intervals: dict[str, list[float]]
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in results[0]:
        values = [result[name] for result in results]
        if isinstance(values[0], Mapping):
            merged[name] = _merged(values, f"{table}{name}.", intervals)
        elif all(value == values[0] for value in values):
            merged[name] = values[0]
        elif any(value is None or isinstance(value, list | bool) for value in values):
            merged[name] = None
        else:
            from scipy import stats  # slow to import: for several seeds only

            mean = float(np.mean(values))
            margin = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
            merged[name] = mean
            intervals[table + name] = [mean - margin, mean + margin]
    return merged
