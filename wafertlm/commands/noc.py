"""``wafertlm noc``: synthetic traffic or a collective on a mesh of the project's routers."""

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from wafertlm.commands.common import output_options
from wafertlm.noc import NocOptions, run_noc
from wafertlm.noc.run import known_names
from wafertlm.output import CheckFailedError, Result, emit
from wafertlm.stopwatch import stopwatch


def _render(result: Result) -> RenderableType:
    options = result["options"]
    what = options["traffic"] or options["collective"]
    table = Table("figure", "value", title=f"{what} on {options['mesh']}, level {options['level']}")
    for name, value in result.items():
        if isinstance(value, bool | int | float):
            table.add_row(name, f"{value:,.6g}" if not isinstance(value, bool) else str(value))
        elif name == "latency_cycles":
            for part, cycles in value.items():
                table.add_row(f"latency_cycles {part}", f"{cycles:,.6g}")
    return Group(table)


@click.command("noc")
@click.option("--mesh", help="ROWSxCOLS.")
@click.option("--level", default="at", show_default=True, help="rtl, at or perf.")
@click.option("--traffic", help="A pattern, or a CSV file cycle,source,destinations,flits,kind.")
@click.option("--rate", type=float, help="Flits a node creates a cycle.")
@click.option("--packet-flits", type=int, default=4, show_default=True, help="Flits of a packet.")
@click.option("--cycles", type=int, default=5000, show_default=True, help="Cycles of creation.")
@click.option("--multicast-fraction", type=float, default=0.0, help="Share of multicasts.")
@click.option("--collective", help="A collective instead of traffic.")
@click.option("--group", help="row, column, all or r0:r1,c0:c1 (half-open).")
@click.option("--source", help="ROW,COL of the collective's root.")
@click.option("--flits", type=int, help="Payload flits of the collective.")
@click.option("--fifo-depth", type=int, help="Flits a router buffer holds.")
@click.option("--stages", type=int, help="1 or 2 cycles an input; 1 if not given.")
@click.option(
    "--unprotected", is_flag=True, help="Without cut-through: multicasts are not cut, and may hang."
)
@click.option("--rtl", metavar="SPEC", help="A mesh of your own, calibrated by its SPEC.toml.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the traffic.")
@output_options(known_names)
def command(as_json: bool, **given: Any) -> None:
    """Run traffic or a collective on a mesh of the project's routers, or of your own."""
    if given["mesh"] is None:
        raise InputError("--mesh: not given; write ROWSxCOLS, such as 4x4")
    options = NocOptions(**given)
    with stopwatch() as watch:
        ran = run_noc(options, watch.compiling)
    emit(ran.record(watch.times), as_json, _render)
    if ran.figures.get("deadlock"):
        raise CheckFailedError(f"deadlock: {ran.figures['reason']}")
