"""What was stored of kernels at neighbouring levels: the cycles of each case at each level."""

import re
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from tlm.calibrated import REPOSITORY, Comparison, read_stored
from tlm.tables import Table

LEVELS_FILE = REPOSITORY / "calibration" / "levels.json"
TILES_FILE = REPOSITORY / "calibration" / "tiles.json"
CHIPS_FILE = REPOSITORY / "calibration" / "chips.json"

#: A list in a list, as indented JSON text has it; no text in JSON has a line's end.
_ROW = re.compile(r"^( +)\[\n(.*?)\n\1\]", re.DOTALL | re.MULTILINE)

#: What errors are counted against.
Cycles = Annotated[int, Field(gt=0)]
Balance = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LevelPoint(Table):
    """Cycles of one kernel case at adjacent levels.

    ``dtype`` is that of its elements; ``balance`` is the cycles of a step's product over the flits
    of its transfers: below 1 the transfers take longer.
    """

    kernel: str
    case: str
    dtype: str
    balance: Balance
    at: Cycles
    lt: Cycles
    perf: Cycles

    @property
    def lt_error_pct(self) -> float:
        """(lt - at) / at in per cent."""
        return 100.0 * (self.lt - self.at) / self.at

    @property
    def perf_error_pct(self) -> float:
        """(perf - lt) / lt in per cent."""
        return 100.0 * (self.perf - self.lt) / self.lt


class LevelComparison(Comparison):
    """Kernels at all levels; a file of its own, as no RTL run stands behind it."""

    points: list[LevelPoint]


class TilePoint(Table):
    """Cycles of one kernel case on tiles in Verilog, and at the level `at`.

    ``dtype`` and ``balance`` are those of `LevelPoint`; with ``memory`` its blocks lie in off-chip
    memory, in Verilog and at `at`. ``alone`` are the cycles at `at` if every job takes as long as
    by itself, as beside somebody's own routers; ``busy`` maps each engine to the cycles in which it
    was busy, all tiles together, in Verilog and at `at`.
    """

    kernel: str
    variant: str
    case: str
    dtype: str
    memory: bool
    balance: Balance
    rtl: Cycles
    at: Cycles
    alone: Cycles
    busy: dict[str, tuple[int, int]]

    @property
    def error_pct(self) -> float:
        """(at - RTL) / RTL in per cent."""
        return 100.0 * (self.at - self.rtl) / self.rtl

    @property
    def alone_error_pct(self) -> float:
        """(alone - RTL) / RTL in per cent."""
        return 100.0 * (self.alone - self.rtl) / self.rtl


class TileComparison(Comparison):
    """Kernels on tiles in Verilog and at the level `at`."""

    tools: dict[str, str]
    points: list[TilePoint]


class ChipPoint(Table):
    """Cycles of one kernel case at `lt` and `perf`, at the constants of a chip.

    ``variant``, ``memory`` and ``balance`` are those of `TilePoint`; ``case`` is its grid and
    sizes. ``at`` is None of what costs much there.
    """

    chip: str
    kernel: str
    variant: str
    memory: bool
    case: str
    balance: Balance
    at: Cycles | None
    lt: Cycles
    perf: Cycles

    @property
    def error_pct(self) -> float:
        """(perf - lt) / lt in per cent."""
        return 100.0 * (self.perf - self.lt) / self.lt

    @property
    def lt_error_pct(self) -> float | None:
        """(lt - at) / at in per cent."""
        return None if self.at is None else 100.0 * (self.lt - self.at) / self.at


def _read_rows(points: Any) -> Any:
    """Fields of points that are stored as a table; others as they are."""
    if isinstance(points, list):
        return points
    try:
        return [dict(zip(points["columns"], row, strict=True)) for row in points["rows"]]
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError("allowed: columns, and rows of a value for each") from error


def _as_rows(points: list[ChipPoint]) -> dict[str, list[Any]]:
    columns = list(ChipPoint.model_fields)
    rows = [[getattr(point, name) for name in columns] for point in points]
    return {"columns": columns, "rows": rows}


class ChipComparison(Comparison):
    """Closed forms at the constants of all chips; stored as a table, as they are many."""

    points: Annotated[list[ChipPoint], BeforeValidator(_read_rows), PlainSerializer(_as_rows)]

    @cached_property
    def by_kernel(self) -> dict[tuple[str, str, bool], list[ChipPoint]]:
        """Points of each kernel, its variant, and whether operands lie in off-chip memory."""
        found: dict[tuple[str, str, bool], list[ChipPoint]] = {}
        for point in self.points:
            found.setdefault((point.kernel, point.variant, point.memory), []).append(point)
        return found

    def model_dump_json(self, **options: Any) -> str:
        """As of any model, with a line for each row of the table."""
        return _ROW.sub(_on_a_line, super().model_dump_json(**options))


def _on_a_line(row: re.Match[str]) -> str:
    indent, elements = row.groups()
    return f"{indent}[{' '.join(map(str.strip, elements.splitlines()))}]"


def load_levels() -> LevelComparison:
    """The stored comparison of levels, of the results and models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    levels: LevelComparison = read_stored(LEVELS_FILE, LevelComparison, "comparison of levels")
    return levels


def load_tiles() -> TileComparison:
    """The stored comparison of kernels on tiles in Verilog, of the Verilog and models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    tiles: TileComparison = read_stored(TILES_FILE, TileComparison, "comparison of tiles")
    return tiles


def load_chips() -> ChipComparison:
    """The stored comparison of closed forms at the chips' constants, of the models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    chips: ChipComparison = read_stored(CHIPS_FILE, ChipComparison, "comparison on chips")
    return chips
