"""``wafertlm iteration``: one iteration of a model on a chip, kernel by kernel."""

from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from wafertlm.asked.iteration import IterationOptions, known_names
from wafertlm.commands.common import OutputFile, options_of, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import chip_told
from wafertlm.output import Result, emit, log, progress, warn

_COLUMNS = ("operator", "kernel", "shape", "count", "cycles of one", "share", "bound by")


def _render(result: Result) -> RenderableType:
    from wafertlm.kernel.binding import PART_NAMES

    options = result["options"]
    asked = [f"prefill {text}" for text in options["prefill"]]
    asked += [f"decode {options['decode']}"] if options["decode"] else []
    title = f"{options['model']} on {chip_told(options)}: {', '.join(asked)}"
    table = Table(title=f"{title}, level {options['level']}")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _COLUMNS[:3] else "right")
    # Stages, regions and dies work side by side: together they may take more than the iteration.
    one_by_one = sum(ran["count"] * ran["cycles"] for ran in result["kernels"])
    work_cycles = max(one_by_one, result["cycles"])
    for ran in result["kernels"]:
        parts = ran["breakdown_cycles"]
        table.add_row(
            ran["operator"],
            ran["kernel"],
            ran["shape"],
            f"{ran['count']:,}",
            f"{ran['cycles']:,}",
            f"{ran['count'] * ran['cycles'] / work_cycles:.1%}",
            PART_NAMES[max(parts, key=lambda part: parts[part])],
        )
    told = [f"{result['cycles']:,} cycles, {1e3 * result['seconds']:.4g} ms"]
    if work_cycles > 1.001 * result["cycles"]:  # beyond what is rounded
        told.append(f"{round(work_cycles):,} if one kernel ran at a time: shares are of these")
    if idle := result.get("groups", {}).get("idle_tiles"):
        told.append(f"{idle:,} tiles of the chip stand still")
    table.caption = "\n".join(told)
    note = result["error"].get("note")
    return Group(table, f"error level_pct: not known: {note}") if note else table


@click.command("iteration", cls=GroupedCommand)
@options_of(IterationOptions)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Run one iteration of a model on a chip, kernel by kernel.

    Kernels run one after another, each over all tiles, with operands in off-chip memory. On a chip
    without such a memory all stays in the tiles, in square regions with some layers each.
    """
    from wafertlm.api.iteration_run import iteration_options, iteration_run

    options = iteration_options(given)
    with progress("kernels") as told:
        run = iteration_run(options, told, lambda cost: log(f"level at: {cost}"))
    warn(run.warnings)
    emit(run.result, as_json, _render, out)
