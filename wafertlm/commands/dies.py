"""``wafertlm dies``: collectives between the dies of a wafer, alone or behind kernels."""

from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from wafertlm.asked.dies import DiesOptions, known_names
from wafertlm.commands.common import OutputFile, options_of, output_options, required
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import chip_told, contents, recorded
from wafertlm.output import Result, complete, emit
from wafertlm.stopwatch import stopwatch


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['collective']} of {options['bytes']:,} bytes on {chip_told(options)}"
    table = Table("figure", "value", title=f"{title}, level {options['level']}")
    table.add_row("microseconds", f"{result['seconds'] * 1e6:,.3f}")
    table.add_row("messages", f"{result['messages']:,}")
    table.add_row("bytes moved", f"{result['bytes']:,}")
    table.add_row("bytes over the busiest link", f"{result['busiest_link_bytes']:,}")
    table.add_row("utilization of that link", f"{result['busiest_link_utilization']:.1%}")
    error = result["perf_error_pct"]
    table.add_row("error of level perf", "not checked" if error is None else f"{error:+.1f} %")
    for name, value in result.get("run", {}).items():
        label = name.removesuffix("_s").replace("_", " ")
        table.add_row(f"run, microseconds: {label}", f"{value * 1e6:,.3f}")
    return table


@click.command("dies", cls=GroupedCommand)
@options_of(DiesOptions)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Run a collective between the dies of a wafer.

    With --kernel-s, kernels and collectives in turns and overlapped in micro-batches too.
    """
    from tlm.chips import find_tiles
    from wafertlm.dies import run_dies

    required("dies", given, ("chip", "collective", "bytes"))
    options = DiesOptions(**given)
    chip = find_tiles(options.chip, options.set)
    with stopwatch() as watch:
        figures = run_dies(options, chip)
    kept, held = recorded(options, chip=chip), contents(options, chip=chip)
    result = complete("dies", kept, figures, watch.times, contents=held)
    emit(result, as_json, _render, out)
