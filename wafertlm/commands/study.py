"""``wafertlm study``: published results reproduced row by row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError, choose, hold_least
from wafertlm.commands.common import output_options
from wafertlm.output import Progress, Result, complete, emit, progress, store
from wafertlm.stopwatch import stopwatch
from workloads.studies.campaign import default_workers
from workloads.studies.layered_prefill.study import FULL_SEEDS, QUICK_SEEDS, run_study
from workloads.studies.profiles import record

STUDIES: dict[str, Callable[..., dict[str, Any]]] = {"layered-prefill": run_study}

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


def study_result(
    name: str,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int = 1,
    kept: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a study and return its figures; those of a run do not depend on ``workers``.

    Raises:
        InputError: for an unknown study, or an option out of range.
    """
    choose("study", name, tuple(STUDIES))
    for option, value, least in (("--seed", seed, 0), ("--workers", workers, 1)):
        hold_least(option, value, least)
    return STUDIES[name](quick=quick, seed=seed, workers=workers, store=kept, progress=progress)


def _render(result: Result) -> RenderableType:
    return Group(_rows(result), _targets(result), _other_chips(result), _summary(result))


def _rows(result: Result) -> Table:
    table = Table("row", "paper", "model", "95 % interval", "error", "", title="Published figures")
    for row in result["rows"]:
        if row["id"].startswith("NEW"):
            continue
        points = row["error_points"]
        error, unit = (row["error_pct"], "%") if points is None else (points, "points")
        table.add_row(
            row["id"],
            _number(row["paper"]),
            f"{_number(row['model'])} {row['unit']}",
            _interval(row["ci95"]),
            "-" if error is None else f"{error:+.1f} {unit}",
            "fitted" if row["fit"] else "",
        )
    return table


def _targets(result: Result) -> Table:
    table = Table("target", "found", "met", title="Targets on rows not fitted")
    for each in result["targets"]:
        table.add_row(each["target"], _number(each["found"]), "yes" if each["met"] else "NO")
    return table


def _other_chips(result: Result) -> Table:
    table = Table("case", "against", "figure", "change", "95 % interval", "winner")
    table.title = "Layered prefill on other chips"
    for each in result["other_chips"]:
        table.add_row(
            each["case"],
            each["against"],
            each["figure"],
            f"{each['change_pct']:+.1f} %",
            _interval(each["ci95_pct"]),
            each["winner"],
        )
    return table


def _summary(result: Result) -> str:
    lines = []
    for kind, errors in result["summary"].items():
        if kind == "orderings":
            lines.append(
                f"orderings kept: {errors['kept']} of {errors['of']}; of doubtful ones "
                f"{errors['doubtful_kept']} of {errors['doubtful_of']}"
            )
            continue
        unit = "% of ratio" if kind == "changes" else "%"
        lines.append(
            f"{kind}: {errors['rows']} rows, mean error {errors['mean_abs_error_pct']:.1f} {unit}, "
            f"worst {errors['max_abs_error_pct']:.1f} {unit} ({errors['worst_row']})"
        )
    met = sum(each["met"] for each in result["targets"])
    lines.append(f"targets met: {met} of {len(result['targets'])}")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _interval(ends: list[float] | None) -> str:
    return "-" if ends is None else f"{ends[0]:,.4g} to {ends[1]:,.4g}"


@click.command("study")
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help=f"{QUICK_SEEDS} seeds instead of {FULL_SEEDS}.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first seed.")
@click.option(
    "--workers", type=int, default=None, help="Processes; one for each core if not given."
)
@click.option(
    "--resume", "kept", type=_FOLDER, help="Folder of finished runs: kept and found again."
)
@click.option("--plots", type=_FOLDER, help="Write the study's plots into a folder (PNG).")
@click.option("--record", "recorded", is_flag=True, help="Store how far off the chips are.")
@click.option("--out", type=_FILE, help="Store the result (JSON).")
@output_options(lambda: {"studies": list(STUDIES)})
def command(
    name: str | None,
    quick: bool,
    seed: int,
    workers: int | None,
    kept: Path | None,
    plots: Path | None,
    recorded: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Reproduce a published study, row by row.

    With --record, `wafertlm serve` says from then on how far a chip's profile is from what was
    measured on it.
    """
    if name is None:
        raise InputError(f"study: not given; known: {', '.join(STUDIES)}")
    if recorded and quick:
        raise InputError("--record: needs all seeds; leave out --quick")
    with stopwatch() as watch, progress("runs") as bar:
        figures = study_result(
            name,
            quick=quick,
            seed=seed,
            workers=default_workers() if workers is None else workers,
            kept=kept,
            progress=bar,
        )
    options = {"name": name, "quick": quick, "seed": seed}
    result = complete("study", options, figures, watch.times, seed=seed)
    if out is not None:
        store(result, out)
    if recorded:
        record(name, result["errors_by_chip"])
    if plots is not None:
        from workloads.studies.layered_prefill.plots import draw

        draw(result, plots)
    emit(result, as_json, _render)
