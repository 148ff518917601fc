"""Stored results as the report reads them: only the fields it shows, each checked."""

import csv
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib.format import read_array
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from calibration.routers.stored import CustomCalibration, load_custom
from cosim.spec.mesh import load_spec
from tlm.calibrated import CalibrationResult
from tlm.errors import InputError
from tlm.files import bounded_lines, open_to_read, read_bytes, read_text
from tlm.level_errors import LevelComparison, LevelPoint, TileComparison, TilePoint
from tlm.sealed import unsealed
from tlm.tables import json_value

MAP_ARRAYS = ("finish_cycle", "matrix_busy_cycles", "wait_cycles")
REQUEST_COLUMNS = ("ttft_s", "e2e_s", "mean_tbt_ms")

Values = NDArray[np.float64]
_MOST_BYTES = 64 << 20
_GREATEST = 1e18
#: What reading a file that is no map may raise.
_NO_MAP = (
    *(BadZipFile, EOFError, KeyError, MemoryError, NotImplementedError, OSError),
    *(RuntimeError, ValueError, zlib.error),
)


class _Record(BaseModel):
    """What is not named here is kept as it is, for the list of all figures."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Provenance(_Record):
    """Where a result's numbers come from."""

    version: str
    config_hash: str
    rtl_hash: str | None
    calibration: str | None
    seed: int | None


class Error(_Record):
    """How far levels and profile are off, in per cent; None where nothing was compared."""

    level_pct: float | None = None
    nearest_pct: float | None = None
    worst_pct: float | None = None
    profile_pct: float | None = None


class Run(_Record):
    """A stored result of any command; not all tell an error."""

    command: str
    options: dict[str, Any] | _Record
    error: Error | None = None
    provenance: Provenance


class KernelOptions(_Record):
    """What a kernel run was asked for."""

    kernel: str
    chip: str
    grid: str
    shape: Annotated[str, Field(pattern=r"^\d{1,18}(,\d{1,18}){0,9}$")]
    dtype: str
    level: str
    set: tuple[str, ...] = ()

    @property
    def problem(self) -> tuple[str, ...]:
        """What has to be equal for two kernels to be compared."""
        return self.chip, self.grid, self.shape, self.dtype, self.level, *self.set


class Kernel(Run):
    """A stored kernel run."""

    options: KernelOptions
    cycles: Annotated[int, Field(gt=0)]
    seconds: float
    utilization: float
    breakdown_cycles: dict[str, float]


class ServeOptions(_Record):
    """What a serving run was asked for."""

    model: str
    chip: str
    scheduler: str


class Distribution(_Record):
    """Mean and percentiles; null where there is no value."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None


class Serve(Run):
    """A stored serving run."""

    options: ServeOptions
    ttft_s: Distribution
    tbt_ms: Distribution
    e2e_s: Distribution
    queue_s: Distribution
    throughput_tok_s: float
    requests: int
    completed: int


@dataclass(frozen=True, slots=True)
class CustomMesh:
    """The calibration of a custom mesh, and its specification as the user names it."""

    name: str
    spec_file: str
    found: CustomCalibration


@dataclass(frozen=True, slots=True)
class Results:
    """Everything the report shows; runs, maps and requests by the stem of their file.

    ``stale`` maps a calibration or comparison to its sources that are no longer what was measured.
    """

    custom: CustomMesh | None = None
    calibrations: list[CalibrationResult] = field(default_factory=list)
    levels: list[LevelPoint] = field(default_factory=list)
    tiles: list[TilePoint] = field(default_factory=list)
    stale: dict[str, list[str]] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    maps: dict[str, dict[str, Values]] = field(default_factory=dict)
    serves: dict[str, Serve] = field(default_factory=dict)
    requests: dict[str, dict[str, Values]] = field(default_factory=dict)
    others: dict[str, Run] = field(default_factory=dict)


def load_results(folder: Path, calibration_folder: Path, spec_file: str | None = None) -> Results:
    """Read the stored runs under ``folder``, the stored calibrations and comparisons beside them.

    With the specification of a custom mesh, its calibration too.

    A run's file ``NAME.json`` may have a ``NAME.npz`` (kernel: arrays over tiles, see
    ``MAP_ARRAYS``) or a ``NAME.csv`` (serve: a row per request, see ``REQUEST_COLUMNS``) beside it.

    Raises:
        InputError: naming the file and the field that cannot be used.
    """
    results = Results(custom=None if spec_file is None else _load_custom(spec_file))
    _load_calibrations(results, calibration_folder)
    for path, table in _runs(folder):
        stem = str(path.relative_to(folder).with_suffix(""))
        if table["command"] == "kernel":
            results.kernels[stem] = _parse(Kernel, path, table)
            if path.with_suffix(".npz").is_file():
                results.maps[stem] = _load_map(path.with_suffix(".npz"))
        elif table["command"] == "serve":
            results.serves[stem] = _parse(Serve, path, table)
            if path.with_suffix(".csv").is_file():
                results.requests[stem] = _load_requests(path.with_suffix(".csv"))
        elif "provenance" in table:
            results.others[stem] = _parse(Run, path, table)
    return results


def _load_calibrations(results: Results, folder: Path) -> None:
    stored: list[tuple[str, CalibrationResult | LevelComparison | TileComparison]] = []
    for path in sorted(folder.glob("*.json")):
        calibration = _sealed(CalibrationResult, path)
        if not calibration.check:
            raise InputError(f"{path}: check: found no case; allowed: one or more")
        results.calibrations.append(calibration)
        stored.append((calibration.name, calibration))
    if (path := folder.parent / "levels.json").is_file():
        levels = _sealed(LevelComparison, path)
        results.levels.extend(levels.points)
        stored.append(("levels", levels))
    if (path := folder.parent / "tiles.json").is_file():
        tiles = _sealed(TileComparison, path)
        results.tiles.extend(tiles.points)
        stored.append(("tiles", tiles))
    results.stale.update(
        (name, changed) for name, one in stored if (changed := one.changed_sources())
    )


def _load_custom(spec_file: str) -> CustomMesh:
    spec = load_spec(Path(spec_file))
    found = load_custom(spec)
    return CustomMesh(found.told_name(spec), spec_file, found)


_Model = TypeVar("_Model", bound=BaseModel)


def _runs(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The results of commands; other files of the folder are no business of the report."""
    for path in sorted(folder.rglob("*.json")):
        table = json_value(path, str(path))
        if isinstance(table, dict) and "command" in table:
            yield path, table


def _parse(model: type[_Model], path: Path, table: Any) -> _Model:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise _fault(path, error) from error


def _sealed(model: type[_Model], path: Path) -> _Model:
    try:
        return unsealed(read_text(path, str(path)), model)
    except ValidationError as error:
        raise _fault(path, error) from error
    except ValueError as error:
        raise InputError(f"{path}: not a readable calibration: {error}") from error


def _fault(path: Path, error: ValidationError) -> InputError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return InputError(f"{path}: {place}: {first['msg']}")


def _load_map(path: Path) -> dict[str, Values]:
    try:
        with ZipFile(BytesIO(read_bytes(path, str(path)))) as arrays:
            found = {name: _array(arrays, name) for name in MAP_ARRAYS}
    except _NO_MAP as error:
        raise InputError(f"{path}: needs the arrays {', '.join(MAP_ARRAYS)}: {error}") from error
    shapes = {array.shape for array in found.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or not all(map(_usual, found.values())):
        raise InputError(
            f"{path}: found arrays of shapes {shapes}; allowed: numbers of cycles over rows and "
            "columns of one grid"
        )
    return found


def _usual(values: Values) -> bool:
    """Whether there are numbers, all of which can be drawn."""
    return values.size > 0 and bool((np.abs(values) < _GREATEST).all())


def _array(arrays: ZipFile, name: str) -> Values:
    """An array of so many bytes as a map may have, whatever it says of its size."""
    content = arrays.open(f"{name}.npy").read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{name} has more than {_MOST_BYTES} bytes")
    return np.asarray(read_array(BytesIO(content), allow_pickle=False), dtype=np.float64)


def _load_requests(path: Path) -> dict[str, Values]:
    """Columns of the request table, without their empty cells (one token has no interval)."""
    found = {name: array("d") for name in REQUEST_COLUMNS}
    try:
        with TextIOWrapper(open_to_read(path), newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(bounded_lines(stream)):
                for name, values in found.items():
                    if row[name]:
                        values.append(float(row[name]))
                        if not abs(values[-1]) < _GREATEST:
                            raise ValueError(f"found {row[name]}")
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        wanted = ", ".join(REQUEST_COLUMNS)
        raise InputError(f"{path}: needs numbers in the columns {wanted}: {error}") from error
    return {name: np.array(values) for name, values in found.items()}
