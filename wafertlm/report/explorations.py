"""Explorations: the best trials, and all that were tried."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes

from wafertlm.report.panels import INK, PAPER, panel
from wafertlm.report.records import Exploration, ExploredTrial
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Cell, Column, Grid
from wafertlm.report.trials import (
    Pair,
    draw_trials,
    label_trials,
    objective,
    objective_pairs,
)
from wafertlm.report.wording import count, figure, named, percent, plain

_MOST_PANELS, _MOST_ROWS = 3, 400
_WAYS = {"minimize": "low", "maximize": "high"}


def exploration_answers(results: Results) -> Iterator[Answer]:
    """An answer for each exploration."""
    for stem, run in sorted(results.explorations.items()):
        yield _answer(stem, run)


def _answer(stem: str, run: Exploration) -> Answer:
    goals, front = run.directions, run.front
    tried, failed = _count(run.trials), _count(run.failed)
    told = " and ".join(f"{_WAYS.get(way, 'good')} {named(name)}" for name, way in goals.items())
    varied = ", ".join(dict.fromkeys(name for trial in front for name in trial.chosen))
    of = plain(run.options.get("command") or "the command")
    return Answer(
        question=f"Which {varied or 'options'} of {of} give {told or 'the best figures'}?",
        figures=_figures(front, goals) or [("none", "of the trials will do")],
        interval=_confirmed(front[0], goals) if len(front) == 1 else "",
        binds=f"{count(tried)} trials, {count(failed)} of them failed; "
        f"{len(front)} beaten by no other in all objectives.",
        binds_title="What was tried",
        trust=_trust(front),
        stems=[stem],
        options=plain({k: v for k, v in run.options.items() if k != "objectives" and v != {}}),
        grids=_grids(run),
        panels=_panels(run),
        caption="Each point is a trial; those that no other beats are larger and have names, and a "
        "line leads to where each is at the next level.",
    )


def _count(found: int | Sequence[Any]) -> int:
    return found if isinstance(found, int) else len(found)


def _figures(front: Sequence[ExploredTrial], goals: Mapping[str, str]) -> list[tuple[str, str]]:
    """What the best is, and what it reaches; of a front the end for each objective."""
    if not front:
        return []
    if len(front) == 1:
        found = [(figure(objective(front[0], name), 4), named(name)) for name in goals]
        return [(_chosen(front[0]), "is best"), *found]
    return [
        (f"{len(front)} trials", "are best, none of them in all objectives"),
        *(end for name, way in goals.items() for end in _ends(front, name, way)),
    ]


def _ends(front: Sequence[ExploredTrial], name: str, way: str) -> Iterator[tuple[str, str]]:
    """The most that a front reaches of an objective, and what reaches it; nothing if none does."""
    reached = [
        (found, at) for at, one in enumerate(front) if (found := objective(one, name)) is not None
    ]
    if reached:
        most, at = (max if way == "maximize" else min)(reached)
        yield figure(most, 4), f"{_WAYS.get(way, 'good')} {named(name)}: {_chosen(front[at])}"


def _chosen(trial: ExploredTrial) -> str:
    told = ", ".join(f"{name} {plain(value)}" for name, value in trial.chosen.items())
    return told or "the options as they are"


def _confirmed(trial: ExploredTrial, goals: Mapping[str, str]) -> str:
    """What came of it at the next level, in words."""
    found = trial.confirmed or {}
    after = found.get("objectives")
    if not isinstance(after, Mapping):
        return ""
    told = [
        f"{named(name)} {figure(after[name], 4)}"
        for name in goals
        if isinstance(after.get(name), int | float)
    ]
    return f"at level {plain(found.get('level'))}: {', '.join(told)}" if told else ""


def _trust(front: Sequence[ExploredTrial]) -> str:
    """How far the best moved at the next level."""
    moved = []
    for trial in front:
        changes = (trial.confirmed or {}).get("change_pct")
        if isinstance(changes, Mapping):
            moved += [each for each in changes.values() if isinstance(each, int | float)]
    if not moved:
        return "The best were not run again at a lower level: let the exploration confirm them."
    most = max(moved, key=abs)
    return (
        f"The best were run again at the next level, where they moved by {percent(most)} at most."
    )


def _grids(run: Exploration) -> list[Grid]:
    goals = list(run.directions)
    names = list(dict.fromkeys(name for trial in run.front for name in trial.chosen))
    columns = [
        Column("trial"),
        *(Column(name, text=True) for name in names),
        *(Column(named(name), _WAYS.get(run.directions[name], "")) for name in goals),
        Column("at the next level", text=True),
    ]
    best: list[list[str | Cell]] = [
        [
            plain(trial.trial),
            *(plain(trial.chosen.get(name)) for name in names),
            *(Cell(figure(objective(trial, name), 4), strong=True) for name in goals),
            _confirmed(trial, run.directions) or "–",
        ]
        for trial in run.front
    ]
    grids = [Grid(columns, best)]
    lines = [trial.command_line for trial in run.front if trial.command_line]
    if lines:
        grids.append(
            Grid([Column("run again", text=True)], [[each] for each in lines], "Commands", True)
        )
    if run.rows:
        rows = [
            [
                plain(trial.trial),
                trial.state,
                *(plain(trial.chosen.get(name)) for name in names),
                *(figure(objective(trial, name), 4) for name in goals),
            ]
            for trial in run.rows[:_MOST_ROWS]
        ]
        left = len(run.rows) - len(rows)
        note = f"{left} more are in the file." if left else ""
        shown = [columns[0], Column("state", text=True), *columns[1:-1]]
        grids.append(Grid(shown, rows, "All trials", True, note))
    return grids


def _panels(run: Exploration) -> list[Markup]:
    return [
        panel(partial(_draw, run=run, pair=pair), f"trials by {pair[1]}")
        for pair in objective_pairs(run)[:_MOST_PANELS]
    ]


def _draw(axes: Axes, run: Exploration, pair: Pair) -> None:
    draw_trials(axes, run, pair, INK)
    label_trials(axes, run, pair, PAPER)
