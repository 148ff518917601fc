"""Figures of a calibration: model against RTL, and what is left between them."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tlm.calibrated import CalibrationResult, CheckPoint
from tlm.plotting import COLOURS, MARKERS, plain_ticks
from wafertlm.report.panels import INK, panel

# Figures that span more than this factor have logarithmic axes.
_LOGARITHMIC_FROM = 20


def against_rtl(calibration: CalibrationResult, unit: str) -> list[Markup]:
    """Model against RTL over an experiment's check points, and beside it what is left between them.

    What is left has a panel for each group of cases, against the figure of the RTL.
    """
    groups = _groups(calibration.check)
    low = min(point.rtl for point in calibration.check)
    high = max(point.rtl for point in calibration.check)
    scale = "log" if high > _LOGARITHMIC_FROM * low else "linear"
    widest = max(1.0, *(1.1 * abs(point.error_pct) for point in calibration.check))
    drawn = [
        panel(
            partial(_parity, groups=list(groups.values()), scale=scale, unit=unit),
            f"{calibration.name}: model against RTL",
        )
    ]
    for index, (group, points) in enumerate(groups.items()):
        draw = partial(
            _errors, index=index, points=points, scale=scale, unit=unit, widest=widest, group=group
        )
        drawn.append(panel(draw, f"{calibration.name}: errors {group}".strip()))
    return drawn


def _parity(axes: Axes, groups: list[list[CheckPoint]], scale: str, unit: str) -> None:
    for index, points in enumerate(groups):
        axes.plot([p.rtl for p in points], [p.model for p in points], **look(index))
    low, high = axes.dataLim.intervalx
    axes.plot([low, high], [low, high], color=INK, linewidth=0.8, zorder=0)
    axes.set(xscale=scale, yscale=scale, xlabel=f"RTL ({unit})", ylabel=f"model ({unit})")
    axes.set_title("model against RTL", loc="left")
    axes.grid(True)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)


def _errors(
    axes: Axes,
    index: int,
    points: list[CheckPoint],
    scale: str,
    unit: str,
    widest: float,
    group: str,
) -> None:
    """Zero in the middle, however small the errors."""
    axes.plot([p.rtl for p in points], [p.error_pct for p in points], **look(index))
    exact = f"{sum(point.model == point.rtl for point in points)} of {len(points)} exact"
    axes.set_title(f"{group}: {exact}" if group else exact, loc="left")
    axes.axhline(0, color=INK, linewidth=0.8, zorder=0)
    axes.set(xscale=scale, ylim=(-widest, widest), xlabel=f"RTL ({unit})")
    axes.set_ylabel("error (% of RTL)")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(True)
    plain_ticks(axes.xaxis)


def look(index: int) -> dict[str, Any]:
    """Colour and marker of the points of a series."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
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
