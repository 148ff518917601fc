"""``wafertlm noc``: synthetic traffic or a collective on a mesh of the project's routers."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from wafertlm.asked.noc import NocOptions, known_names
from wafertlm.commands.common import OutputFile, options_of, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import TIMES, CheckFailedError, Result, emit
from wafertlm.signals import ends_at_once
from wafertlm.stopwatch import stopwatch

_LOAD = "flits a node a cycle"
#: Units of a result's figures; the others are counts.
_UNITS = {
    "offered": _LOAD,
    "accepted": _LOAD,
    "saturation": f"{_LOAD}, the highest accepted",
    "source_queue_cycles": "cycles, mean, before the head is injected",
    "cycles": "cycles, first injection to last ejection",
    "flit_hops": "flits times links",
    "addition_cycles": "cycles",
}
_NOTES = {
    False: "not saturated: at least 98 % of the offered load is accepted.",
    True: "saturated: less than 98 % of the offered load is accepted. Source queues grow, so "
    "latencies depend on --cycles. --saturation finds the highest load that is carried.",
}


def _render(result: Result) -> RenderableType:
    options = result["options"]
    what = options["traffic"] or options["collective"]
    title = f"{what} on {options['mesh']}, level {options['level']}"
    table = Table("figure", "value", "unit", title=title)
    for name, value in result.items():
        if isinstance(value, bool):
            table.add_row(name, "yes" if value else "no", "")
        elif isinstance(value, int | float) and name not in TIMES:
            table.add_row(name, f"{value:,.6g}", _UNITS.get(name, ""))
        elif name == "latency_cycles":
            for told, cycles in _latencies(result):
                table.add_row(told, f"{cycles:,.6g}", "cycles")
    return Group(table, *_notes(result))


def _notes(result: Result) -> Iterator[str]:
    """What to make of the load, and how far the model is off where it is not exact."""
    if (saturated := result.get("saturated")) is not None:
        yield _NOTES[saturated]
    if off_pct := result["error"]["level_pct"]:
        yield (
            f"error: up to {off_pct:.3g} %, as in the worst of the calibration's blind checks. "
            "Percentiles and accepted loads were not compared."
        )


def _latencies(result: Result) -> Iterator[tuple[str, float]]:
    """In the network, and of the mean also from creation on."""
    for part, cycles in result["latency_cycles"].items():
        yield f"latency in the network, {part}", cycles
    in_all = result["latency_cycles"]["mean"] + result["source_queue_cycles"]
    yield "latency with the source's queue, mean", in_all


@click.command("noc", cls=GroupedCommand)
@options_of(NocOptions)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Run traffic or a collective on a mesh of the project's routers, or of custom ones."""
    from wafertlm.noc.run import run_noc

    if given["mesh"] is None:
        raise InputError("--mesh: not given; write ROWSxCOLS, such as 4x4")
    options = NocOptions(**given)
    # Verilog has programs and folders of its own, which are to end with it.
    with stopwatch() as watch, nullcontext() if options.level == "rtl" else ends_at_once():
        ran = run_noc(options, watch.compiling)
    emit(ran.record(watch.times), as_json, _render, out)
    if ran.figures.get("deadlock"):
        raise CheckFailedError(f"deadlock: {ran.figures['reason']}")
