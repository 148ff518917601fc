"""An exploration as a picture: its trials by their objectives, and the best among them."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.plotting import COLOURS, INK, STYLE, Curve, direct_labels, plain_ticks, save
from wafertlm.output import Result
from wafertlm.report.wording import named

_BEST, _CONFIRMED, _OTHERS = COLOURS[0], COLOURS[1], INK
_MOST_LABELS = 12


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
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.5 * len(pairs), 3.4))
        panels = figure.subplots(1, len(pairs), squeeze=False)[0]
        for axes, pair in zip(panels, pairs, strict=True):
            _panel(axes, result, *pair)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2 * len(pairs))
        # Where labels stand depends on how wide the axes are beside the legend.
        for axes, pair in zip(panels, pairs, strict=True):
            _labels(axes, _best(result), *pair)
        save(figure, path)


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
            axes.scatter(
                xs, ys, s=14, facecolors=filled, edgecolors=_OTHERS, alpha=0.5, label=shown
            )
    best = _best(result)
    if best:
        points = [_place(each["trial"], each["objectives"], across, upwards) for each in best]
        shown = "best" if across is None else "Pareto front"
        axes.scatter(*_across_and_up(points), s=26, color=_BEST, zorder=3, label=shown)
    _confirmed(axes, best, across, upwards)
    axes.set(xlabel=named(across or "trial"), ylabel=named(upwards))
    axes.locator_params(nbins=5)
    axes.margins(0.1)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


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


def _labels(axes: Axes, best: Sequence[Result], across: str | None, upwards: str) -> None:
    """Numbers of the trials beside their points, as many as stand apart."""
    if across is None:
        return
    curves = []
    for each in best[:_MOST_LABELS]:
        x, y = _place(each["trial"], each["objectives"], across, upwards)
        curves.append(Curve([x], [y], f"{each['trial']}", _BEST))
    direct_labels(axes, curves)


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
