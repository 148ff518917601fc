"""Trials of an exploration as a picture: by two of its objectives, or by their number and one."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from matplotlib.axes import Axes

from tlm.plotting import COLOURS, INK, Curve, direct_labels, plain_ticks, short_label
from wafertlm.report.records import Exploration, ExploredTrial
from wafertlm.report.wording import named, plain

_BEST, _CONFIRMED = COLOURS[0], COLOURS[1]
_MOST_LABELS = 8
_LONGEST_LABEL = 24
#: What is drawn to the right and upwards; None: the trial's number.
Pair = tuple[str | None, str]


def objective_pairs(run: Exploration) -> list[Pair]:
    """Objectives to draw against each other; of one alone, against the trials' numbers."""
    goals = list(run.directions)
    return [*combinations(goals, 2)] or [(None, name) for name in goals[:1]]


def draw_trials(axes: Axes, run: Exploration, pair: Pair, ink: str = INK) -> None:
    """Draw every trial, the best among them, and where these are at the next level."""
    across, upwards = pair
    for state, shown, filled in (
        ("complete", "trial", ink),
        ("out of bounds", "out of bounds", "none"),
    ):
        xs, ys = _points([trial for trial in run.rows if trial.state == state], pair)
        if xs:
            axes.scatter(xs, ys, s=14, facecolors=filled, edgecolors=ink, alpha=0.5, label=shown)
    xs, ys = _points(run.front, pair)
    if xs:
        shown = "best" if across is None else "Pareto front"
        axes.scatter(xs, ys, s=26, color=_BEST, zorder=3, label=shown)
    _draw_confirmed(axes, run.front, pair)
    axes.set_xlabel(short_label(named(across or "trial"), 44))
    axes.set_ylabel(short_label(named(upwards), 36))
    axes.locator_params(nbins=5)
    axes.margins(0.12)
    axes.grid(True)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


def label_trials(axes: Axes, run: Exploration, pair: Pair, halo: str = "white") -> None:
    """Write beside the best what they chose, of as many as stand apart. Call it last."""
    known = [trial for trial in run.front if _points([trial], pair)[0]][:_MOST_LABELS]
    direct_labels(
        axes, [Curve(*_points([each], pair), _label(each), _BEST) for each in known], halo
    )


def objective(trial: ExploredTrial, name: str) -> float | None:
    """An objective, which is also among the figures."""
    return _number(trial.objectives.get(name, trial.figures.get(name)))


def _number(found: Any) -> float | None:
    if not isinstance(found, int | float) or isinstance(found, bool) or not abs(found) < 1e18:
        return None
    return float(found)


def _draw_confirmed(axes: Axes, front: Sequence[ExploredTrial], pair: Pair) -> None:
    """Where the best are at the next level, a line from where they were."""
    label = None
    for number, trial in enumerate(front):
        found = trial.confirmed or {}
        after = found.get("objectives")
        begin = _place(number, trial, pair)
        if begin is None or not isinstance(after, Mapping):
            continue
        x = begin[0] if pair[0] is None else _number(after.get(pair[0]))
        y = _number(after.get(pair[1]))
        if x is None or y is None:
            continue
        axes.plot([begin[0], x], [begin[1], y], color=_CONFIRMED, linewidth=0.8, zorder=2)
        label = f"the same at {plain(found.get('level'))}" if label is None else "_"
        axes.scatter([x], [y], s=22, marker="x", color=_CONFIRMED, zorder=4, label=label)


def _label(trial: ExploredTrial) -> str:
    chosen = ", ".join(f"{name.split('.')[-1]} {plain(v)}" for name, v in trial.chosen.items())
    short = chosen and len(chosen) <= _LONGEST_LABEL
    return chosen if short else f"trial {plain(trial.trial)}"


def _points(trials: Sequence[ExploredTrial], pair: Pair) -> tuple[list[float], list[float]]:
    """Where trials are that have both figures."""
    found = [_place(number, trial, pair) for number, trial in enumerate(trials)]
    known = [place for place in found if place is not None]
    return [x for x, _ in known], [y for _, y in known]


def _place(number: int, trial: ExploredTrial, pair: Pair) -> tuple[float, float] | None:
    number = number if trial.trial is None else trial.trial
    x = float(number) if pair[0] is None else objective(trial, pair[0])
    y = objective(trial, pair[1])
    return None if x is None or y is None else (x, y)
