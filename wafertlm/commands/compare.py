"""``wafertlm compare``: a command run with some options varied, and what changes."""

from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tlm.errors import InputError
from wafertlm.command_words import OPTIONS
from wafertlm.commands.common import OutputFile, output_options
from wafertlm.compare import gates_of, run_comparison, variants
from wafertlm.compare.variants import varied
from wafertlm.output import Result, emit, progress
from wafertlm.stopwatch import stopwatch


def _render(result: Result) -> RenderableType:
    first, *others = (variant["values"] for variant in result["variants"])
    tables = []
    for number, values in enumerate(others, start=1):
        table = Table(title=f"{result['options']['command']}: {_told(first)} to {_told(values)}")
        table.add_column("figure")
        for name in ("from", "to", "change", "by the levels' errors", "significant"):
            table.add_column(name, justify="right")
        for each in result["changes"]:
            if each["variant"] == number:
                table.add_row(each["metric"], *_row(each))
        tables.append(table)
    if result["gates"]:
        tables.append(_gates(result["gates"]))
    return Group(*tables)


def _gates(found: list[Result]) -> Table:
    table = Table(title="gates")
    table.add_column("router")
    for name in ("payload bits", "cells", "NAND2 equivalents", "flip-flops", "longest path",
                 "toggles", "cells of the chip"):  # fmt: skip
        table.add_column(name, justify="right")
    for each in found:
        name, router = escape(Path(each["rtl"]).name), each["router"]
        if router is None:
            table.add_row(name, *("-",) * 7)
            continue
        counts = (router["cells"], router["nand2"], router["flip_flops"])
        table.add_row(
            name,
            str(each["payload_bits"]),
            *(f"{count:,}" for count in counts),
            str(router["longest_path_cells"]),
            "-" if router["toggles"] is None else f"{router['toggles']:,}",
            f"{each['grid']}: {each['chip']['cells']:,}",
        )
    return table


def _row(change: Result) -> list[str]:
    low, high, significant = (change[name] for name in ("low_pct", "high_pct", "significant"))
    return [
        *("-" if change[end] is None else f"{change[end]:,.6g}" for end in ("from", "to")),
        _percent(change["change_pct"]),
        "not known" if low is None else f"{_percent(low)} to {_percent(high)}",
        {None: "-", True: "yes", False: "no"}[significant],
    ]


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    tiny = 0 < abs(value) < 0.005
    return f"{value:+.0e} %" if tiny else f"{value + 0.0:+.2f} %"


def _told(values: Result) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _known_names() -> dict[str, list[str]]:
    return {"commands": list(OPTIONS)}


@click.command("compare", context_settings={"ignore_unknown_options": True})
@click.argument("compared", metavar="COMMAND", required=False)
@click.argument("given", metavar="[ITS OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--vary",
    multiple=True,
    metavar="OPTION=V1,V2",
    help="What varies, such as rtl=A.toml,B.toml or set:noc.hop_cycles=1,2 (repeatable).",
)
@click.option(
    "--gates/--no-gates",
    "has_gates",
    default=True,
    help="Whether gates and toggles of routers in Verilog are counted: some minutes each, once.",
)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(_known_names)
def command(
    compared: str | None,
    given: tuple[str, ...],
    vary: tuple[str, ...],
    has_gates: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a command with some options varied, and hold figures against the first run's.

    Seeds and requests are the same in all runs. A change is significant if it is larger than what
    the errors of the levels let it be. Errors of what is equal in two runs cancel.
    """
    if compared is None:
        raise InputError(f"compare: no command given; known: {', '.join(OPTIONS)}")
    asked = variants(compared, given, vary)
    with stopwatch() as watch, progress("variants") as bar:
        found = run_comparison(compared, asked, watch, bar)
        gates = gates_of(asked, watch) if has_gates else None
    result: dict[str, Any] = found.record(varied(vary), watch.times, gates)
    emit(result, as_json, _render, out)
