"""Timelines: what the engines of some tiles do, cycle by cycle."""

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from wafertlm.report.beside import Span
from wafertlm.report.wording import count

_MOST_TILES = 8
_MOST_SPANS = 4000
_HIGH = 10


def timeline_part(stem: str, spans: Sequence[Span]) -> Markup:
    """Lanes of the first tiles, a line an engine.

    Args:
        stem: The result that it is of.
        spans: What the tiles do, in any order.
    """
    if not spans:
        return Markup("")
    end = max(span.start_cycle + span.cycles for span in spans) or 1.0
    tiles = list(dict.fromkeys(span.tile for span in sorted(spans, key=_tile_place)))
    shown = [span for span in spans if span.tile in tiles[:_MOST_TILES]]
    cut = sorted(shown, key=lambda span: span.start_cycle)[:_MOST_SPANS]
    # By tile in the order above, then by engine; tiles may have any name.
    lanes = sorted(cut, key=lambda s: (tiles.index(s.tile), s.engine, s.start_cycle))
    drawn = [
        _lane(tile, engine, list(lane), end)
        for (tile, engine), lane in groupby(lanes, key=lambda span: (span.tile, span.engine))
    ]
    left = len(spans) - len(cut)
    more = f" {count(left)} spans are left out." if left else ""
    return Markup(
        '<figure class="timeline"><figcaption><b>Timeline</b>, {}: the first {} tiles.{} '
        "The file opens in Perfetto, too.</figcaption>{}"
        '<div class="lane axis"><span></span><span>0</span><span>{} cycles</span></div></figure>'
    ).format(stem, min(len(tiles), _MOST_TILES), more, Markup("").join(drawn), count(end))


def _tile_place(span: Span) -> tuple[list[int], str]:
    """Tiles in the order of their rows and columns."""
    numbers = "".join(each if each.isdigit() and each.isascii() else " " for each in span.tile)
    return [int(each[:9]) for each in numbers.split()], span.tile


def _lane(tile: str, engine: str, spans: Sequence[Span], end: float) -> Markup:
    boxes = []
    for span in spans:
        start, wide = 1000 * span.start_cycle / end, 1000 * span.cycles / end
        told = f"{span.label}: cycles {count(span.start_cycle)} to {count(_end(span))}"
        boxes.append(
            Markup('<rect x="{}" y="1" width="{}" height="{}"><title>{}</title></rect>').format(
                f"{start:.2f}", f"{max(wide, 0.4):.2f}", _HIGH - 2, told
            )
        )
    colour = engine if engine in ("matrix", "vector", "transfer", "receive") else "other"
    return Markup(
        '<div class="lane"><span>{} {}</span><svg class="{}" viewBox="0 0 1000 {}"'
        ' preserveAspectRatio="none" role="img" aria-label="{} of {}">{}</svg></div>'
    ).format(tile, engine, colour, _HIGH, engine, tile, Markup("").join(boxes))


def _end(span: Span) -> float:
    return span.start_cycle + span.cycles
