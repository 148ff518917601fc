"""The study as a whole: cases run, rows and targets judged."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlm import children
from workloads.studies.campaign import Figures, Pool, Progress, run_once
from workloads.studies.rows import interval_of
from workloads.studies.waferllm.beyond_facts import beyond_facts
from workloads.studies.waferllm.cases import CHIP, Case, KernelCase, LayerCase, simulate
from workloads.studies.waferllm.facts import (
    FITTED,
    GEMM_SIDES,
    GEMM_SIZES,
    GEMV_SIDES,
    GEMV_SIZES,
    NOT_SCORED,
    PREDICTED,
    Fact,
    facts,
)


def run_study(
    *,
    quick: bool = False,
    workers: int = 1,
    store: Path | None = None,
    progress: Progress | None = None,
    pool: Pool = children.pool,
) -> dict[str, Any]:
    """Run all cases and return rows, summary and targets.

    Args:
        quick: Closed forms alone, no samples at level `lt`.
        workers: Processes.
        store: Folder in which finished runs are kept, and found again.
        progress: Called with finished and all runs.
        pool: Opens the processes, if they are more than one.
    """
    every = [*facts(quick=quick), *beyond_facts()]
    cases = [fact.case for fact in every if fact.case is not None]
    found = run_once(cases, simulate, workers=workers, store=store, progress=progress, pool=pool)
    rows = [_row(fact, found) for fact in every]
    orderings = _orderings({row["id"]: row["model"] for row in rows})
    kept = {"kept": sum(each["met"] for each in orderings), "of": len(orderings)}
    return {
        "study": "waferllm",
        "rows": rows,
        "summary": summary(rows) | {"orderings": kept | {"doubtful_kept": 0, "doubtful_of": 0}},
        "targets": [*_targets(rows), *orderings],
        "errors_by_chip": {CHIP: {"models": _predicted_models(every), **summary(rows)[PREDICTED]}},
    }


def _predicted_models(every: Sequence[Fact]) -> list[str]:
    """Models of rows that have a published value which nothing was fitted to."""
    return sorted(
        {
            fact.case.model
            for fact in every
            if fact.fit == PREDICTED and fact.paper is not None and isinstance(fact.case, LayerCase)
        }
    )


def _row(fact: Fact, found: Mapping[str, Figures]) -> dict[str, Any]:
    model = None if fact.case is None else found[repr(fact.case)][fact.figure]
    error = None
    if model is not None and fact.paper is not None:
        error = 100 * (model / fact.paper - 1)
    return {
        "id": fact.name,
        "paper": fact.paper,
        "model": model,
        "error_pct": error,
        "error_points": None,
        "fit": fact.fit,
        "unit": fact.unit,
        "ci95": None,
        "interval": None if fact.case is None else interval_of(found[repr(fact.case)], fact.figure),
        "level": _level(fact.case),
        "note": fact.note,
    }


def _level(case: Case | None) -> str | None:
    if case is None:
        return None
    return case.level if isinstance(case, KernelCase) else "perf"


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and worst absolute error of fitted and of predicted rows, together and by table."""
    kinds: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        if row["fit"] == NOT_SCORED or row["error_pct"] is None:
            continue
        error = abs(row["error_pct"]), row["id"]
        for kind in (row["fit"], f"{row['fit']} of {_group(row['id'])}"):
            kinds[kind].append(error)
    whole = [kind for kind in (FITTED, PREDICTED) if kind in kinds]
    order = [*whole, *sorted(kind for kind in kinds if kind not in whole)]
    return {
        kind: {
            "rows": len(kinds[kind]),
            "mean_abs_error_pct": float(np.mean([error for error, _ in kinds[kind]])),
            "max_abs_error_pct": max(kinds[kind])[0],
            "worst_row": max(kinds[kind])[1],
        }
        for kind in order
    }


def _group(name: str) -> str:
    """Table and model of a row, and the system if it is another than WaferLLM."""
    table, model, _, metric = name.split("/")
    return f"{table}, T10" if metric.startswith("T10") else f"{table}, {model}"


#: Rows by the start and the end of their names, and the worst and the mean error wanted.
_WANTED = (
    ("T3/LLaMA3-8B", "/prefill", 3.0, None),
    ("T3/LLaMA2-13B", "/prefill", 4.0, None),
    ("T4/LLaMA3-8B", "/decode", 2.5, None),
    ("T4/LLaMA2-13B", "/decode", 3.5, None),
    ("T2/LLaMA3-8B", "/end_to_end", 7.0, None),
    ("T4/", "/T10_decode", 6.0, 3.0),
    ("T5/LLaMA3-8B", "/shift", 0.2, None),
    ("T5/LLaMA3-8B", "/concat", 0.0, None),
    ("T6/GEMV-16K", "/latency", 6.0, None),
    ("T", "/energy_ratio", 0.03, None),
)


def _targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for start, end, worst, mean in _WANTED:
        errors = [
            abs(row["error_pct"])
            for row in rows
            if row["id"].startswith(start)
            and row["id"].endswith(end)
            and row["error_pct"] is not None
        ]
        yield _target(f"{start}*{end}: worst within {worst} %", max(errors), worst)
        if mean is not None:
            yield _target(f"{start}*{end}: mean within {mean} %", float(np.mean(errors)), mean)


def _target(text: str, found: float, most: float) -> dict[str, Any]:
    return {"target": text, "found": found, "wanted": most, "met": found <= most}


def _orderings(model: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """Figures 9 and 10: who is faster than whom, and what rises; each by its ratio."""
    found = []

    def holds(text: str, ratio: float, kept: bool) -> None:
        found.append({"target": text, "found": ratio, "wanted": 1.0, "met": bool(kept)})

    for name in GEMM_SIZES:
        for side in GEMM_SIDES:
            times = [
                _cycles(model, f"F9/GEMM-{name}/{side}x{side}/{kernel}")
                for kernel in ("MeshGEMM", "Cannon", "SUMMA")
            ]
            next_over = min(times[1:]) / times[0]
            holds(f"F9: MeshGEMM is first, {name} on {side}x{side}", next_over, next_over > 1)
    least, most = GEMM_SIDES[0], GEMM_SIDES[-1]
    for kernel, rises in (("SUMMA", True), ("Cannon", True), ("MeshGEMM", False)):
        first, last = (
            _cycles(model, f"F9/GEMM-2K/{side}x{side}/{kernel}") for side in (least, most)
        )
        rise = last / first
        if rises:
            holds(f"F9: {kernel} at 2K rises from {least} to {most}", rise, rise > 1)
        else:
            holds(f"F9: {kernel} at 2K is stable, within 15 %", rise, abs(rise - 1) <= 0.15)
    for name, low, high in (("2K", 1.4, np.inf), ("8K", 1.1, 1.4)):
        start = f"F9/GEMM-{name}/{most}x{most}"
        ratio = _cycles(model, f"{start}/SUMMA") / _cycles(model, f"{start}/MeshGEMM")
        bounds = f"{low:g} or more" if np.isinf(high) else f"{low:g} to {high:g}"
        text = f"F9: SUMMA over MeshGEMM at {name} on {most}x{most}, {bounds}"
        found.append({"target": text, "found": ratio, "wanted": low, "met": low <= ratio <= high})
    for name in GEMV_SIZES:
        best = [
            min(GEMV_SIDES, key=lambda side: _cycles(model, f"F10/GEMV-{name}/{side}x{side}/{k}"))
            for k in ("MeshGEMV", "Cerebras-root-in-middle", "Cerebras-root-at-end")
        ]
        later = best[0] > max(best[1:])
        told = ", ".join(f"{side}x{side}" for side in best)
        text = f"F10: MeshGEMV at {name} turns later than both roots of the baseline: {told}"
        holds(text, best[0] / max(best[1:]), later)
    return found


def _cycles(model: Mapping[str, float | None], name: str) -> float:
    value = model[f"{name}_cycles"]
    assert value is not None
    return value
