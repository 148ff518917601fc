"""A folder of stored results, with the calibrations and comparisons of levels beside them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from calibration.routers.stored import CustomCalibration, load_custom
from cosim.spec.mesh import load_spec
from tlm.calibrated import CalibrationResult
from tlm.calibrated import Comparison as StoredComparison
from tlm.comparisons import (
    CHIPS_FILE,
    LEVELS_FILE,
    TILES_FILE,
    ChipComparison,
    LevelComparison,
    LevelPoint,
    TileComparison,
    TilePoint,
)
from tlm.errors import InputError
from tlm.files import read_text
from tlm.memory.dram.streams import STREAMS_FILE, StreamComparison
from tlm.sealed import unsealed
from tlm.tables import json_value
from wafertlm.report.beside import Span, Values, load_map, load_requests, load_spans
from wafertlm.report.records import (
    Comparison,
    Exploration,
    Iteration,
    Kernel,
    Run,
    Serve,
    StudyResult,
)


@dataclass(frozen=True, slots=True)
class CustomMesh:
    """The calibration of a custom mesh, and its specification as the user names it."""

    name: str
    spec_file: str
    found: CustomCalibration


@dataclass(frozen=True, slots=True)
class Results:
    """Everything the report shows; runs and what lies beside them by the stem of their file.

    ``raw`` holds each result as it is stored. ``stale`` maps a calibration or comparison to its
    sources that are no longer what was measured.
    """

    custom: CustomMesh | None = None
    calibrations: list[CalibrationResult] = field(default_factory=list)
    levels: list[LevelPoint] = field(default_factory=list)
    tiles: list[TilePoint] = field(default_factory=list)
    stale: dict[str, list[str]] = field(default_factory=dict)
    raw: dict[str, dict[str, Any]] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    maps: dict[str, dict[str, Values]] = field(default_factory=dict)
    timelines: dict[str, list[Span]] = field(default_factory=dict)
    serves: dict[str, Serve] = field(default_factory=dict)
    requests: dict[str, dict[str, Values]] = field(default_factory=dict)
    iterations: dict[str, Iteration] = field(default_factory=dict)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    explorations: dict[str, Exploration] = field(default_factory=dict)
    studies: dict[str, StudyResult] = field(default_factory=dict)
    others: dict[str, Run] = field(default_factory=dict)

    @property
    def runs(self) -> dict[str, Run]:
        """All of them, in the order of the page."""
        return {
            **self.comparisons,
            **self.explorations,
            **self.serves,
            **self.iterations,
            **self.kernels,
            **self.others,
            **self.studies,
        }


_RECORDS: dict[str, tuple[str, type[Run]]] = {
    "kernel": ("kernels", Kernel),
    "serve": ("serves", Serve),
    "iteration": ("iterations", Iteration),
    "compare": ("comparisons", Comparison),
    "explore": ("explorations", Exploration),
    "study": ("studies", StudyResult),
}


#: All of which it is told if they are stale: bounds on shipped chips rest on the last two.
_COMPARISONS: dict[Path, type[StoredComparison]] = {
    LEVELS_FILE: LevelComparison,
    TILES_FILE: TileComparison,
    CHIPS_FILE: ChipComparison,
    STREAMS_FILE: StreamComparison,
}


def load_results(folder: Path, calibration_folder: Path, spec_file: str | None = None) -> Results:
    """Read the stored runs under ``folder``, the stored calibrations and comparisons beside them.

    With the specification of a custom mesh, its calibration too.

    A run's file ``NAME.json`` may have others beside it: of a kernel ``NAME.npz``, a map, and
    ``NAME.json.gz``, a timeline; of a serving run ``NAME.csv``, a row for each request. A map of
    another name is taken for that of the one kernel in its folder that has its grid and no map.

    Raises:
        InputError: naming the file and the field that cannot be used.
    """
    results = Results(custom=None if spec_file is None else _load_custom(spec_file))
    _load_calibrations(results, calibration_folder)
    for path, table in _runs(folder):
        stem = str(path.relative_to(folder).with_suffix(""))
        kind, record = _RECORDS.get(table["command"], ("others", Run))
        if "provenance" not in table and kind == "others":
            continue
        getattr(results, kind)[stem] = _parse(record, path, table)
        results.raw[stem] = table
        if kind == "kernels" and path.with_suffix(".npz").is_file():
            results.maps[stem] = load_map(path.with_suffix(".npz"))
        if kind == "kernels" and path.with_suffix(".json.gz").is_file():
            results.timelines[stem] = load_spans(path.with_suffix(".json.gz"))
        if kind == "serves" and path.with_suffix(".csv").is_file():
            results.requests[stem] = load_requests(path.with_suffix(".csv"))
    _load_other_maps(results, folder)
    return results


def _load_other_maps(results: Results, folder: Path) -> None:
    """Maps of other names than their kernels'."""
    known = {folder / f"{stem}.npz" for stem in results.kernels}
    for path in sorted(folder.rglob("*.npz")):
        if path in known:
            continue
        try:
            found = load_map(path)
        except InputError:
            continue  # other files are no business of the report
        rows, cols = found["finish_cycle"].shape
        places = [
            stem
            for stem, run in results.kernels.items()
            if stem not in results.maps
            and (folder / stem).parent == path.parent
            and run.options.grid == f"{rows}x{cols}"
            and run.options.level != "perf"
        ]
        if len(places) == 1:
            results.maps[places[0]] = found
        else:
            results.maps[str(path.relative_to(folder))] = found


def _load_calibrations(results: Results, folder: Path) -> None:
    stored: list[tuple[str, CalibrationResult | StoredComparison]] = []
    for path in sorted(folder.glob("*.json")):
        calibration = _sealed(CalibrationResult, path)
        if not calibration.check:
            raise InputError(f"{path}: check: found no case; allowed: one or more")
        results.calibrations.append(calibration)
        stored.append((calibration.name, calibration))
    for file, kind in _COMPARISONS.items():
        if not (path := folder.parent / file.name).is_file():
            continue
        found = _sealed(kind, path)
        stored.append((file.stem, found))
        if isinstance(found, LevelComparison):
            results.levels.extend(found.points)
        if isinstance(found, TileComparison):
            results.tiles.extend(found.points)
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
        if isinstance(table, dict) and isinstance(table.get("command"), str):
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
