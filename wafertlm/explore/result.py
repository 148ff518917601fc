"""What an exploration has found, as the command prints it."""

from collections.abc import Sequence
from typing import Any

from optuna.trial import TrialState

from wafertlm.explore.answer import Answer
from wafertlm.explore.file import NONE
from wafertlm.explore.pareto import is_feasible
from wafertlm.explore.study import OWN, Exploration, Known

_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


def figures_found(exploration: Exploration, known: Sequence[Known]) -> dict[str, Any]:
    """The fields of the result.

    Args:
        exploration: The exploration, at its end.
        known: All its trials.
    """
    asked = exploration.asked
    best = [
        _told(exploration, known[number], as_good)
        for number, as_good in exploration.best(known).items()
    ]
    rows = [_row(exploration, each) for each in known]
    states = [row["state"] for row in rows]
    single = len(asked.objectives) == 1
    return {
        "trials": len(rows),
        "failed": states.count("failed"),
        "pruned": states.count("pruned"),
        "out_of_bounds": states.count("out of bounds"),
        "copies": sum(row["copied_from"] is not None for row in rows),
        **({"best": best[0] if best else None} if single else {"pareto": best}),
        "rows": rows,
    }


def _told(exploration: Exploration, trial: Known, as_good: list[int]) -> dict[str, Any]:
    """One of the best trials."""
    question, asked = exploration.question, exploration.asked
    found = trial.answers[OWN]
    return {
        "trial": trial.number,
        "as_good": as_good,
        "parameters": dict(trial.point),
        "options": dict(asked.options) | dict(trial.point),
        "command_line": question.job(dict(trial.point)).shown,
        "objectives": {path: found.figures[path] for path in asked.objectives},
        "constraints": {path: found.figures[path] for path in asked.constraints},
        "figures": found.figures,
        "rests_on": found.provenance,
        "confirmed": _confirmed(exploration, trial),
    }


def _confirmed(exploration: Exploration, trial: Known) -> dict[str, Any] | None:
    """What a trial gave at the next level, and how far that is from before."""
    asked = exploration.asked
    if asked.confirm in (None, NONE):
        return None
    found: Answer = exploration.confirmed()[trial.number]
    told: dict[str, Any] = {"level": asked.confirm, "problem": found.problem}
    if found.problem is not None:
        return told | dict.fromkeys(("objectives", "change_pct", "holds_constraints", "figures"))
    objectives = {path: found.figures[path] for path in asked.objectives}
    return told | {
        "objectives": objectives,
        "change_pct": {
            path: _change_pct(trial.figures[path], after) for path, after in objectives.items()
        },
        "holds_constraints": is_feasible(asked, found.figures),
        "figures": found.figures,
    }


def _change_pct(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else 100 * (after - before) / abs(before)


def _row(exploration: Exploration, trial: Known) -> dict[str, Any]:
    """A line of the table of all trials."""
    asked, state = exploration.asked, _STATES[trial.state]
    figures = trial.figures if state == "complete" else {}
    if state == "complete" and not is_feasible(asked, figures):
        state = "out of bounds"
    return {
        "trial": trial.number,
        "state": state,
        "copied_from": trial.copied_from,
        "parameters": dict(trial.point),
        "objectives": {path: figures.get(path) for path in asked.objectives},
        "constraints": {path: figures.get(path) for path in asked.constraints},
        "why": trial.why,
    }
