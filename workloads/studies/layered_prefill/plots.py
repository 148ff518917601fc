"""Plots of the study: objectives attained by rate, and first tokens against intervals."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlm.plotting import COLOURS, INK, Curve, direct_labels, plain_ticks, series, write_pictures

_SCHEDULERS = ("chunked", "layered")
_ASKED_FOR_PCT = 90
_LOADS = (
    ("qwen3-30b-a3b-h100x2-arxiv", "Qwen3-30B-A3B, arXiv"),
    ("qwen3-30b-a3b-h100x2-sharegpt", "Qwen3-30B-A3B, ShareGPT"),
    ("gpt-oss-20b-bf16-h100x2-arxiv", "GPT-OSS-20B, arXiv"),
    ("gpt-oss-20b-bf16-h100x2-sharegpt", "GPT-OSS-20B, ShareGPT"),
)
_Points = Sequence[Mapping[str, Any]]


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``attainment`` and ``frontier`` of a result of the study, as SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    drawings = {"attainment": _attainment, "frontier": _frontier}
    return write_pictures(
        folder, {name: partial(_each_load, result, one) for name, one in drawings.items()}
    )


def _each_load(
    result: Mapping[str, Any], panel: Callable[[Any, Mapping[str, _Points]], None]
) -> Any:
    """A panel for each load, of its points by scheduler."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5.6))
    for axes, (load, title) in zip(figure.subplots(2, 2).flat, _LOADS, strict=True):
        points = {
            scheduler: [
                point
                for point in result["curves"]
                if (point["load"], point["scheduler"]) == (load, scheduler)
            ]
            for scheduler in _SCHEDULERS
        }
        axes.set_title(title)
        panel(axes, points)
    return figure


def _attainment(axes: Any, points: Mapping[str, _Points]) -> None:
    curves = []
    for number, (scheduler, some) in enumerate(points.items()):
        shares = [100 * point["slo_attainment"] for point in some]
        curves.append(series(axes, _all(some, "rate_rps"), shares, scheduler, number))
    axes.set(xlabel="requests a second", ylabel="requests that attain (%)", ylim=(0, 106))
    axes.axhline(_ASKED_FOR_PCT, color=INK, linewidth=0.8, linestyle=":")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high)
    asked = f"{_ASKED_FOR_PCT} % asked for"
    line = np.linspace(low, high, 9)
    direct_labels(axes, [*curves, Curve(line, [_ASKED_FOR_PCT] * len(line), asked, INK)])


def _frontier(axes: Any, points: Mapping[str, _Points]) -> None:
    curves, rates = [], []
    for number, (scheduler, some) in enumerate(points.items()):
        tbt_ms, ttft_s = _all(some, "TBT_mean"), _all(some, "TTFT_mean")
        curves.append(series(axes, tbt_ms, ttft_s, scheduler, number))
        for point in some:
            at = [point["TBT_mean"]], [point["TTFT_mean"]]
            rates.append(Curve(*at, f"{point['rate_rps']:g}", COLOURS[number]))
    axes.set(yscale="log", xlabel="mean TBT (ms)", ylabel="mean TTFT (s)")
    axes.margins(0.1)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    direct_labels(axes, [*curves, *rates])


def _all(points: _Points, name: str) -> list[float]:
    return [point[name] for point in points]
