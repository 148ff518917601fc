"""How far a kernel at a level may be from the level below: the stored cases around it."""

from collections.abc import Hashable, Sequence
from enum import IntEnum
from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.chips import Chip, chip_names, load_chip
from tlm.comparisons import ChipComparison, ChipPoint, load_chips, load_levels, load_tiles
from tlm.compiled import allocating, compiled

#: Logarithms that are not further apart are the same.
_EQUAL = 1e-9
#: Of so many problems and one more, all alike, the one more is the least or the most in 1 of 20.
_ENOUGH = 39
#: The project's own tiles are not like others: engines and messages share banks, and a channel of
#: off-chip memory fills the links of its column.
_OWN = "rtl"


class _Which(IntEnum):
    """Cases that count."""

    AROUND = 0  # those that bracket the run, or all if it is beyond them
    NEAREST = 1
    EVERY = 2


class Checked(NamedTuple):
    """A checked case: its balance, its cycles at the level that is checked, and the error."""

    balance: float
    cycles: int
    error_pct: float


class LevelError(NamedTuple):
    """How far a run may be from the level that it was compared with, in per cent of that level.

    Attributes:
        pct: By the checked cases around it.
        nearest_pct: By the case nearest to it.
        worst_pct: By all cases of the kernel.
    """

    pct: float
    nearest_pct: float
    worst_pct: float


class Between(NamedTuple):
    """Between what a time may lie at the level below, as parts of it: 1 is the time itself."""

    low: float
    high: float


#: Nothing is known to be off.
EXACT = Between(1.0, 1.0)


def off_pct(centre: float, low: float, high: float) -> float:
    """The larger of how much less and how much more a time may be, in per cent of it."""
    return 100 * max(centre - low, high - centre) / centre


class Cases(NamedTuple):
    """Checked cases.

    Attributes:
        logs: Logarithms of their balance and their cycles, shape (cases, 2).
        errors: Their errors in per cent, shape (cases).
    """

    logs: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, cases: Sequence[Checked]) -> "Cases":
        """Of at least one."""
        balances, cycles, errors = np.array(cases, dtype=float).T
        return cls(np.log(np.stack([balances, cycles], axis=1)), errors)


class Kin(NamedTuple):
    """Checked cases of a kernel on chips that are alike, in all its variants.

    Attributes:
        cases: The cases.
        problems: Which problem each is of, shape (cases): variants are run on the same.
    """

    cases: Cases
    problems: NDArray[np.int64]

    @classmethod
    def of(cls, cases: Sequence[Checked], problems: Sequence[Hashable]) -> "Kin":
        """Of at least one case, with what tells its problem from others."""
        number = {problem: count for count, problem in enumerate(dict.fromkeys(problems))}
        return cls(Cases.of(cases), np.array([number[each] for each in problems], dtype=np.int64))


class LevelStep(NamedTuple):
    """What is known of a level against the one below.

    Attributes:
        cases: Checked cases of a kernel on a chip.
        kin: Those of which the nearest count, too, where the chip's own are few.
    """

    cases: Cases
    kin: Kin | None = None

    @classmethod
    def of(cls, cases: Sequence[Checked], kin: Kin | None = None) -> "LevelStep | None":
        """Of some cases; None if there are none."""
        return cls(Cases.of(cases), kin) if cases else None

    @classmethod
    def anywhere(cls, pct: float) -> "LevelStep":
        """As far off everywhere, to both sides; to none with less than no cycles."""
        return cls(Cases(np.zeros((2, 2)), np.array([-min(pct, 100.0), pct])))


#: From a level down to one that it was compared with, one level at a time.
Steps = Sequence[LevelStep]


def between(steps: Steps, balance: float, cycles: float) -> Between:
    """Between what a run may lie at the level to which the steps lead.

    Each step has the signed errors of the cases around the run. Around it are, of those with less
    or more balance and of these with fewer or more cycles, the nearest: up to four. Beyond all
    cases nothing brackets it: all count.

    That a few agree does not show that the next one does. So the nearest kin count, too: so many
    problems that one more, if all are alike, is outside them in 1 of 20. The parts of a run are off
    for reasons of their own. A run n times as long is off by the root of n times the cycles.

    What may be 100 % less than the time at that level bounds nothing above: ``high`` is infinite.
    """
    least, most = _joined(steps, balance, cycles, _Which.AROUND)
    return Between(1 / (1 + most), 1 / (1 + least) if least > -1 else inf)


def level_error(steps: Steps, balance: float, cycles: float) -> LevelError:
    """The same as an error, with those by the nearest case and by all."""
    spans = (_joined(steps, balance, cycles, which) for which in _Which)
    return LevelError(*(100 * max(abs(least), most) for least, most in spans))


def _joined(steps: Steps, balance: float, cycles: float, which: _Which) -> tuple[float, float]:
    """The least and the most that some cases of all steps let a run be off, as a part."""
    low = high = 1.0
    x, y = log(balance), log(cycles)
    for (logs, errors), kin in steps:
        # As a number: of a member Numba looks up all about its type at each call.
        least, most = _span(logs, errors, x, y, int(which))
        if kin is not None and which != _Which.NEAREST:
            below, above = _kin_span(*kin.cases, kin.problems, x, y)
            least, most = min(least, below), max(most, above)
        low *= 1 + min(0.0, least) / 100
        high *= 1 + max(0.0, most) / 100
    return low - 1, high - 1


@compiled
def _span(
    logs: NDArray[np.float64], errors: NDArray[np.float64], x: float, y: float, which: int
) -> tuple[float, float]:
    """The least and the greatest error of some cases around a run with these logarithms."""
    least, most = np.inf, -np.inf
    if which == _Which.EVERY or (which == _Which.AROUND and _is_beyond(logs, x, y)):
        for error in errors:
            least, most = min(least, error), max(most, error)
        return least, most
    # Whether the cases of a quarter have at most, or at least, the balance and the cycles.
    for right in (-1, 1):
        for up in (-1, 1):
            nearest = np.inf
            for turn in range(2):
                for case in range(len(errors)):
                    dx, dy = logs[case, 0] - x, logs[case, 1] - y
                    inside = right * dx >= -_EQUAL and up * dy >= -_EQUAL
                    if not inside and which == _Which.AROUND:
                        continue
                    distance = np.hypot(dx, dy)
                    if turn == 0:
                        nearest = min(nearest, distance)
                    elif distance <= nearest + _EQUAL:
                        least, most = min(least, errors[case]), max(most, errors[case])
    return least, most


@allocating
def _kin_span(
    logs: NDArray[np.float64],
    errors: NDArray[np.float64],
    problems: NDArray[np.int64],
    x: float,
    y: float,
) -> tuple[float, float]:
    """The least and the greatest error of the nearest problems, spread over a longer run."""
    away = np.sqrt((logs[:, 0] - x) ** 2 + (logs[:, 1] - y) ** 2)
    nearest = np.full(problems.max() + 1, np.inf)
    for case in range(len(problems)):
        nearest[problems[case]] = min(nearest[problems[case]], away[case])
    last = min(_ENOUGH, len(nearest)) - 1
    farthest = np.partition(nearest, last)[last] + _EQUAL
    least, most = np.inf, -np.inf
    for case in range(len(problems)):
        if away[case] <= farthest:
            error = errors[case] * min(1.0, np.exp((logs[case, 1] - y) / 2))
            least, most = min(least, error), max(most, error)
    return least, most


@compiled
def _is_beyond(logs: NDArray[np.float64], x: float, y: float) -> bool:
    """Whether all cases have more balance, or cycles, than a run, or all have less."""
    less_x = less_y = more_x = more_y = True
    for case in range(len(logs)):
        dx, dy = logs[case, 0] - x, logs[case, 1] - y
        less_x, more_x = less_x and dx < -_EQUAL, more_x and dx > _EQUAL
        less_y, more_y = less_y and dy < -_EQUAL, more_y and dy > _EQUAL
    return less_x or less_y or more_x or more_y


def compared_as(chip: Chip, *, rerouted: bool = False) -> str | None:
    """Name of the chip on whose tiles levels of kernels were compared; None without one.

    The project's own tiles are ``rtl`` whatever their figures: no others share banks as they do.
    Others are a shipped chip's with the same figures. How many dies there are, and their links, is
    in no comparison.

    Args:
        chip: The chip.
        rerouted: Whether another network stands in for its own.
    """
    if chip.calibration is not None:
        return _OWN
    if rerouted:
        return None
    shipped = (load_chip(name) for name in chip_names() if "RxC" not in name)
    alike = (
        each.name
        for each in shipped
        if (each.dies is None) == (chip.dies is None)
        and each.same_figures(chip.model_copy(update={"dies": each.dies}))
    )
    return next(alike, None)


def chip_steps(
    chip: str | None, kernel: str, level: str, *, memory: bool, variant: str = ""
) -> Steps | None:
    """From ``lt`` or ``perf`` to level `at`, at the constants of a chip.

    With cases that cost too much at `at`, a closed form is held against ``lt`` alone.

    Args:
        chip: Whose cases, as `compared_as` names it; those of chips that are alike
            for None, and where it has none.
        kernel: The kernel.
        level: That of the run.
        memory: Whether its operands lie in off-chip memory.
        variant: Of the kernel, if not its own.

    Returns:
        None if the level was not compared.

    Raises:
        InputError: if the comparison is missing, cannot be read, or is stale.
    """
    known, levels = _chips(), ("perf", "lt") if level == "perf" else (level,)
    first, *below = (known.step(chip, kernel, variant, memory, each) for each in levels)
    return None if first is None else [first, *(step for step in below if step is not None)]


class _Chips:
    """Steps at the constants of chips, each found once.

    Args:
        stored: The comparison that they are of.
    """

    def __init__(self, stored: ChipComparison) -> None:
        self.stored = stored
        self._steps: dict[Hashable, LevelStep | None] = {}
        self._kin: dict[Hashable, Kin] = {}

    def step(
        self, chip: str | None, kernel: str, variant: str, memory: bool, level: str
    ) -> LevelStep | None:
        """From a level to the one below; None if it was not compared."""
        key = chip, kernel, variant, memory, level
        if key not in self._steps:
            self._steps[key] = self._step(*key)
        return self._steps[key]

    def _step(
        self, chip: str | None, kernel: str, variant: str, memory: bool, level: str
    ) -> LevelStep | None:
        of_kernel = self.stored.by_kernel.get((kernel, variant, memory), [])
        checked = [(p.chip, _checked(p, level)) for p in of_kernel if level == "perf" or p.at]
        cases = [case for name, case in checked if name == chip]
        alike = [case for name, case in checked if (name == _OWN) == (chip == _OWN)]
        kin = self._kin_of(kernel, memory, level, own=chip == _OWN) if checked else None
        return LevelStep.of(cases or alike or [case for _, case in checked], kin)

    def _kin_of(self, kernel: str, memory: bool, level: str, *, own: bool) -> Kin:
        """Cases on chips that are alike: the project's ``own`` tiles, or all others."""
        key = kernel, memory, level, own
        if key not in self._kin:
            points = [
                point
                for (name, _, in_memory), of in self.stored.by_kernel.items()
                for point in of
                if (name, in_memory) == (kernel, memory) and (level == "perf" or point.at)
            ]
            points = [point for point in points if (point.chip == _OWN) == own] or points
            problems = [(p.chip, p.case) for p in points]
            self._kin[key] = Kin.of([_checked(p, level) for p in points], problems)
        return self._kin[key]


_found: list[_Chips] = []


def _chips() -> _Chips:
    """Steps of what is stored now: after a calibration in this process it is another comparison."""
    stored = load_chips()
    if not _found or _found[0].stored is not stored:
        _found[:] = [_Chips(stored)]
    return _found[0]


def _checked(point: ChipPoint, level: str) -> Checked:
    error = point.error_pct if level == "perf" else point.lt_error_pct
    assert error is not None  # or it did not run at level `at`
    return Checked(point.balance, point.perf if level == "perf" else point.lt, error)


def rtl_steps(
    kernel: str, dtype: str, noc: str, compute: str, *, alone: bool = False, memory: bool = False
) -> Steps | None:
    """From a kernel's levels to our RTL.

    ``at`` against whole kernels on tiles in Verilog, ``lt`` against ``at`` and ``perf`` against
    ``lt``, each over the kernel's checked cases of the same ``dtype``, on any grid. None with the
    matrix engine as a roofline, which nothing was checked against. With ``alone`` jobs at ``at``
    take as long as by themselves; with ``memory`` blocks lie in off-chip memory, with which only
    ``at`` was compared.

    Raises:
        InputError: if a comparison is missing, cannot be read, or is stale.
    """
    if compute == "perf" or (memory and noc in ("lt", "perf")):
        return None
    of = (kernel, dtype)
    on_tiles = [p for p in load_tiles().points if (p.kernel, p.dtype, p.memory) == (*of, memory)]
    points = [p for p in load_levels().points if (p.kernel, p.dtype) == of]
    cases = [
        [Checked(p.balance, p.at, p.alone_error_pct if alone else p.error_pct) for p in on_tiles]
    ]
    if noc in ("lt", "perf"):
        cases.append([Checked(p.balance, p.lt, p.lt_error_pct) for p in points])
    if noc == "perf":
        cases.append([Checked(p.balance, p.perf, p.perf_error_pct) for p in points])
    steps = [step for step in map(LevelStep.of, cases) if step is not None]
    return steps if len(steps) == len(cases) else None
