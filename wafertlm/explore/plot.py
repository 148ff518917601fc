"""An exploration as a picture: its trials by their objectives, and the best among them."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.files import whole_file
from wafertlm.output import Result

# Okabe and Ito's palette, told apart by colour-blind readers.
_BEST, _CONFIRMED, _OTHERS = "#0072B2", "#D55E00", "0.65"
_MOST_LABELS = 12
_APART = 0.06


def plot_exploration(result: Result, path: Path) -> None:
    """Draw a result of ``wafertlm explore``.

    With one objective its figure over the trials, with more a panel for each pair.

    Args:
        result: The command's object.
        path: A file that ends in .pdf, .svg or .png.

    Raises:
        InputError: if the file cannot be written.
    """
    objectives = list(result["options"]["objectives"])
    pairs = list(combinations(objectives, 2)) or [(None, objectives[0])]
    figure = Figure(figsize=(4.5 * len(pairs), 3.4), layout="constrained")
    for axes, pair in zip(figure.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
        _panel(axes, result, *pair)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
    # Without the dates and random names that pictures carry: equal results, equal bytes.
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with whole_file(path) as scratch, matplotlib.rc_context({"svg.hashsalt": "wafertlm"}):
        figure.savefig(scratch, metadata=metadata[path.suffix])


def _panel(axes: Axes, result: Result, across: str | None, upwards: str) -> None:
    rows = [row for row in result["rows"] if None not in row["objectives"].values()]
    for state, shown, filled in (
        ("complete", "trial", _OTHERS),
        ("out of bounds", "out of bounds", "none"),
    ):
        some = [row for row in rows if row["state"] == state]
        if some:
            points = [_place(row["trial"], row["objectives"], across, upwards) for row in some]
            xs, ys = _across_and_up(points)
            axes.scatter(xs, ys, s=14, facecolors=filled, edgecolors=_OTHERS, label=shown)
    best = _best(result)
    if best:
        points = [_place(each["trial"], each["objectives"], across, upwards) for each in best]
        shown = "best" if across is None else "Pareto front"
        axes.scatter(*_across_and_up(points), s=26, color=_BEST, zorder=3, label=shown)
    _confirmed(axes, best, across, upwards)
    axes.set(xlabel=across or "trial", ylabel=upwards)
    axes.locator_params(nbins=5)
    axes.spines[["top", "right"]].set_visible(False)
    if best and across is not None:
        _labels(axes, [each["trial"] for each in best], points)


def _confirmed(axes: Axes, best: Sequence[Result], across: str | None, upwards: str) -> None:
    """Where the best are at the next level, a line from where they were."""
    label = None
    for each in best:
        after = (each["confirmed"] or {}).get("objectives")
        if after is None or None in after.values():
            continue
        begin = _place(each["trial"], each["objectives"], across, upwards)
        end = _place(each["trial"], after, across, upwards)
        axes.plot(*zip(begin, end, strict=True), color=_CONFIRMED, linewidth=0.8, zorder=2)
        label = f"the same at {each['confirmed']['level']}" if label is None else "_"
        axes.scatter([end[0]], [end[1]], s=22, marker="x", color=_CONFIRMED, zorder=4, label=label)


def _labels(axes: Axes, numbers: Sequence[int], points: Sequence[tuple[float, float]]) -> None:
    """Numbers of the trials beside their points, as many as stand apart."""
    places = axes.transAxes.inverted().transform(axes.transData.transform(np.array(points)))
    shown: list[Any] = []
    for number, point, place in zip(numbers, points, places, strict=True):
        near = any(np.hypot(*(place - other)) < _APART for other in shown)
        if near or len(shown) >= _MOST_LABELS:
            continue
        shown.append(place)
        axes.annotate(str(number), point, xytext=(4, 4), textcoords="offset points", fontsize=8)


def _across_and_up(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [across for across, _ in points], [upwards for _, upwards in points]


def _best(result: Result) -> list[Result]:
    if "pareto" in result:
        return list(result["pareto"])
    return [] if result["best"] is None else [result["best"]]


def _place(
    number: int, objectives: Result, across: str | None, upwards: str
) -> tuple[float, float]:
    return (number if across is None else objectives[across], objectives[upwards])
