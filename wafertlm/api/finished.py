"""What a run gives back in Python: the command's object, to look at, to read and to draw."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from wafertlm.output import TIMES, Result, cost

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure

_MOST_ROWS = 60
_BESIDE = ("command", "options", "provenance", *TIMES)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FinishedRun:
    """A run that has ended.

    Attributes:
        result: The command's object, as ``--json`` prints it.
    """

    result: Result

    #: Lists of records that a notebook shows as tables; longer ones are cut.
    _tables: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints: options, figures, provenance and cost."""
        return dict(self.result)

    @property
    def options(self) -> Mapping[str, Any]:
        """What was asked for, defaults filled in."""
        options: Mapping[str, Any] = self.result["options"]
        return options

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the figures come from: version, hashes, calibration, seed."""
        provenance: Mapping[str, Any] = self.result["provenance"]
        return provenance

    @property
    def warnings(self) -> list[str]:
        """What one should know of the figures."""
        return list(self.result.get("warnings", ()))

    def plot(self) -> "Figure":
        """A picture of the figures; of runs that have none it says so.

        Raises:
            NotImplementedError: if there is no picture of such a run.
        """
        raise NotImplementedError(f"there is no picture of '{self.result['command']}'")

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={text}" for name, text in _lines(self.result))
        return f"<{self._told}: {figures}>"

    def _repr_html_(self) -> str:
        """Figures as a table, for notebooks."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in _lines(self.result)
        )
        tables = "".join(_table(name, self.result.get(name) or ()) for name in self._tables)
        return (
            f"<p><b>{escape(self._told)}</b></p><table>{rows}</table>{tables}"
            f"<p><small>{escape(cost(self.result))}</small></p>"
        )

    @property
    def _told(self) -> str:
        """Command and options that were given, in words."""
        given = (
            each if name == self.result["command"] else f"{name} {_text(each)}"
            for name, each in self.options.items()
            if isinstance(each, str | int | float) and each is not False and each != ""
        )
        return f"{self.result['command']}: {', '.join(map(str, given))}"


def _lines(result: Result) -> Iterator[tuple[str, str]]:
    """Figures with their names, those of a table within the object under both names."""
    for name, value in result.items():
        if name in _BESIDE:
            continue
        if isinstance(value, Mapping):
            inner = {key: each for key, each in value.items() if _is_plain(each)}
            if inner:
                yield name, ", ".join(f"{key} {_text(each)}" for key, each in inner.items())
        elif _is_plain(value):
            yield name, _text(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _table(name: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Records as a table, columns for what is plain in the first."""
    if not records:
        return ""
    columns = [key for key, each in records[0].items() if _is_plain(each)]
    head = "".join(f"<th>{escape(key)}</th>" for key in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(each.get(key)))}</td>" for key in columns) + "</tr>"
        for each in records[:_MOST_ROWS]
    )
    more = len(records) - _MOST_ROWS
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<p>{escape(name)}</p><table><tr>{head}</tr>{rows}</table>{rest}"
