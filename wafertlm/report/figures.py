"""The report's figures as SVG that takes its ink from the page, so that it follows its theme."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tlm.calibrated import CalibrationResult
from wafertlm.report.stored import Values

# Okabe and Ito's colours, told apart under the common colour deficiencies; markers say it again.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "--", "-.", ":")

# Drawn in this colour, replaced by the page's text colour.
_INK = "#010203"
_STYLE: dict[Any, Any] = {
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


def parity(calibrations: Sequence[CalibrationResult]) -> Markup:
    """Model against RTL over the check points, and the error that is left, by experiment."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.0, 4.0))
        against, errors = figure.subplots(1, 2)
        for index, calibration in enumerate(calibrations):
            points = [point for point in calibration.check if point.rtl > 0]
            rtl = [point.rtl for point in points]
            # Few points lie over many, so that no experiment hides another.
            look = _look(index) | {"zorder": 2 + 1 / (1 + len(points))}
            against.plot(rtl, [point.model for point in points], **look)
            # The cases of an experiment are spread over its lane: equal errors stay countable.
            lane = index + np.linspace(-0.28, 0.28, len(points))
            errors.plot([point.error_pct for point in points], lane, **look)
        _parity_axes(against)
        _error_axes(errors, calibrations)
        return _svg(figure)


def wafer(maps: Mapping[str, Mapping[str, Values]]) -> Markup:
    """Each run's tiles: share of the run that the matrix engine is busy, that it waits, and end."""
    with matplotlib.rc_context(_STYLE | {"axes.spines.right": True, "axes.spines.top": True}):
        figure = Figure(figsize=(9.0, 2.9 * len(maps)))
        grid = figure.subplots(len(maps), 3, squeeze=False)
        for row, (title, arrays) in zip(grid, maps.items(), strict=True):
            finish = arrays["finish_cycle"]
            last = max(float(finish.max()), 1.0)
            busy = 100 * arrays["matrix_busy_cycles"] / last
            waiting = 100 * arrays["wait_cycles"] / last
            _tiles(row[0], busy, f"{title}\nmatrix engine busy (%)", (0, 100))
            _tiles(row[1], waiting, "\nmatrix engine waiting (%)", (0, 100))
            span = (float(finish.min()), float(finish.max()))
            _tiles(row[2], finish, "\nend of work (cycle)", span)
        return _svg(figure)


def latencies(requests: Mapping[str, Mapping[str, Values]]) -> Markup:
    """Distribution over requests of first-token time, mean token interval and completion time."""
    quantities = {
        "ttft_s": "time to first token (s)",
        "mean_tbt_ms": "mean time between tokens (ms)",
        "e2e_s": "end to end (s)",
    }
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.0, 3.0))
        for axes, (name, label) in zip(figure.subplots(1, 3), quantities.items(), strict=True):
            for index, (title, table) in enumerate(requests.items()):
                values = np.sort(table[name])
                share = 100 * np.arange(1, len(values) + 1) / max(len(values), 1)
                axes.step(
                    values,
                    share,
                    where="post",
                    color=_COLOURS[index % len(_COLOURS)],
                    linestyle=_LINES[index % len(_LINES)],
                    label=title if name == "ttft_s" else None,
                )
            axes.set(xlabel=label, ylim=(0, 101))
            axes.set_xlim(left=0)
            axes.grid(True)
        figure.axes[0].set_ylabel("requests (%)")
        figure.legend(loc="outside lower center", ncols=3)
        return _svg(figure)


def _look(index: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "linestyle": "none",
        "markersize": 5,
        "alpha": 0.8,
    }


def _parity_axes(axes: Axes) -> None:
    unit = "(cycles; flits for buffering)"
    axes.set(xscale="log", yscale="log", xlabel=f"RTL {unit}", ylabel=f"model {unit}")
    low, high = axes.dataLim.intervalx
    axes.plot([low, high], [low, high], color=_INK, linewidth=0.8, zorder=0)
    axes.set_title("model against RTL, cases the fit has not seen", loc="left")
    axes.grid(True)


def _error_axes(axes: Axes, calibrations: Sequence[CalibrationResult]) -> None:
    """A lane for each experiment, from the top; zero in the middle, however small the errors."""
    labels = []
    for calibration in calibrations:
        exact = sum(point.model == point.rtl for point in calibration.check)
        labels.append(f"{calibration.name}\n{exact} of {len(calibration.check)} exact")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    widest = max(1.0, *(1.1 * abs(end) for end in axes.dataLim.intervalx))
    axes.set(xlim=(-widest, widest), xlabel="error of the model (% of RTL)")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.axvline(0, color=_INK, linewidth=0.8, zorder=0)
    axes.set_title("what is left between them", loc="left")
    axes.grid(True, axis="x")


def _tiles(axes: Axes, values: Values, title: str, span: tuple[float, float]) -> None:
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
