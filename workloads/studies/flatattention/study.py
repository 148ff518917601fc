"""The study as a whole: cases run, rows and targets judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlm import children
from workloads.studies.campaign import Figures, Pool, Progress, run_once
from workloads.studies.flatattention.cases import (
    Case,
    KernelCase,
    LineCase,
    line_figures,
    share_figures,
)
from workloads.studies.flatattention.chip import chip_facts
from workloads.studies.flatattention.facts import (
    DEPTHS,
    LENGTHS,
    PLANNED,
    VARIANTS,
    Fact,
    facts,
)
from workloads.studies.flatattention.served import (
    ServedFact,
    WaferServeCase,
    served_facts,
    served_figures,
)
from workloads.studies.flatattention.wafer import (
    ExpertsCase,
    WaferCase,
    WaferFact,
    experts_figures,
    published_rows,
    wafer_facts,
    wafer_figures,
    wafer_targets,
)
from workloads.studies.rows import GIVEN, interval_of, summarise

AnyCase = Case | WaferCase | ExpertsCase | WaferServeCase
AnyFact = Fact | WaferFact | ServedFact

#: Runs a kernel; it is of the package that has the commands, which knows this one.
KernelRun = Callable[[KernelCase], Figures]


def simulate(kernel: KernelRun, case: AnyCase, _: int) -> Figures:
    """Figures of a case; nothing in it is random."""
    if isinstance(case, WaferCase):
        return wafer_figures(case)
    if isinstance(case, ExpertsCase):
        return experts_figures(case)
    if isinstance(case, WaferServeCase):
        return served_figures(case)
    if isinstance(case, KernelCase):
        return kernel(case)
    return line_figures(case) if isinstance(case, LineCase) else share_figures(case)


def run_study(
    kernel: KernelRun,
    *,
    quick: bool = False,
    workers: int = 1,
    store: Path | None = None,
    progress: Progress | None = None,
    pool: Pool = children.pool,
) -> dict[str, Any]:
    """Run all cases and return rows, summary and targets.

    Args:
        kernel: Runs a kernel; a function of a module.
        quick: Figure 12 and appendix D by closed forms.
        workers: Processes.
        store: Folder in which finished runs are kept, and found again.
        progress: Called with finished and all runs.
        pool: Opens the processes, if they are more than one.
    """
    every: list[AnyFact] = [*facts(quick=quick), *wafer_facts(), *served_facts()]
    cases = [case for fact in every for case in (fact.case, fact.over) if case]
    run = partial(simulate, kernel)
    found = run_once(cases, run, workers=workers, store=store, progress=progress, pool=pool)
    rows = [_row(fact, found) for fact in every]
    rows += list(_over_all(rows))
    rows += [
        _judged(name, unit, None, said, "published", None, note)
        for name, unit, said, note in published_rows()
    ]
    chip = [
        _judged(fact.name, fact.unit, fact.model, fact.paper, "chip", None, fact.note, fit=GIVEN)
        for fact in chip_facts()
    ]
    return {
        "study": "flatattention",
        "rows": chip + rows,
        "summary": summarise(rows) | {"orderings": _orderings(rows)},
        "targets": _targets(rows),
    }


def _row(fact: AnyFact, found: Mapping[str, Figures]) -> dict[str, Any]:
    here, over = found[repr(fact.case)], None if fact.over is None else found[repr(fact.over)]
    model = here[fact.figure]
    level_pct = 0.0 if fact.figure in PLANNED else here.get("level_pct")
    if over is not None:
        model = _with(over[fact.figure], model, lambda there, own: there / own)
        if fact.figure not in PLANNED:
            level_pct = _with(over.get("level_pct"), level_pct, lambda there, own: there + own)
    told = fact.name, fact.unit, model, fact.paper
    row = _judged(*told, _level(fact.case), level_pct, fact.note)
    return row | {"interval": interval_of(here, fact.figure)}


def _judged(
    name: str,
    unit: str,
    model: float | None,
    paper: float | None,
    level: str,
    level_pct: float | None,
    note: str,
    *,
    fit: bool | str = False,
) -> dict[str, Any]:
    return {
        "id": name,
        "paper": paper,
        "model": model,
        "error_pct": _with(model, paper, lambda value, said: 100 * (value / said - 1)),
        "error_points": None,
        "fit": fit,
        "unit": unit,
        "ci95": None,
        "interval": None,
        "level": level,
        "level_pct": level_pct,
        "note": note,
    }


def _with(
    one: float | None, other: float | None, join: Callable[[float, float], float]
) -> float | None:
    return None if one is None or other is None else join(one, other)


def _level(case: AnyCase) -> str:
    if isinstance(case, WaferCase | ExpertsCase | WaferServeCase):
        return "perf"
    if isinstance(case, KernelCase):
        return case.level
    return "at" if isinstance(case, LineCase) else "operators"


class _Rows:
    """The model's values, by the rows' names."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = {row["id"]: row for row in rows}

    def __getitem__(self, name: str) -> float:
        value = self._rows[name]["model"]
        return float("nan") if value is None else float(value)

    def named(self, start: str, end: str) -> dict[str, float]:
        """Values of rows whose names begin and end like that."""
        return {
            name: self[name] for name in self._rows if name.startswith(start) and name.endswith(end)
        }

    def eight(self, variant: str, metric: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """A metric of a variant in all cases of figure 8."""
        cases = [f"F8/D{depth}-S{length}" for depth in DEPTHS for length in LENGTHS]
        return np.array([self[f"{case}/{variant}/{metric}"] for case in cases])


def _orderings(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    kept = [each["met"] for each in _ordered(_Rows(rows))]
    return {"kept": sum(kept), "of": len(kept), "doubtful_kept": 0, "doubtful_of": 0}


def _ordered(rows: _Rows) -> list[dict[str, Any]]:
    """Figure 8: who is faster than whom, in how many of its cases."""
    time = {name: rows.eight(name, "runtime") for name in VARIANTS}
    least = np.min([time[name] for name in VARIANTS if name != "FlatAsync"], axis=0)
    flash = np.minimum(time["FA-2"], time["FA-3"])
    slower, faster = time["FlatSC"] > flash, time["FlatHC"] < flash
    fastest, every = time["FlatAsync"] < least, len(flash)
    return [
        _target("F8: FlatSC is slower than FlashAttention in all", slower.sum(), every),
        _target("F8: FlatHC is faster than FlashAttention in most", faster.sum(), every // 2 + 1),
        _target("F8: FlatAsync is the fastest in all", fastest.sum(), every),
    ]


def _targets(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    model = _Rows(rows)
    near = [
        ("F7/multicast/128KiB/tree_over_network", 15),
        ("F7/multicast/128KiB/sequential_over_network", 15),
        ("F7/sum/128KiB/tree_over_network", 15),
        ("F7/sum/128KiB/sequential_over_network", 15),
        ("F8/D128-S4096/FlatAsync/speedup_over_FA-3", 12),
        ("F8/D128-S4096/FlatAsync/traffic_of_FA-3_over", 4),
    ]
    errors = {row["id"]: row["error_pct"] for row in rows}
    found = [
        _target(f"{name}: within {most} %", errors[name], most, within=True) for name, most in near
    ]
    use = np.concatenate([model.eight(name, "hbm_use") for name in ("FA-2", "FA-3")])
    shown = ((use >= 70) & (use <= 85)).sum()
    found.append(_target("F8: HBM use of FA-2 and FA-3 of 70 to 85 %, in all", shown, len(use)))
    sent = (model.eight("FlatTC", "communication") > 65).sum()
    found.append(
        _target("F8: FlatTC communicates for more than 65 %, in all", sent, len(LENGTHS) * 2)
    )
    found += _ordered(model)
    for name, said, points in (
        ("F9/S4096/16x16/utilization", 92.7, 3),
        ("F9/S4096/32x32/utilization", 92.3, 3),
        ("F9/S512/32x32/engine_while_active", 20.0, 5),
        ("F11/slice128/engine/utilization", 98.0, 3),
        ("F12/compute-bound/Flat/mean_utilization", 86.0, 6),
        ("F12/memory-bound/Flat/mean_hbm_use", 78.0, 6),
    ):
        text = f"{name}: within {points} points of {said:g} %"
        found.append(_target(text, model[name] - said, points, within=True))
    ours = "TII/Ours1/EP32-PP2-b256/"
    off = {name: errors[ours + name] for name in ("throughput", "tpot")}
    for text, away, most in wafer_targets(off, model.named("F13", "")):
        found.append(_target(text, away, most, within=True))
    return found


def _over_all(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Figures 8 and 12 over all their cases: means, and the best."""
    model = _Rows(rows)
    flash = np.concatenate([model.eight(name, "hbm_use") for name in ("FA-2", "FA-3")])
    uses = model.named("F12/", "/Flat/utilization")
    both = [(use, model[name.replace("utilization", "hbm_use")]) for name, use in uses.items()]
    computes = [engine for engine, memory in both if engine >= memory]
    moves = [memory for engine, memory in both if engine < memory]
    for name, values, over, said in (
        ("F8/all/FA/best_hbm_use", flash, np.max, 80.0),
        ("F12/compute-bound/Flat/mean_utilization", computes, np.mean, 86.0),
        ("F12/compute-bound/Flat/best_utilization", computes, np.max, 95.6),
        ("F12/memory-bound/Flat/mean_hbm_use", moves, np.mean, 78.0),
        ("F12/memory-bound/Flat/best_hbm_use", moves, np.max, 92.1),
    ):
        value = float(over(values)) if len(values) and np.isfinite(values).all() else None
        level = next(row["level"] for row in rows if row["id"].startswith(name.split("/")[0] + "/"))
        note = "bound by what is used more" if name.startswith("F12") else "of both, in all cases"
        yield _judged(name, "%", value, said, level, None, note)


def _target(
    text: str, found: float | None, wanted: float, *, within: bool = False
) -> dict[str, Any]:
    """Met if what was found is as much as wanted, or no further away than that."""
    if found is None or not np.isfinite(found):
        return {"target": text, "found": None, "wanted": float(wanted), "met": False}
    met = abs(found) <= wanted if within else found >= wanted
    return {"target": text, "found": float(found), "wanted": float(wanted), "met": bool(met)}
