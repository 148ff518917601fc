"""The page: results in, one HTML file out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import calibration
from tlm.files import whole_file
from wafertlm.kernel.binding import PART_NAMES
from wafertlm.report.campaigns import campaigns
from wafertlm.report.comparisons import comparison_answers
from wafertlm.report.every import every_figure
from wafertlm.report.explorations import exploration_answers
from wafertlm.report.iterations import iteration_answers
from wafertlm.report.kernels import kernel_answers
from wafertlm.report.maps import map_parts, palette
from wafertlm.report.others import other_answers
from wafertlm.report.serving import serving_answers
from wafertlm.report.stored import Results, load_results
from wafertlm.report.story import Answer, Column, Section
from wafertlm.report.studies import study_answers
from wafertlm.report.timeline import timeline_part
from wafertlm.version import __version__

CALIBRATION_FOLDER = Path(calibration.__file__).parent / "results"

#: So many answers of a section have room in one page, and so many are told at its beginning.
_MOST_ANSWERS, _MOST_SHORT = 40, 3
_MOST_TIMELINES = 4
#: Commands that fill a part of the page, by what there is none of.
_MISSING = {
    "kernels": "wafertlm kernel mesh-gemm --chip wse2 --grid 720x720 --shape 2048,2048,2048 "
    "--dtype fp16 --out results/mesh-gemm.json --map results/mesh-gemm.npz",
    "serves": "wafertlm serve --model llama3-8b --chip flat32 --scheduler chunked --workload "
    "sharegpt --rate 4 --requests 300 --out results/serve.json --requests-csv results/serve.csv",
    "comparisons": "wafertlm compare noc --mesh 8x8 --traffic uniform --rate 0.3 --vary "
    "fifo-depth=4,8 --out results/compare.json",
    "calibrations": "wafertlm calibrate",
}


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
        "comparisons": len(results.comparisons),
        "explorations": len(results.explorations),
        "iterations": len(results.iterations),
        "studies": len(results.studies),
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
    environment.filters["heat"] = _heat
    asked = [*sections(results)]
    return environment.get_template("page.html").render(
        version=__version__,
        stale=results.stale,
        sections=asked,
        short=[(section, section.answers[:_MOST_SHORT]) for section in asked],
        campaigns=[*campaigns(results)],
        missing=[line for name, line in _MISSING.items() if not getattr(results, name)],
        every=every_figure(results),
        origins=[*_origins(results)],
        origin_columns=[Column(name, text=True) for name in _ORIGIN],
        parts=PART_NAMES,
        palette=["#{:02x}{:02x}{:02x}".format(*each) for each in palette()],
    )


def sections(results: Results) -> Iterator[Section]:
    """What the user ran, the largest questions first."""
    parts: dict[str, list[Markup]] = {stem: [*drawn] for stem, drawn in map_parts(results.maps)}
    for stem, spans in [*results.timelines.items()][:_MOST_TIMELINES]:
        parts.setdefault(stem, []).append(timeline_part(stem, spans))
    lone = [
        Answer(f"What does the map {stem} show?", [], parts=parts[stem], stems=[stem])
        for stem in results.maps
        if stem not in results.kernels and stem in parts
    ]
    for name, title, answers in (
        ("comparisons", "Comparisons", [*comparison_answers(results)]),
        ("explorations", "Explorations", [*exploration_answers(results)]),
        ("serving", "Serving", [*serving_answers(results)]),
        ("iterations", "Iterations, kernel by kernel", [*iteration_answers(results)]),
        ("kernels", "Kernels", [*kernel_answers(results, parts), *lone]),
        ("others", "Networks, memories and checks", [*other_answers(results)]),
        ("studies", "Studies", [*study_answers(results)]),
    ):
        if answers:
            left = max(0, len(answers) - _MOST_ANSWERS)
            yield Section(name, title, answers[:_MOST_ANSWERS], left)


_ORIGIN = ("result", "command", "version", "configuration", "RTL", "calibration", "seed")


def _origins(results: Results) -> Iterator[Sequence[str]]:
    """Where the numbers come from, a row a result."""
    for one in results.calibrations:
        tools = ", ".join(f"{tool} {version}" for tool, version in one.tools.items())
        yield [one.name, "calibrate", tools, "–", one.rtl_hash or "–", one.name, str(one.seed)]
    for stem, run in results.runs.items():
        origin = run.provenance
        yield [
            stem,
            run.command,
            f"wafertlm {origin.version}",
            origin.config_hash,
            origin.rtl_hash or "–",
            origin.calibration or "–",
            "–" if origin.seed is None else str(origin.seed),
        ]


def _heat(error_pct: float | None) -> str:
    """A cell's colour: green where exact, the redder the larger the error, none if unknown."""
    if error_pct is None:
        return ""
    if not error_pct:
        return "background:rgba(0,158,115,.16)"
    return f"background:rgba(213,94,0,{min(0.6, 0.08 + abs(error_pct) / 30):.2f})"
