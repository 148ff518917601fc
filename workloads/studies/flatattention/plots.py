"""Plots of the study: collectives, run times, and use by groups, slices and kernels."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlm.plotting import (
    COLOURS,
    direct_labels,
    places_ticks,
    plain_ticks,
    published,
    series,
    write_pictures,
)
from workloads.studies.flatattention.facts import DEPTHS, LENGTHS, VARIANTS

_PARTS = ("compute", "communication", "memory", "overhead")


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``collectives``, ``variants``, ``groups``, ``slices`` and ``shapes``, SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    drawings = {
        "collectives": _collectives,
        "variants": _variants,
        "groups": _groups,
        "slices": _slices,
        "shapes": _shapes,
    }
    return write_pictures(folder, {name: partial(one, found) for name, one in drawings.items()})


def _figure(rows: int, cols: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, cols, squeeze=False)


def _collectives(found: Mapping[str, Any]) -> Any:
    """Figure 7: speed-ups of the network's collectives by the block's length."""
    figure, axes = _figure(1, 2, 8, 3.2)
    for axis, kind in zip(axes.flat, ("multicast", "sum"), strict=True):
        curves = []
        for number, method in enumerate(("tree", "sequential")):
            rows = [
                row
                for name, row in found.items()
                if _is(name, f"F7/{kind}/", f"/{method}_over_network")
            ]
            kib = [int(row["id"].split("/")[2].removesuffix("KiB")) for row in rows]
            values = [row["model"] for row in rows]
            curves.append(series(axis, kib, values, f"over {method}", number))
            published(axis, kib, [row["paper"] for row in rows])
        axis.set(xscale="log", yscale="log", xlabel="block of a tile (KiB)")
        axis.set(title=f"row {kind}; stars: the paper", ylabel="speed-up of the network")
        places_ticks(axis.xaxis, kib)
        plain_ticks(axis.yaxis)
        direct_labels(axis, curves)
    return figure


def _variants(found: Mapping[str, Any]) -> Any:
    """Figure 8: run time by what it is spent on."""
    figure, axes = _figure(len(DEPTHS), len(LENGTHS), 9, 5)
    for row, depth in zip(axes, DEPTHS, strict=True):
        for axis, length in zip(row, LENGTHS, strict=True):
            at = f"F8/D{depth}-S{length}"
            times = _values(found, [f"{at}/{name}/runtime" for name in VARIANTS])
            bottom = np.zeros(len(times))
            for part, colour in zip(_PARTS, COLOURS, strict=False):
                shares = _values(found, [f"{at}/{name}/{part}" for name in VARIANTS])
                axis.bar(
                    list(VARIANTS), times * shares / 100, 0.7, bottom, color=colour, label=part
                )
                bottom += times * shares / 100
            uses = _values(found, [f"{at}/{name}/hbm_use" for name in VARIANTS])
            for place, (use, time) in enumerate(zip(uses, times, strict=True)):
                if np.isfinite(use + time):
                    axis.annotate(
                        f"{use:.0f} %", (place, time), ha="center", va="bottom", fontsize="small"
                    )
            axis.set(title=f"D {depth}, S {length}", ylabel="run time (ms)")
            axis.margins(y=0.12)
            axis.tick_params(axis="x", labelrotation=40)
            plain_ticks(axis.yaxis)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(_PARTS),
        title="above the bars: HBM bandwidth used",
    )
    return figure


def _groups(found: Mapping[str, Any]) -> Any:
    """Figure 9: use of the engines by the side of a group."""
    figure, axes = _figure(1, 1, 5, 3.6)
    axis, curves = axes[0][0], []
    sides: list[str] = []
    for number, length in enumerate((512, *LENGTHS)):
        rows = [row for name, row in found.items() if _is(name, f"F9/S{length}/", "/utilization")]
        names = [row["id"].split("/")[2] for row in rows]
        sides += [name for name in names if name not in sides]
        places = [sides.index(name) for name in names]
        curves.append(series(axis, places, [row["model"] for row in rows], f"S {length}", number))
        published(axis, places, [row["paper"] for row in rows])
    axis.set_xticks(range(len(sides)), sides)
    axis.set(title="stars: the paper", xlabel="group (tiles)", ylabel="use of the engines (%)")
    axis.set_ylim(0, 100)
    direct_labels(axis, curves)
    return figure


def _slices(found: Mapping[str, Any]) -> Any:
    """Figure 11: use of a busy engine, and memory of a tile, by the slice."""
    figure, axes = _figure(1, 2, 8, 3)
    for axis, end, label in zip(
        axes.flat,
        ("/engine/utilization", "/L1/occupancy"),
        ("use of a busy engine (%)", "memory of a tile (KiB)"),
        strict=True,
    ):
        rows = [row for name, row in found.items() if _is(name, "F11/", end)]
        sides = [int(row["id"].split("/")[1].removeprefix("slice")) for row in rows]
        series(axis, sides, [row["model"] for row in rows], "", 0)
        axis.set(xlabel="side of a slice (elements)", ylabel=label, ylim=(0, None))
        places_ticks(axis.xaxis, sides)
        plain_ticks(axis.yaxis)
    return figure


def _shapes(found: Mapping[str, Any]) -> Any:
    """Figure 12: use of the engines and of HBM, by kernel."""
    uses = [name for name in found if _is(name, "F12/", "/Flat/utilization")]
    figure, axes = _figure(1, 1, 6, 1.2 + 0.25 * len(uses))
    axis, places = axes[0][0], np.arange(len(uses))
    for number, (end, label) in enumerate((("utilization", "engines"), ("hbm_use", "HBM"))):
        values = _values(found, [name.replace("utilization", end) for name in uses])
        at = places + 0.4 * number - 0.2
        axis.barh(at, values, height=0.4, label=label, color=COLOURS[number])
    axis.set_yticks(places, [name.split("/")[1] for name in uses], fontsize="small")
    axis.invert_yaxis()
    axis.set(xlabel="use (% of the peak)", xlim=(0, 100))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _is(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


def _values(found: Mapping[str, Any], names: list[str]) -> Any:
    """Figures of the model; NaN where there is none."""
    return np.array([found[name]["model"] for name in names], dtype=float)
