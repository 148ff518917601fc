"""A serving result as a picture: tokens over time, and what a search of the rate has found."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.files import whole_file
from wafertlm.output import Result


def plot_serving(result: Result, path: Path) -> None:
    """Draw a result of ``wafertlm serve`` of a single seed.

    Args:
        result: The command's object.
        path: A file that ends in .png, .svg or .pdf.

    Raises:
        InputError: if the file cannot be written.
    """
    capacity = result["capacity"]
    panels = 1 if capacity is None else 3
    figure = Figure(figsize=(4.5 * panels, 3), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _tokens_over_time(axes[-1], result["timeline"])
    if capacity is not None:
        _attainment_by_rate(axes[0], capacity, result["options"]["attainment"])
        _frontier(axes[1], capacity)
    # Without the dates and random names that pictures carry: equal results, equal bytes.
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with whole_file(path) as scratch, matplotlib.rc_context({"svg.hashsalt": "wafertlm"}):
        figure.savefig(scratch, metadata=metadata[path.suffix])


def _tokens_over_time(axes: Axes, timeline: dict[str, Any]) -> None:
    bins = len(timeline["output_tok_s"])
    edges = np.arange(bins + 1) * timeline["bin_s"]
    for name, shown in (("prompt_tok_s", "prompt"), ("output_tok_s", "output")):
        axes.stairs(timeline[name], edges, label=shown)
    axes.set(xlabel="time, s", ylabel="tokens a second", ylim=(0, None))
    axes.legend(frameon=False)


def _attainment_by_rate(axes: Axes, capacity: dict[str, Any], least: float) -> None:
    trials = _by_rate(capacity)
    rates = [trial["rate"] for trial in trials]
    axes.plot(rates, [100 * trial["attainment"] for trial in trials], marker="o", markersize=3)
    axes.axhline(100 * least, color="0.5", linewidth=0.8, linestyle="--")
    axes.axvline(capacity["rate_rps"], color="0.5", linewidth=0.8, linestyle="--")
    axes.set(xlabel="requests a second", ylabel="requests that attain, %", ylim=(-3, 103))


def _frontier(axes: Axes, capacity: dict[str, Any]) -> None:
    """First tokens against intervals as the rate grows, the highest that attains marked."""
    trials = [trial for trial in _by_rate(capacity) if trial["tbt_ms"] is not None]
    ttft, tbt = ([trial[name] for trial in trials] for name in ("ttft_s", "tbt_ms"))
    axes.plot(ttft, tbt, marker="o", markersize=3)
    for trial in trials:
        if trial["rate"] == capacity["rate_rps"]:
            label = f"{trial['rate']:.3g} a second"
            axes.plot(trial["ttft_s"], trial["tbt_ms"], "o", color="0.2", label=label)
            axes.legend(frameon=False)
    axes.set(xscale="log", xlabel="mean time to first token, s")
    axes.set(ylabel="mean time between tokens, ms", ylim=(0, None))


def _by_rate(capacity: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(capacity["trials"], key=lambda trial: float(trial["rate"]))
