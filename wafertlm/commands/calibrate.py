"""``wafertlm calibrate``: measure the RTL, fit the models to it, and check them blind."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from calibration.campaign import EXPERIMENTS, calibrate, missed_targets
from calibration.experiment import LawContradictedError
from calibration.levels.chips import compare_chips
from calibration.levels.models import compare_levels
from calibration.levels.tiles import compare_tiles
from calibration.memory.streams import compare_streams
from calibration.routers.custom import calibrate_custom
from calibration.routers.scenes import NoFormError, ScenesMixedError
from calibration.routers.stored import calibration_file
from calibration.tables import update_documents
from cosim.spec.mesh import load_spec
from tlm.calibrated import CalibrationResult, combined_hash
from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError
from tlm.level_errors import ChipPoint, LevelPoint, TilePoint
from tlm.memory.dram.streams import StreamComparison
from tlm.spread import by_kernel, spread
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import CheckFailedError, Result, complete, emit, log
from wafertlm.stopwatch import Stopwatch, stopwatch
from wafertlm.verilog import failing_checks


def calibrate_result(
    *,
    quick: bool,
    force: bool,
    workers: int,
    watch: Stopwatch,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Run the campaign; ``experiments`` holds a row each, ``rtl_hash`` what they rest on.

    ``misses`` says, a line each, which targets an error is above.

    Raises:
        CheckFailedError: if the RTL cannot be built, is wrong, or follows no law that is known.
    """
    with _failing_checks("the project's mesh"):
        results = calibrate(
            quick=quick,
            force=force,
            workers=workers,
            progress=progress,
            building=watch.compiling,
        )
    levels, tiles, chips, streams = [], [], [], []
    if not quick:
        progress("memory: streams of blocks on the model of DRAM commands")
        streams = [*_stream_rows(compare_streams(force=force))]
        progress("kernels: on tiles in Verilog and at level at")
        with _failing_checks("the project's tiles"):
            found = compare_tiles(force=force)
        tiles = [_tile_row(*of_kernel) for of_kernel in by_kernel(found).items()]
        progress("kernels: comparing the levels above the RTL")
        levels = [_level_row(*of_kernel) for of_kernel in by_kernel(compare_levels()).items()]
        progress("kernels: closed forms at the constants of all chips")
        chips = [_chip_row(*of_kernel) for of_kernel in by_kernel(compare_chips()).items()]
        update_documents()
    merged = {name: value for result in results for name, value in result.sources.items()}
    return {
        "experiments": [_row(result) for result in results],
        "misses": list(missed_targets(results)),
        "tiles": tiles,
        "levels": levels,
        "chips": chips,
        "streams": streams,
        "rtl_hash": combined_hash(merged),
    }


def custom_result(
    spec_file: str,
    *,
    quick: bool,
    store_quick: bool,
    force: bool,
    workers: int,
    watch: Stopwatch,
    progress: Callable[[str], None],
) -> tuple[str, dict[str, Any]]:
    """Calibrate a custom mesh; its name, and figures as of the project's campaign.

    ``network`` holds what was found out in words, ``not_represented`` what the model cannot be,
    ``findings`` scenes that went wrong, ``not_made`` experiments that came to no result.

    Raises:
        InputError: if the specification is wrong.
        CheckFailedError: if the RTL cannot be built.
    """
    spec, stores = load_spec(Path(spec_file)), store_quick or not quick
    with _failing_checks(spec.file.name):
        found = calibrate_custom(
            spec,
            quick=quick,
            store_quick=store_quick,
            force=force,
            workers=workers,
            progress=progress,
            building=watch.compiling,
        )
    return found.told_name(spec), {
        "experiments": [_row(result) for result in found.results],
        "levels": [],
        "network": found.network,
        "not_represented": found.not_represented,
        "findings": [finding.shown(spec) for finding in found.findings],
        "not_made": [each.model_dump() for each in found.not_made],
        "quick": found.quick,
        "stored": calibration_file(spec).name if stores and found.identified else None,
        "rtl_hash": combined_hash(found.sources),
    }


@contextmanager
def _failing_checks(mesh: str) -> Iterator[None]:
    """Verilog that does not work, or is like no form of the model, is a check that fails."""
    try:
        with failing_checks():
            yield
    except LawContradictedError as error:
        raise CheckFailedError(str(error)) from error
    except ScenesMixedError as error:
        told = "packets are slower than any mesh is taken to be"
        raise CheckFailedError(f"{mesh}: {told}: {error}") from error
    except NoFormError as error:
        raise CheckFailedError(f"{mesh}: the mesh is like no form of the model: {error}") from error
    except DeadlockError as error:
        told = "the model that was found hangs where the mesh does not"
        raise CheckFailedError(f"{mesh}: {told}: {error}") from error


def _level_row(kernel: str, points: Sequence[LevelPoint]) -> dict[str, Any]:
    """Errors of a kernel's levels, each against the level below it."""
    lt = spread(points, attrgetter("lt_error_pct"))
    perf = spread(points, attrgetter("perf_error_pct"))
    return {
        "kernel": kernel,
        "points": lt.cases,
        "lt_against_at_pct": {"mean": lt.mean_abs_pct, "max": lt.max_abs_pct},
        "perf_against_lt_pct": {"mean": perf.mean_abs_pct, "max": perf.max_abs_pct},
        "worst_case": lt.worst.case,
    }


def _tile_row(kernel: str, points: Sequence[TilePoint]) -> dict[str, Any]:
    """Errors of a kernel at level `at` against tiles in Verilog."""
    total = spread(points, attrgetter("error_pct"))
    return {
        "kernel": kernel,
        "points": total.cases,
        "at_against_rtl_pct": {"mean": total.mean_abs_pct, "max": total.max_abs_pct},
        "worst_case": total.worst.case,
    }


def _chip_row(kernel: str, points: Sequence[ChipPoint]) -> dict[str, Any]:
    """Errors of a kernel's closed form at the constants of all chips."""
    total = spread(points, attrgetter("error_pct"))
    at = spread([each for each in points if each.at is not None], attrgetter("lt_error_pct"))
    return {
        "kernel": kernel,
        "points": total.cases,
        "lt_against_at_pct": {"mean": at.mean_abs_pct, "max": at.max_abs_pct},
        "perf_against_lt_pct": {"mean": total.mean_abs_pct, "max": total.max_abs_pct},
        "worst_case": f"{total.worst.chip} {total.worst.case}",
    }


def _stream_rows(streams: StreamComparison) -> Iterator[dict[str, Any]]:
    """Errors of what blocks cost on DRAM against the model of its commands, by situation."""
    for costs in streams.costs:
        checked = streams.checks(costs.device, costs.tiles)
        for situation in dict.fromkeys(point.situation for point in checked):
            chosen = [point for point in checked if point.situation == situation]
            total = spread(chosen, attrgetter("error_pct"))
            off = {"mean": total.mean_abs_pct, "max": total.max_abs_pct}
            yield {
                "device": costs.device,
                "tiles": costs.tiles,
                "situation": situation,
                "points": total.cases,
                "costs_against_commands_pct": off,
                "worst_case": total.worst.case,
            }


def _row(result: CalibrationResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "subject": result.subject,
        "fit_points": len(result.fit),
        "check_points": len(result.check),
        "mean_abs_error_pct": result.mean_abs_error_pct,
        "max_abs_error_pct": result.max_abs_error_pct,
        "worst_case": result.worst_case,
        "parameters": {name: p.model_dump() for name, p in result.parameters.items()},
        "situations": [each.model_dump() for each in result.situations],
    }


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
        for name, found in row["parameters"].items():
            low, high = found["ci95"]
            interval = "exact" if low == high else f"{low:g} to {high:g}"
            parameters.add_row(
                f"{row['name']}.{name}", f"{found['value']:g}", interval, found["unit"]
            )
    if "not_represented" in result:
        return Group(errors, tried, parameters, *map(escape, _of_custom(result)))
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


def _failed(figures: Result) -> Iterator[str]:
    """What makes the exit status 1, a line each."""
    yield from figures.get("misses", ())
    if findings := figures.get("findings"):
        first = findings[0]
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        yield f"{count}, first {first['experiment']}: {first['scene']}: {first['what']}"
    for each in figures.get("not_made", ()):
        yield f"{each['experiment']}: {each['why']}"


@click.command("calibrate", cls=GroupedCommand)
@click.option("--quick", is_flag=True, help="Fewer check cases and models; stores nothing.")
@click.option("--rtl", metavar="SPEC", help="A custom mesh, as its SPEC.toml says.")
@click.option(
    "--store-quick", is_flag=True, help="With --rtl: a quick campaign that is stored, so marked."
)
@click.option("--force", is_flag=True, help="Also measure what still holds.")
@click.option("--workers", type=click.IntRange(min=1), default=1, help="Models built at a time.")
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
    if as_list:
        names = {"experiments": [experiment.name for experiment in EXPERIMENTS]}
        emit(names, as_json, lambda known: "\n".join(known["experiments"]))
        return
    if store_quick and rtl is None:
        raise InputError("--store-quick: found without --rtl; allowed: with the mesh's SPEC.toml")
    name, options = "rtl", {"quick": quick, "rtl": Path(rtl).name if rtl else None}
    with stopwatch() as watch:
        if rtl is None:
            figures = calibrate_result(
                quick=quick, force=force, workers=workers, watch=watch, progress=log
            )
        else:
            options["store_quick"] = store_quick
            name, figures = custom_result(
                rtl,
                quick=quick,
                store_quick=store_quick,
                force=force,
                workers=workers,
                watch=watch,
                progress=lambda message: log(escape(message)),
            )
    rtl_hash = figures.pop("rtl_hash")
    result = complete(
        "calibrate", options, figures, watch.times, rtl_hash=rtl_hash, calibration=name
    )
    emit(result, as_json, render)
    if failed := [*_failed(figures)]:
        raise CheckFailedError("; ".join(failed))
