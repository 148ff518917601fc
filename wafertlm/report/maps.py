"""Maps of a wafer: a pixel a tile, so that a million tiles can be looked at closely.

A map is a picture with a palette. The page's script zooms into it, and reads a tile's value off its
colour. All maps together have a size; one that would take more than its share has fewer colours,
then fewer pixels, and says so.
"""

import base64
import io
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from PIL import Image

from wafertlm.report.beside import LINK_ARRAYS, Values
from wafertlm.report.wording import count, figure

#: Bytes of all maps in the page.
ALL_BYTES = 2_000_000
#: Whole wafers of so many runs are shown.
MOST_RUNS = 4
_COLOURS = (256, 64, 16)
_LARGEST_STEP = 64


class TileMap(NamedTuple):
    """A quantity over the tiles.

    Attributes:
        title: What it is.
        unit: Of its values.
        values: Shape (rows, columns).
        ends: The values of the first and the last colour.
    """

    title: str
    unit: str
    values: Values
    ends: tuple[float, float]


def map_parts(maps: Mapping[str, Mapping[str, Values]]) -> Iterator[tuple[str, list[Markup]]]:
    """The maps of each run as pieces of the page.

    Args:
        maps: Arrays over the tiles by the run's name.
    """
    shown = {stem: list(tile_maps(arrays)) for stem, arrays in [*maps.items()][:MOST_RUNS]}
    share = ALL_BYTES // max(1, sum(map(len, shown.values())))
    for stem, found in shown.items():
        yield stem, [_drawn(stem, each, share) for each in found]


def tile_maps(arrays: Mapping[str, Values]) -> Iterator[TileMap]:
    """Share of the run that the matrix engine is busy and waits, the end, and the links' load."""
    finish = arrays["finish_cycle"]
    last = max(float(finish.max()), 1.0)
    yield TileMap("Matrix engine busy", "%", 100 * arrays["matrix_busy_cycles"] / last, (0, 100))
    yield TileMap("Matrix engine waiting", "%", 100 * arrays["wait_cycles"] / last, (0, 100))
    yield TileMap("End of work", "cycle", finish, (float(finish.min()), float(finish.max())))
    if links := [arrays[name] for name in LINK_ARRAYS if name in arrays]:
        load = 100 * np.max(links, axis=0) / last
        yield TileMap("Busiest link that leaves", "% of the run", load, (0, float(load.max())))


def picture(values: Values, ends: tuple[float, float], most_bytes: int) -> tuple[bytes, int, int]:
    """A PNG of values, of so many bytes at most if that can be.

    Returns:
        The file, tiles along a side of a pixel, and colours.
    """
    step = 1
    while True:
        coarse = _coarse(values, step)
        for colours in _COLOURS:
            png = _png(coarse, ends, colours)
            if len(png) <= most_bytes:
                return png, step, colours
        if step >= min(_LARGEST_STEP, max(values.shape)):
            return png, step, colours
        step *= 2


@cache
def palette() -> tuple[tuple[int, int, int], ...]:
    """Red, green and blue of 256 colours from dark to bright, for any eyes; no two are equal."""
    shades = 255 * matplotlib.colormaps["cividis"](np.linspace(0, 1, max(_COLOURS)))[:, :3]
    found: dict[tuple[int, int, int], None] = {}
    for red, green, blue in shades.astype(int).tolist():
        while (red, green, blue) in found:
            blue += 1
        found[red, green, blue] = None
    return tuple(found)


def _coarse(values: Values, step: int) -> Values:
    """Means over squares of tiles; those at the edges may be smaller."""
    if step == 1:
        return values
    rows, cols = values.shape
    starts = np.arange(0, rows, step), np.arange(0, cols, step)
    sums = np.add.reduceat(np.add.reduceat(values, starts[0], axis=0), starts[1], axis=1)
    sizes = [np.diff([*first, side]) for first, side in zip(starts, (rows, cols), strict=True)]
    return np.asarray(sums / np.outer(*sizes))


def _png(values: Values, ends: tuple[float, float], colours: int) -> bytes:
    low, high = ends
    scaled = (values - low) / (high - low) if high > low else np.zeros(values.shape)
    places = np.rint(np.clip(scaled, 0, 1) * (colours - 1)).astype("u1")
    image = Image.fromarray(places, mode="P")
    # Fewer colours are those of the whole palette, so that one table reads all maps.
    chosen = np.rint(np.linspace(0, max(_COLOURS) - 1, colours)).astype(int).tolist()
    image.putpalette([part for place in chosen for part in palette()[place]])
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _drawn(stem: str, shown: TileMap, share: int) -> Markup:
    rows, cols = shown.values.shape
    png, step, _ = picture(shown.values, shown.ends, share * 3 // 4)
    low, high = shown.ends
    least, greatest = float(shown.values.min()), float(shown.values.max())
    coarse = f" A pixel is the mean of {step}x{step} tiles." if step > 1 else ""
    ends = dict.fromkeys((figure(least, 4), figure(greatest, 4)))
    told = f"{' to '.join(ends)} {shown.unit}"
    values = {
        "rows": rows, "cols": cols, "step": step, "low": repr(low), "high": repr(high),
        "unit": escape(shown.unit), "title": escape(shown.title), "stem": escape(stem),
        "told": escape(told), "coarse": coarse, "tiles": count(rows * cols),
        "ends": [escape(figure(each, 4)) for each in (low, high)],
        "png": base64.b64encode(png).decode(),
    }  # fmt: skip
    return Markup(
        '<figure class="map" data-rows="{rows}" data-cols="{cols}" data-step="{step}"'
        ' data-low="{low}" data-high="{high}" data-unit="{unit}">'
        "<figcaption><b>{title}</b>, {stem}: {told}</figcaption>"
        '<div class="view" tabindex="0" role="img" aria-label="{title} of {tiles} tiles of {stem}">'
        '<img alt="" src="data:image/png;base64,{png}"></div>'
        '<div class="scale"><span>{ends[0]}</span><i></i><span>{ends[1]} {unit}</span></div>'
        '<p class="read" aria-live="off">{rows} rows, {cols} columns.{coarse}</p></figure>'
    ).format(**values)
