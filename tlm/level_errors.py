"""How far a kernel at a level may be from the level below: the stored cases around it."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.calibrated import REPOSITORY, Comparison, read_stored
from tlm.tables import Table

LEVELS_FILE = REPOSITORY / "calibration" / "levels.json"
TILES_FILE = REPOSITORY / "calibration" / "tiles.json"
CHIPS_FILE = REPOSITORY / "calibration" / "chips.json"

#: Logarithms that are not further apart are the same.
_EQUAL = 1e-9


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

    ``variant``, ``memory`` and ``balance`` are those of `TilePoint`; ``case`` is its grid and
    sizes. ``at`` is None of the project's own chips, and of what costs much there.
    """

    chip: str
    kernel: str
    variant: str
    memory: bool
    case: str
    balance: float
    at: int | None
    lt: int
    perf: int

    @property
    def error_pct(self) -> float:
        """(perf - lt) / lt in per cent."""
        return 100.0 * (self.perf - self.lt) / self.lt

    @property
    def lt_error_pct(self) -> float | None:
        """(lt - at) / at in per cent."""
        return None if self.at is None else 100.0 * (self.lt - self.at) / self.at


class ChipComparison(Comparison):
    """Closed forms at the constants of all chips."""

    points: list[ChipPoint]


class Checked(NamedTuple):
    """A checked case: its balance, its cycles at the level that is checked, and the error."""

    balance: float
    cycles: int
    error_pct: float


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


class LevelError(NamedTuple):
    """How far levels may be from our RTL, in per cent: the errors of adjacent levels, added.

    Attributes:
        pct: The largest error of the checked cases around a run.
        nearest_pct: That of the case nearest to it.
        worst_pct: The largest of all cases of the kernel.
    """

    pct: float
    nearest_pct: float
    worst_pct: float

    def __add__(self, other: "LevelError") -> "LevelError":  # type: ignore[override]  # no tuple
        return LevelError(*(mine + its for mine, its in zip(self, other, strict=True)))


def bracketed(cases: Sequence[Checked], balance: float, cycles: float) -> LevelError | None:
    """What checked cases say of the error of another one; None if there are none.

    Around it are, of those with less or more balance and of these with fewer or more cycles, the
    nearest: up to four. Beyond all cases nothing brackets it: the worst case counts.
    """
    if not cases:
        return None
    places = np.log([(case.balance / balance, case.cycles / cycles) for case in cases])
    errors = np.array([abs(case.error_pct) for case in cases])
    distances = np.hypot(*places.T)
    nearest = errors[distances <= distances.min() + _EQUAL]
    around = errors[_around(places)]
    return LevelError(float(around.max()), float(nearest.max()), float(errors.max()))


def _around(places: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which cases bracket the origin, or all if it is beyond them, shape (cases,).

    Args:
        places: Of the cases, shape (cases, 2).
    """
    every = np.ones(len(places), dtype=bool)
    if (places.min(axis=0) > _EQUAL).any() or (places.max(axis=0) < -_EQUAL).any():
        return every
    distances, found = np.hypot(*places.T), ~every
    for one, other in product(*([axis <= _EQUAL, axis >= -_EQUAL] for axis in places.T)):
        if (quarter := one & other).any():
            found |= quarter & (distances <= distances[quarter].min() + _EQUAL)
    return found


class Between(NamedTuple):
    """Between what a time may lie at the level below, as parts of it: 1 is the time itself."""

    low: float
    high: float


#: Nothing is known to be off.
EXACT = Between(1.0, 1.0)


def lt_between(
    chip: str | None, kernel: str, balance: float, cycles: float, *, memory: bool, variant: str = ""
) -> Between | None:
    """Between what `lt` may be, of a closed form: by the signed errors of the cases around it.

    Args:
        chip: Whose cases; None: those of all chips, as for one that is not shipped.
        kernel: The kernel.
        balance: Of its plan.
        cycles: By the closed form.
        memory: Whether its operands lie in off-chip memory.
        variant: Of the kernel, if not its own.

    Returns:
        None if there is no case.

    Raises:
        InputError: if the comparison is missing, cannot be read, or is stale.
    """
    return _between(_cases_on(chip, kernel, variant, memory, "perf"), balance, cycles)


def at_between(
    chip: str | None, kernel: str, balance: float, cycles: float, *, memory: bool, variant: str = ""
) -> Between | None:
    """The same of what `at` may be, of a run at `lt`; None also of the project's own chips."""
    return _between(_cases_on(chip, kernel, variant, memory, "lt"), balance, cycles)


def perf_between(
    chip: str | None, kernel: str, balance: float, cycles: float, *, memory: bool, variant: str = ""
) -> Between | None:
    """The same of what `at` may be, of a closed form; of the project's own chips what `lt` may."""
    of = chip, kernel, balance, cycles
    lt, at = (each(*of, memory=memory, variant=variant) for each in (lt_between, at_between))
    return lt if lt is None or at is None else Between(lt.low * at.low, lt.high * at.high)


def chip_error(
    chip: str | None,
    kernel: str,
    balance: float,
    cycles: float,
    *,
    memory: bool,
    level: str,
    variant: str = "",
) -> LevelError | None:
    """How far a run at ``lt`` or ``perf`` may be from level `at`, at the constants of a chip.

    Of the project's own chips, and with cases that cost too much at `at`, a closed form is held
    against ``lt`` alone. Arguments, None and errors are those of `lt_between`.
    """
    cases = _checked_on(chip, kernel, variant, memory, level)
    error = bracketed(cases, balance, cycles)
    if error is not None and level == "perf":
        below = bracketed(_checked_on(chip, kernel, variant, memory, "lt"), balance, cycles)
        error += below or LevelError(0.0, 0.0, 0.0)
    return error


class _Cases(NamedTuple):
    """Logarithms of balance and cycles of cases, shape (cases, 2), and their errors in per cent."""

    logs: NDArray[np.float64]
    errors: NDArray[np.float64]


def _between(cases: _Cases | None, balance: float, cycles: float) -> Between | None:
    if cases is None:
        return None
    around = cases.errors[_around(cases.logs - np.log([balance, cycles]))]
    least, most = min(0.0, float(around.min())), max(0.0, float(around.max()))
    return Between(1 / (1 + most / 100), 1 / (1 + least / 100))


@lru_cache(1 << 8)
def _cases_on(
    chip: str | None, kernel: str, variant: str, memory: bool, level: str
) -> _Cases | None:
    """Cases of a kernel that were held at a level against the one below; None if there are none."""
    found = _checked_on(chip, kernel, variant, memory, level)
    if not found:
        return None
    balances, cycles, errors = np.array(found, dtype=float).T
    return _Cases(np.log(np.stack([balances, cycles], axis=1)), errors)


@lru_cache(1 << 8)
def _checked_on(
    chip: str | None, kernel: str, variant: str, memory: bool, level: str
) -> Sequence[Checked]:
    name = "rtl" if chip is not None and chip.startswith("rtl-") else chip
    of = kernel, variant, memory
    of_kernel = [p for p in load_chips().points if (p.kernel, p.variant, p.memory) == of]
    points = [p for p in of_kernel if p.chip == name] or of_kernel
    if level == "perf":
        return [Checked(p.balance, p.perf, p.error_pct) for p in points]
    errors = ((p, p.lt_error_pct) for p in points)
    return [Checked(p.balance, p.lt, error) for p, error in errors if error is not None]


def level_error(
    kernel: str,
    dtype: str,
    noc: str,
    compute: str,
    balance: float,
    cycles: int,
    *,
    alone: bool = False,
    memory: bool = False,
) -> LevelError | None:
    """Error of a kernel's levels against our RTL, of a run of so many cycles.

    ``at`` against whole kernels on tiles in Verilog, ``lt`` against ``at`` and ``perf`` against
    ``lt``, each over the kernel's checked cases of the same ``dtype``, on any grid. None with the
    matrix engine as a roofline, which nothing was checked against. With ``alone`` jobs at ``at``
    take as long as by themselves; with ``memory`` blocks lie in off-chip memory, with which only
    ``at`` was compared.
    """
    if compute == "perf" or (memory and noc in ("lt", "perf")):
        return None
    of = (kernel, dtype)
    on_tiles = [p for p in load_tiles().points if (p.kernel, p.dtype, p.memory) == (*of, memory)]
    points = [p for p in load_levels().points if (p.kernel, p.dtype) == of]
    steps = [
        [Checked(p.balance, p.at, p.alone_error_pct if alone else p.error_pct) for p in on_tiles]
    ]
    if noc in ("lt", "perf"):
        steps.append([Checked(p.balance, p.lt, p.lt_error_pct) for p in points])
    if noc == "perf":
        steps.append([Checked(p.balance, p.perf, p.perf_error_pct) for p in points])
    total = LevelError(0.0, 0.0, 0.0)
    for cases in steps:
        error = bracketed(cases, balance, cycles)
        if error is None:
            return None
        total += error
    return total
