"""The table of docs/tiles.md: kernels on tiles in Verilog against the level `at`."""

import re
from collections.abc import Sequence

from tlm.calibrated import REPOSITORY, TilePoint
from tlm.errors import InputError
from tlm.files import whole_file

DOCUMENT = REPOSITORY / "docs" / "tiles.md"
_MARKS = "<!-- tiles: begin -->\n", "<!-- tiles: end -->"
_ENGINES = ("matrix", "vector")


def table(points: Sequence[TilePoint]) -> str:
    """Errors by kernel and variant, and of the cycles in which engines are busy."""
    lines = ["| kernel | cases | total: mean, worst | matrix, vector busy: worst | worst case |"]
    lines.append("|---|---|---|---|---|")
    for kernel, variant in dict.fromkeys((point.kernel, point.variant) for point in points):
        chosen = [p for p in points if (p.kernel, p.variant) == (kernel, variant)]
        worst = max(chosen, key=lambda point: abs(point.error_pct))
        busy = ", ".join(_busy(chosen, engine) for engine in _ENGINES)
        where = f"{worst.case}: {worst.rtl} and {worst.at}" if worst.error_pct else "-"
        name = f"{kernel} {variant}".strip()
        lines.append(f"| {name} | {len(chosen)} | {_errors(chosen)} | {busy} | {where} |")
    lines.append(f"| all | {len(points)} | {_errors(points)} | | |")
    return "\n".join(lines) + "\n"


def update(points: Sequence[TilePoint]) -> None:
    """Write the table into the document.

    Raises:
        InputError: if the document has no place for it.
    """
    begin, end = _MARKS
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not found.search(text):
        raise InputError(f"no '{begin.strip()}' with '{end}' in {DOCUMENT}")
    with whole_file(DOCUMENT) as scratch:
        scratch.write_text(found.sub(lambda _: begin + table(points) + end, text), encoding="utf-8")


def _errors(points: Sequence[TilePoint]) -> str:
    errors = [abs(point.error_pct) for point in points]
    return f"{sum(errors) / len(errors):.2g} %, {max(errors):.3g} %"


def _busy(points: Sequence[TilePoint], engine: str) -> str:
    pairs = [point.busy[engine] for point in points if engine in point.busy]
    if not pairs:
        return "-"
    return f"{max(abs(100 * (at - rtl) / rtl) for rtl, at in pairs):.2g} %"
