"""A calibration's run: what ``wafertlm calibrate`` and `calibrate` share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibration import campaign
from calibration.levels.chips import compare_chips
from calibration.levels.models import compare_levels
from calibration.levels.tiles import compare_tiles
from calibration.memory.streams import compare_streams
from calibration.routers.custom import NOT_FOUND_OUT, calibrate_custom, why_no_result
from calibration.routers.stored import calibration_file
from calibration.tables import update_documents
from cosim.spec.mesh import load_spec
from tlm.calibrated import CalibrationResult, combined_hash
from tlm.comparisons import ChipPoint, LevelPoint, TilePoint
from tlm.errors import InputError, hold_least
from tlm.memory.dram.streams import StreamComparison
from tlm.spread import by_kernel, spread
from wafertlm.api.finished import FinishedRun
from wafertlm.output import CheckFailedError, Result, complete
from wafertlm.stopwatch import Stopwatch, stopwatch
from wafertlm.verilog import failing_checks

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CalibrationRun(FinishedRun):
    """A campaign that has run."""

    _tables: ClassVar[tuple[str, ...]] = ("experiments",)

    @property
    def experiments(self) -> list[dict[str, Any]]:
        """A record for each: its errors on the check cases, and its parameters."""
        return list(self.result["experiments"])

    @property
    def failures(self) -> list[str]:
        """What makes the command's exit status 1, a line each."""
        return [*_failed(self.result)]

    def plot(self) -> "Figure":
        """Mean and worst error of each experiment."""
        from wafertlm.api.pictures import calibration_picture

        return calibration_picture(self.result)


def calibrate(
    rtl: str | Path | None = None,
    *,
    quick: bool = False,
    store_quick: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Callable[[str], None] = lambda message: None,
) -> CalibrationRun:
    """Measure RTL, fit the models to it and check them blind: what ``wafertlm calibrate`` does.

    Args:
        rtl: A custom mesh, as its SPEC.toml says; None: the project's.
        quick: Fewer check cases and models; stores nothing.
        store_quick: Of a custom mesh: a quick campaign that is stored, so marked.
        force: Also measure what still holds.
        workers: Builds and comparisons side by side.
        progress: Hears what goes on.

    Raises:
        InputError: for options that do not fit together, and a specification that is wrong.
        CheckFailedError: if the RTL cannot be built, is wrong, or follows no law that is known.
    """
    hold_least("--workers", workers, 1)
    if store_quick and rtl is None:
        raise InputError("--store-quick: found without --rtl; allowed: with the mesh's SPEC.toml")
    name, options = "rtl", {"quick": quick, "rtl": None if rtl is None else Path(rtl).name}
    with stopwatch() as watch:
        if rtl is None:
            figures = calibrate_result(
                quick=quick, force=force, workers=workers, watch=watch, progress=progress
            )
        else:
            options["store_quick"] = store_quick
            name, figures = custom_result(
                str(rtl),
                quick=quick,
                store_quick=store_quick,
                force=force,
                workers=workers,
                watch=watch,
                progress=progress,
            )
    rtl_hash = figures.pop("rtl_hash")
    return CalibrationRun(
        result=complete(
            "calibrate", options, figures, watch.times, rtl_hash=rtl_hash, calibration=name
        )
    )


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
        results = campaign.calibrate(
            quick=quick,
            force=force,
            workers=workers,
            progress=progress,
            building=watch.compiling,
        )
    levels, tiles, chips, streams = [], [], [], []
    if not quick:
        given: dict[str, Any] = {"force": force, "workers": workers, "progress": progress}
        progress("memory: streams of blocks on the model of DRAM commands")
        streams = [*_stream_rows(compare_streams(force=force))]
        progress("kernels: on tiles in Verilog and at level at")
        with _failing_checks("the project's tiles"):
            on_tiles = compare_tiles(**given)
        tiles = [_tile_row(*of_kernel) for of_kernel in by_kernel(on_tiles).items()]
        progress("kernels: comparing the levels above the RTL")
        at_levels = compare_levels(**given)
        levels = [_level_row(*of_kernel) for of_kernel in by_kernel(at_levels).items()]
        progress("kernels: closed forms at the constants of all chips")
        on_chips = compare_chips(**given)
        chips = [_chip_row(*of_kernel) for of_kernel in by_kernel(on_chips).items()]
        update_documents()
    merged = {name: value for result in results for name, value in result.sources.items()}
    return {
        "experiments": [_row(result) for result in results],
        "misses": list(campaign.missed_targets(results)),
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
    except NOT_FOUND_OUT as error:
        raise CheckFailedError(f"{mesh}: {why_no_result(error)}") from error


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


def _failed(figures: Result) -> Iterator[str]:
    """What makes the exit status 1, a line each."""
    yield from figures.get("misses", ())
    if findings := figures.get("findings"):
        first = findings[0]
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        yield f"{count}, first {first['experiment']}: {first['scene']}: {first['what']}"
    for each in figures.get("not_made", ()):
        yield f"{each['experiment']}: {each['why']}"
