"""``wafertlm calibrate``: measure the RTL, fit the models to it, and check them blind."""

from collections.abc import Iterator

import click
from rich.console import Group, RenderableType
from rich.table import Table

from wafertlm.commands.common import WholeNumber
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import CheckFailedError, Result, emit, log


def render(result: Result) -> RenderableType:
    """The error table, what was tried and what was not, and the parameters with their intervals."""
    errors = Table(
        "experiment", "subject", "fit", "check", "mean error", "worst error", "worst case"
    )
    tried = Table("experiment", "situation", "fit", "check", "worst error", "status")
    parameters = Table("parameter", "value", "95 % interval", "unit")
    for row in result["experiments"]:
        mean, worst = row["mean_abs_error_pct"], row["max_abs_error_pct"]
        errors.add_row(
            row["name"], row["subject"], str(row["fit_points"]), str(row["check_points"]),
            f"{mean:.3g} %", f"{worst:.3g} %", row["worst_case"] if worst else "-",
        )  # fmt: skip
        for each in row["situations"]:
            worst = each["max_abs_error_pct"]
            tried.add_row(
                row["name"], each["name"], str(each["fit"]), str(each["check"]),
                "-" if worst is None else f"{worst:.3g} %", each["status"],
            )  # fmt: skip
        # Of a form that does not explain all scenes no parameter is what the router has.
        states = {each["status"] for each in row["situations"]}
        alone = "nearest found" if "not represented" in states else "exact"
        for name, found in row["parameters"].items():
            low, high = found["ci95"]
            interval = alone if low == high else f"{low:g} to {high:g}"
            parameters.add_row(
                f"{row['name']}.{name}", f"{found['value']:g}", interval, found["unit"]
            )
    if "not_represented" in result:
        return Group(errors, tried, parameters, *_of_custom(result))
    if not result["levels"]:
        return Group(errors, tried, parameters)
    levels = Table("kernel", "cases", "lt against at: mean, worst", "perf against lt: mean, worst")
    for row in result["levels"]:
        pairs = (row["lt_against_at_pct"], row["perf_against_lt_pct"])
        shown = (f"{pair['mean']:.2g} %, {pair['max']:.3g} %" for pair in pairs)
        levels.add_row(row["kernel"], str(row["points"]), *shown)
    tiles = Table("kernel", "cases", "at against tiles in Verilog: mean, worst", "worst case")
    for row in result["tiles"]:
        pair = row["at_against_rtl_pct"]
        errors_shown = f"{pair['mean']:.2g} %, {pair['max']:.3g} %"
        tiles.add_row(row["kernel"], str(row["points"]), errors_shown, row["worst_case"])
    chips = Table("kernel", "cases", "perf against lt on all chips: mean, worst", "worst case")
    for row in result["chips"]:
        pair = row["perf_against_lt_pct"]
        errors_shown = f"{pair['mean']:.2g} %, {pair['max']:.3g} %"
        chips.add_row(row["kernel"], str(row["points"]), errors_shown, row["worst_case"])
    streams = Table("device", "tiles", "streams", "cases", "costs: mean, worst", "worst case")
    for row in result["streams"]:
        pair = row["costs_against_commands_pct"]
        streams.add_row(
            row["device"], str(row["tiles"]), row["situation"], str(row["points"]),
            f"{pair['mean']:.2g} %, {pair['max']:.3g} %", row["worst_case"],
        )  # fmt: skip
    return Group(errors, tried, parameters, tiles, levels, chips, streams)


def _of_custom(result: Result) -> Iterator[str]:
    """Lines of what the model cannot be, of scenes that went wrong and of what has no result."""
    if result["quick"]:
        yield "quick: checked on the size of the fit alone, by fewer cases"
    yield "not represented:"
    for line in result["not_represented"] or ["nothing: the model explains all that has a figure"]:
        yield f"  {line}"
    for finding in result["findings"]:
        yield f"finding: {finding['experiment']}: {finding['scene']}"
        yield f"  {finding['what']}"
        yield f"  wave: {finding['wave'] or 'none, as it does not go wrong with one'}"
        yield f"  again: {finding['command']}"
    for each in result["not_made"]:
        yield f"{each['experiment']}: {each['why']}"


@click.command("calibrate", cls=GroupedCommand)
@click.option("--quick", is_flag=True, help="Fewer check cases and models; stores nothing.")
@click.option("--rtl", metavar="SPEC", help="A custom mesh, as its SPEC.toml says.")
@click.option(
    "--store-quick", is_flag=True, help="With --rtl: a quick campaign that is stored, so marked."
)
@click.option("--force", is_flag=True, help="Also measure what still holds.")
@click.option(
    "--workers", type=WholeNumber(), default=1, help="Builds and comparisons side by side."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print the experiments.")
def command(
    quick: bool,
    rtl: str | None,
    store_quick: bool,
    force: bool,
    workers: int,
    as_json: bool,
    as_list: bool,
) -> None:
    """Measure the RTL, fit the models to it, and check them blind.

    Errors are over the check cases only, (model - RTL) / RTL. Exit status 1 if one is above its
    experiment's target; of a custom mesh that is only told, and status 1 says that scenes went
    wrong or that an experiment came to no result. A campaign that is stopped goes on where it was.
    """
    from calibration.campaign import EXPERIMENTS
    from wafertlm.api.calibration_run import calibrate

    if as_list:
        names = {"experiments": [experiment.name for experiment in EXPERIMENTS]}
        emit(names, as_json, lambda known: "\n".join(known["experiments"]))
        return
    ran = calibrate(
        rtl,
        quick=quick,
        store_quick=store_quick,
        force=force,
        workers=workers,
        progress=log,
    )
    emit(ran.result, as_json, render)
    if failures := ran.failures:
        raise CheckFailedError("; ".join(failures))
