"""Every figure of every result, folded, as far as one page has room."""

from collections.abc import Sequence
from typing import Any

from wafertlm.report.others import leaves
from wafertlm.report.stored import Results
from wafertlm.report.story import Column, Grid
from wafertlm.report.wording import plain

#: Characters of all results; lines of one; numbers of a list.
_ALL, _LINES, _NUMBERS = 1_200_000, 600, 40
_COLUMNS = (Column("figure", text=True), Column("value", text=True))


def every_figure(results: Results) -> list[Grid]:
    """A folded table for each result, without where it comes from."""
    grids, room = [], _ALL
    for stem in results.runs:
        table = {k: v for k, v in results.raw[stem].items() if k not in ("command", "provenance")}
        found = list(leaves(table))
        rows = [[name, _shown(value)] for name, value in found[:_LINES]]
        note = f"{len(found) - _LINES} more are in the file." if len(found) > _LINES else ""
        size = sum(len(name) + len(value) + 60 for name, value in rows)
        if size > room:
            rows, note = [], "There is no room for these: they are in the file."
        room -= size if rows else 0
        grids.append(Grid(_COLUMNS, rows, stem, folded=True, note=note))
    return grids


def _shown(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > _NUMBERS:
        return f"{len(value)} values, from {plain(value[0])} to {plain(value[-1])}"
    return plain(value)
