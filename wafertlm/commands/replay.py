"""``wafertlm replay``: a stored check case again, on RTL with a wave, and on the model."""

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from cosim.errors import HangError, SimulationError
from tlm.errors import InputError
from tlm.files import whole_file
from wafertlm.commands.common import render_names
from wafertlm.output import CheckFailedError, Result, complete, emit
from wafertlm.replay import Stored, load, names
from wafertlm.stopwatch import Stopwatch, stopwatch
from wafertlm.watched import Watch


def replay_result(
    stored: Stored, number: int, wave: Path | None, watch: Stopwatch
) -> dict[str, Any]:
    """Figures of a case on RTL and on the model, now and as stored (`wafertlm.replay.Replayed`).

    Raises:
        InputError: if the wave cannot be written, or the harness leaves none.
        CheckFailedError: if the RTL cannot be built, is wrong or hangs; what wave there is stays.
    """
    failure: Exception | None = None
    figures: dict[str, Any] = {}
    with whole_file(wave) if wave else nullcontext() as scratch:
        stored.watch.wave = scratch
        try:
            figures = asdict(stored.replay(number, watch.compiling))
        except (SimulationError, HangError) as error:
            failure = CheckFailedError(str(error))
            if scratch is None or not scratch.exists():
                raise failure from error
    if failure is not None:
        raise failure
    return {**figures, "wave": wave}


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = escape(f"{options['experiment']}, case {options['case']}: {result['case']}")
    table = Table("figure", "now", "stored")
    for level in ("rtl", "model"):
        table.add_row(level, f"{result[level]:,.9g}", f"{result[f'stored_{level}']:,.9g}")
    begin = result["first_cycle"]
    lines = [
        f"played after {result['cases_before']} others of its run"
        + (f", from cycle {begin} on" if begin is not None else "")
    ]
    difference = result["first_difference"]
    if difference is not None:
        lines.append(
            f"first difference: packet {difference['packet']} at node {difference['node']}, its "
            f"{difference['flit']}: RTL cycle {difference['rtl_cycle']}, model cycle "
            f"{difference['model_cycle']}"
        )
    elif result["packets_compared"] is not None:
        lines.append(f"all {result['packets_compared']} packets delivered alike, cycle by cycle")
    if result["wave"] is not None:
        lines.append(escape(f"wave: {result['wave']}"))
    return Group(title, table, *lines)


def _listed(experiment: str | None, rtl: str | None) -> dict[str, list[str]]:
    """What may be replayed: experiments, or the cases of one with their numbers."""
    if experiment is None:
        return {"experiments": names(rtl)}
    points = load(experiment, rtl, Watch()).result.check
    return {"cases": [f"{number}: {point.case}" for number, point in enumerate(points)]}


@click.command("replay")
@click.argument("experiment", required=False)
@click.option("--case", "number", type=int, help="Number of a check case, from 0; see --list.")
@click.option("--worst", is_flag=True, help="The case of the largest error; also without --case.")
@click.option("--rtl", metavar="SPEC", help="A custom mesh, calibrated by its SPEC.toml.")
@click.option("--wave", type=click.Path(dir_okay=False, path_type=Path), help="VCD to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print experiments, or one's cases.")
def command(
    experiment: str | None,
    number: int | None,
    worst: bool,
    rtl: str | None,
    wave: Path | None,
    as_json: bool,
    as_list: bool,
) -> None:
    """Run a check case of a stored calibration again, on RTL and on the model.

    A case is played after those before it in its run, as it was measured. A wave of the project's
    mesh begins with the case, any other with the run. Exit status 1 if the RTL's figure is not the
    stored one.
    """
    if as_list:
        emit(_listed(experiment, rtl), as_json, _render_list)
        return
    if experiment is None:
        raise InputError(f"replay: experiment not given; known: {', '.join(names(rtl))}")
    if worst and number is not None:
        raise InputError("replay: found --case and --worst; allowed: one of them")
    stored = load(experiment, rtl, Watch())
    number = stored.number(number)
    with stopwatch() as watch:
        figures = replay_result(stored, number, wave, watch)
    options = {"experiment": experiment, "case": number, "rtl": Path(rtl).name if rtl else None}
    result = complete(
        "replay",
        options,
        figures,
        watch.times,
        rtl_hash=stored.result.rtl_hash,
        calibration=experiment,
        seed=stored.result.seed,
    )
    emit(result, as_json, _render)
    if figures["rtl"] != figures["stored_rtl"]:
        raise CheckFailedError(
            f"{experiment}, case {number}: RTL gives {figures['rtl']:.9g}, stored is "
            f"{figures['stored_rtl']:.9g}"
        )


def _render_list(listed: Result) -> str:
    return "\n".join(listed["cases"]) if "cases" in listed else render_names(listed)
