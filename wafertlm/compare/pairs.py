"""The error of a change, measured: small cases of a kernel on both variants, at both levels.

What runs is kept by its content: a router that was in one comparison costs nothing in the next.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from tlm.calibrated import file_hash
from tlm.chips.parts import own_tile
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.interconnect.handshake import DeadlockError
from tlm.level_errors import Between
from wafertlm.compare import cases
from wafertlm.compare.cases import CASES, Case, Ground, Work, drawn_cases, planned
from wafertlm.output import SeldomLog
from workloads.kernels.catalogue import KERNELS
from workloads.serving.price.level_runs import LevelRuns, RunLevel, sources_of_runs

#: Of the cases that a comparison rests on; tests draw others.
SEED = 5


class Both(NamedTuple):
    """A problem of a run on both variants, and the time that it takes on the first in all."""

    first: Work
    other: Work
    time: float


class PairedCase(NamedTuple):
    """A case on both variants, at the level of the run and at `at`.

    Attributes:
        case: The case.
        change: By how much more the other variant takes at the level of the run, as a part of 1.
        lower_change: The same at level `at`.
    """

    case: Case
    change: float
    lower_change: float

    @property
    def error(self) -> float:
        """How far the ratio of both variants is off at the level of the run, as a part of 1."""
        return (1 + self.change) / (1 + self.lower_change) - 1


class PairError(NamedTuple):
    """How far ratios of a kernel's cycles on two variants are off.

    Attributes:
        cases: On what it was measured.
    """

    cases: Sequence[PairedCase]

    @property
    def worst(self) -> PairedCase:
        """The case with the largest error."""
        return max(self.cases, key=lambda case: abs(case.error))

    @property
    def mean(self) -> float:
        """The mean of the errors, without their signs."""
        return fsum(abs(each.error) for each in self.cases) / len(self.cases)

    def of(self, change: float) -> float | None:
        """Error of a ratio with such a change, as a part of 1; None where no case changes at all.

        A larger change may be off by more. So errors are counted in sums of their change and the
        mean of all errors (as in locally weighted conformal prediction, Lei et al., JASA 113,
        2018); the worst case has the most of these.
        """
        if not any(each.change or each.lower_change for each in self.cases):
            return None if change else 0.0
        mean, most = self.mean, 0.0
        for each in self.cases:
            if each.error:
                most = max(most, abs(each.error) / (abs(each.change) + mean))
        return most * (abs(change) + mean)


#: A kernel as both variants run it: the first's kernel, choices and place, and the other's.
_Key = tuple[Any, ...]


class Pairs:
    """Errors of the change from one variant to another, kernel by kernel.

    Args:
        first: Where the first variant runs.
        other: Where the other does.
        level: Of both runs.
        folder: Where measurements are kept.
        seed: Of the cases.

    Attributes:
        errors: What was measured, by kernel, choices and place of both variants.
    """

    def __init__(
        self,
        first: Ground,
        other: Ground,
        level: str,
        folder: Path,
        seed: int = SEED,
    ) -> None:
        self._first, self._other = first, other
        self._level, self._folder, self._seed = level, folder, seed
        # Errors of the calibrations of two routers add up, unless all that these found is equal.
        alike = (first.router, first.error_pct) == (other.router, other.error_pct)
        apart = () if alike else (first.error_pct, other.error_pct)
        self._off = math.prod(1 + pct / 100 for pct in apart) - 1
        self.errors: dict[_Key, PairError] = {}
        self._why_not: dict[_Key, str] = {}
        self._kernel, self._log = "", SeldomLog()

    def measure(self, both: Iterable[Both]) -> None:
        """Measure all kernels of a run."""
        kernels: dict[_Key, list[Both]] = {}
        for each in both:
            kernels.setdefault(_key(each.first, each.other), []).append(each)
        for number, (key, problems) in enumerate(kernels.items()):
            self._kernel = f"{problems[0].first.kernel} ({number + 1} of {len(kernels)})"
            try:
                self.errors[key] = self._measured(problems)
            except InputError as error:
                self._why_not[key] = str(error)

    def between(self, first: Work, other: Work, change: float) -> Between | None:
        """Between what the ratio of two kernels may lie at `at`, as a part of what it is.

        Args:
            first: As the first variant runs it.
            other: As the other does.
            change: By how much more that takes, as a part of 1.

        Returns:
            None where no error is known.
        """
        if self._first == self._other and first == other:
            return Between(1.0, 1.0)
        found = self.errors.get(_key(first, other))
        error = None if found is None else found.of(change)
        if error is None or error >= 1:
            return None
        return Between(1 / ((1 + error) * (1 + self._off)), (1 + self._off) / (1 - error))

    @property
    def records(self) -> list[dict[str, Any]]:
        """What was measured, or why not, of each kernel."""
        found = []
        for key in [*self.errors, *self._why_not]:
            error = self.errors.get(key)
            worst = None if error is None else error.worst
            record = {
                "kernel": _name(key),
                "level": self._level,
                "cases": None if error is None else len(error.cases),
                "mean_pct": None if error is None else 100 * error.mean,
                "worst_pct": None if worst is None else 100 * abs(worst.error),
                "worst_case": None if worst is None else worst.case.label,
                "why_not": self._why_not.get(key),
            }
            found.append(record)
        return found

    def _measured(self, problems: Sequence[Both]) -> PairError:
        """A kernel's error.

        Raises:
            InputError: if it cannot be measured.
        """
        first, other = problems[0].first, problems[0].other
        if self._level not in ("perf", "lt"):
            raise InputError(f"level {self._level} is the lowest of a chip")
        if first.kernel != other.kernel:
            raise InputError(f"the other variant runs {other.kernel}")
        if (first.place.rows, first.place.cols) != (other.place.rows, other.place.cols):
            raise InputError("the other variant has other tiles")
        if any(own_tile(ground.chip) is not None for ground in (self._first, self._other)):
            raise InputError("not of the project's own tiles")
        found = []
        for case in self._cases(problems):
            try:
                cycles = [
                    self._cycles(work, ground, case)
                    for work, ground in ((first, self._first), (other, self._other))
                ]
            except (InputError, DeadlockError):
                continue
            (one, low_one), (two, low_two) = cycles
            found.append(PairedCase(case, two / one - 1, low_two / low_one - 1))
        if len(found) < CASES:
            raise InputError(f"{len(found)} of {CASES} cases run at level at")
        return PairError(found)

    def _cycles(self, work: Work, ground: Ground, case: Case) -> tuple[int, int]:
        """Cycles of a case at the level of the run and at `at`."""
        small = ground.small(work.place, case.grid, case.share)

        def ran(level: RunLevel) -> tuple[int, int]:
            router = ground.routers if level == "at" else None
            runs = LevelRuns(level, self._folder / level, self._tell, router)
            found = runs.ran(
                f"{work.kernel} on {case.label}",
                ground.chip,
                small,
                [(work.kernel, case.sizes)],
                work.choices,
                lambda: [planned(work, ground, case)],
                kept=False,
            )
            return found.perf[0], found.measured[0]

        perf, at = ran("at")
        return (perf, at) if self._level == "perf" else (ran("lt")[1], at)

    def _tell(self, what: str) -> None:
        """Say before a measurement what it is of."""
        self._log(f"error of the change: {self._kernel}: {what}")

    def _cases(self, problems: Sequence[Both]) -> list[Case]:
        """Cases of a kernel, drawn once."""
        times: Counter[Work] = Counter()
        for each in problems:
            times[each.first] += each.time  # type: ignore[assignment]  # times are no counts
        works = sorted(times.items(), key=lambda each: each[0].sizes)
        first, ground = works[0][0], self._first
        content = [
            sources_of_runs(), file_hash(Path(cases.__file__)), cases.MOST_COST, self._seed,
            repr(ground.routers),
            ground.chip.model_dump_json(), repr(first[:3]),
            [(work.sizes, time) for work, time in works],
        ]  # fmt: skip
        name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
        path = self._folder / "cases" / f"{name}.json"
        if (known := _read(path)) is not None:
            return known
        found = drawn_cases(works, ground, self._seed)
        with whole_file(path) as scratch:
            kept = [[each.grid, str(each.share), each.sizes] for each in found]
            scratch.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        return found


def _key(first: Work, other: Work) -> _Key:
    return (*first[:3], *other[:3])


def _name(key: _Key) -> str:
    kernel, choices, place, *_ = key
    return f"{kernel} {KERNELS[kernel].variant(choices, place)}".strip()


def _read(path: Path) -> list[Case] | None:
    """Cases that are kept in a file; None if there is none, or not what was written."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return [
            Case((grid[0], grid[1]), Fraction(share), tuple(sizes)) for grid, share, sizes in kept
        ]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
