"""Figures of serving: distributions of times, goodput by rate, tokens over time."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from tlm.plotting import MARKERS, Curve, direct_labels, look, plain_ticks
from wafertlm.report.beside import Values
from wafertlm.report.panels import INK, PAPER, panel
from wafertlm.report.records import Serve, ServeOptions
from wafertlm.serving.plot import tokens_over_time

#: So many lines stay apart in a figure.
MOST_LINES = 6
#: So many steps of a distribution look like all of them.
_STEPS = 300
_QUANTITIES = {
    "ttft_s": ("time to first token (s)", "slo_ttft_s", "s"),
    "mean_tbt_ms": ("mean time between tokens (ms)", "slo_tbt_ms", "ms"),
    "e2e_s": ("end to end (s)", "", ""),
}


def distributions(
    requests: Mapping[str, Mapping[str, Values]], options: ServeOptions
) -> list[Markup]:
    """Share of requests that were served within a time, by time, and the objectives."""
    drawn = []
    for name, (label, objective, unit) in _QUANTITIES.items():
        values = {stem: table[name] for stem, table in requests.items() if len(table[name])}
        slo = getattr(options, objective, None)
        if values:
            draw = partial(_distribution, values=values, label=label, slo=slo, unit=unit)
            drawn.append(panel(draw, f"share of requests by {label}: {', '.join(values)}"))
    return drawn


def _distribution(
    axes: Axes, values: Mapping[str, Values], label: str, slo: float | None, unit: str
) -> None:
    curves = []
    for index, (stem, times) in enumerate(values.items()):
        shares = np.linspace(0, 100, min(len(times), _STEPS) + 1)
        ends = np.percentile(times, shares, method="inverted_cdf")
        axes.step(ends, shares, where="post", **look(index))
        curves.append(Curve(ends[1:], shares[1:], stem, look(index)["color"]))
    most = max(float(times.max()) for times in values.values())
    axes.set(xlabel=label, ylabel="requests (%)", ylim=(0, 104), xlim=(0, 1.05 * most or 1))
    axes.grid(True)
    if slo is not None and slo < 1.05 * most:
        axes.axvline(slo, color=INK, linewidth=0.8, linestyle="--")
        curves.append(Curve([slo] * 9, np.linspace(0, 100, 9), f"SLO {slo:g} {unit}", INK))
    plain_ticks(axes.xaxis)
    direct_labels(axes, curves, PAPER)


def by_rate(runs: Mapping[str, Serve]) -> list[Markup]:
    """Requests within the objectives by requests that come: of searches, and of runs at rates."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for stem, run in runs.items():
        if run.capacity is not None:
            curves[stem] = [(t.rate, t.rate * t.attainment) for t in run.capacity.trials]
        elif run.goodput_rps is not None and isinstance(run.options.rate_rps, float | int):
            point = float(run.options.rate_rps), run.goodput_rps
            curves.setdefault(run.options.scheduler, []).append(point)
    curves = {name: sorted(points) for name, points in curves.items()}
    if not curves:
        return []
    return [panel(partial(_by_rate, curves=curves), "goodput by rate")]


def _by_rate(axes: Axes, curves: Mapping[str, list[tuple[float, float]]]) -> None:
    labels, most = [], 0.0
    for index, (name, points) in enumerate(curves.items()):
        rates, good = (list(each) for each in zip(*points, strict=True))
        shown: dict[str, Any] = look(index) | {"marker": MARKERS[index % len(MARKERS)]}
        axes.plot(rates, good, markersize=3.5, **shown)
        labels.append(Curve(rates, good, name, shown["color"]))
        most = max(most, *rates)
    axes.plot([0, most], [0, most], color=INK, linewidth=0.6, zorder=0)
    labels.append(Curve(np.linspace(0, most, 9), np.linspace(0, most, 9), "all attain", INK))
    axes.set(xlabel="requests a second", ylabel="within the SLOs, requests a second")
    axes.set(xlim=(0, 1.05 * most), ylim=(0, 1.1 * most))
    axes.grid(True)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    direct_labels(axes, labels, PAPER)


def over_time(stem: str, run: Serve) -> list[Markup]:
    """Tokens a second over the time of a run."""
    if run.timeline is None:
        return []
    timeline = run.timeline.model_dump()
    bins = min(len(timeline[name]) for name in ("prompt_tok_s", "output_tok_s"))
    timeline |= {name: timeline[name][:bins] for name in ("prompt_tok_s", "output_tok_s")}
    return [panel(lambda axes: tokens_over_time(axes, timeline, PAPER), f"tokens of {stem}")]
