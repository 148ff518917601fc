"""``wafertlm serve``: a model served on a chip under a request trace or a generated load."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from wafertlm.asked.serve import ServeOptions, known_names
from wafertlm.commands.common import (
    Number,
    OutputFile,
    PlotFile,
    options_of,
    output_options,
)
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import chip_told
from wafertlm.output import TIMES, Result, emit, progress, warn

_DISTRIBUTION = ("mean", "p50", "p90", "p95", "p99", "p99_9")
_CHECKPOINT_EVERY_S = 30.0  # the engine's
_TIMES = ("ttft_s", "tbt_ms", "e2e_s", "queue_s")


def _render(result: Result) -> RenderableType:
    times = Table("", *_DISTRIBUTION, title=_title(result["options"]))
    for name in _TIMES:
        times.add_row(name, *(_number(result[name][part]) for part in _DISTRIBUTION))
    figures = Table("figure", "value")
    kv = {f"kv {name}": value for name, value in result["kv"].items()}
    shown = {
        name: value
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in TIMES
    }
    for name, value in (shown | kv).items():
        figures.add_row(name, _number(value))
    if (capacity := result["capacity"]) is not None:
        burst = " (overload)" if capacity["burst"] else ""
        figures.add_row("highest rate, requests/s", _number(capacity["rate_rps"]) + burst)
        if capacity["rate_scale"] is not None:
            figures.add_row("highest rate, --rate-scale", _number(capacity["rate_scale"]))
    parts: list[RenderableType] = [times, figures]
    if result["interval"] is not None:
        parts.append(_intervals(result["interval"]))
    return Group(*parts, *(f"note: {note}" for note in result["notes"]))


def _intervals(interval: Mapping[str, Any]) -> Table:
    table = Table("mean of", "low", "high", title="by the error of the prices")
    for name, ends in interval.items():
        if isinstance(ends, Mapping):
            table.add_row(name, _number(ends["low"]), _number(ends["high"]))
    table.caption = interval.get("note")
    return table


def _title(options: Mapping[str, Any]) -> str:
    return f"{options['model']} on {chip_told(options)}, {options['scheduler']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"


_FILE = OutputFile()


@click.command("serve", cls=GroupedCommand)
@options_of(ServeOptions)
@click.option("--out", type=_FILE, help="Store the result (JSON).")
@click.option(
    "--plot", type=PlotFile(), help="Draw tokens over time, and by rate (PNG, SVG or PDF)."
)
@click.option("--requests-csv", type=_FILE, help="Store a row per request.")
@click.option("--checkpoint", type=_FILE, help="Keep the run's state, to go on from if killed.")
@click.option(
    "--checkpoint-every",
    type=Number(),
    default=_CHECKPOINT_EVERY_S,
    show_default=True,
    help="Seconds from one kept state to the next.",
)
@output_options(known_names)
def command(
    out: Path | None,
    plot: Path | None,
    requests_csv: Path | None,
    checkpoint: Path | None,
    checkpoint_every: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Serve a language model's requests on a chip.

    The load is a --trace or a --workload with --rate and --requests.
    """
    from tlm.plotting import save
    from wafertlm.api.serving_run import hold_drawable, serving_options, serving_run
    from wafertlm.serving import Execution

    options = serving_options(given)
    if plot is not None:
        hold_drawable(options.seeds)
    with progress("requests") as bar:
        execution = Execution(
            progress=bar,
            requests_csv=requests_csv,
            checkpoint=checkpoint,
            checkpoint_every_s=checkpoint_every,
        )
        run = serving_run(options, execution)
    warn(run.warnings)
    emit(run.result, as_json, _render, out)
    if plot is not None:
        save(run.plot(), plot)
