"""``wafertlm study``: published results reproduced row by row."""

from importlib import import_module
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError, choose
from wafertlm.commands.common import OutputFile, OutputFolder, WholeNumber, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import Result, emit, progress

_FILE = OutputFile()
_FOLDER = click.Path(file_okay=False, path_type=Path)


def _render(result: Result) -> RenderableType:
    parts: list[RenderableType] = [_rows(result), _targets(result), _summary(result)]
    if "other_chips" in result:
        parts.insert(2, _other_chips(result))
    if "readings" in result:
        parts.insert(2, _readings(result))
    return Group(*parts)


def _rows(result: Result) -> Table:
    table = Table("row", "paper", "model", "95 % interval", "error", "", title="Published figures")
    for row in result["rows"]:
        if row["paper"] is None:
            continue
        points = row["error_points"]
        error, unit = (row["error_pct"], "%") if points is None else (points, "points")
        table.add_row(
            row["id"],
            _number(row["paper"]),
            f"{_number(row['model'])} {row['unit']}",
            _interval(row["ci95"]),
            "-" if error is None else f"{error:+.1f} {unit}",
            _held(row["held"]) if "held" in row else _fit(row["fit"]),
        )
    return table


def _fit(fit: bool | str) -> str:
    """Whether the row was fitted, or what it is."""
    return ("fitted" if fit else "") if isinstance(fit, bool) else fit


def _held(held: bool | None) -> str:
    """Whether what the paper says of the row holds."""
    return {None: "", True: "held", False: "NOT HELD"}[held]


def _targets(result: Result) -> Table:
    table = Table("target", "found", "met", title="Targets on rows not fitted")
    for each in result["targets"]:
        table.add_row(each["target"], _number(each["found"]), "yes" if each["met"] else "NO")
    return table


def _readings(result: Result) -> Table:
    table = Table("reading", "held", title="Claims that hold under each reading")
    for each in result["readings"]:
        table.add_row(each["reading"], f"{each['held']} of {each['of']}")
    return table


def _other_chips(result: Result) -> Table:
    table = Table("case", "against", "figure", "change", "95 % interval")
    for column in ("at low and high prices", "overloaded at prices", "winner"):
        table.add_column(column)
    table.title = "Layered prefill on other chips"
    for each in result["other_chips"]:
        table.add_row(
            each["case"],
            each["against"],
            each["figure"],
            f"{each['change_pct']:+.1f} %",
            _interval(each["ci95_pct"]),
            " and ".join(_number(each[f"at_{end}_prices_pct"]) for end in ("low", "high")),
            ", ".join(each["overloaded"]),
            each["winner"],
        )
    return table


def _summary(result: Result) -> str:
    lines = []
    for kind, errors in result["summary"].items():
        if kind == "orderings":
            lines.append(
                f"orderings kept: {errors['kept']} of {errors['of']}; of doubtful ones "
                f"{errors['doubtful_kept']} of {errors['doubtful_of']}"
            )
            continue
        unit = "% of ratio" if kind == "changes" else "%"
        lines.append(
            f"{kind}: {errors['rows']} rows, mean error {errors['mean_abs_error_pct']:.1f} {unit}, "
            f"worst {errors['max_abs_error_pct']:.1f} {unit} ({errors['worst_row']})"
        )
    more = sum(row["paper"] is None for row in result["rows"])
    lines.append(f"rows without a published figure, which --json has: {more}")
    met = sum(each["met"] for each in result["targets"])
    lines.append(f"targets met: {met} of {len(result['targets'])}")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _interval(ends: list[float] | None) -> str:
    return "-" if ends is None else f"{ends[0]:,.4g} to {ends[1]:,.4g}"


def _known_names() -> dict[str, list[str]]:
    from wafertlm.api.study_run import STUDIES

    return {"studies": list(STUDIES)}


@click.command("study", cls=GroupedCommand)
@click.argument("name", required=False)
@click.option(
    "--quick",
    is_flag=True,
    help="Fewer seeds; kernels in closed form where many are run; fewer readings.",
)
@click.option("--seed", type=WholeNumber(), default=0, show_default=True, help="The first seed.")
@click.option(
    "--workers", type=WholeNumber(), default=None, help="Processes; one for each core if not given."
)
@click.option(
    "--resume", "kept", type=_FOLDER, help="Folder of finished runs: kept and found again."
)
@click.option(
    "--plots", type=OutputFolder(), help="Write the study's plots into a folder (SVG, PDF)."
)
@click.option("--record", "recorded", is_flag=True, help="Store how far off the chips are.")
@click.option("--out", type=_FILE, help="Store the result (JSON).")
@output_options(_known_names)
def command(
    name: str | None,
    quick: bool,
    seed: int,
    workers: int | None,
    kept: Path | None,
    plots: Path | None,
    recorded: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Reproduce a published study, row by row.

    With --record, `wafertlm serve` says from then on how far a chip's profile is from what was
    measured on it.
    """
    from wafertlm.api.study_run import STUDIES, study

    if name is None:
        raise InputError(f"study: not given; known: {', '.join(STUDIES)}")
    if recorded and (quick or not STUDIES[choose("study", name, tuple(STUDIES))].chips):
        known = " and ".join(each for each, about in STUDIES.items() if about.chips)
        raise InputError(f"--record: allowed with {known}, without --quick")
    with progress("runs") as bar:
        ran = study(name, quick=quick, seed=seed, workers=workers, resume=kept, progress=bar)
    result = ran.result
    emit(result, as_json, _render, out)
    if recorded:
        from workloads.studies.profiles import record

        record(name, result["errors_by_chip"])
    if plots is not None:
        import_module(STUDIES[name].plots).draw(result, plots)
