"""Figures of the page: SVG that takes its ink from the page, so that it follows its theme."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tlm.plotting import STYLE

# Drawn in these colours, replaced by the page's text colour and its background.
INK, PAPER = "#010203", "#030201"
_STYLE = STYLE | {
    name: INK
    for name in (
        *("axes.edgecolor", "axes.labelcolor", "grid.color", "text.color"),
        *("xtick.color", "ytick.color"),
    )
}
# What matplotlib names that nothing refers to; names would be the same in every figure.
_NAMES = re.compile(
    r' id="(?:figure|axes|patch|line2d|text|matplotlib\.axis|xtick|ytick|PathCollection'
    r'|LineCollection|QuadMesh|legend|ErrorbarContainer)_[^"]*"'
)


def panel(
    draw: Callable[[Axes], Any], described: str, size: tuple[float, float] = (4.1, 2.9)
) -> Markup:
    """One small figure, readable as wide as a phone.

    Args:
        draw: Draws into the axes.
        described: What it shows, for who does not see it.
        size: Width and height in inches.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size)
        draw(figure.subplots())
        return _svg(figure, described)


def _svg(figure: Figure, described: str) -> Markup:
    stream = io.StringIO()
    # Without a date equal results give equal bytes.
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor").replace(PAPER, "var(--page)")
    text = _NAMES.sub("", re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL))
    text = re.sub(r' width="[^"]*pt" height="[^"]*pt"', "", text, count=1)
    label = Markup.escape(described)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1))
