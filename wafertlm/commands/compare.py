"""``wafertlm compare``: a command run with some options varied, and what changes."""

from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.table import Table

from wafertlm.command_words import OPTIONS
from wafertlm.commands.common import LibertyFile, OutputFile, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import Result, emit, progress


def _render(result: Result) -> RenderableType:
    first, *others = (variant["values"] for variant in result["variants"])
    tables: list[RenderableType] = []
    for number, values in enumerate(others, start=1):
        command = result["options"]["command"]
        title = f"{command}: {_told(first)} to {_told(values)}"
        changes = [each for each in result["changes"] if each["variant"] == number]
        pairs = [each for each in result["pairs"] if each["variant"] == number]
        tables += [_changes(command, title, changes), *_measured(pairs)]
        both = [result["variants"][each]["result"] for each in (0, number)]
        tables += _unknown(command, changes, both)
    if result["gates"]:
        tables.append(_gates(result["gates"]))
    return Group(*tables)


def _changes(command: str, title: str, changes: list[Result]) -> RenderableType:
    """Figures that change or may; names of those that do not stand below."""
    there = [each for each in changes if each["from"] is not None or each["to"] is not None]
    same = [each for each in there if _is_same(command, each)]
    told = f"unchanged: {', '.join(each['metric'] for each in same)}" if same else None
    if len(same) == len(there):
        return f"{title}\n{told}"
    table = Table(title=title, caption=told, caption_justify="left")
    table.add_column("figure")
    for name in ("from", "to", "change", "by the levels' errors", "significant"):
        table.add_column(name, justify="right")
    for each in there:
        if each not in same:
            table.add_row(each["metric"], *_row(each))
    return table


def _measured(pairs: list[Result]) -> list[str]:
    """On what errors of the change were measured, and where errors of both runs add up."""
    known = [each for each in pairs if each["why_not"] is None]
    told = []
    if known:
        worst = max(known, key=lambda each: each["worst_pct"])
        told.append(
            f"errors of the change: of {sum(each['cases'] for each in known)} small cases of "
            f"{len(known)} kernels at levels {worst['level']} and at; the largest is "
            f"{worst['worst_pct']:.2g} % ({worst['kernel']})"
        )
    if missing := [f"{each['kernel']} ({each['why_not']})" for each in pairs if each["why_not"]]:
        told.append(f"errors of both add up: {', '.join(missing)}")
    return told


def _unknown(command: str, changes: list[Result], both: list[Result]) -> list[str]:
    """Why bounds are not known, of routers that a level does not model."""
    from wafertlm.compare.change import has_bounds  # slow to import: only to run

    if all(each["low_pct"] is not None for each in changes if has_bounds(command, each["metric"])):
        return []
    notes = [each["error"].get("note") for each in both]
    return [f"not known: {note}" for note in dict.fromkeys(notes) if note]


def _is_same(command: str, change: Result) -> bool:
    """Whether a figure is the same in both, and not only where errors are not known."""
    from wafertlm.compare.change import has_bounds  # slow to import: only to run

    if change["low_pct"] is None and has_bounds(command, change["metric"]):
        return False
    return bool(change["from"] == change["to"] and not change["low_pct"] and not change["high_pct"])


def _gates(found: list[Result]) -> Table:
    """A column a router; what it has more of than the first is told in per cent."""
    from wafertlm.compare.gates import FIGURES

    first = found[0]["router"]
    table = Table(title="gates of a router")
    table.add_column("figure")
    for each in found:
        table.add_column(each["rtl"], justify="right")
    for name, told in FIGURES.items():
        routers = [each["router"] for each in found]
        if any(router is not None and router[name] is not None for router in routers):
            table.add_row(told, *(_counted(router, first, name) for router in routers))
    table.add_row(
        "payload bits",
        *("-" if each["chip"] is None else str(each["payload_bits"]) for each in found),
    )
    table.add_row("cells of the chip", *(_of_chip(each) for each in found))
    return table


def _counted(router: Result | None, first: Result | None, name: str) -> str:
    if router is None or router[name] is None:
        return "-"
    more = ""
    if router is not first and first is not None and first[name]:
        more = f" ({round(100 * (router[name] / first[name] - 1)):+d} %)"
    return f"{router[name]:,.0f}{more}"


def _of_chip(each: Result) -> str:
    if each["chip"] is None:
        return "-"
    return f"{each['chip']['cells']:,} on {each['grid']}"


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


@click.command("compare", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
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
    help="Whether gates of routers in Verilog are counted: some minutes each, once.",
)
@click.option(
    "--toggles/--no-toggles",
    "has_toggles",
    default=True,
    help="Whether toggles are counted with them: a minute or two each, once.",
)
@click.option(
    "--liberty",
    type=LibertyFile(),
    help="A library of cells in Liberty's format, for the routers' areas.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Routers without a calibration get a quick one, on the size of the fit alone.",
)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(_known_names)
def command(
    compared: str | None,
    given: tuple[str, ...],
    vary: tuple[str, ...],
    has_gates: bool,
    has_toggles: bool,
    liberty: Path | None,
    quick: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a command with some options varied, and hold figures against the first run's.

    Seeds and requests are the same in all runs. A change is significant if it is larger than what
    the errors of the levels let it be. Errors of what is equal in two runs cancel.
    """
    from wafertlm.api.comparison_run import comparison_run

    with progress("variants") as bar:
        run = comparison_run(
            compared or "",
            given,
            vary,
            bar,
            has_gates=has_gates,
            has_toggles=has_toggles,
            liberty=liberty,
            quick=quick,
        )
    emit(run.result, as_json, _render, out)
