"""``wafertlm explore``: which options, chips, models or routers are best, found by many runs."""

from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError, check_range
from wafertlm.command_words import OPTIONS
from wafertlm.commands.common import OutputFile, PlotFile, WholeNumber, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import CheckFailedError, Result, emit, progress
from wafertlm.stopwatch import stopwatch
from workloads.studies.campaign import default_workers

_SHOWN = 20
_MOST_WORKERS = 1000


def _render(result: Result) -> RenderableType:
    best = result["pareto"] if "pareto" in result else [result["best"]]
    best = [each for each in best if each is not None]
    asked = result["options"]
    what = "Pareto front" if "pareto" in result else "best"
    table = Table(title=f"{asked['command']}: {what} of {result['trials']} trials")
    table.add_column("trial", justify="right")
    for name in asked["parameters"]:
        table.add_column(name, justify="right", overflow="fold")
    paths = [
        *asked["objectives"],
        *(p for p in asked["constraints"] if p not in asked["objectives"]),
    ]
    for path in paths:
        table.add_column(path, justify="right", overflow="fold")
    levels = [each["confirmed"]["level"] for each in best if each["confirmed"]]
    if levels:
        for path in asked["objectives"]:
            table.add_column(f"{path} at {levels[0]}", justify="right", overflow="fold")
    for each in best[:_SHOWN]:
        figures = each["objectives"] | each["constraints"]
        cells = [str(each["trial"]), *(_shown(v) for v in each["parameters"].values())]
        cells += [_shown(figures[path]) for path in paths]
        table.add_row(*cells, *_confirmed(each["confirmed"], asked["objectives"]))
    told = [f"{result[name]} {name.replace('_', ' ')}" for name in
            ("failed", "pruned", "out_of_bounds", "copies")]  # fmt: skip
    lines = [f"trials: {result['trials']}, of these {', '.join(told)}"]
    if len(best) > _SHOWN:
        lines.append(f"{len(best) - _SHOWN} more in the result: --json, --out")
    lines += [f"trial {best[0]['trial']} again: {best[0]['command_line']}"] if best else []
    return Group(table, *lines)


def _confirmed(found: Result | None, objectives: Result) -> list[str]:
    if found is None:
        return []
    if found["problem"] is not None:
        return ["does not run", *("" for _ in list(objectives)[1:])]
    changes = (found["change_pct"][path] for path in objectives)
    return ["-" if change is None else f"{change:+.1f} %" for change in changes]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.5g}" if isinstance(value, float) else str(value)


def _known_names() -> dict[str, list[str]]:
    from wafertlm.explore.file import Kind

    return {"commands": list(OPTIONS), "samplers": list(get_args(Kind))}


@click.command("explore", cls=GroupedCommand)
@click.argument("file", metavar="FILE.toml", type=click.Path(path_type=Path), required=False)
@click.option(
    "--storage",
    metavar="URL",
    help="Database of the study: sqlite:///FILE (default: in FILE.explored), or of many machines "
    "postgresql://USER@HOST/DATABASE.",
)
@click.option("--trials", type=WholeNumber(), help="Trials in all, instead of the file's.")
@click.option("--workers", type=WholeNumber(), help="Processes; one for each core if not given.")
@click.option("--seed", type=WholeNumber(), help="Seed of the sampler, instead of the file's.")
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@click.option("--plot", type=PlotFile(), help="Draw the trials (PDF, SVG or PNG).")
@output_options(_known_names)
def command(
    file: Path | None,
    storage: str | None,
    trials: int | None,
    workers: int | None,
    seed: int | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find the best options, chips, models or routers, by many runs of a command.

    FILE.toml says what runs, what varies and what is wanted. A run that was stopped goes on.
    """
    from wafertlm.explore.explored import explored
    from wafertlm.explore.file import MOST_TRIALS

    if file is None:
        raise InputError("explore: FILE.toml not given; docs/explore.md shows one")
    for option, value, least, most in (
        ("--trials", trials, 1, MOST_TRIALS),
        ("--workers", workers, 1, _MOST_WORKERS),
        ("--seed", seed, 0, MOST_TRIALS),
    ):
        if value is not None:
            check_range(option, value, least, most)
    with stopwatch() as watch, progress("trials") as bar:
        found = explored(
            file,
            watch,
            storage=storage,
            trials=trials,
            workers=default_workers() if workers is None else workers,
            seed=seed,
            progress=bar,
        )
    result = found | watch.times
    if result["failed"] == result["trials"]:
        raise InputError(
            f"{file}: all {result['trials']} trials failed: {result['rows'][0]['why']}"
        )
    emit(result, as_json, _render, out)
    if plot is not None:
        from wafertlm.explore.plot import plot_exploration  # matplotlib takes long to load

        plot_exploration(result, plot)
    if not result.get("pareto", result.get("best")):
        raise CheckFailedError(f"none of {result['trials']} trials is within the constraints")
