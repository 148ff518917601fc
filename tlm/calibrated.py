"""Stored calibration results: what was measured on RTL, and whether that RTL is still the same.

A result is a JSON file a person can read, `calibration/results/NAME.json`; calibration writes it,
models read it through here.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tlm.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS_FOLDER = REPOSITORY / "calibration" / "results"
LEVELS_FILE = REPOSITORY / "calibration" / "levels.json"
TILES_FILE = REPOSITORY / "calibration" / "tiles.json"
#: Where sources may move to.
_SOURCE_FOLDERS = ("rtl", "tlm", "cosim", "calibration", "workloads")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameter(_Record):
    """A measured constant with its 95 % confidence interval; exact where both ends are equal."""

    value: float
    unit: str
    ci95: tuple[float, float]

    @classmethod
    def exact(cls, value: int, unit: str) -> Self:
        """A constant that every fit point shows without rest."""
        return cls(value=value, unit=unit, ci95=(value, value))


class FitPoint(_Record):
    """A measurement from which parameters were identified."""

    case: str
    rtl: float


class CheckPoint(_Record):
    """A measurement the fit has not seen, and what the model says of it."""

    case: str
    rtl: float
    model: float

    @property
    def error_pct(self) -> float:
        """(model - RTL) / RTL in per cent."""
        return 100.0 * (self.model - self.rtl) / self.rtl


class CalibrationResult(_Record):
    """Outcome of one experiment.

    ``sources`` maps each Verilog file the measurement rests on to the hash of its content.
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
    mean_abs_error_pct: float
    max_abs_error_pct: float
    worst_case: str

    def changed_sources(self, folder: Path | None = None) -> list[str]:
        """Files that are no longer what was measured.

        Their names are as seen from the folder, the repository where there is none.
        """
        return _changed(self.sources, folder or REPOSITORY)

    def integer(self, parameter: str) -> int:
        """Value of an exact parameter."""
        return round(self.parameters[parameter].value)


class LevelPoint(_Record):
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


class LevelComparison(_Record):
    """Kernels at all levels; a file of its own, as no RTL run stands behind it.

    ``sources`` maps each file that the comparison rests on, stored results and models, to the hash
    of its content.
    """

    sources: dict[str, str]
    points: list[LevelPoint]

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was compared."""
        return _changed(self.sources, REPOSITORY)


class TilePoint(_Record):
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


class TileComparison(_Record):
    """Kernels on tiles in Verilog and at the level `at`.

    ``sources`` maps each file that the comparison rests on, Verilog, stored results and models, to
    the hash of its content.
    """

    sources: dict[str, str]
    tools: dict[str, str]
    points: list[TilePoint]

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was compared."""
        return _changed(self.sources, REPOSITORY)


def file_hash(path: Path) -> str:
    """Hash of a file's content; empty if there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def source_hashes(paths: Iterable[Path], folder: Path | None = None) -> dict[str, str]:
    """Hash of each file, by its name as seen from a folder: the repository where there is none."""
    start = folder or REPOSITORY
    return {
        Path(os.path.relpath(path, start)).as_posix(): file_hash(path) for path in sorted(paths)
    }


def _changed(sources: Mapping[str, str], folder: Path) -> list[str]:
    """Names of sources whose content is not there any more: one that moved is no other."""
    return [name for name, old in sources.items() if not _is_there(folder, name, old)]


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


_Balanced = TypeVar("_Balanced", LevelPoint, TilePoint)
_Compared = TypeVar("_Compared", LevelComparison, TileComparison)
_just_measured: dict[str, CalibrationResult] = {}
_stale_allowed = False


@contextmanager
def stale_allowed(allowed: bool = True) -> Iterator[None]:
    """Within it, if ``allowed``, stored figures are read although they are stale."""
    global _stale_allowed
    if not allowed:
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
    stored_result.cache_clear()
    load_levels.cache_clear()
    load_tiles.cache_clear()


def load_result(name: str) -> CalibrationResult:
    """The result of experiment ``name``: just measured, or stored and of the RTL at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    return _just_measured.get(name) or stored_result(name)


@cache
def stored_result(name: str) -> CalibrationResult:
    """The stored result of experiment ``name``, whose RTL must still be the RTL at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    path = RESULTS_FOLDER / f"{name}.json"
    if not path.is_file():
        raise InputError(f"no calibration '{name}' ({path}); run 'wafertlm calibrate'")
    try:
        result = CalibrationResult.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise InputError(f"{path}: {_first_fault(error)}") from error
    changed = result.changed_sources()
    if changed and not _stale_allowed:
        raise InputError(
            f"calibration '{name}' is stale: {', '.join(changed)} changed since it was measured; "
            "run 'wafertlm calibrate'"
        )
    return result


@cache
def load_levels() -> LevelComparison:
    """The stored comparison of levels, of the results and models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    return _comparison(LEVELS_FILE, LevelComparison, "levels")


@cache
def load_tiles() -> TileComparison:
    """The stored comparison of kernels on tiles in Verilog, of the Verilog and models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    return _comparison(TILES_FILE, TileComparison, "tiles")


def _first_fault(error: ValidationError) -> str:
    """The first field that does not fit, where the fault is of one, and why."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else first["msg"]


def _comparison(path: Path, kind: type[_Compared], what: str) -> _Compared:
    try:
        comparison = kind.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise InputError(f"{path}: {_first_fault(error)}; run 'wafertlm calibrate'") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}; run 'wafertlm calibrate'") from error
    changed = comparison.changed_sources()
    if changed and not _stale_allowed:
        raise InputError(
            f"comparison of {what} is stale: {', '.join(changed)} changed since it was made; "
            "run 'wafertlm calibrate'"
        )
    return comparison


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


def stored_names() -> list[str]:
    """Names of the experiments with a stored result."""
    return sorted(path.stem for path in RESULTS_FOLDER.glob("*.json"))


def measured_rtl_hash() -> str:
    """One hash for all the Verilog that the stored results rest on."""
    merged: dict[str, str] = {}
    for name in stored_names():
        merged |= load_result(name).sources
    return combined_hash(merged)
