"""How far kernels at a level are from the level below: stored comparisons, and the nearest case."""

import math
from collections.abc import Iterable
from typing import TypeVar

from tlm.calibrated import REPOSITORY, Comparison, read_stored
from tlm.tables import Table

LEVELS_FILE = REPOSITORY / "calibration" / "levels.json"
TILES_FILE = REPOSITORY / "calibration" / "tiles.json"
CHIPS_FILE = REPOSITORY / "calibration" / "chips.json"


class LevelPoint(Table):
    """Cycles of one kernel case at adjacent levels.

    ``dtype`` is that of its elements; ``balance`` is the cycles of a step's product over the flits
    of its transfers: below 1 the transfers take longer.
    """

    kernel: str
    case: str
    dtype: str
    balance: float
    at: int
    lt: int
    perf: int

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
    balance: float
    rtl: int
    at: int
    alone: int
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

    ``memory`` and ``balance`` are those of `TilePoint`; ``case`` is its grid and sizes.
    """

    chip: str
    kernel: str
    memory: bool
    case: str
    balance: float
    lt: int
    perf: int

    @property
    def error_pct(self) -> float:
        """(perf - lt) / lt in per cent."""
        return 100.0 * (self.perf - self.lt) / self.lt


class ChipComparison(Comparison):
    """Closed forms at the constants of all chips."""

    points: list[ChipPoint]


_Balanced = TypeVar("_Balanced", LevelPoint, TilePoint)


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


def _nearest(points: Iterable[_Balanced], balance: float) -> list[_Balanced]:
    """Points of the nearest balance."""
    points = list(points)
    distances = [abs(math.log(point.balance / balance)) for point in points]
    nearest = min(distances, default=0.0) + 1e-9
    return [p for p, distance in zip(points, distances, strict=True) if distance <= nearest]


def level_error_pct(
    kernel: str,
    dtype: str,
    noc: str,
    compute: str,
    balance: float,
    *,
    alone: bool = False,
    memory: bool = False,
) -> float | None:
    """Error of a kernel's levels against our RTL: the worst errors of adjacent levels, added.

    ``at`` against whole kernels on tiles in Verilog, ``lt`` against ``at`` and ``perf`` against
    ``lt``, each over the kernel's checked cases of the same ``dtype`` and the nearest ``balance``,
    on any grid. None with the matrix engine as a roofline, which nothing was checked against. With
    ``alone`` jobs at ``at`` take as long as by themselves; with ``memory`` blocks lie in off-chip
    memory, with which only ``at`` was compared.
    """
    of = (kernel, dtype)
    points = _nearest((p for p in load_levels().points if (p.kernel, p.dtype) == of), balance)
    on_tiles = (p for p in load_tiles().points if (p.kernel, p.dtype, p.memory) == (*of, memory))
    tiles = _nearest(on_tiles, balance)
    if compute == "perf" or not points or not tiles or (memory and noc in ("lt", "perf")):
        return None
    error = max(abs(point.alone_error_pct if alone else point.error_pct) for point in tiles)
    if noc in ("lt", "perf"):
        error += max(abs(point.lt_error_pct) for point in points)
    if noc == "perf":
        error += max(abs(point.perf_error_pct) for point in points)
    return error
