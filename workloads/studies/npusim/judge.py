"""Rows and targets, and what holds."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

#: A figure holds if it is no further from the printed one.
HELD_PCT = 15.0


def row(
    name: str,
    model: float | None,
    paper: float | None,
    unit: str,
    level: str,
    note: str,
    *,
    within_pct: float = HELD_PCT,
    held: bool | None = None,
    interval: list[float] | None = None,
) -> dict[str, Any]:
    """A row; whether it holds is by its error, unless that is said.

    ``interval`` is by the error of the prices, where requests are served.
    """
    error = None
    if model is not None and paper:
        error = 100 * (model / paper - 1)
    if held is None and paper is not None and model is not None:
        held = model == paper if error is None else abs(error) <= within_pct + 1e-9
    return {
        "id": name,
        "paper": paper,
        "model": model,
        "error_pct": error,
        "error_points": None,
        "held": held,
        "fit": False,
        "unit": unit,
        "ci95": None,
        "interval": interval,
        "level": level,
        "level_pct": None,
        "note": note,
    }


def target(text: str, found: float | None, met: bool) -> dict[str, Any]:
    """A claim of the paper under a reading, and whether it holds."""
    known = found is not None and math.isfinite(found)
    return {"target": text, "found": found if known else None, "met": bool(met and known)}


def by_reading(targets: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Claims of each figure that hold under each reading, which their texts begin with."""
    counted: dict[str, list[bool]] = {}
    for each in targets:
        counted.setdefault(each["target"].partition(": ")[0], []).append(each["met"])
    return [{"reading": name, "held": sum(met), "of": len(met)} for name, met in counted.items()]


def within_factor(found: float | None, said: float, factor: float) -> bool:
    """Whether a figure is within a factor of what was said."""
    return found is not None and said / factor <= found <= said * factor
