"""``wafertlm noc``: synthetic traffic or a collective on a mesh of the project's routers."""

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from wafertlm.commands.common import options_of, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.noc import NocOptions, run_noc
from wafertlm.noc.run import known_names
from wafertlm.output import TIMES, CheckFailedError, Result, emit
from wafertlm.stopwatch import stopwatch


def _render(result: Result) -> RenderableType:
    options = result["options"]
    what = options["traffic"] or options["collective"]
    table = Table("figure", "value", title=f"{what} on {options['mesh']}, level {options['level']}")
    for name, value in result.items():
        if isinstance(value, bool | int | float) and name not in TIMES:
            table.add_row(name, f"{value:,.6g}" if not isinstance(value, bool) else str(value))
        elif name == "latency_cycles":
            for part, cycles in value.items():
                table.add_row(f"latency_cycles {part}", f"{cycles:,.6g}")
    return Group(table)


@click.command("noc", cls=GroupedCommand)
@options_of(NocOptions)
@output_options(known_names)
def command(as_json: bool, **given: Any) -> None:
    """Run traffic or a collective on a mesh of the project's routers, or of custom ones."""
    if given["mesh"] is None:
        raise InputError("--mesh: not given; write ROWSxCOLS, such as 4x4")
    options = NocOptions(**given)
    with stopwatch() as watch:
        ran = run_noc(options, watch.compiling)
    emit(ran.record(watch.times), as_json, _render)
    if ran.figures.get("deadlock"):
        raise CheckFailedError(f"deadlock: {ran.figures['reason']}")
