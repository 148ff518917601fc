"""Plots of the study: prompts by partition, and by placement."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tlm.plotting import (
    COLOURS,
    INK,
    direct_labels,
    places_ticks,
    plain_ticks,
    series,
    write_pictures,
)
from workloads.studies.npusim.facts import LENGTHS, MODELS, PARTITIONS, PLACEMENTS


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``partitions`` and ``placements``, as SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    drawings = {"partitions": _partitions, "placements": _placements}
    return write_pictures(folder, {name: partial(one, found) for name, one in drawings.items()})


def _partitions(found: Mapping[str, Any]) -> Any:
    """Figure 9: as plotted, and under each reading."""
    readings = sorted({name.split("/")[2] for name in found if name.startswith("F9/")})
    figure, axes = _figure(len(MODELS), len(readings) + 1, 2.8 * (len(readings) + 1), 5)
    for line, model in zip(axes, MODELS, strict=True):
        for axis, reading in zip(line, ("paper", *readings), strict=True):
            source = readings[0] if reading == "paper" else reading
            value = "paper" if reading == "paper" else "model"
            curves = []
            for number, partition in enumerate(PARTITIONS):
                names = [f"F9/{model}/{source}/{partition}-T{tokens}" for tokens in LENGTHS]
                seconds = [found[name][value] for name in names]
                curves.append(series(axis, LENGTHS, seconds, partition, number))
            axis.set(title=f"{model}\n{reading}", xlabel="prompt (tokens)", ylabel="time (s)")
            axis.set_ylim(0, None)
            axis.set_xscale("log", base=2)
            places_ticks(axis.xaxis, LENGTHS)
            plain_ticks(axis.yaxis)
            direct_labels(axis, curves)
    return figure


def _placements(found: Mapping[str, Any]) -> Any:
    """Figure 10: how much faster than interleaved, locked."""
    groups = sorted({name.split("/")[1] for name in found if name.startswith("F10/")})
    figure, axes = _figure(1, 1, 6.5, 0.42 * len(groups) + 1.4)
    axis = axes[0][0]
    others = [placement for placement in PLACEMENTS if placement != "interleave"]
    for number, placement in enumerate(others):
        names = [f"F10/{group}/{placement}-locked/faster" for group in groups]
        values = np.array([found[name]["model"] for name in names], dtype=float)
        places = np.arange(len(groups)) + 0.25 * (number - 1)
        axis.barh(places, values, height=0.25, label=placement, color=COLOURS[number])
    axis.set_yticks(range(len(groups)), groups)
    axis.invert_yaxis()
    axis.axvline(1, color=INK, linewidth=0.8)
    axis.set_xlabel("speed-up over interleaved cores, with locked channels")
    plain_ticks(axis.xaxis)
    figure.legend(loc="outside upper center", ncols=len(others))
    return figure


def _figure(rows: int, cols: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, cols, squeeze=False)
