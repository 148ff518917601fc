"""A study's run: what ``wafertlm study`` and `study` share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tlm.errors import InputError, choose, hold_least
from wafertlm.api.finished import FinishedRun
from wafertlm.output import Progress, complete
from wafertlm.stopwatch import stopwatch
from wafertlm.studied import kernel_figures
from wafertlm.timed_pool import TimedPool
from workloads.studies.campaign import Pool, default_workers
from workloads.studies.flatattention import study as flatattention
from workloads.studies.layered_prefill import study as layered_prefill
from workloads.studies.npusim import study as npusim
from workloads.studies.waferllm import study as waferllm

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure


class Study(NamedTuple):
    """A study.

    Attributes:
        run: Runs it.
        plots: Module that draws its plots.
        seeds: Whether something in it is random.
        chips: Whether it tells how far off chips are.
    """

    run: Callable[..., dict[str, Any]]
    plots: str
    seeds: bool
    chips: bool


STUDIES = {
    "flatattention": Study(
        partial(flatattention.run_study, kernel_figures),
        "workloads.studies.flatattention.plots",
        seeds=False,
        chips=False,
    ),
    "layered-prefill": Study(
        layered_prefill.run_study,
        "workloads.studies.layered_prefill.plots",
        seeds=True,
        chips=True,
    ),
    "npusim": Study(npusim.run_study, "workloads.studies.npusim.plots", seeds=False, chips=False),
    "waferllm": Study(
        waferllm.run_study, "workloads.studies.waferllm.plots", seeds=False, chips=True
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class StudyRun(FinishedRun):
    """A paper's study that has run."""

    _tables: ClassVar[tuple[str, ...]] = ("rows", "targets")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A record for each published figure: paper, model, error."""
        return list(self.result["rows"])

    @property
    def summary(self) -> dict[str, Any]:
        """Mean and worst errors of fitted and of predicted rows, and orderings kept."""
        return dict(self.result["summary"])

    def plot(self) -> "Figure":
        """Figures of the model against those of the paper."""
        from wafertlm.api.pictures import study_picture

        return study_picture(self.result)


def study(
    name: str,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> StudyRun:
    """Reproduce a published study, row by row: what ``wafertlm study`` does.

    Args:
        name: Of the study.
        quick: Fewer seeds and readings, kernels in closed form where many are run.
        seed: The first seed.
        workers: Processes; None: one for each core.
        resume: Folder of finished runs: kept and found again.
        progress: Hears of runs done, and of how many.

    Raises:
        InputError: for an unknown study, or an option out of range.
    """
    with stopwatch() as watch:
        figures = study_result(
            name,
            quick=quick,
            seed=seed,
            workers=default_workers() if workers is None else workers,
            kept=None if resume is None else Path(resume),
            progress=progress,
            pool=partial(TimedPool, watch),
        )
    options = {"name": name, "quick": quick, "seed": seed}
    return StudyRun(result=complete("study", options, figures, watch.times, seed=seed))


def study_result(
    name: str,
    *,
    quick: bool,
    seed: int,
    workers: int,
    kept: Path | None,
    progress: Progress | None,
    pool: Pool,
) -> dict[str, Any]:
    """Run a study and return its figures; those of a run do not depend on ``workers``.

    Raises:
        InputError: for an unknown study, or an option out of range.
    """
    choose("study", name, tuple(STUDIES))
    for option, value, least in (("--seed", seed, 0), ("--workers", workers, 1)):
        hold_least(option, value, least)
    study = STUDIES[name]
    how: dict[str, Any] = {"quick": quick, "workers": workers, "store": kept, "pool": pool}
    if study.seeds:
        how["seed"] = seed
    elif seed:
        raise InputError(f"--seed: found {seed}; nothing in study '{name}' is random: leave it out")
    return study.run(progress=progress, **how)
