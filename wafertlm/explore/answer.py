"""What a trial's run gives, kept by the content of what was asked."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import ValidationError

from tlm.errors import InputError
from tlm.files import whole_file
from tlm.sealed import sealed, unsealed
from tlm.tables import Table
from wafertlm.compare import Variant, gates_of, run_variant
from wafertlm.compare.routers import calibrate_if_need_be
from wafertlm.explore.question import Job
from wafertlm.output import TIMES, CheckFailedError
from wafertlm.stopwatch import Stopwatch

#: Parts of a result that are no figures.
_BESIDE = {"command", "options", "contents", "provenance", *TIMES}
_TOO_LARGE = "this machine has too little memory for it"


class Answer(Table):
    """What came of a run.

    Attributes:
        figures: All numbers of its result by their dotted paths; truths are 0 and 1.
        provenance: Where they come from.
        problem: Why there are none; None: there are.
    """

    figures: dict[str, float | int | None] = {}
    provenance: dict[str, str | int | None] = {}
    problem: str | None = None


def answer(job: Job, kept: Path, watch: Stopwatch) -> Answer:
    """Run a job, unless its answer is kept.

    Args:
        job: The job.
        kept: Folder of answers.
        watch: Measures what it costs.

    Raises:
        InputError: naming a kept answer that is damaged.
    """
    path = kept / f"{job.key}.json"
    found = _kept(path)
    if found is not None:
        return found
    try:
        found = _run(job, kept, watch)
    except MemoryError:  # of this machine: not kept
        return Answer(problem=_TOO_LARGE)
    except (InputError, CheckFailedError) as error:
        found = Answer(problem=" ".join(str(error).split()))
    with whole_file(path) as scratch:
        scratch.write_text(sealed(found), encoding="utf-8")
    return found


def figures_of(result: Mapping[str, Any]) -> dict[str, float | int | None]:
    """All numbers of a command's result by their dotted paths."""
    return dict(_flat({name: each for name, each in result.items() if name not in _BESIDE}))


def _run(job: Job, kept: Path, watch: Stopwatch) -> Answer:
    if (spec := getattr(job.options, "rtl", None)) is not None:
        with FileLock(kept / f"{Path(spec).name}.lock"):  # one process at a time does so
            calibrate_if_need_be(spec, watch, quick=job.is_quick)
    ran = run_variant(job.command, job.options, watch)
    figures = figures_of(ran.result)
    if job.has_gates:
        gates = gates_of([Variant({}, job.options)], watch, has_toggles=job.has_toggles)
        if gates is None:
            raise InputError("gates: found no routers with Verilog; allowed: with the option rtl")
        if gates[0]["finding"] is not None:
            raise CheckFailedError(f"gates: {gates[0]['finding']}")
        figures |= figures_of({"gates": gates[0]})
    return Answer(figures=figures, provenance=ran.result["provenance"])


def _kept(path: Path) -> Answer | None:
    try:
        return unsealed(path.read_text(encoding="utf-8"), Answer)
    except FileNotFoundError:
        return None
    except (OSError, ValidationError, ValueError) as error:
        raise InputError(f"{path}: damaged; remove it, and the run is repeated") from error


def _flat(table: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    for name, figure in table.items():
        if isinstance(figure, Mapping):
            yield from _flat(figure, f"{inside}{name}.")
        elif isinstance(figure, bool):
            yield inside + name, int(figure)
        elif figure is None or isinstance(figure, int | float):
            yield inside + name, figure
