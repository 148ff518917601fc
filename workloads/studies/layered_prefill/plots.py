"""Plots of the study: objectives attained by rate, and first tokens against intervals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlm.files import whole_file

_COLOURS = {"chunked": "#b5483a", "layered": "#2b6a99"}
_LOADS = (
    ("qwen3-30b-a3b-h100x2-arxiv", "Qwen3-30B-A3B, arXiv"),
    ("qwen3-30b-a3b-h100x2-sharegpt", "Qwen3-30B-A3B, ShareGPT"),
    ("gpt-oss-20b-bf16-h100x2-arxiv", "GPT-OSS-20B, arXiv"),
    ("gpt-oss-20b-bf16-h100x2-sharegpt", "GPT-OSS-20B, ShareGPT"),
)


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``attainment.png`` and ``frontier.png`` of a result of the study.

    Raises:
        InputError: if a file cannot be written.
    """
    from matplotlib.figure import Figure

    attainment = Figure(figsize=(8, 6), layout="constrained")
    frontier = Figure(figsize=(8, 6), layout="constrained")
    axes_of = zip(attainment.subplots(2, 2).flat, frontier.subplots(2, 2).flat, strict=True)
    for (left, right), (load, title) in zip(axes_of, _LOADS, strict=True):
        for scheduler, colour in _COLOURS.items():
            curve = [
                point
                for point in result["curves"]
                if (point["load"], point["scheduler"]) == (load, scheduler)
            ]
            rates, attained, ttft, tbt = (
                [point[name] for point in curve]
                for name in ("rate_rps", "slo_attainment", "TTFT_mean", "TBT_mean")
            )
            left.plot(rates, attained, "o-", color=colour, label=scheduler)
            right.plot(tbt, ttft, "o-", color=colour, label=scheduler)
            for rate, place in zip(rates, zip(tbt, ttft, strict=True), strict=True):
                right.annotate(f"{rate:g}", place)
        left.axhline(0.9, color="grey", linewidth=0.8)
        left.set(title=title, ylim=(0, 1.05), xlabel="requests a second", ylabel="attainment")
        right.set(title=title, xlabel="mean TBT, ms", ylabel="mean TTFT, s", yscale="log")
        left.legend()
        right.legend()
    return [
        _save(attainment, folder / "attainment.png"),
        _save(frontier, folder / "frontier.png"),
    ]


def _save(figure: Any, path: Path) -> Path:
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=110, metadata={"Software": None})
    return path
