"""The page: results in, one HTML file out."""

import shlex
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import calibration
from tlm.calibrated import CalibrationResult, LevelPoint
from tlm.files import whole_file
from tlm.spread import by_kernel, spread
from wafertlm import __version__
from wafertlm.replay import worst
from wafertlm.report import figures
from wafertlm.report.stored import Kernel, Provenance, Results, load_results

CALIBRATION_FOLDER = Path(calibration.__file__).parent / "results"

# What the figures of experiments count; those of all others are cycles.
UNITS = {
    "buffering": "flits",
    "hang": "2: hangs",
    "memory-bandwidth": "requests a cycle",
}

# Whole wafers side by side stay legible up to here.
_MAX_MAPS = 4


def write_report(
    results_folder: Path,
    out: Path,
    calibration_folder: Path = CALIBRATION_FOLDER,
    spec_file: str | None = None,
) -> dict[str, Any]:
    """Write the page and return its path and how many results of each kind it shows.

    With the specification of a custom mesh it shows that one's calibration too.

    Raises:
        InputError: for a stored result that cannot be read, or an ``out`` that cannot be written.
    """
    results = load_results(results_folder, calibration_folder, spec_file)
    page = render_page(results)
    with whole_file(out) as scratch:
        scratch.write_text(page, encoding="utf-8")
    return {
        "report": str(out),
        "experiments": len(results.calibrations),
        "own_experiments": len(results.custom.found.results) if results.custom else 0,
        "kernels": len(results.kernels),
        "servings": len(results.serves),
    }


def render_page(results: Results) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=PackageLoader("wafertlm.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=_count, figure=_figure, seconds=_seconds)
    maps = dict(list(results.maps.items())[:_MAX_MAPS])
    return environment.get_template("page.html").render(
        version=__version__,
        results=results,
        levels=list(_level_rows(results.levels)),
        kernels=[_kernel_row(results, stem, run) for stem, run in _ordered(results)],
        worst=max(results.calibrations, key=lambda c: c.max_abs_error_pct, default=None),
        check_points=sum(len(calibration.check) for calibration in results.calibrations),
        campaigns=list(_campaigns(results)),
        wafer=figures.wafer(maps) if maps else None,
        latencies=figures.latencies(results.requests) if results.requests else None,
        origins=list(_origins(results)),
    )


def _campaigns(results: Results) -> Iterator[dict[str, Any]]:
    """The project's experiments, then those of the custom mesh, each with its figure."""
    listed: list[tuple[str, list[CalibrationResult], str | None, list[str]]] = []
    if results.calibrations:
        listed.append(("Models against RTL", results.calibrations, None, []))
    if custom := results.custom:
        found, title = custom.found, f"Mesh {custom.name} against RTL"
        listed.append((title, found.results, custom.spec_file, found.not_represented))
    for title, calibrations, spec_file, not_represented in listed:
        rows = [_experiment(calibration, spec_file) for calibration in calibrations]
        yield {
            "title": title,
            "experiments": rows,
            "custom": spec_file is not None,
            "not_represented": not_represented,
        }


def _experiment(calibration: CalibrationResult, spec_file: str | None) -> dict[str, Any]:
    """An experiment, its figure, and the command that runs its worst case on RTL with a wave."""
    number, name = worst(calibration.check), calibration.name
    words = ["wafertlm", "replay", name, *(["--rtl", spec_file] if spec_file else [])]
    return {
        "result": calibration,
        "figure": figures.against_rtl(calibration, UNITS.get(name, "cycles")),
        "worst_case": calibration.check[number].case,
        "replay": shlex.join([*words, "--case", str(number), "--wave", f"{name}.vcd"]),
    }


def _level_rows(points: Sequence[LevelPoint]) -> Iterator[dict[str, Any]]:
    """Each kernel's errors of `lt` against `at` and of `perf` against `lt`, in per cent."""
    for kernel, chosen in by_kernel(points).items():
        lt = spread(chosen, attrgetter("lt_error_pct"))
        yield {"kernel": kernel, "lt": lt, "perf": spread(chosen, attrgetter("perf_error_pct"))}


def _ordered(results: Results) -> list[tuple[str, Kernel]]:
    """Runs of one problem together, the fastest first; problems by their size."""

    def size(run: Kernel) -> list[int]:
        return [int(extent) for extent in run.options.shape.split(",")]

    return sorted(
        results.kernels.items(),
        key=lambda item: (size(item[1]), item[1].options.problem, item[1].cycles),
    )


def _kernel_row(results: Results, stem: str, run: Kernel) -> dict[str, Any]:
    fastest = min(
        other.cycles
        for other in results.kernels.values()
        if other.options.problem == run.options.problem
    )
    shares = {name: 100 * cycles / run.cycles for name, cycles in run.breakdown_cycles.items()}
    return {"stem": stem, "run": run, "ratio": run.cycles / fastest, "shares": shares}


def _origins(results: Results) -> Iterator[tuple[str, str, Provenance]]:
    runs: list[tuple[str, Any]] = [*results.kernels.items(), *results.serves.items()]
    for stem, run in runs:
        yield stem, run.command, run.provenance


def _count(value: float) -> str:
    """A whole number in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _figure(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    if abs(value) >= 10**digits:
        return _count(value)
    return f"{value:.{digits}g}"


def _seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{_figure(value / scale)}\N{NO-BREAK SPACE}{unit}"
    return f"{_figure(value / 1e-9)}\N{NO-BREAK SPACE}ns"
