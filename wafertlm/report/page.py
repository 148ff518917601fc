"""The page: results in, one HTML file out."""

import shlex
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import calibration
from tlm.calibrated import CalibrationResult
from tlm.files import whole_file
from tlm.spread import by_kernel, spread
from wafertlm.replay import worst
from wafertlm.report import figures
from wafertlm.report.asked import findings
from wafertlm.report.stored import Results, load_results
from wafertlm.report.wording import count, figure
from wafertlm.version import __version__

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
        "others": len(results.others),
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
    environment.filters.update(count=count, figure=figure, heat=_heat)
    maps = dict(list(results.maps.items())[:_MAX_MAPS])
    return environment.get_template("page.html").render(
        version=__version__,
        results=results,
        findings=findings(results),
        campaigns=list(_campaigns(results)),
        levels=list(_level_rows(results)),
        wafer=figures.wafer(maps) if maps else None,
        latencies=figures.latencies(results.requests) if results.requests else None,
    )


def _campaigns(results: Results) -> Iterator[dict[str, Any]]:
    """The project's experiments, then those of the custom mesh."""
    if results.calibrations:
        yield _campaign("Models against RTL", results.calibrations, None)
    if custom := results.custom:
        found = custom.found
        campaign = _campaign(f"Mesh {custom.name} against RTL", found.results, custom.spec_file)
        yield campaign | {
            "not_represented": found.not_represented,
            "findings": found.findings,
            "not_made": found.not_made,
        }


def _campaign(
    title: str, calibrations: Sequence[CalibrationResult], spec_file: str | None
) -> dict[str, Any]:
    """Experiments as rows; those that are not exact with a figure, of the others the first case."""
    exact = [one for one in calibrations if not one.max_abs_error_pct]
    return {
        "title": title,
        "rows": [(one, one.check[worst(one.check)].case) for one in calibrations],
        "worst": max(calibrations, key=attrgetter("max_abs_error_pct")),
        "cases": sum(len(one.check) for one in calibrations),
        "exact": exact,
        "again": _replay(exact[0], spec_file) if exact else None,
        "off": [
            (one, figures.against_rtl(one, UNITS.get(one.name, "cycles")), _replay(one, spec_file))
            for one in calibrations
            if one.max_abs_error_pct
        ],
        "custom": spec_file is not None,
    }


def _replay(calibration: CalibrationResult, spec_file: str | None) -> str:
    """The command that runs an experiment's worst case on RTL with a wave."""
    number, name = worst(calibration.check), calibration.name
    words = ["wafertlm", "replay", name, *(["--rtl", spec_file] if spec_file else [])]
    return shlex.join([*words, "--case", str(number), "--wave", f"{name}.vcd"])


def _level_rows(results: Results) -> Iterator[dict[str, Any]]:
    """Each kernel's errors of a level against the one below it, from `at` against Verilog up."""
    tiles, levels = by_kernel(results.tiles), by_kernel(results.levels)
    for kernel in {**tiles, **levels}:
        of, above = tiles.get(kernel), levels.get(kernel)
        at = spread(of, attrgetter("error_pct")) if of else None
        lt = spread(above, attrgetter("lt_error_pct")) if above else None
        perf = spread(above, attrgetter("perf_error_pct")) if above else None
        yield {"kernel": kernel, "steps": [at, lt, perf]}


def _heat(error_pct: float | None) -> str:
    """A cell's colour: green where exact, the redder the larger the error, none if unknown."""
    if error_pct is None:
        return ""
    if not error_pct:
        return "background:rgba(0,158,115,.16)"
    return f"background:rgba(213,94,0,{min(0.6, 0.08 + abs(error_pct) / 30):.2f})"
