"""The report's figures as SVG that takes its ink from the page, so that it follows its theme."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tlm.calibrated import CalibrationResult, CheckPoint
from wafertlm.report.stored import Values

# Okabe and Ito's colours, told apart under the common colour deficiencies; markers say it again.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", "-.", ":")

# Panels of groups side by side; figures that span more than this factor have logarithmic axes.
_MOST_WIDE = 3
_LOGARITHMIC_FROM = 20

# Drawn in this colour, replaced by the page's text colour.
_INK = "#010203"
STYLE: dict[Any, Any] = {
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "grid.alpha": 0.15,
    "grid.color": _INK,
    "legend.frameon": False,
    "svg.hashsalt": "wafertlm",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def against_rtl(calibration: CalibrationResult, unit: str) -> Markup:
    """Model against RTL over an experiment's check points, and beside it what is left between them.

    What is left has a panel for each group of cases, against the figure of the RTL.
    """
    groups = _groups(calibration.check)
    wide = min(len(groups), _MOST_WIDE)
    high = -(-len(groups) // wide)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 2.5 * high))
        grid = figure.add_gridspec(high, 1 + wide)
        parity = figure.add_subplot(grid[0, 0])
        panels = [figure.add_subplot(grid[at // wide, 1 + at % wide]) for at in range(len(groups))]
        for index, (axes, (group, points)) in enumerate(zip(panels, groups.items(), strict=True)):
            rtl = [point.rtl for point in points]
            parity.plot(rtl, [point.model for point in points], **look(index))
            axes.plot(rtl, [point.error_pct for point in points], **look(index))
            _error_axes(axes, group, points)
        _parity_axes(parity, unit)
        widest = max(1.0, *(1.1 * abs(point.error_pct) for point in calibration.check))
        for axes in panels:
            axes.set(xscale=parity.get_xscale(), xlim=parity.get_xlim(), xlabel=f"RTL ({unit})")
            axes.set_ylim(-widest, widest)
        for axis in (parity.yaxis, *(axes.xaxis for axes in (parity, *panels))):
            _plain_ticks(axis)
        for axes in panels[::wide]:
            axes.set_ylabel("error (% of RTL)")
        return _svg(figure)


def wafer(maps: Mapping[str, Mapping[str, Values]]) -> Markup:
    """Each run's tiles: share of the run that the matrix engine is busy, that it waits, and end."""
    with matplotlib.rc_context(STYLE | {"axes.spines.right": True, "axes.spines.top": True}):
        figure = Figure(figsize=(9.0, 2.9 * len(maps)))
        grid = figure.subplots(len(maps), 3, squeeze=False)
        for row, (title, arrays) in zip(grid, maps.items(), strict=True):
            finish = arrays["finish_cycle"]
            last = max(float(finish.max()), 1.0)
            busy = 100 * arrays["matrix_busy_cycles"] / last
            waiting = 100 * arrays["wait_cycles"] / last
            tiles(row[0], busy, f"{title}\nmatrix engine busy (%)", (0, 100))
            tiles(row[1], waiting, "\nmatrix engine waiting (%)", (0, 100))
            span = (float(finish.min()), float(finish.max()))
            tiles(row[2], finish, "\nend of work (cycle)", span)
        return _svg(figure)


def latencies(requests: Mapping[str, Mapping[str, Values]]) -> Markup:
    """Distribution over requests of first-token time, mean token interval and completion time."""
    quantities = {
        "ttft_s": "time to first token (s)",
        "mean_tbt_ms": "mean time between tokens (ms)",
        "e2e_s": "end to end (s)",
    }
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.0))
        for axes, (name, label) in zip(figure.subplots(1, 3), quantities.items(), strict=True):
            for index, (title, table) in enumerate(requests.items()):
                shown_as = title if name == "ttft_s" else None
                distribution(axes, table[name], index, shown_as)
            axes.set(xlabel=label)
            axes.set_xlim(left=0)
        figure.axes[0].set_ylabel("requests (%)")
        figure.legend(loc="outside lower center", ncols=3)
        return _svg(figure)


def distribution(axes: Axes, values: Values, index: int, label: str | None) -> None:
    """Share of requests, in per cent, that have at most a value."""
    share = 100 * np.arange(1, len(values) + 1) / max(len(values), 1)
    line: dict[str, Any] = {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _LINES[index % len(_LINES)],
    }
    axes.step(np.sort(values), share, where="post", label=label, **line)
    axes.set(ylim=(0, 101))
    axes.grid(True)


def look(index: int) -> dict[str, Any]:
    """Colour and marker of the points of a series."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "linestyle": "none",
        "markersize": 5,
        "alpha": 0.8,
    }


def _groups(points: Iterable[CheckPoint]) -> dict[str, list[CheckPoint]]:
    """Check points by what their case says before a colon: the mesh, where there are several."""
    groups: dict[str, list[CheckPoint]] = {}
    for point in points:
        group, colon, _ = point.case.partition(":")
        groups.setdefault(group if colon else "", []).append(point)
    return groups


def _parity_axes(axes: Axes, unit: str) -> None:
    low, high = axes.dataLim.intervalx
    axes.plot([low, high], [low, high], color=_INK, linewidth=0.8, zorder=0)
    scale = "log" if high > _LOGARITHMIC_FROM * low else "linear"
    axes.set(xscale=scale, yscale=scale, xlabel=f"RTL ({unit})", ylabel=f"model ({unit})")
    axes.set_title("model against RTL", loc="left")
    axes.grid(True)


def _plain_ticks(axis: Axis) -> None:
    """Numbers without exponents, on a logarithmic axis one or two a decade."""
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _error_axes(axes: Axes, group: str, points: Sequence[CheckPoint]) -> None:
    """Zero in the middle, however small the errors."""
    exact = f"{sum(point.model == point.rtl for point in points)} of {len(points)} exact"
    axes.set_title(f"{group}\n{exact}".strip(), loc="left")
    axes.axhline(0, color=_INK, linewidth=0.8, zorder=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(True)


def tiles(axes: Axes, values: Values, title: str, span: tuple[float, float]) -> None:
    """A map of the tiles, with the least and the greatest value in its title."""
    low, high = span
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high if high > low else low + 1)
    axes.set_title(f"{title}: {_span(values)}", loc="left")
    axes.set(xlabel="column of tiles", ylabel="row of tiles")
    assert axes.figure is not None
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _span(values: Values) -> str:
    """The least and the greatest value; a map of one colour says no more than this."""
    least, greatest = (f"{value:,.4g}" if value < 1e3 else f"{value:,.0f}" for value in (
        values.min(), values.max()
    ))  # fmt: skip
    return least if least == greatest else f"{least} to {greatest}"


def _svg(figure: Figure) -> Markup:
    stream = io.StringIO()
    # Without a date equal results give equal bytes.
    figure.savefig(stream, format="svg", transparent=True, dpi=144, metadata={"Date": None})
    text = stream.getvalue()
    return Markup(text[text.index("<svg") :].replace(_INK, "currentColor"))
