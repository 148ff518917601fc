"""Comparisons: what changes between variants, with intervals, and what it costs in gates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes

from tlm.plotting import COLOURS, MARKERS, Curve, direct_labels, plain_ticks, short_label
from wafertlm.report.panels import INK, PAPER, panel
from wafertlm.report.records import Change, Comparison
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Cell, Column, Grid
from wafertlm.report.wording import between, count, figure, named, percent, plain

#: Figures that answer the question, the first that changes first.
_ASKED = (
    *("cycles", "seconds", "saturation", "latency_cycles.mean", "accepted"),
    *("ttft_s.mean", "tbt_ms.mean", "throughput_tok_s", "goodput_rps", "slo_attainment"),
    *("e2e_s.mean", "energy_j", "energy_mj_per_output_token", "utilization"),
)
_SIGNIFICANT = {True: "yes", False: "no, within the errors", None: "not known"}
_MOST_POINTS, _MOST_METRICS = 14, 10
_COLUMNS = (
    Column("variant", text=True),
    Column("figure", text=True),
    Column("from"),
    Column("to"),
    Column("change", "%"),
    Column("by the levels' errors"),
    Column("significant", text=True),
)
_GATES = (
    Column("router", text=True),
    Column("cells", "of a router"),
    Column("longest path", "cells"),
    Column("toggles", "of a router"),
    Column("area", "µm²"),
    Column("cells", "of the chip"),
)


def comparison_answers(results: Results) -> Iterator[Answer]:
    """An answer for each comparison."""
    for stem, run in sorted(results.comparisons.items()):
        yield _answer(stem, run)


def _answer(stem: str, run: Comparison) -> Answer:
    of, known = plain(run.options.get("command")), [_varied(each.values) for each in run.variants]
    asked = [each for name in _ASKED for each in run.changes if each.metric == name]
    asked = asked or list(run.changes[:_MOST_POINTS])
    told = sorted(asked, key=lambda each: _rank(each))
    figures = [
        (percent(each.change_pct), f"{named(each.metric)}, {_varied(each.values)}")
        for each in told[:4]
    ]
    first = told[0] if told else None
    return Answer(
        question=f"What does a change of {_varied_names(run)} do to {of}: "
        f"{known[0]} against {', '.join(known[1:]) or 'nothing'}?",
        figures=figures or [("nothing", "changes")],
        interval="" if first is None else _between(first),
        binds=_most(asked),
        binds_title="What changes most",
        trust=_trust(asked),
        stems=[stem],
        options=_options(run.options.get("options")),
        grids=[
            Grid(_COLUMNS, [_row(each) for each in asked if each.change_pct is not None]),
            *_gates(run.gates),
            Grid(_COLUMNS, [_row(each) for each in run.changes], "All changes", folded=True),
        ],
        panels=_panels(asked),
        caption="Changes against the first variant; bars are what the errors of the levels let "
        "them be. Filled: significant, as the bar does not cross zero.",
    )


def _varied_names(run: Comparison) -> str:
    return " and ".join(dict.fromkeys(name for each in run.variants for name in each.values))


def _varied(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {plain(value)}" for name, value in values.items())


def _rank(change: Change) -> tuple[bool, int]:
    """Significant changes first, in the order of what is asked."""
    metric = change.metric
    place = _ASKED.index(metric) if metric in _ASKED else len(_ASKED)
    return not (change.significant and change.change_pct), place


def _most(asked: Sequence[Change]) -> str:
    much = [each for each in asked if each.significant and each.change_pct]
    if not much:
        return (
            "No change of these is larger than what the errors of the levels let it be. Next: a "
            "lower level, or a larger step."
        )
    most = max(much, key=lambda each: abs(each.change_pct or 0.0))
    told = f"{percent(most.change_pct)} with {_varied(most.values)}"
    return f"The {named(most.metric)}: {told}."


def _trust(asked: Sequence[Change]) -> str:
    known = [each for each in asked if each.low_pct is not None]
    if not known:
        return "These changes were not compared with a lower level."
    some = "All" if len(known) == len(asked) else f"{len(known)} of {len(asked)}"
    rest = "" if some == "All" else " The others were not compared with a lower level."
    return (
        f"{some} of these changes have an interval: errors of what is equal in two variants "
        f"cancel, others add up.{rest}"
    )


def _options(options: Any) -> str:
    if not isinstance(options, Mapping):
        return ""
    given = options.items()
    return ", ".join(f"{k} {plain(v)}" for k, v in given if v not in (None, False, [], ""))


def _row(change: Change) -> list[str | Cell]:
    return [
        _varied(change.values),
        named(change.metric),
        figure(change.before, 4),
        figure(change.to, 4),
        Cell(percent(change.change_pct), strong=True),
        _between(change) or "not known",
        _SIGNIFICANT[change.significant],
    ]


def _between(change: Change) -> str:
    """Between what a change lies by the levels' errors, in words."""
    if change.low_pct is not None and change.low_pct == change.high_pct:
        return "exact in the checked cases"
    return between(change.low_pct, change.high_pct, percent)


def _gates(gates: Sequence[Mapping[str, Any]] | None) -> Iterator[Grid]:
    if not gates:
        return
    rows = []
    for each in gates:
        router, chip = each.get("router"), each.get("chip")
        router = router if isinstance(router, Mapping) else {}
        chip = chip if isinstance(chip, Mapping) else {}
        numbers = [router.get(name) for name in ("cells", "longest_path_cells", "toggles")]
        numbers += [router.get("area_um2"), chip.get("cells")]
        shown = [count(each) if isinstance(each, int | float) else "–" for each in numbers]
        rows.append([plain(each.get("rtl")), *shown])
    yield Grid(_GATES, rows, note="Gates of routers that have Verilog, from synthesis.")


def _panels(asked: Sequence[Change]) -> list[Markup]:
    drawn = [each for each in asked if each.change_pct is not None]
    metrics = list(dict.fromkeys(each.metric for each in drawn))[:_MOST_METRICS]
    drawn = [each for each in drawn if each.metric in metrics]
    if not drawn:
        return []
    height = 0.9 + 0.17 * len(metrics) + 0.17 * len(drawn)
    return [panel(lambda axes: _forest(axes, drawn, metrics), "changes, intervals", (4.6, height))]


def _forest(axes: Axes, changes: Sequence[Change], metrics: Sequence[str]) -> None:
    """A place for each figure, from the top, a line for each variant; open: not significant."""
    variants = list(dict.fromkeys(_varied(each.values) for each in changes))
    labels: dict[str, Curve] = {}
    for each in changes:
        told = _varied(each.values)
        index = variants.index(told)
        place = metrics.index(each.metric) + 0.7 * ((index + 0.5) / len(variants) - 0.5)
        value, colour = each.change_pct or 0.0, COLOURS[index % len(COLOURS)]
        if each.low_pct is not None and each.high_pct is not None:
            axes.plot([each.low_pct, each.high_pct], [place, place], color=colour, linewidth=2)
        shown: dict[str, Any] = {"color": colour, "marker": MARKERS[index % len(MARKERS)]}
        shown["markerfacecolor"] = colour if each.significant else PAPER
        axes.plot([value], [place], markersize=4.5, **shown)
        if told not in labels or abs(value) > abs(labels[told].x[0]):
            labels[told] = Curve([value], [place], told, colour)
    axes.set_yticks(range(len(metrics)), [short_label(named(each), 40) for each in metrics])
    axes.set(xlabel="change (%)", ylim=(len(metrics) - 0.4, -0.6))
    axes.margins(x=0.12)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(True, axis="x")
    plain_ticks(axes.xaxis)
    direct_labels(axes, labels.values() if len(variants) <= _MOST_METRICS else (), PAPER)
