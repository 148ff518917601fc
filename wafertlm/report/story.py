"""What a section of the report is made of: answers, tables, bars and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from wafertlm.report.wording import NOTHING, figure


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: What it holds.
        unit: In which unit.
        text: Whether it holds text, which is set to the left and may be broken.
    """

    title: str
    unit: str = ""
    text: bool = False


class Cell(NamedTuple):
    """A cell that is more than its text.

    Attributes:
        text: What it says.
        error_pct: An error, which colours it; None: none is known.
        has_error: Whether it is of an error at all.
        strong: Whether it stands out.
    """

    text: str
    error_pct: float | None = None
    has_error: bool = False
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table, open or folded.

    Attributes:
        columns: Its columns.
        rows: Its rows, as many cells as columns each.
        title: What it shows; of a folded one, what one clicks on.
        folded: Whether it is closed at first.
        note: Below it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell | Markup]]
    title: str = ""
    folded: bool = False
    note: str = ""

    @property
    def filled(self) -> tuple[list[Column], list[list[str | Cell | Markup]]]:
        """Columns and rows, without columns in which no row has anything."""
        kept = [
            place
            for place in range(len(self.columns))
            if any(_text(row[place]) != NOTHING for row in self.rows)
        ]
        rows = [[row[place] for place in kept] for row in self.rows]
        return [self.columns[place] for place in kept], rows


class Bar(NamedTuple):
    """Shares of a whole, one beside the other.

    Attributes:
        label: What the whole is.
        shares: Per cent of each part, by the class that colours it.
        value: The whole, in words.
    """

    label: str
    shares: Mapping[str, float]
    value: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that was asked, and its answer.

    Attributes:
        question: What was asked.
        figures: The figures that answer it, each with what it is; the first is the answer.
        interval: Between what the answer lies, in words; empty if that is not known.
        binds: What binds, and what to look at next.
        binds_title: What that says, where it is something else.
        trust: How far to trust it.
        warning: What spoils it.
        stems: The results that it comes from.
        options: The options that were given and are not in the question.
        bars: Shares of the answer.
        grids: Tables.
        panels: Figures side by side.
        caption: Below them.
        parts: Whatever else the page knows how to draw, such as maps and timelines.
    """

    question: str
    figures: Sequence[tuple[str, str]]
    interval: str = ""
    binds: str = ""
    binds_title: str = "What binds"
    trust: str = ""
    warning: str = ""
    stems: Sequence[str] = ()
    options: str = ""
    bars: Sequence[Bar] = ()
    grids: Sequence[Grid] = ()
    panels: Sequence[Markup] = ()
    caption: str = ""
    parts: Sequence[Markup] = ()

    @property
    def short(self) -> str:
        """The answer in a line."""
        first = " ".join(part for part in self.figures[0] if part) if self.figures else ""
        return f"{first} ({self.interval})" if self.interval else first


class Section(NamedTuple):
    """A part of the page.

    Attributes:
        name: Of its anchor.
        title: Above it.
        answers: What it says.
        more: How many answers found no room.
    """

    name: str
    title: str
    answers: Sequence[Answer]
    more: int = 0


def _text(cell: str | Cell | Markup) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def error_cell(error_pct: float | None) -> Cell:
    """A cell with an error, coloured by its size."""
    text = "not checked" if error_pct is None else figure(error_pct)
    return Cell(text, error_pct, has_error=True)
