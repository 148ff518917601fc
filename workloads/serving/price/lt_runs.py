"""Cycles of kernels at level `lt`, each measured once and kept in a file named by its content."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tlm.calibrated import REPOSITORY, combined_hash, source_hashes
from tlm.files import whole_file
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import Place
from workloads.models.operators import Operator
from workloads.serving.price.mapping import Mapped

#: What decides the cycles beside the place and the operators.
_SOURCES = (
    "tlm",
    "workloads/kernels",
    "workloads/machine",
    "workloads/serving/price/mapping.py",
    "workloads/serving/price/kept_weights.py",
    "workloads/serving/price/residency.py",
    "workloads/serving/price/lt_runs.py",
)


class Ran(NamedTuple):
    """Cycles of some operators, one entry each.

    Attributes:
        perf: By their closed forms.
        lt: At level `lt`, of the same plans.
    """

    perf: tuple[int, ...]
    lt: tuple[int, ...]


class LtRuns:
    """Runs kernels at level `lt`, what has run before not again.

    A run that is killed has kept what it had measured, and another goes on from there.

    Args:
        folder: Where measurements are kept.
        tell: Is told before each measurement what it is of.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] | None = None) -> None:
        self._folder = folder
        self._tell = tell or (lambda what: None)

    def ran(
        self,
        what: str,
        place: Place,
        operators: Sequence[Operator],
        choices: Choices,
        planned: Callable[[], Sequence[tuple[Place, Mapped]]],
        *,
        kept: bool | str,
    ) -> Ran:
        """Cycles of operators.

        Args:
            what: What they are, for people.
            place: Where they run.
            operators: The operators.
            choices: Variants of kernels.
            planned: Plans them, each on its place.
            kept: Whether keys and values lie in the tiles; of weights that do, where.
        """
        content = {"place": repr(place), "operators": list(map(repr, operators)), "kept": kept}
        content |= {"choices": repr(choices)}
        text = json.dumps({"sources": _sources()} | content)
        path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        if (known := _read(path)) is not None:
            return known
        self._tell(what)
        plans = planned()
        cycles = [_cycles_at_lt(*each) for each in plans]
        ran = Ran(tuple(mapped.cycles for _, mapped in plans), tuple(cycles))
        record = content | {"kernels": [mapped.kernel for _, mapped in plans]} | ran._asdict()
        with whole_file(path) as scratch:
            scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        return ran


def _cycles_at_lt(place: Place, mapped: Mapped) -> int:
    from tlm.engines.lt import run_lt  # slow to import: only at level lt

    program = KERNELS[mapped.kernel].program(mapped.plan)
    return run_lt(program, place.timing, offchip=place.offchip).cycles


def _read(path: Path) -> Ran | None:
    """What is kept in a file; None if there is none, or not what was written."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Ran(tuple(record["perf"]), tuple(record["lt"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


@cache
def _sources() -> str:
    """Hash of the code that decides cycles."""
    places = [REPOSITORY / name for name in _SOURCES]
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    ]
    return combined_hash(source_hashes(files))
