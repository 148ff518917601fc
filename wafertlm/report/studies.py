"""Studies of papers: the models against published figures."""

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes

from tlm.plotting import COLOURS, Curve, direct_labels, plain_ticks
from wafertlm.report.panels import INK, PAPER, panel
from wafertlm.report.records import StudyResult, StudyRow
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Column, Grid, error_cell
from wafertlm.report.wording import figure, plain
from workloads.studies.rows import GIVEN

_MOST_ROWS = 300
_COLUMNS = (
    Column("row", text=True),
    Column("paper"),
    Column("model"),
    Column("unit", text=True),
    Column("error", "%"),
    Column("fitted", text=True),
)


def study_answers(results: Results) -> Iterator[Answer]:
    """An answer for each study."""
    for stem, run in sorted(results.studies.items()):
        yield _answer(stem, run)


def _answer(stem: str, run: StudyResult) -> Answer:
    known = [row for row in run.rows if row.paper is not None]
    predicted = run.summary.get("predicted")
    figures: list[tuple[str, str]] = []
    worst = ""
    if isinstance(predicted, dict):
        mean, most = (predicted.get(f"{name}_abs_error_pct") for name in ("mean", "max"))
        if isinstance(mean, int | float):
            rows = plain(predicted.get("rows"))
            figures.append((f"{figure(mean)} %", f"mean error of {rows} rows that are predicted"))
        if isinstance(most, int | float):
            worst = f"up to {figure(most)} %, {plain(predicted.get('worst_row'))}"
    kept = run.summary.get("orderings")
    if isinstance(kept, dict):
        told = f"{plain(kept.get('kept'))} of {plain(kept.get('of'))}"
        figures.append((told, "orderings of the paper are kept"))
    figures.append((str(len(known)), "rows have a published figure"))
    more = len(known) - _MOST_ROWS
    return Answer(
        question=f"How near do the models come to the figures of {plain(run.options.get('name'))}?",
        figures=figures,
        interval=worst,
        trust="Fitted rows are no evidence; the errors are of rows that nothing was fitted to.",
        stems=[stem],
        grids=[
            Grid(
                _COLUMNS,
                [_row(row) for row in known[:_MOST_ROWS]],
                "Rows",
                folded=True,
                note=f"{more} more are in the file." if more > 0 else "",
            )
        ],
        panels=_panels(known),
        caption="On the line model and paper agree.",
    )


def _row(row: StudyRow) -> list[Any]:
    error = error_cell(row.error_pct) if row.error_pct is not None else "–"
    return [row.id, figure(row.paper, 4), figure(row.model, 4), row.unit, error, plain(row.fit)]


def _panels(rows: Sequence[StudyRow]) -> list[Markup]:
    some = [
        row
        for row in rows
        if row.paper and row.model and row.paper > 0 and row.model > 0 and row.fit != GIVEN
    ]
    if not some:
        return []
    return [panel(lambda axes: _parity(axes, some), "model against paper")]


def _parity(axes: Axes, rows: Sequence[StudyRow]) -> None:
    curves = []
    for index, (label, is_fit) in enumerate((("fitted", True), ("predicted", False))):
        points = [(r.paper or 1.0, r.model or 1.0) for r in rows if (r.fit is True) == is_fit]
        if points:
            xs, ys = (list(each) for each in zip(*points, strict=True))
            axes.plot(xs, ys, "s^"[index], color=COLOURS[index], markersize=3.5, alpha=0.7)
            curves.append(Curve(xs, ys, label, COLOURS[index]))
    low = min(min(row.paper or 1.0, row.model or 1.0) for row in rows)
    high = max(max(row.paper or 1.0, row.model or 1.0) for row in rows)
    axes.plot([low, high], [low, high], color=INK, linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="paper", ylabel="model")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.grid(True)
    direct_labels(axes, curves, PAPER)
