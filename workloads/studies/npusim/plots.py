"""Plots of the study: each figure as the paper plots it, beside the model under each reading."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tlm.plotting import (
    COLOURS,
    INK,
    label_panels,
    plain_ticks,
    published,
    series,
    write_pictures,
)
from workloads.studies.npusim import (
    figure_7,
    figure_8,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
)
from workloads.studies.npusim.facts import LENGTHS, MODELS, PARTITIONS, PLACEMENTS
from workloads.studies.npusim.served import Core

_Found = Mapping[str, Any]


class _Grid(NamedTuple):
    """Panels of curves: a line of them each, with a column for the paper and for each reading.

    Attributes:
        lines: Of panels, and what stands along their axes: its name and its places.
        readings: In the order of the columns.
        curves: Of every panel.
        name: Of a row by line, reading, curve and number of the place.
        ylabel: What is plotted, by line.
    """

    lines: Mapping[str, tuple[str, Sequence[object]]]
    readings: Sequence[str]
    curves: Sequence[str]
    name: Callable[[str, str, str, int], str]
    ylabel: Callable[[str], str]


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write a picture of each figure, from ``modes`` (7) to ``fusion`` (14), as SVG and PDF.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    drawings = {
        "modes": partial(_modes, found),
        "single_request": partial(_panels, found, _single()),
        "partitions": partial(_panels, found, _partitions(found)),
        "placements": partial(_placements, found),
        "splits": partial(_splits, found),
        "decode_cores": partial(_panels, found, _decode_cores()),
        "stages": partial(_panels, found, _stages()),
        "fusion": partial(_panels, found, _fusion()),
    }
    return write_pictures(folder, drawings)


def _panels(found: _Found, grid: _Grid) -> Any:
    columns = ("paper", *grid.readings)
    figure, axes = _figure(
        len(grid.lines), len(columns), 2.8 * len(columns), 2.4 * len(grid.lines) + 0.4
    )
    labelled = []
    for of_line, line in zip(axes, grid.lines, strict=True):
        xlabel, places = grid.lines[line]
        for axis, reading in zip(of_line, columns, strict=True):
            source, value = (
                (grid.readings[0], "paper") if reading == "paper" else (reading, "model")
            )
            curves = []
            for number, curve in enumerate(grid.curves):
                names = [grid.name(line, source, curve, place) for place in range(len(places))]
                values = [found[name][value] for name in names]
                curves.append(series(axis, range(len(places)), values, curve, number))
            axis.set(title=f"{line}\n{reading}", xlabel=xlabel, ylabel=grid.ylabel(line))
            axis.set_xticks(range(len(places)), [str(place) for place in places])
            axis.set_ylim(0, None)
            plain_ticks(axis.yaxis)
            labelled.append((axis, curves))
    label_panels(labelled)
    return figure


def _single() -> _Grid:
    """Figure 8."""
    cores = {f"S{sram}A{array}": (array, sram) for sram, array in figure_8.CORES}

    def name(model: str, reading: str, core: str, place: int) -> str:
        array, sram = cores[core]
        of = Core(array, figure_8.BANDWIDTHS[place], sram).name
        return f"F8/{reading}-{model}/{of}/seconds"

    return _Grid(
        dict.fromkeys(figure_8.MODELS, ("memory of a core (GB/s)", figure_8.BANDWIDTHS)),
        [each.name for each in figure_8.READINGS],
        [*cores],
        name,
        lambda _: "a request (s)",
    )


def _partitions(found: _Found) -> _Grid:
    """Figure 9."""
    return _Grid(
        dict.fromkeys(MODELS, ("prompt (tokens)", LENGTHS)),
        sorted({name.split("/")[2] for name in found if name.startswith("F9/")}),
        [*PARTITIONS],
        lambda model, reading, by, place: f"F9/{model}/{reading}/{by}-T{LENGTHS[place]}",
        lambda _: "time (s)",
    )


def _decode_cores() -> _Grid:
    """Figure 12."""
    bandwidths = sorted({hbm for _, hbm in figure_12.PLOTTED})
    told = {"throughput": "tokens/s", "by_area": "tokens/s of a mm$^2$"}
    arrays = {f"A{array}": array for array, _ in figure_12.PLOTTED}

    def name(line: str, reading: str, array: str, place: int) -> str:
        return f"F12/{reading}/{Core(arrays[array], bandwidths[place]).name}/{line}"

    along = "memory of a core that decodes (GB/s)", bandwidths
    readings = [*figure_12.READINGS]
    return _Grid(dict.fromkeys(told, along), readings, [*arrays], name, told.__getitem__)


def _stages() -> _Grid:
    """Figure 13."""
    sizes = figure_13.SRAM_MB

    def name(line: str, reading: str, stages: str, place: int) -> str:
        return f"F13/{line}-{reading}/PP{stages.split()[0]}-S{sizes[line][place]}/latency"

    return _Grid(
        {line: ("SRAM of a core (MB)", each) for line, each in sizes.items()},
        [*figure_13.READINGS],
        [f"{stages} stages" for stages in figure_13.STAGES],
        name,
        lambda _: "a request (ms)",
    )


def _fusion() -> _Grid:
    """Figure 14."""
    ratios = [*figure_14.LENGTHS]

    def name(_: str, reading: str, system: str, place: int) -> str:
        return f"F14/{reading}-{ratios[place].replace(':', '-')}/{system}/throughput"

    return _Grid(
        {"": ("prompt to output (tokens)", ratios)},
        [*figure_14.READINGS],
        [*figure_14.SYSTEMS],
        name,
        lambda _: "tokens/s",
    )


def _modes(found: _Found) -> Any:
    """Figure 7: how far modes are from every packet and burst."""
    figure, axes = _figure(1, 1, 6.5, 3.4)
    axis, places = axes[0][0], np.arange(len(figure_7.CASES))
    told = {"formula": "formulas", "noc": "every packet, memory by formula"}
    for number, (mode, label) in enumerate(told.items()):
        names = [f"F7/{kernel}/{mode}/difference" for kernel in figure_7.CASES]
        values = np.array([found[name]["model"] for name in names], dtype=float)
        axis.barh(places + 0.4 * number - 0.2, values, 0.4, label=label, color=COLOURS[number])
    axis.set_yticks(places, [*figure_7.CASES])
    axis.invert_yaxis()
    axis.axvline(0, color=INK, linewidth=0.8)
    axis.set_xlabel("cycles, against every packet and every burst (%)")
    figure.legend(loc="outside upper center", ncols=len(told))
    return figure


def _splits(found: _Found) -> Any:
    """Figure 11: times by the cores of both pools."""
    told = {"latency_s": "latency", "ttft_s": "first token", "tbt_s": "between tokens"}
    figure, axes = _figure(1, len(told), 3.2 * len(told), 3.2)
    splits = [f"P{prompts}-D{decode}" for prompts, decode in figure_11.SPLITS]
    lengths, places = "{}in-{}out".format(*figure_11.LENGTHS[0]), range(len(splits))
    labelled = []
    for axis, (metric, title) in zip(axes[0], told.items(), strict=True):
        curves = []
        for number, reading in enumerate(figure_11.READINGS):
            rows = [found[f"F11/{reading}-{lengths}/{split}/{metric}"] for split in splits]
            values = [row["model"] for row in rows]
            curves.append(series(axis, places, values, reading, number))
            published(axis, places, [row["paper"] for row in rows])
        axis.set(title=f"{title}; stars: the paper", yscale="log", ylabel="time (s)")
        axis.set_xlabel("cores for prompts, and that decode")
        axis.set_xticks(places, splits)
        plain_ticks(axis.yaxis)
        labelled.append((axis, curves))
    label_panels(labelled)
    return figure


def _placements(found: _Found) -> Any:
    """Figure 10: how much faster than interleaved, locked."""
    groups = sorted({name.split("/")[1] for name in found if name.startswith("F10/")})
    figure, axes = _figure(1, 1, 6.5, 0.42 * len(groups) + 1.4)
    axis = axes[0][0]
    others = [placement for placement in PLACEMENTS if placement != "interleave"]
    for number, placement in enumerate(others):
        names = [f"F10/{group}/{placement}-locked/faster" for group in groups]
        values, said = (
            np.array([found[name][which] for name in names], dtype=float)
            for which in ("model", "paper")
        )
        places = np.arange(len(groups)) + 0.25 * (number - 1)
        axis.barh(places, values, height=0.25, label=placement, color=COLOURS[number])
        axis.plot(said, places, "*", color=INK, markersize=7, markerfacecolor="none")
    axis.set_yticks(range(len(groups)), groups)
    axis.invert_yaxis()
    axis.axvline(1, color=INK, linewidth=0.8)
    axis.set_xlabel("speed-up over interleaved cores, with locked channels; stars: the paper")
    plain_ticks(axis.xaxis)
    figure.legend(loc="outside upper center", ncols=len(others))
    return figure


def _figure(rows: int, cols: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, cols, squeeze=False)
