"""Calibrations and comparisons of levels, as the page shows them."""

import shlex
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from tlm.calibrated import CalibrationResult
from tlm.spread import by_kernel, spread
from wafertlm.replay import worst
from wafertlm.report import figures
from wafertlm.report.stored import CustomMesh, Results
from wafertlm.report.story import Cell, Column, Grid, error_cell
from wafertlm.report.wording import count, figure

# What the figures of experiments count; those of all others are cycles.
UNITS = {
    "buffering": "flits",
    "hang": "2: hangs",
    "memory-bandwidth": "requests a cycle",
}
_STEPS = ("at against rtl", "lt against at", "perf against lt")


class Off(NamedTuple):
    """An experiment that is not exact.

    Attributes:
        name: The experiment.
        subject: What it is about.
        panels: Model against RTL, and what is left between them.
        again: The command that runs its worst case again.
    """

    name: str
    subject: str
    panels: Sequence[Markup]
    again: str


class Campaign(NamedTuple):
    """A calibration.

    Attributes:
        title: What was calibrated.
        headline: What came of it.
        matrix: Every experiment with its worst error.
        grids: The details.
        notes: Paragraphs.
        off: Experiments that are not exact.
    """

    title: str
    headline: str
    matrix: Sequence[tuple[str, Cell]]
    grids: Sequence[Grid]
    notes: Sequence[Markup]
    off: Sequence[Off]


def campaigns(results: Results) -> Iterator[Campaign]:
    """The project's experiments, then those of the custom mesh."""
    if results.calibrations:
        yield _campaign("Models against RTL", results.calibrations, None, [*_levels(results)])
    if results.custom:
        custom = results.custom
        title = f"Mesh {custom.name} against RTL"
        yield _campaign(title, custom.found.results, custom, [])


def _campaign(
    title: str,
    experiments: Sequence[CalibrationResult],
    custom: CustomMesh | None,
    levels: Sequence[Grid],
) -> Campaign:
    exact = [one for one in experiments if not one.max_abs_error_pct]
    cases = sum(len(one.check) for one in experiments)
    largest = max(experiments, key=attrgetter("max_abs_error_pct"))
    headline = (
        f"{len(exact)} of {len(experiments)} experiments are exact over {count(cases)} cases that "
        "no fit has seen"
    )
    if largest.max_abs_error_pct:
        headline += f"; the worst error is {figure(largest.max_abs_error_pct)} % ({largest.name})"
    spec_file = None if custom is None else custom.spec_file
    notes = [] if custom is None else [*_custom_notes(custom)]
    if exact:
        names = ", ".join(one.name for one in exact)
        notes.append(
            Markup(
                "Exact in every case: {}. A case on RTL again, with a wave: <code>{}</code>"
            ).format(names, _replay(exact[0], spec_file))
        )
    return Campaign(
        title,
        f"{headline}.",
        [(one.name, error_cell(one.max_abs_error_pct)) for one in experiments],
        [*levels, *_details(experiments)],
        notes,
        [
            Off(
                one.name,
                one.subject,
                figures.against_rtl(one, UNITS.get(one.name, "cycles")),
                _replay(one, spec_file),
            )
            for one in experiments
            if one.max_abs_error_pct
        ],
    )


def _custom_notes(custom: CustomMesh) -> Iterator[Markup]:
    missing = custom.found.not_represented
    told = "; ".join(missing) if missing else "nothing; the model explains all that has a figure"
    yield Markup("Not represented: {}.").format(told)
    for found in custom.found.findings:
        yield Markup("<b>Went wrong</b> in {}: {}: {}").format(
            found.experiment, found.scene, found.what
        )
    for left in custom.found.not_made:
        yield Markup("<b>{}</b>: {}").format(left.experiment, left.why)


def _replay(calibration: CalibrationResult, spec_file: str | None) -> str:
    """The command that runs an experiment's worst case on RTL with a wave."""
    number, name = worst(calibration.check), calibration.name
    words = ["wafertlm", "replay", name, *(["--rtl", spec_file] if spec_file else [])]
    return shlex.join([*words, "--case", str(number), "--wave", f"{name}.vcd"])


def _levels(results: Results) -> Iterator[Grid]:
    """Each kernel's errors of a level against the one below it, from `at` against Verilog up."""
    tiles, levels = by_kernel(results.tiles), by_kernel(results.levels)
    rows: list[list[Any]] = []
    for kernel in {**tiles, **levels}:
        of, above = tiles.get(kernel), levels.get(kernel)
        steps = [
            spread(of, attrgetter("error_pct")) if of else None,
            spread(above, attrgetter("lt_error_pct")) if above else None,
            spread(above, attrgetter("perf_error_pct")) if above else None,
        ]
        cells = [
            error_cell(value)
            for step in steps
            for value in ((step.mean_abs_pct, step.max_abs_pct) if step else (None, None))
        ]
        rows.append([kernel, *cells])
    if rows:
        columns = [Column(step, unit) for step in _STEPS for unit in ("mean, %", "worst, %")]
        title = "Whole kernels, each level against the one below it"
        yield Grid([Column("kernel", text=True), *columns], rows, title, folded=True)


def _details(experiments: Sequence[CalibrationResult]) -> Iterator[Grid]:
    error, experiment = "absolute, %", Column("experiment", text=True)
    yield Grid(
        [
            experiment,
            Column("subject", text=True),
            Column("fit points"),
            Column("check points"),
            Column("mean error", error),
            Column("worst error", error),
            Column("worst case", text=True),
        ],
        [
            [
                one.name,
                one.subject,
                str(len(one.fit)),
                str(len(one.check)),
                error_cell(one.mean_abs_error_pct),
                error_cell(one.max_abs_error_pct),
                one.check[worst(one.check)].case if one.max_abs_error_pct else "–",
            ]
            for one in experiments
        ],
        "Experiments",
        folded=True,
    )
    yield Grid(
        [
            experiment,
            Column("situation", text=True),
            Column("fit points"),
            Column("check points"),
            Column("worst error", error),
            Column("status", text=True),
        ],
        [
            [
                one.name,
                each.name,
                str(each.fit),
                str(each.check),
                "–" if each.max_abs_error_pct is None else error_cell(each.max_abs_error_pct),
                each.status,
            ]
            for one in experiments
            for each in one.situations
        ],
        "What was tried, and what was not",
        folded=True,
    )
    yield Grid(
        [
            experiment,
            Column("parameter", text=True),
            Column("value"),
            Column("unit", text=True),
            Column("95 % interval"),
        ],
        [
            [
                one.name,
                name,
                figure(each.value, 6),
                each.unit,
                "exact"
                if each.ci95[0] == each.ci95[1]
                else f"{figure(each.ci95[0], 6)} to {figure(each.ci95[1], 6)}",
            ]
            for one in experiments
            for name, each in one.parameters.items()
        ],
        "Fitted parameters",
        folded=True,
    )
