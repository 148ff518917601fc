"""Pictures of runs in the project's style: what ``plot`` of a run draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.plotting import COLOURS, STYLE, plain_ticks
from wafertlm.kernel.binding import PART_NAMES
from wafertlm.options import chip_told
from wafertlm.output import Result
from workloads.studies.rows import GIVEN

_MAPS = {
    "matrix_busy_cycles": "engine busy (% of the run)",
    "wait_cycles": "waiting (% of the run)",
}
_MOST_BARS = 20
_GREY = "0.5"


def kernel_picture(result: Result, maps: Mapping[str, Any]) -> Figure:
    """What the cycles went into, and maps of the tiles.

    Args:
        result: The command's object.
        maps: Arrays over the tiles, shape (rows, columns), by what they are of; may be empty.
    """
    options, shown = result["options"], [name for name in _MAPS if name in maps]
    told = f"{options['kernel']} {options['shape']} on {options['grid']} of {chip_told(options)}"
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.2 * (1 + len(shown)), 3))
        figure.suptitle(f"{told}: {result['cycles']:,} cycles", fontsize="medium")
        parts, *others = figure.subplots(1, 1 + len(shown), squeeze=False)[0]
        spent = [result["breakdown_cycles"][name] for name in PART_NAMES]
        parts.barh(range(len(spent)), spent, color=COLOURS[: len(spent)])
        parts.set(xlabel="cycles", xlim=(0, None))
        _names(parts, [*PART_NAMES.values()])
        plain_ticks(parts.xaxis)
        for axes, name in zip(others, shown, strict=True):
            share = 100 * np.asarray(maps[name], dtype=float) / result["cycles"]
            image = axes.imshow(share, cmap="cividis", vmin=0, interpolation="nearest")
            axes.set(xlabel="column", ylabel="row")
            figure.colorbar(image, ax=axes, label=_MAPS[name])
    return figure


def iteration_picture(result: Result) -> Figure:
    """Time of each operator in milliseconds, those of most time first."""
    kernels = [each for each in result["kernels"] if each.get("breakdown_cycles")]
    kernels.sort(key=lambda each: each["count"] * each["cycles"], reverse=True)
    kernels, options = kernels[:_MOST_BARS], result["options"]
    ms = 1e3 * result["seconds"] / result["cycles"]
    parts = [
        {name: each["count"] * each["breakdown_cycles"][name] for name in PART_NAMES}
        for each in kernels
    ]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.5, 1.2 + 0.25 * len(kernels)))
        axes = figure.subplots()
        title = f"{options['model']} on {chip_told(options)}"
        axes.set_title(f"{title}: {1e3 * result['seconds']:.4g} ms")
        _bars(axes, [each["operator"] for each in kernels], parts, ms, "time (ms)")
    return figure


def comparison_picture(result: Result) -> Figure:
    """Changes against the first run in per cent, each with what errors let it be."""
    changes = [each for each in result["changes"] if each["change_pct"]][: 2 * _MOST_BARS]
    variants = result["variants"]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.5, 1.2 + 0.25 * max(1, len(changes))))
        axes = figure.subplots()
        axes.set_title(f"{result['options']['command']}: changes against {_values(variants[0])}")
        for place, each in enumerate(changes):
            colour = COLOURS[each["variant"] % len(COLOURS)]
            axes.plot(each["change_pct"], place, "o", color=colour, markersize=4)
            if each["low_pct"] is not None:
                axes.plot([each["low_pct"], each["high_pct"]], [place, place], color=colour)
        several = len(variants) > 2
        names = [
            f"{each['metric']}, {_values(variants[each['variant']])}" if several else each["metric"]
            for each in changes
        ]
        axes.axvline(0, color=_GREY, linewidth=0.8)
        axes.set(xlabel=f"change (%){'' if several else f' with {_values(variants[-1])}'}")
        _names(axes, names)
        plain_ticks(axes.xaxis)
    return figure


def study_picture(result: Result) -> Figure:
    """Figures of the model against those of the paper, both on logarithmic axes."""
    rows = [
        each
        for each in result["rows"]
        if (each["paper"] or 0) > 0 and (each["model"] or 0) > 0 and each["fit"] != GIVEN
    ]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.5, 4.2))
        axes = figure.subplots()
        axes.set_title(f"{result['options']['name']}: {len(rows)} figures")
        for label, fitted, colour, marker in (
            ("fitted", True, COLOURS[1], "s"),
            ("predicted", False, COLOURS[0], "o"),
        ):
            found = [each for each in rows if (each["fit"] is True) is fitted]
            xy = ([each[name] for each in found] for name in ("paper", "model"))
            if found:
                axes.plot(*xy, marker, color=colour, markersize=4, label=label, alpha=0.7)
        ends = [each[name] for each in rows for name in ("paper", "model")] or [1, 10]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=_GREY, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="paper", ylabel="model")
        figure.legend(loc="outside lower center", ncols=2)
        for axis in (axes.xaxis, axes.yaxis):
            plain_ticks(axis)
    return figure


def calibration_picture(result: Result) -> Figure:
    """Mean and worst error of the model on the check cases of each experiment."""
    rows = result["experiments"]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.5, 1.2 + 0.25 * max(1, len(rows))))
        axes = figure.subplots()
        axes.set_title("errors on cases that the fit has not seen")
        for name, label, colour, marker in (
            ("max_abs_error_pct", "worst", COLOURS[1], "s"),
            ("mean_abs_error_pct", "mean", COLOURS[0], "o"),
        ):
            errors = [each[name] for each in rows]
            axes.plot(errors, range(len(rows)), marker, color=colour, markersize=4, label=label)
        axes.set(xlabel="error (% of RTL)", xlim=(-0.05, None))
        figure.legend(loc="outside lower center", ncols=2)
        _names(axes, [each["name"] for each in rows])
        plain_ticks(axes.xaxis)
    return figure


def _bars(
    axes: Axes,
    names: Sequence[str],
    parts: Sequence[Mapping[str, float]],
    scale: float,
    label: str,
) -> None:
    """Stacked bars of what cycles went into, the first at the top."""
    left = np.zeros(len(names))
    for (part, told), colour in zip(PART_NAMES.items(), COLOURS, strict=False):
        wide = scale * np.array([each[part] for each in parts], dtype=float)
        axes.barh(range(len(names)), wide, left=left, color=colour, label=told)
        left += wide
    axes.set(xlabel=label, xlim=(0, None))
    axes.figure.legend(loc="outside lower center", ncols=len(PART_NAMES), fontsize="small")
    _names(axes, names)
    plain_ticks(axes.xaxis)


def _names(axes: Axes, names: Sequence[str]) -> None:
    """Names at the rows of the picture, the first at the top."""
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()


def _values(variant: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in variant["values"].items())
