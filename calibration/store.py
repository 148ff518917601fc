"""Writing calibration results, whole or not at all."""

from dataclasses import dataclass
from pathlib import Path

from tlm.calibrated import (
    LEVELS_FILE,
    RESULTS_FOLDER,
    CalibrationResult,
    LevelComparison,
    LevelPoint,
    forget,
    load_levels,
    stored_names,
    stored_result,
)
from tlm.errors import InputError
from tlm.files import whole_file


def save(result: CalibrationResult) -> None:
    """Store a result as `calibration/results/NAME.json`; equal results are equal bytes."""
    _write(RESULTS_FOLDER / f"{result.name}.json", result.model_dump_json(indent=1))
    forget()


def save_levels(points: list[LevelPoint]) -> None:
    """Store a comparison of levels as `calibration/levels.json`."""
    _write(LEVELS_FILE, LevelComparison(points=points).model_dump_json(indent=1))
    load_levels.cache_clear()


def _write(path: Path, text: str) -> None:
    with whole_file(path) as scratch:
        scratch.write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a stored result can be used, and if not, why."""

    name: str
    problem: str | None


def status() -> list[Status]:
    """The state of every stored result."""
    states = []
    for name in stored_names():
        try:
            stored_result(name)
            states.append(Status(name, None))
        except InputError as error:
            states.append(Status(name, str(error)))
    return states
