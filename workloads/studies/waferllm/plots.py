"""Plots of the study: layers of models against the paper, and kernels by the side of the grid."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tlm.plotting import (
    label_panels,
    places_ticks,
    plain_ticks,
    published,
    series,
    write_pictures,
)
from workloads.studies.waferllm.facts import (
    GEMM_SIDES,
    GEMM_SIZES,
    GEMMS,
    GEMV_SIDES,
    GEMV_SIZES,
    GEMVS,
    MODELS,
)


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``layers``, ``gemm`` and ``gemv``, as SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    drawings = {
        "layers": partial(_layers, found),
        "gemm": partial(_kernels, found, "F9/GEMM", GEMM_SIZES, GEMM_SIDES, GEMMS),
        "gemv": partial(_kernels, found, "F10/GEMV", GEMV_SIZES, GEMV_SIDES, GEMVS),
    }
    return write_pictures(folder, drawings)


def _figure(cols: int) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * cols, 3.6))
    return figure, figure.subplots(1, cols)


def _layers(found: Mapping[str, Any]) -> Any:
    """Tables 3 and 4: tokens a second by the side of the grid, and what was published."""
    figure, axes = _figure(2)
    labelled = []
    for axis, table, phase in zip(axes, ("T3", "T4"), ("prefill", "decode"), strict=True):
        curves, ticks = [], set()
        for number, model in enumerate(MODELS):
            rows = [
                row
                for name, row in found.items()
                if name.startswith(f"{table}/{model}/") and name.endswith(f"/{phase}")
            ]
            sides = [int(row["id"].split("/")[2].split("x")[0]) for row in rows]
            ticks |= {*sides}
            curves.append(series(axis, sides, [row["model"] for row in rows], model, number))
            published(axis, sides, [row["paper"] for row in rows])
        axis.set(yscale="log", xlabel="tiles a side", ylabel="throughput (tokens/s)")
        axis.set_title(f"{phase}; stars: the paper")
        axis.margins(0.1)
        places_ticks(axis.xaxis, sorted(ticks))
        plain_ticks(axis.yaxis)
        labelled.append((axis, curves))
    label_panels(labelled)
    return figure


def _kernels(
    found: Mapping[str, Any],
    start: str,
    sizes: Mapping[str, int],
    sides: tuple[int, ...],
    kernels: Mapping[str, Any],
) -> Any:
    """Figure 9 or 10: cycles by the side of the grid."""
    figure, axes = _figure(len(sizes))
    labelled = []
    for axis, size in zip(axes, sizes, strict=True):
        curves = []
        for number, kernel in enumerate(kernels):
            names = [f"{start}-{size}/{side}x{side}/{kernel}_cycles" for side in sides]
            values = [found[name]["model"] for name in names]
            curves.append(series(axis, sides, values, kernel, number))
        axis.set(title=size, xlabel="tiles a side", ylabel="time (cycles)", ylim=(0, None))
        places_ticks(axis.xaxis, sides)
        plain_ticks(axis.yaxis)
        labelled.append((axis, curves))
    label_panels(labelled)
    return figure
