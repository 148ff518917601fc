"""Stored calibration results: what was measured on RTL, and whether that RTL is still the same.

A result is a JSON file a person can read, `calibration/results/NAME.json`; calibration writes it,
models read it through here.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from tlm.errors import InputError
from tlm.files import read_text
from tlm.sealed import unsealed
from tlm.tables import Table

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS_FOLDER = REPOSITORY / "calibration" / "results"
#: Where sources may move to.
_SOURCE_FOLDERS = ("rtl", "tlm", "cosim", "calibration", "workloads")


class Parameter(Table):
    """A measured constant with its 95 % confidence interval; exact where both ends are equal."""

    value: float
    unit: str
    ci95: tuple[float, float]

    @classmethod
    def exact(cls, value: int, unit: str) -> Self:
        """A constant that every fit point shows without rest."""
        return cls(value=value, unit=unit, ci95=(value, value))


class FitPoint(Table):
    """A measurement from which parameters were identified."""

    case: str
    rtl: float


class CheckPoint(Table):
    """A measurement the fit has not seen, and what the model says of it."""

    case: str
    rtl: Annotated[float, Field(gt=0)]
    model: float

    @property
    def error_pct(self) -> float:
        """(model - RTL) / RTL in per cent."""
        return 100.0 * (self.model - self.rtl) / self.rtl


Status = Literal[
    "identified and checked",
    "identified",
    "checked",
    "not represented",
    "went wrong on RTL",
    "not tried",
]


class Situation(Table):
    """What some cases of an experiment have in common, or what none of them asks.

    Attributes:
        name: The situation in words.
        fit: Cases from which parameters were identified.
        check: Cases that the fit has not seen.
        max_abs_error_pct: Largest error of these; None without.
        status: What is known of it; not represented: an error is above the experiment's target,
            of a check or, where there is none, of the fit; went wrong on RTL: not one of its cases
            has a figure.
    """

    name: str
    fit: int
    check: int
    max_abs_error_pct: float | None
    status: Status


class CalibrationResult(Table):
    """Outcome of one experiment.

    ``sources`` maps each Verilog file the measurement rests on to the hash of its content.
    ``situations`` say what was tried, and what was not.
    """

    name: str
    subject: str
    rtl_hash: str
    sources: dict[str, str]
    tools: dict[str, str]
    seed: int
    parameters: dict[str, Parameter]
    fit: list[FitPoint]
    check: list[CheckPoint]
    situations: list[Situation]
    mean_abs_error_pct: float
    max_abs_error_pct: float
    worst_case: str

    def changed_sources(self, folder: Path | None = None) -> list[str]:
        """Files that are no longer what was measured.

        Their names are as seen from the folder, the repository where there is none.
        """
        return changed_sources(self.sources, folder)

    def integer(self, parameter: str) -> int:
        """Value of an exact parameter."""
        return round(self.parameters[parameter].value)


class Comparison(Table):
    """What models were compared on.

    ``sources`` maps each file that it rests on, Verilog, stored results and models, to the hash of
    its content.
    """

    sources: dict[str, str]

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was compared."""
        return changed_sources(self.sources)


def file_hash(path: Path) -> str:
    """Hash of a file's content; empty if there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def source_hashes(paths: Iterable[Path], folder: Path | None = None) -> dict[str, str]:
    """Hash of each file, by its name as seen from a folder: the repository where there is none."""
    start = folder or REPOSITORY
    return {
        Path(os.path.relpath(path, start)).as_posix(): file_hash(path) for path in sorted(paths)
    }


def changed_sources(sources: Mapping[str, str], folder: Path | None = None) -> list[str]:
    """Names of sources whose content is not there any more: one that moved is no other."""
    start = folder or REPOSITORY
    return [name for name, old in sources.items() if not _is_there(start, name, old)]


def _is_there(folder: Path, name: str, content: str) -> bool:
    path = folder / name
    if path.is_file() or not content:
        return file_hash(path) == content
    moved = (file for place in _SOURCE_FOLDERS for file in (folder / place).rglob(path.name))
    return any(file_hash(file) == content for file in moved)


def combined_hash(hashes: Mapping[str, str]) -> str:
    """One hash for a set of files."""
    text = json.dumps(dict(sorted(hashes.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_just_measured: dict[str, CalibrationResult] = {}
_stale_allowed = False


@contextmanager
def stale_allowed(allowed: bool = True) -> Iterator[None]:
    """Within it, if ``allowed``, stored figures are read although they are stale.

    One within another allows no more and, as it ends, no less.
    """
    global _stale_allowed
    if _stale_allowed or not allowed:
        yield
        return
    _stale_allowed = True
    try:
        yield
    finally:
        _stale_allowed = False
        forget()


def hold(result: CalibrationResult) -> None:
    """Let a result take the place of the stored one, until `forget`: what follows rests on it."""
    _just_measured[result.name] = result


def forget() -> None:
    """Drop what was held and read: results are read anew, as a new process does."""
    _just_measured.clear()
    read_stored.cache_clear()


def load_result(name: str) -> CalibrationResult:
    """The result of experiment ``name``: just measured, or stored and of the RTL at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    return _just_measured.get(name) or stored_result(name)


def stored_result(name: str) -> CalibrationResult:
    """The stored result of experiment ``name``, whose RTL must still be the RTL at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    path = RESULTS_FOLDER / f"{name}.json"
    if not path.is_file():
        raise InputError(f"no calibration '{name}' ({path}); run 'wafertlm calibrate'")
    result: CalibrationResult = read_stored(
        path, CalibrationResult, f"calibration '{name}'", "measured"
    )
    return result


@cache
def read_stored(
    path: Path, kind: type[CalibrationResult | Comparison], what: str, made: str = "made"
) -> Any:
    """What a file holds, which must still rest on the files at hand.

    Raises:
        InputError: if it cannot be read, its content is not what was stored, or is stale; names the
            files that changed.
    """
    try:
        stored = _unsealed(read_text(path, str(path)), kind)
    except ValueError as error:
        fault = _first_fault(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path}: {fault}; run 'wafertlm calibrate'") from error
    changed = stored.changed_sources()
    if changed and not _stale_allowed:
        raise InputError(
            f"{what} is stale: {', '.join(changed)} changed since it was {made}; "
            "run 'wafertlm calibrate'"
        )
    return stored


@lru_cache(1 << 7)
def _unsealed(text: str, kind: type[CalibrationResult | Comparison]) -> Any:
    """What a text holds, which outlives `forget`: a long one takes a tenth of a second."""
    return unsealed(text, kind)


def _first_fault(error: ValidationError) -> str:
    """The first field that does not fit, where the fault is of one, and why."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else first["msg"]


def stored_names() -> list[str]:
    """Names of the experiments with a stored result."""
    return sorted(path.stem for path in RESULTS_FOLDER.glob("*.json"))


def measured_rtl_hash() -> str:
    """One hash for all the Verilog that the stored results rest on."""
    merged: dict[str, str] = {}
    for name in stored_names():
        merged |= load_result(name).sources
    return combined_hash(merged)
