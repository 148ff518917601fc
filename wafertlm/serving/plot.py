"""A serving result as a picture: tokens over time, its times, and what a search has found."""

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.plotting import COLOURS, STYLE, Curve, direct_labels, plain_ticks
from wafertlm.options import chip_told
from wafertlm.output import Result

_PERCENTILES = {"p50": "50", "p90": "90", "p95": "95", "p99": "99", "p99_9": "99.9"}
_GREY = "0.35"
_INK = "black"


def serving_picture(result: Result) -> Figure:
    """Draw a result of ``wafertlm serve`` of a single seed.

    Args:
        result: The command's object.
    """
    capacity, options = result["capacity"], result["options"]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 3.3))
        first, second, third = figure.subplots(1, 3)
        figure.suptitle(_title(result), fontsize="medium", x=0.01, ha="left")
        slo_ttft_s, slo_tbt_ms = options.get("slo_ttft_s"), options.get("slo_tbt_ms")
        if capacity is None:
            _percentiles(first, result["ttft_s"], "time to first token (s)", slo_ttft_s)
            _percentiles(second, result["tbt_ms"], "time between tokens (ms)", slo_tbt_ms)
        else:
            _attainment_by_rate(first, capacity, options["attainment"])
            _frontier(second, capacity, slo_ttft_s, slo_tbt_ms)
        tokens_over_time(third, result["timeline"])
    return figure


def _title(result: Result) -> str:
    """What was served where, and under which load."""
    options = result["options"]
    trace = options.get("trace")
    load = options.get("workload") or (trace["name"] if trace else "a load")
    capacity = result.get("capacity")
    rate = options.get("rate_rps") if capacity is None else capacity["rate_rps"]
    at = "" if rate is None else f" at {float(rate):.3g} requests a second"
    served = f"{options['model']} on {chip_told(options)}, {options['scheduler']}"
    return f"{served}: {result['requests']} requests of {load}{at}"


def tokens_over_time(axes: Axes, timeline: Mapping[str, Any], halo: str = "white") -> None:
    """Tokens a second of prompts and of outputs."""
    bins = len(timeline["output_tok_s"])
    edges = np.arange(bins + 1) * timeline["bin_s"]
    middles, curves = (edges[:-1] + edges[1:]) / 2, []
    for name, shown, colour in (
        ("prompt_tok_s", "prompt", COLOURS[0]),
        ("output_tok_s", "output", COLOURS[1]),
    ):
        axes.stairs(timeline[name], edges, color=colour)
        values = np.asarray(timeline[name])
        some = values > 0
        if some.any():
            curves.append(Curve(middles[some], values[some], shown, colour))
    most = max([*timeline["prompt_tok_s"], *timeline["output_tok_s"], 1e-9])
    axes.set(xlabel="time (s)", ylabel="tokens a second", ylim=(0, 1.15 * most), xlim=(0, None))
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    direct_labels(axes, curves, halo)


def _attainment_by_rate(axes: Axes, capacity: Mapping[str, Any], least: float) -> None:
    """Share of requests that attain the objectives by rate, and the highest rate that will do."""
    trials = _by_rate(capacity)
    rates, shares = [t["rate"] for t in trials], [100 * t["attainment"] for t in trials]
    axes.plot(rates, shares, "o-", markersize=3, color=COLOURS[0])
    rate = capacity["rate_rps"]
    axes.set(xlabel="requests a second", ylabel="requests that attain (%)", ylim=(-3, 108))
    if max(rates) > 20 * min(rates):
        axes.set_xscale("log")
    axes.axhline(100 * least, color=_GREY, linewidth=0.8, linestyle="--")
    axes.axvline(rate, color=_GREY, linewidth=0.8, linestyle="--")
    low, high = axes.get_xlim()
    plain_ticks(axes.xaxis)
    curves = [
        Curve([low, high], [100 * least] * 2, f"{100 * least:g} % asked for", _GREY),
        Curve([rate] * 9, np.linspace(0, 100, 9), f"{rate:.3g} a second", _GREY),
    ]
    direct_labels(axes, curves)


def _frontier(
    axes: Axes, capacity: Mapping[str, Any], slo_ttft_s: float | None, slo_tbt_ms: float | None
) -> None:
    """First tokens against intervals as the rate grows, beside the objectives."""
    trials = [trial for trial in _by_rate(capacity) if trial["tbt_ms"] is not None]
    ttft, tbt = ([trial[name] for trial in trials] for name in ("ttft_s", "tbt_ms"))
    axes.plot(ttft, tbt, "o-", markersize=3, color=COLOURS[0])
    axes.set(xscale="log", xlabel="mean time to first token (s)")
    axes.set(ylabel="mean time between tokens (ms)", ylim=(0, 1.2 * max([*tbt, slo_tbt_ms or 0])))
    curves = []
    for trial in trials:
        if trial["rate"] == capacity["rate_rps"]:
            at = [trial["ttft_s"]], [trial["tbt_ms"]]
            axes.plot(*at, "o", color=_INK)
            curves.append(Curve(*at, f"{trial['rate']:.3g} a second", _INK))
    curves += _objective_lines(axes, slo_ttft_s, slo_tbt_ms)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    direct_labels(axes, curves)


def _objective_lines(axes: Axes, slo_ttft_s: float | None, slo_tbt_ms: float | None) -> list[Curve]:
    """Lines at the objectives, x for first tokens and y for intervals, and their labels."""
    curves = []
    if slo_ttft_s is not None:
        axes.axvline(slo_ttft_s, color=COLOURS[1], linewidth=0.8, linestyle="--")
        heights = np.linspace(*axes.get_ylim(), 9)
        curves.append(Curve([slo_ttft_s] * 9, heights, f"SLO {slo_ttft_s:g} s", COLOURS[1]))
    if slo_tbt_ms is not None:
        axes.axhline(slo_tbt_ms, color=COLOURS[1], linewidth=0.8, linestyle="--")
        low, high = axes.get_xlim()
        widths = np.geomspace(low, high, 9) if axes.get_xscale() == "log" else [low, high]
        text = f"SLO {slo_tbt_ms:g} ms"
        curves.append(Curve(widths, [slo_tbt_ms] * len(widths), text, COLOURS[1]))
    return curves


def _percentiles(axes: Axes, times: Mapping[str, Any], label: str, slo: float | None) -> None:
    """A time by the per cent of requests, or of tokens, that take at most so long."""
    known = {text: times[name] for name, text in _PERCENTILES.items() if times[name] is not None}
    axes.plot(list(known), list(known.values()), "o-", markersize=3, color=COLOURS[0])
    most = max([*known.values(), slo or 0], default=1)
    axes.set(xlabel="percentile", ylabel=label, ylim=(0, 1.15 * most))
    plain_ticks(axes.yaxis)
    if slo is not None and known:
        axes.axhline(slo, color=COLOURS[1], linewidth=0.8, linestyle="--")
        places = np.linspace(0, len(known) - 1, 9)
        unit = label[label.index("(") + 1 : -1]
        curve = Curve(places, [slo] * 9, f"SLO {slo:g} {unit}", COLOURS[1])
        direct_labels(axes, [curve])


def _by_rate(capacity: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sorted(capacity["trials"], key=lambda trial: float(trial["rate"]))
