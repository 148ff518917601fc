"""How the project's pictures look: colours, ticks, labels beside what they name, and files.

A picture is fit for a paper: vectors with their text as text, told apart without colours, and
numbers as one writes them. matplotlib is imported where something is drawn, as it takes long.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.files import whole_file

#: Okabe and Ito's colours, told apart under the common colour deficiencies; lines say it again.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
#: Of what other figures are held against, such as a paper's.
INK = "0.25"
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
#: Endings of files that a picture can be stored in.
FORMATS = (".png", ".svg", ".pdf")

STYLE: dict[Any, Any] = {
    # Numbers on logarithmic axes have exponents from here on: 0.6, not 6 times a power of ten.
    "axes.formatter.min_exponent": 6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "grid.alpha": 0.15,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "wafertlm",
}
# Without the dates and random names that pictures carry: equal results, equal bytes.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_MOST_TICKS = 6
# On a logarithmic axis with a number for each.
_MOST_DECADES = 4
# Where along a curve a label may stand, and how far from it in points.
_PLACES = 25
_APART = 4.0
# Room for letters of another font, which shows the text of an SVG.
_WIDER = 1.15
# Points around a label in which another curve makes it doubtful whose it is.
_NEAR = 14.0
# What a label may cover, worst first: another label, what is outside the axes, a curve; and what
# it may be near to.
_ON_LABEL, _OUTSIDE, _ON_CURVE, _BY_CURVE = 1e6, 1e3, 1.0, 0.3


_Box = tuple[float, float, float, float]


class Curve(NamedTuple):
    """A line, or points, that have a label beside them.

    Attributes:
        x: Its places, in data coordinates.
        y: Its values.
        text: The label.
        colour: Its colour.
    """

    x: Sequence[float] | NDArray[Any]
    y: Sequence[float] | NDArray[Any]
    text: str
    colour: str


def look(index: int) -> dict[str, Any]:
    """Colour and line of a series."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)]}


def series(
    axes: Any, x: Sequence[float], y: Sequence[float | None], text: str, index: int
) -> Curve:
    """Draw a line with the colour, dashes and marks of its number.

    Returns:
        It, for `direct_labels`.
    """
    values = np.array(y, dtype=float)  # None: there is no figure
    axes.plot(x, values, marker=MARKERS[index % len(MARKERS)], markersize=4, **look(index))
    known = np.isfinite(values)
    return Curve(np.asarray(x)[known], values[known], text, COLOURS[index % len(COLOURS)])


def published(axes: Any, x: Sequence[float], y: Sequence[float | None]) -> None:
    """Draw stars for figures that somebody else has published, above all lines."""
    values = np.array(y, dtype=float)
    axes.plot(x, values, "*", color=INK, markersize=7, markerfacecolor="none", zorder=4)


def write_pictures(folder: Path, drawings: Mapping[str, Callable[[], Any]]) -> list[Path]:
    """Draw figures in the project's style and store each as vectors: NAME.svg and NAME.pdf.

    Args:
        folder: Where they go.
        drawings: What draws each, by its name.

    Raises:
        InputError: if a file cannot be written.
    """
    import matplotlib

    paths = []
    with matplotlib.rc_context(STYLE):
        for name, draw in drawings.items():
            figure = draw()
            for ending in (".svg", ".pdf"):
                paths.append(folder / f"{name}{ending}")
                save(figure, paths[-1])
    return paths


def places_ticks(axis: Any, places: Sequence[float]) -> None:
    """Ticks at these places alone, evenly fewer of many, their numbers without exponents."""
    from matplotlib.ticker import NullLocator

    shown = places[:: -(-len(places) // _MOST_TICKS) or 1]
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(shown, [plain_number(place) for place in shown])


def plain_ticks(axis: Any) -> None:
    """Numbers without exponents; on a logarithmic axis three a decade, or one in some decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        decades = np.log10(high / low) if low > 0 else 1.0
        step = max(1, int(np.ceil(decades / _MOST_DECADES)))
        locator = LogLocator(10.0**step, subs=(1, 2, 5) if decades < 2.5 else (1,))
        axis.set_major_locator(locator)
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))


def plain_number(value: float) -> str:
    """A tick's number: never with an exponent where digits will do."""
    if abs(value) >= 1e9 or 0 < abs(value) < 1e-6:
        return f"{value:g}"
    whole = f"{value:,.6f}".rstrip("0").rstrip(".")
    return whole.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def short_label(text: str, most: int = 28) -> str:
    """A label of so many letters at most: what is more is left out in its middle."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def direct_labels(axes: Any, curves: Iterable[Curve], halo: str = "white") -> None:
    """Write each curve's label beside it, where it covers no other label and few lines.

    A single point that has no such place gets no label. Call it last: limits and layout have to be
    those of the finished picture. `label_panels` labels a picture of several axes.

    Args:
        axes: Where the curves are.
        curves: Them.
        halo: Colour behind the letters, so that a line below them does not disturb.
    """
    label_panels([(axes, curves)], halo)


def label_panels(panels: Sequence[tuple[Any, Iterable[Curve]]], halo: str = "white") -> None:
    """`direct_labels` for each of a picture's axes, which is laid out once for all of them.

    Args:
        panels: Axes of one figure, with their curves; none: nothing is done.
        halo: Colour behind the letters.
    """
    if panels:
        panels[0][0].figure.draw_without_rendering()
    for axes, curves in panels:
        _label(axes, [curve for curve in curves if len(curve.x)], halo)


def _label(axes: Any, curves: Sequence[Curve], halo: str) -> None:
    """Write labels into axes whose layout stands."""
    drawn = [np.asarray(axes.transData.transform(np.c_[curve.x, curve.y])) for curve in curves]
    others = [
        axes.transData.transform(np.asarray(line.get_xydata(), dtype=float))
        for line in axes.get_lines()
        if line.get_transform().contains_branch(axes.transData)
    ]
    points = np.concatenate([_dense(each) for each in [*drawn, *others]] or [np.empty((0, 2))])
    frame = axes.get_window_extent()
    near = _NEAR * axes.figure.dpi / 72
    taken: list[_Box] = []
    for curve, line in zip(curves, drawn, strict=True):
        shown = short_label(curve.text)
        text = axes.text(0, 0, shown, color=curve.colour, fontsize="small", clip_on=False)
        text.set_bbox({"facecolor": halo, "edgecolor": "none", "alpha": 0.75, "pad": 0.5})
        text.set_in_layout(False)
        box = text.get_window_extent()
        places = _places(line, (_WIDER * box.width, box.height), axes.figure.dpi)
        strange = [_dense(other) for other in drawn if other is not line]
        others_of = np.concatenate(strange or [np.empty((0, 2))])
        costs = [
            _cost(place, taken, points, frame) + _nearness(place, others_of, near)
            for place in places
        ]
        if len(line) == 1 and min(costs) >= _ON_LABEL:
            text.remove()
            continue
        left, bottom, *_ = best = places[costs.index(min(costs))]
        taken.append(best)
        # In place at other resolutions, too.
        text.set(verticalalignment="bottom", transform=axes.transAxes)
        text.set_position(axes.transAxes.inverted().transform((left, bottom)))


def save(figure: Any, path: Path, **how: Any) -> None:
    """Store a picture whole, in the format that its file's ending says.

    Raises:
        InputError: if the file cannot be written.
    """
    import matplotlib

    with whole_file(path) as scratch, matplotlib.rc_context(STYLE):
        figure.savefig(scratch, metadata=_METADATA[path.suffix] | how.pop("metadata", {}), **how)


def _dense(line: NDArray[Any]) -> NDArray[Any]:
    """A line as points, some between those that it goes through."""
    if len(line) < 2:
        return line
    steps = np.linspace(0, len(line) - 1, 200)
    along = np.arange(len(line))
    return np.column_stack([np.interp(steps, along, part) for part in line.T])


def _places(line: NDArray[Any], size: tuple[float, float], dpi: float) -> list[_Box]:
    """Boxes beside a line: left, bottom, right and top in pixels, the best-looking first."""
    (wide, high), apart = size, _APART * dpi / 72
    steps = np.linspace(len(line) - 1, 0, min(_PLACES, 4 * len(line)))
    found = []
    for step in steps:
        x, y = (float(np.interp(step, np.arange(len(line)), part)) for part in line.T)
        for left, bottom in (
            (x + apart, y - high / 2),
            (x - wide / 2, y + apart),
            (x - wide - apart, y - high / 2),
            (x - wide / 2, y - apart - high),
            (x + apart, y + apart),
            (x + apart, y - apart - high),
            (x - wide - apart, y + apart),
        ):
            found.append((left, bottom, left + wide, bottom + high))
    return found


def _cost(place: _Box, taken: Iterable[_Box], points: NDArray[Any], frame: Any) -> float:
    """How bad a place for a label is."""
    left, bottom, right, top = place
    cost = 0.0
    for a, b, c, d in taken:
        if left < c and a < right and bottom < d and b < top:
            cost += _ON_LABEL
    outside = max(0.0, frame.x0 - left) + max(0.0, right - frame.x1)
    outside += max(0.0, frame.y0 - bottom) + max(0.0, top - frame.y1)
    cost += _OUTSIDE + outside if outside > 0.5 else 0.0
    return cost + _ON_CURVE * _inside(place, points)


def _nearness(place: _Box, points: NDArray[Any], near: float) -> float:
    """How doubtful it is whose label it is, by other curves around it."""
    left, bottom, right, top = place
    return _BY_CURVE * _inside((left - near, bottom - near, right + near, top + near), points)


def _inside(box: _Box, points: NDArray[Any]) -> float:
    """How many points lie in a box."""
    found = (points >= box[:2]).all(axis=1) & (points <= box[2:]).all(axis=1)
    return float(found.sum())
