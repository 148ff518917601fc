"""The study as a whole: cases run over seeds, rows, orders and targets judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tlm import children
from workloads.studies.campaign import Pool, Progress, run_tasks
from workloads.studies.layered_prefill import other_chips, paper
from workloads.studies.layered_prefill.book import Plan
from workloads.studies.layered_prefill.cases import Case, Coverage, simulate
from workloads.studies.layered_prefill.targets import judge
from workloads.studies.rows import Results, check_order, evaluate, figures, summarise

FULL_SEEDS, QUICK_SEEDS = 10, 2
# What a chip is judged by: expert loads hang on the model alone, spreads and shares on the load.
_TIMED = (
    "TTFT_mean",
    "TTFT_p95",
    "TTFT_p99",
    "TBT_mean",
    "TBT_p99",
    "E2E_mean",
    "throughput",
    "runtime",
)


def run_study(
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int = 1,
    store: Path | None = None,
    progress: Progress | None = None,
    pool: Pool = children.pool,
) -> dict[str, Any]:
    """Run all cases and return rows, summary, orders, targets and what follows for other chips.

    Cases share their requests seed by seed, so differences between them are paired.

    Args:
        quick: two seeds instead of ten.
        seed: the first seed.
        workers: processes.
        store: folder in which finished runs are kept, and found again.
        progress: called with finished and all runs.
        pool: opens the processes, if they are more than one.
    """
    published, ours = paper.plan(), other_chips.plan()
    cases = published.cases | ours.cases
    seeds = range(seed, seed + (QUICK_SEEDS if quick else FULL_SEEDS))
    of_case = {key: _seeds(case, seeds) for key, case in cases.items()}
    results = run_tasks(
        cases, of_case, simulate, workers=workers, store=store, progress=progress, pool=pool
    )
    rows = [evaluate(row, results) for row in published.rows]
    orderings = [check_order(ordering, results) for ordering in published.orderings]
    return {
        "study": "layered-prefill",
        "rows": rows + [evaluate(row, results) for row in ours.rows],
        "summary": summarise(rows) | {"orderings": _kept(orderings)},
        "errors_by_chip": errors_by_chip(published, rows),
        "orderings": orderings,
        "targets": judge(rows, orderings),
        "other_chips": other_chips.wins(ours, results),
        "curves": _curves(cases, results),
        "seeds": list(seeds),
    }


def _curves(cases: Mapping[str, object], results: Results) -> list[dict[str, Any]]:
    """Points of the plots: co-located serving on two H100 by rate, means over the seeds."""
    points = []
    for key, case in cases.items():
        if not isinstance(case, Case) or not _is_on_a_curve(case):
            continue
        load = [case.model, *([case.weights] if case.weights else []), case.chip, case.workload]
        means = {
            name: float(np.mean(figures(results, key, name)))
            for name in ("slo_attainment", "TTFT_mean", "TBT_mean")
        }
        point = {"load": "-".join(load), "scheduler": case.scheduler, "rate_rps": case.rate_rps}
        points.append(point | means)
    return sorted(points, key=lambda point: (point["load"], point["scheduler"], point["rate_rps"]))


def _is_on_a_curve(case: Case) -> bool:
    plain = Case(case.model, case.chip, case.scheduler, case.rate_rps, case.workload)
    alike = replace(case, token_budget=None, slo=plain.slo, weights=None)
    return (
        alike == plain
        and case.chip == "h100x2"
        and case.token_budget in (None, 512)
        and math.isfinite(case.rate_rps)
    )


def errors_by_chip(published: Plan, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each chip the models that have, and the errors of, times and throughput not fitted."""
    models: dict[str, set[str]] = {}
    of_chip: dict[str, list[Mapping[str, Any]]] = {}
    for row, judged in zip(published.rows, rows, strict=True):
        case = published.cases[row.case]
        plain = row.figure in _TIMED and row.against is None and not row.fit
        if isinstance(case, Coverage) or not plain or judged["error_pct"] is None:
            continue
        models.setdefault(case.chip, set()).add(case.model)
        of_chip.setdefault(case.chip, []).append(judged)
    return {
        chip: {"models": sorted(models[chip]), **summarise(judged)["predicted"]}
        for chip, judged in sorted(of_chip.items())
    }


def _seeds(case: object, seeds: Sequence[int]) -> Sequence[int]:
    """What is no serving run has nothing random."""
    return seeds if isinstance(case, Case) else seeds[:1]


def _kept(orderings: Sequence[dict[str, Any]]) -> dict[str, int]:
    firm = [each for each in orderings if not each["doubt"]]
    return {
        "kept": sum(each["kept"] for each in firm),
        "of": len(firm),
        "doubtful_kept": sum(each["kept"] for each in orderings if each["doubt"]),
        "doubtful_of": len(orderings) - len(firm),
    }
