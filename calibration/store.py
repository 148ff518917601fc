"""Writing calibration results, whole or not at all."""

import os
from dataclasses import dataclass

from tlm.calibrated import RESULTS_FOLDER, CalibrationResult, load_result, stored_names
from tlm.errors import InputError


def save(result: CalibrationResult) -> None:
    """Store a result as `calibration/results/NAME.json`; equal results are equal bytes."""
    path = RESULTS_FOLDER / f"{result.name}.json"
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
    load_result.cache_clear()


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
            load_result(name)
            states.append(Status(name, None))
        except InputError as error:
            states.append(Status(name, str(error)))
    return states
