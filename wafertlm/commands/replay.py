"""``wafertlm replay``: a stored check case again, on RTL with a wave, and on the model."""

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from tlm.files import whole_file
from wafertlm.commands.common import OutputFile, WholeNumber, render_names
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import CheckFailedError, Result, complete, emit
from wafertlm.stopwatch import Stopwatch, stopwatch

if TYPE_CHECKING:  # slow to import: only to run
    from wafertlm.finding import Again
    from wafertlm.replay import Stored


def replay_result(
    stored: "Stored", number: int, wave: Path | None, watch: Stopwatch
) -> dict[str, Any]:
    """Figures of a case on RTL and on the model, now and as stored (`wafertlm.replay.Replayed`).

    Raises:
        InputError: if the wave cannot be written, or the harness leaves none.
        CheckFailedError: if the RTL cannot be built, is wrong or hangs; what wave there is stays.
    """
    from cosim.errors import HangError, SimulationError

    failure: Exception | None = None
    figures: dict[str, Any] = {}
    with whole_file(wave) if wave else nullcontext() as scratch:
        stored.watch.wave = scratch
        try:
            figures = asdict(stored.replay(number, watch.compiling))
        except (SimulationError, HangError) as error:
            failure = CheckFailedError(str(error))
            if scratch is None or not scratch.stat().st_size:
                raise failure from error
    if failure is not None:
        raise failure
    return {**figures, "wave": wave}


def finding_result(spec_file: str, scene: Path, wave: Path | None, watch: Stopwatch) -> "Again":
    """The scene of a finding, run again.

    Raises:
        InputError: if a file cannot be read, or the wave not be written.
        CheckFailedError: if the RTL cannot be built.
    """
    from cosim.errors import SimulationError
    from wafertlm.finding import run_again

    with whole_file(wave) if wave else nullcontext() as scratch:
        try:
            return run_again(spec_file, scene, scratch, watch.compiling)
        except SimulationError as error:
            raise CheckFailedError(str(error)) from error


def _replay_finding(spec_file: str | None, scene: Path, wave: Path | None, as_json: bool) -> None:
    """``--finding``: exit status 1 as long as the scene goes wrong."""
    if spec_file is None:
        raise InputError("--finding: found without --rtl; allowed: with the mesh's SPEC.toml")
    with stopwatch() as watch:
        again = finding_result(spec_file, scene, wave, watch)
    options = {"finding": scene.name, "rtl": Path(spec_file).name}
    figures = {**asdict(again), "wave": wave}
    emit(complete("replay finding", options, figures, watch.times), as_json, _render_finding)
    if again.now is not None:
        raise CheckFailedError(f"{again.experiment}: {again.scene}: {again.now}")


def _render_finding(result: Result) -> RenderableType:
    lines = [
        f"{result['experiment']}: {result['scene']}",
        f"found: {result['found']}",
        f"now: {result['now'] or 'all is delivered as it should be'}",
        f"from cycle {result['first_cycle']} on",
    ]
    wave = [f"wave: {result['wave']}"] if result["wave"] is not None else []
    return Group(*lines, *wave)


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['experiment']}, case {options['case']}: {result['case']}"
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
        lines.append(f"wave: {result['wave']}")
    return Group(title, table, *lines)


def _listed(experiment: str | None, rtl: str | None) -> dict[str, list[str]]:
    """What may be replayed: experiments, or the cases of one with their numbers."""
    from wafertlm.replay import load, names
    from wafertlm.watched import Watch

    if experiment is None:
        return {"experiments": names(rtl)}
    points = load(experiment, rtl, Watch()).result.check
    return {"cases": [f"{number}: {point.case}" for number, point in enumerate(points)]}


@click.command("replay", cls=GroupedCommand)
@click.argument("experiment", required=False)
@click.option(
    "--case", "number", type=WholeNumber(), help="Number of a check case, from 0; see --list."
)
@click.option("--worst", is_flag=True, help="The case of the largest error; also without --case.")
@click.option("--rtl", metavar="SPEC", help="A custom mesh, calibrated by its SPEC.toml.")
@click.option(
    "--finding",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --rtl: the file of a scene that went wrong; needs no calibration.",
)
@click.option("--wave", type=OutputFile(), help="VCD to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print experiments, or one's cases.")
def command(
    experiment: str | None,
    number: int | None,
    worst: bool,
    rtl: str | None,
    finding: Path | None,
    wave: Path | None,
    as_json: bool,
    as_list: bool,
) -> None:
    """Run a check case of a stored calibration again, on RTL and on the model.

    A case is played after those before it in its run, as it was measured. A wave of the project's
    mesh begins with the case, any other with the run. Exit status 1 if the RTL's figure is not the
    stored one, or as long as a finding goes wrong.
    """
    from wafertlm.replay import load, names
    from wafertlm.watched import Watch

    if finding is not None:
        if experiment is not None or number is not None or worst or as_list:
            raise InputError("--finding: allowed: with --rtl, --wave and --json only")
        _replay_finding(rtl, finding, wave, as_json)
        return
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
