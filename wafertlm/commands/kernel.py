"""``wafertlm kernel``: a kernel on a chip, at the level of detail that the question needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from wafertlm.asked.kernel import KernelOptions, known_names
from wafertlm.commands.common import OutputFile, WholeNumber, options_of, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import chip_told
from wafertlm.output import Result, emit, log, progress, warn
from wafertlm.stopwatch import Stopwatch

if TYPE_CHECKING:  # slow to import: only to run
    from tlm.trace import Timeline
    from wafertlm.kernel import Setup

_SHOWN_SIDE = 8


def _render(result: Result) -> RenderableType:
    from wafertlm.kernel.binding import PART_NAMES, binding

    options = result["options"]
    title = f"{options['kernel']} {options['shape']} on {options['grid']} of {chip_told(options)}"
    table = Table("figure", "value", title=f"{title}, level {options['level']}")
    table.add_row("cycles", f"{result['cycles']:,}")
    table.add_row("seconds", f"{result['seconds']:.4g}")
    table.add_row("utilization", f"{result['utilization']:.2%}")
    for part, cycles in result["breakdown_cycles"].items():
        table.add_row(f"cycles: {PART_NAMES[part]}", f"{cycles:,}")
    plan = result["plan"]
    table.add_row("plan: group", plan["group"])
    for name in ("slice", "blocks"):
        sizes = ", ".join(f"{dimension} {size:,}" for dimension, size in plan[name].items())
        table.add_row(f"plan: {name}", sizes)
    table.add_row("plan: tile_bytes", f"{plan['tile_bytes']:,}")
    if plan["received_bytes"] is not None:
        table.add_row("plan: received_bytes", f"{plan['received_bytes']:,.0f}")
    if plan["engine_utilization"] is not None:
        table.add_row("plan: engine_utilization", f"{plan['engine_utilization']:.2%}")
    for kind, error in result["error"].items():
        if kind not in ("rests_on", "note"):
            table.add_row(f"error {kind}", "not checked" if error is None else f"{error:.2f}")
    for part in ("network", "memory", "tiles"):
        for name, value in result.get(part, {}).items():
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            if name != "table":
                table.add_row(f"{part} {name}", shown)
    note = result["error"].get("note")
    told = [f"error level_pct: not known: {note}"] if note else []
    return Group(table, *told, binding(result).told)


@click.command("kernel", cls=GroupedCommand)
@click.argument("kernel", required=False, metavar="[NAME|FILE.py:NAME]")
@options_of(KernelOptions)
@click.option("--threads", type=WholeNumber(), help="Threads of level lt, which change no figure.")
@click.option("--waves", type=OutputFile(), help="Record what is Verilog at level rtl (VCD).")
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@click.option("--map", "map_path", type=OutputFile(), help="Store maps (npz).")
@click.option("--timeline", type=OutputFile(), help="Store a timeline for Perfetto (json.gz).")
@click.option("--region", help="Tiles of the timeline: r0:r1,c0:c1; else the first 8x8.")
@click.option(
    "--every", type=WholeNumber(), default=1, show_default=True, help="Every n-th operation of it."
)
@output_options(known_names)
def command(
    waves: Path | None,
    out: Path | None,
    map_path: Path | None,
    timeline: Path | None,
    region: str | None,
    every: int,
    threads: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Run a kernel on a chip.

    Matrices lie in the tiles' memories before and after; those of attention come from off-chip
    memory, whose time is counted with --memory.
    """
    from wafertlm.api.kernel_run import kernel_options, kernel_run
    from wafertlm.kernel import Execution

    options = kernel_options(given)
    shown: Timeline | None = None
    with progress(f"{options.kernel}: operations") as told:

        def execute(setup: "Setup", watch: Stopwatch) -> Execution:
            nonlocal shown
            if timeline is not None:
                shown = _timeline(setup, region, every)
            return Execution(
                waves=waves,
                recorder=shown,
                links=map_path is not None,
                progress=told,
                threads=threads,
                building=watch.compiling,
                cost=lambda cost: log(f"level at: {cost}"),
            )

        run = kernel_run(options, execute)
    warn(run.warnings)
    if map_path is not None:
        run.ran.store_maps(map_path)
    if timeline is not None and shown is not None:
        _store_timeline(shown, timeline)
    emit(run.result, as_json, _render, out)


def _store_timeline(shown: "Timeline", path: Path) -> None:
    shown.write(path)
    if shown.dropped or shown.dropped_transfers:
        log(
            f"timeline: no room for {shown.dropped:,} spans and {shown.dropped_transfers:,} "
            "transfers; show fewer by --region or --every"
        )


def _timeline(setup: "Setup", region: str | None, every: int) -> "Timeline":
    from tlm.interconnect.packets import TileSet
    from tlm.interconnect.traffic import parse_rectangle
    from tlm.trace import Timeline

    rows, cols = setup.span
    shown = TileSet(range(min(rows, _SHOWN_SIDE)), range(min(cols, _SHOWN_SIDE)))
    if region is not None:
        try:
            shown = parse_rectangle(region, rows, cols)
        except InputError as error:
            raise InputError(f"--region: {error}") from error
    return Timeline(shown, cols, every=every, y_first=setup.timing.y_first)
