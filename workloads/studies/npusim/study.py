"""The study as a whole: cases run, rows and targets judged."""

from pathlib import Path
from typing import Any

from tlm import children
from workloads.studies.campaign import Figures, Pool, Progress, run_once
from workloads.studies.npusim.cases import PromptCase, prompt_figures
from workloads.studies.npusim.collectives import (
    CollectiveCase,
    collective_cases,
    collective_figures,
    collective_rows,
)
from workloads.studies.npusim.figure_7 import (
    ModeCase,
    figure_7,
    figure_7_cases,
    figure_7_targets,
    mode_figures,
)
from workloads.studies.npusim.figure_8 import (
    SingleCase,
    figure_8,
    figure_8_cases,
    figure_8_targets,
    single_figures,
)
from workloads.studies.npusim.figure_9 import figure_9, figure_9_cases, figure_9_targets
from workloads.studies.npusim.figure_10 import figure_10, figure_10_cases, figure_10_targets
from workloads.studies.npusim.figure_11 import figure_11, figure_11_cases, figure_11_targets
from workloads.studies.npusim.figure_12 import figure_12, figure_12_cases, figure_12_targets
from workloads.studies.npusim.figure_13 import (
    StagedCase,
    figure_13,
    figure_13_cases,
    figure_13_targets,
    staged_figures,
)
from workloads.studies.npusim.figure_14 import figure_14, figure_14_cases, figure_14_targets
from workloads.studies.npusim.judge import by_reading
from workloads.studies.npusim.layered import (
    LayeredCase,
    layered_cases,
    layered_figures,
    layered_rows,
)
from workloads.studies.npusim.served import ServedCase, served_figures
from workloads.studies.npusim.tables import table_2, table_3
from workloads.studies.rows import summarise

_Case = PromptCase | ServedCase | SingleCase | ModeCase | StagedCase | CollectiveCase | LayeredCase


def simulate(case: _Case, _: int) -> Figures:
    """Figures of a case; nothing in it is random."""
    if isinstance(case, CollectiveCase):
        return collective_figures(case)
    if isinstance(case, LayeredCase):
        return layered_figures(case)
    if isinstance(case, ModeCase):
        return mode_figures(case)
    if isinstance(case, SingleCase):
        return single_figures(case)
    if isinstance(case, StagedCase):
        return staged_figures(case)
    return served_figures(case) if isinstance(case, ServedCase) else prompt_figures(case)


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
        quick: Prompts with links of 8 GB/s alone; of figure 11 what was plotted.
        workers: Processes.
        store: Folder in which finished runs are kept, and found again.
        progress: Called with finished and all runs.
        pool: Opens the processes, if they are more than one.
    """
    wanted = [
        *figure_7_cases(),
        *figure_8_cases(),
        *figure_9_cases(quick=quick),
        *figure_10_cases(quick=quick),
        *figure_11_cases(quick=quick),
        *figure_12_cases(),
        *figure_13_cases(),
        *figure_14_cases(),
        *collective_cases(),
        *layered_cases(),
    ]
    found = run_once(wanted, simulate, workers=workers, store=store, progress=progress, pool=pool)
    rows = [
        *figure_7(found),
        *figure_8(found),
        *figure_9(found, quick=quick),
        *figure_10(found, quick=quick),
        *figure_11(found, quick=quick),
        *figure_12(found),
        *figure_13(found),
        *figure_14(found),
        *table_2(),
        *table_3(),
        *collective_rows(found),
        *layered_rows(found),
    ]
    targets = [
        *figure_7_targets(rows),
        *figure_8_targets(rows),
        *figure_9_targets(rows, quick=quick),
        *figure_10_targets(rows, quick=quick),
        *figure_11_targets(rows),
        *figure_12_targets(rows),
        *figure_13_targets(rows),
        *figure_14_targets(rows),
    ]
    judged = [each["held"] for each in rows if each["held"] is not None]
    kept = {"kept": sum(each["met"] for each in targets), "of": len(targets)}
    return {
        "study": "npusim",
        "rows": rows,
        "summary": summarise(rows) | {"orderings": kept | {"doubtful_kept": 0, "doubtful_of": 0}},
        "held": {"rows": sum(judged), "of": len(judged)},
        "targets": targets,
        "readings": by_reading(targets),
    }
