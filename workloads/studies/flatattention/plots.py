"""Plots of the study: shares of attention, collectives, run times, and use of the engines."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlm.plotting import (
    COLOURS,
    INK,
    direct_labels,
    label_panels,
    places_ticks,
    plain_number,
    plain_ticks,
    published,
    series,
    write_pictures,
)
from workloads.studies.flatattention import wafer_plots
from workloads.studies.flatattention.facts import (
    DEPTHS,
    LENGTHS,
    MESHES,
    MESHES_LENGTHS,
    PHASES,
    SHARES,
    SPATZ,
    TOKENS,
    VARIANTS,
    channels_of,
)
from workloads.studies.flatattention.panels import Found, model_values, panels

_PARTS = ("compute", "communication", "memory", "overhead")


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write a picture of each figure, from ``operations`` (1a) to ``meshes`` (D), as SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    drawings = {
        "operations": _operations,
        "collectives": _collectives,
        "variants": _variants,
        "groups": _groups,
        "slices": _slices,
        "shapes": _shapes,
        "wafer_batches": wafer_plots.batches,
        "wafer_layer": wafer_plots.layer,
        "wafer_groups": wafer_plots.groups,
        "meshes": _meshes,
    }
    return write_pictures(folder, {name: partial(one, found) for name, one in drawings.items()})


def _operations(found: Found) -> Any:
    """Figure 1a: attention's share of a model's operations."""
    figure, axes = panels(1, len(SHARES), 8, 3.2)
    places = np.arange(len(TOKENS))
    for axis, (model, said) in zip(axes.flat, SHARES.items(), strict=True):
        for number, phase in enumerate(PHASES):
            at = [f"F1a/{model}/{phase}-{tokens}/attention_share" for tokens in TOKENS]
            bars = axis.bar(
                places + 0.4 * number - 0.2, model_values(found, at), 0.4, label=phase,
                color=COLOURS[number],
            )  # fmt: skip
            axis.bar_label(bars, fmt="%.0f", fontsize="small")
        line = axis.axhline(said, color=INK, linewidth=0.8, linestyle="--")
        line.set_label("paper: decode at a long context, whose length is not stated")
        axis.annotate(f"paper: {said:g} %", (-0.5, said), ha="left", va="bottom", fontsize="small")
        axis.set_xticks(places, [plain_number(tokens) for tokens in TOKENS])
        axis.set(
            title=f"operations of {model}",
            xlabel="tokens of the prompt, or in the cache",
            ylim=(0, 100),
        )
        axis.set_ylabel("attention (% of the operations)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _collectives(found: Found) -> Any:
    """Figure 7: speed-ups of the network's collectives by the block's length."""
    figure, axes = panels(1, 2, 8, 3.2)
    labelled = []
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
        labelled.append((axis, curves))
    label_panels(labelled)
    return figure


def _variants(found: Found) -> Any:
    """Figure 8: run time by what it is spent on."""
    figure, axes = panels(len(DEPTHS), len(LENGTHS), 9, 5)
    for row, depth in zip(axes, DEPTHS, strict=True):
        for axis, length in zip(row, LENGTHS, strict=True):
            at = f"F8/D{depth}-S{length}"
            times = model_values(found, [f"{at}/{name}/runtime" for name in VARIANTS])
            bottom = np.zeros(len(times))
            for part, colour in zip(_PARTS, COLOURS, strict=False):
                shares = model_values(found, [f"{at}/{name}/{part}" for name in VARIANTS])
                axis.bar(
                    list(VARIANTS), times * shares / 100, 0.7, bottom, color=colour, label=part
                )
                bottom += times * shares / 100
            uses = model_values(found, [f"{at}/{name}/hbm_use" for name in VARIANTS])
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


def _groups(found: Found) -> Any:
    """Figure 9: use of the engines by the side of a group."""
    figure, axes = panels(1, 1, 5, 3.6)
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


def _slices(found: Found) -> Any:
    """Figure 11: use of a busy engine, and memory of a tile, by the slice."""
    figure, axes = panels(1, 2, 8, 3)
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


def _shapes(found: Found) -> Any:
    """Figure 12: use of the engines and of HBM, by kernel."""
    uses = [name for name in found if _is(name, "F12/", "/Flat/utilization")]
    figure, axes = panels(1, 1, 6, 1.2 + 0.25 * len(uses))
    axis, places = axes[0][0], np.arange(len(uses))
    for number, (end, label) in enumerate((("utilization", "engines"), ("hbm_use", "HBM"))):
        values = model_values(found, [name.replace("utilization", end) for name in uses])
        at = places + 0.4 * number - 0.2
        axis.barh(at, values, height=0.4, label=label, color=COLOURS[number])
    axis.set_yticks(places, [name.split("/")[1] for name in uses], fontsize="small")
    axis.invert_yaxis()
    axis.set(xlabel="use (% of the peak)", xlim=(0, 100))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _meshes(found: Found) -> Any:
    """Appendix D: use of the engines by the tiles of a chip, and by what a tile has."""
    figure, axes = panels(1, len(MESHES_LENGTHS), 8, 3.4)
    for axis, length in zip(axes.flat, MESHES_LENGTHS, strict=True):
        end = f"MHA-S{length}/utilization"
        uses = np.array(
            [
                model_values(found, [f"D/{side}x{side}-{spatz}Spatz/{end}" for spatz in SPATZ])
                for side in MESHES
            ]
        )
        image = axis.imshow(uses, cmap="cividis", vmin=0, vmax=100, aspect="auto")
        for (row, col), use in np.ndenumerate(uses):
            text = f"{use:.1f}" if np.isfinite(use) else "-"
            ink = "black" if use > 60 else "white"
            axis.annotate(text, (col, row), ha="center", va="center", color=ink)
        axis.set_xticks(range(len(SPATZ)), [str(spatz) for spatz in SPATZ])
        told = [f"{side} x {side}, {channels_of(side)}" for side in MESHES]
        axis.set_yticks(range(len(MESHES)), told)
        axis.set(title=f"use of the engines, S {length}", ylabel="tiles, channels of memory")
        axis.set_xlabel("vector engines (Spatz) for each 1024th of the chip")
        axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="use of the engines (%)")
    return figure


def _is(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)
