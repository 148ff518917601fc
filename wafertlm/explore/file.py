"""The file of an exploration: what is run, what varies, what is wanted; read and checked here."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, model_validator

from tlm.errors import InputError
from tlm.files import is_file
from tlm.tables import Natural, Table, toml_fields
from wafertlm.asked import iteration, kernel, noc, serve
from wafertlm.command_words import OPTIONS

Choice = bool | int | float | str
Number = int | float
Kind = Literal["grid", "random", "qmc", "tpe", "nsga2"]

_BY_COST = ("perf", "lt", "at", "rtl")
_KNOWN: dict[str, Sequence[str]] = {
    "noc": noc.LEVELS,
    "kernel": kernel.LEVELS,
    "iteration": iteration.LEVELS,
    "serve": serve.LEVELS,
}
#: As a level of the confirmation: there is none.
NONE = "none"
_VERILOG = "rtl"  # is built, which takes minutes: only if asked for
MOST_TRIALS = 10**6
_DEFAULT_TRIALS = 100
_LARGEST = 2**53  # beyond it numbers are not told apart by a sampler


def _choice(found: Any) -> Choice:
    is_finite = not isinstance(found, float) or math.isfinite(found)
    if not isinstance(found, bool | int | float | str) or not is_finite:
        raise ValueError(f"found {found!r}; allowed: a text, a finite number, true or false")
    return found


def _number(found: Any) -> Number:
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= _LARGEST:
        raise ValueError(f"found {found!r}; allowed: a number, {-_LARGEST} to {_LARGEST}")
    return found


_Choice = Annotated[Any, PlainValidator(_choice)]
_Number = Annotated[Any, PlainValidator(_number)]


class Parameter(Table):
    """What a parameter may be: some choices, or a range with both its ends.

    A range is of whole numbers if both ends are; ``log`` spreads it by ratios.
    """

    choices: tuple[_Choice, ...] | None = None
    low: _Number = None
    high: _Number = None
    step: _Number = None
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is a range of whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        ends = (self.low, self.high)
        if self.choices is not None:
            if ends != (None, None) or self.step is not None or self.log:
                raise ValueError("found choices and a range; allowed: one of them")
            if not self.choices:
                raise ValueError("found no choices; allowed: choices = [...] with one or more")
            for each in self.choices:
                if self.choices.count(each) > 1:
                    raise ValueError(f"found the choice {each!r} twice; allowed: once")
            return self
        if None in ends:
            raise ValueError(
                "found no choices, nor low and high; allowed: choices = [...], or both ends"
            )
        if not self.low < self.high:
            raise ValueError(f"found low = {self.low}, high = {self.high}; allowed: low < high")
        if self.step is not None and (self.log or not 0 < self.step <= self.high - self.low):
            raise ValueError(
                f"found step = {self.step}; allowed: up to high - low, and not with log"
            )
        if self.step is not None and (self.high - self.low) / _LARGEST > self.step:
            raise ValueError(f"found step = {self.step}; allowed: fewer than {_LARGEST} steps")
        if self.step is not None and self.is_whole and not isinstance(self.step, int):
            raise ValueError(f"found step = {self.step}; allowed: a whole number, as low and high")
        if self.log and self.low <= 0:
            raise ValueError(f"found low = {self.low} with log; allowed: more than 0")
        return self


class Bound(Table):
    """What a figure has to be for a trial to count."""

    at_least: _Number = None
    at_most: _Number = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("found neither; allowed: at_least, at_most or both")
        return self

    def excess(self, figure: float) -> float:
        """By how much the figure is out of bounds; 0 or less: it is within them."""
        over = [] if self.at_most is None else [figure - self.at_most]
        under = [] if self.at_least is None else [self.at_least - figure]
        return float(max(*over, *under) if over and under else (over + under)[0])


class Sampler(Table):
    """Where the next trials are. All but ``grid``, ``random`` and ``qmc`` learn from earlier ones.

    They do so from batch to batch: the trials of one are chosen before any of them is known.
    """

    kind: Kind = "tpe"
    batch: Annotated[int, Field(ge=1, le=10**4)] | None = None
    seed: Natural = 0


class Pruning(Table):
    """Cheaper levels that a trial runs at first, from the cheapest on.

    One goes on if no other trial is better in all objectives there by more than ``margin_pct``, and
    if it is not out of a bound by more than that.
    """

    levels: Annotated[tuple[str, ...], Field(min_length=1)]
    margin_pct: Annotated[float, Field(ge=0, le=1000)] = 10.0


class ExploreFile(Table):
    """An exploration.

    ``confirm`` is the level at which the best are run again, or "none". Routers that have no
    calibration get a whole one or a quick one.
    """

    command: str
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | None = None
    options: dict[str, Any] = {}
    parameters: Annotated[dict[str, Parameter], Field(min_length=1)]
    objectives: Annotated[
        dict[str, Literal["minimize", "maximize"]], Field(min_length=1, max_length=8)
    ]
    constraints: dict[str, Bound] = {}
    sampler: Sampler = Sampler()
    pruning: Pruning | None = None
    confirm: str | None = None
    calibration: Literal["whole", "quick"] = "whole"

    @property
    def asked_figures(self) -> list[str]:
        """Paths of all figures that it needs."""
        return [*self.objectives, *self.constraints]

    def needs_gates(self, end: str = "") -> bool:
        """Whether some of these are of gates, and end so."""
        return any(is_of_gates(path) and path.endswith(end) for path in self.asked_figures)

    @property
    def batch(self) -> int:
        """Trials that are chosen together."""
        return self.sampler.batch or (32 if self.sampler.kind == "nsga2" else 16)


def is_of_gates(path: str) -> bool:
    """Whether a figure is of a router's Verilog: no level changes it."""
    return path.startswith("gates.")


def read_explore_file(path: Path, trials: int | None, seed: int | None) -> ExploreFile:
    """Read the file of an exploration.

    Args:
        path: The file.
        trials: Instead of its own; None: as it says.
        seed: Instead of the sampler's; None: as it says.

    Raises:
        InputError: naming the file, the field, what was found and what is allowed.
    """
    told = str(path)
    found = toml_fields(path, told)
    for table, is_leaf in (("objectives", _is_no_table), ("constraints", _is_bound)):
        if isinstance(given := found.get(table), Mapping):
            found[table] = dict(_dotted(given, is_leaf))
    if trials is not None:
        found["trials"] = trials
    asked = ExploreFile.made(found, told)
    if seed is not None:
        sampler = asked.sampler.model_copy(update={"seed": seed})
        asked = asked.model_copy(update={"sampler": sampler})
    return _hold(asked, told)


def with_trials(asked: ExploreFile, grid_points: int | None) -> ExploreFile:
    """With a number of trials: all points of a grid at most, else 100 if it says none."""
    trials = asked.trials or (_DEFAULT_TRIALS if grid_points is None else grid_points)
    return asked.model_copy(update={"trials": min(trials, grid_points or trials)})


def file_beside(folder: Path, value: Any) -> Any:
    """A value that names a file beside the exploration's, as that file; else as it is."""
    if isinstance(value, str) and value and is_file(folder / value):
        return str(folder / value)
    return value


def near(name: str, known: Iterable[str]) -> str:
    """Those of some names that are like one, else all of them, at most twelve."""
    names = list(known)
    found = difflib.get_close_matches(name, names, 6, 0.5) or names
    return ", ".join(found[:12]) + (", ..." if len(found) > 12 else "")


def _hold(asked: ExploreFile, told: str) -> ExploreFile:
    """Hold that fields go together, and fill in the level of the confirmation."""
    if asked.command not in OPTIONS:
        raise InputError(f"{told}: command: found '{asked.command}'; allowed: {', '.join(OPTIONS)}")
    if twice := sorted(asked.options.keys() & asked.parameters.keys()):
        raise InputError(
            f"{told}: parameters.{twice[0]}: found in options, too; allowed: in one of them"
        )
    known = [level for level in _BY_COST if level in _KNOWN[asked.command]]
    own = asked.options.get("level", _default_level(asked.command))
    place = known.index(own) if own in known and "level" not in asked.parameters else None
    below, above = ([], []) if place is None else (known[:place], known[place + 1 :])
    cheaper = [] if asked.pruning is None else list(asked.pruning.levels)
    if cheaper and cheaper != [level for level in below if level in cheaper]:
        raise InputError(
            f"{told}: pruning.levels: found {', '.join(cheaper)}; allowed, from the cheapest on, "
            f"below options.level = '{own}': {', '.join(below) or 'none'}"
        )
    if asked.confirm is None:
        following = [level for level in above if level != _VERILOG]
        return asked.model_copy(update={"confirm": following[0] if following else NONE})
    if asked.confirm not in (*known, NONE):
        raise InputError(
            f"{told}: confirm: found '{asked.confirm}'; allowed: {', '.join((*known, NONE))}"
        )
    return asked


def _default_level(command: str) -> str:
    return next(str(f.default) for f in fields(OPTIONS[command]) if f.name == "level")


def _is_no_table(value: Any) -> bool:
    return not isinstance(value, Mapping)


def _is_bound(value: Any) -> bool:
    return _is_no_table(value) or not all(isinstance(each, Mapping) for each in value.values())


def _dotted(
    table: Mapping[str, Any], is_leaf: Callable[[Any], bool], inside: str = ""
) -> Iterable[tuple[str, Any]]:
    """Figures by their paths, which TOML takes for tables if they are not quoted."""
    for name, value in table.items():
        if is_leaf(value):
            yield inside + name, value
        else:
            yield from _dotted(value, is_leaf, f"{inside}{name}.")
