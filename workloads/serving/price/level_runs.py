"""Cycles of kernels at level `lt` or `at`, each measured once and kept by its content."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tlm.calibrated import REPOSITORY, combined_hash, source_hashes
from tlm.chips import Chip
from tlm.chips.parts import PacketRouter, chip_router
from tlm.engines.at.cost import Cost
from tlm.errors import InputError
from tlm.files import whole_file
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import Place
from workloads.serving.price.mapping import Mapped

#: What decides the cycles beside the place and the operators.
_SOURCES = (
    "tlm",
    "workloads/kernels",
    "workloads/machine",
    "workloads/serving/price/group_kernels.py",
    "workloads/serving/price/group_mapping.py",
    "workloads/serving/price/mapping.py",
    "workloads/serving/price/kept_weights.py",
    "workloads/serving/price/residency.py",
    "workloads/serving/price/level_runs.py",
)


class Ran(NamedTuple):
    """Cycles of some operators, one entry each.

    Attributes:
        perf: By their closed forms.
        measured: At the level of the runs, of the same plans.
    """

    perf: tuple[int, ...]
    measured: tuple[int, ...]


#: Most steps and packets of all measurements of a run at level `at`: about an hour and a half.
BOUND = 100_000_000
_INSTEAD = "--level lt, or a chip of fewer tiles"
#: At which a program can stand behind a price.
RunLevel = Literal["lt", "at"]


class LevelRuns:
    """Runs kernels at a level, what has run before not again.

    A run that is killed has kept what it had measured, and another goes on from there.

    Args:
        level: Theirs.
        folder: Where measurements are kept.
        tell: Is told before each measurement what it is of.
        router: What packets go through at level `at`; None: the chip's own.
    """

    def __init__(
        self,
        level: RunLevel,
        folder: Path,
        tell: Callable[[str], None] | None = None,
        router: PacketRouter | None = None,
    ) -> None:
        self.level, self._folder, self._router = level, folder, router
        self._tell = tell or (lambda what: None)

    def ran(
        self,
        what: str,
        chip: Chip,
        place: object,
        operators: Sequence[object],
        choices: Choices,
        planned: Callable[[], Sequence[tuple[Place, Mapped]]],
        *,
        kept: bool | str,
    ) -> Ran:
        """Cycles of operators.

        Args:
            what: What they are, for people.
            chip: The chip, whose routers packets go through at level `at`.
            place: Where they run, and what else decides how; its ``repr`` tells all of it.
            operators: The operators, or kernels and sizes.
            choices: Variants of kernels.
            planned: Plans them, each on its place.
            kept: Whether keys and values lie in the tiles; of weights that do, where.

        Raises:
            InputError: if level `at` costs too much, or the profile has no router for it.
        """
        content = {"place": repr(place), "operators": list(map(repr, operators)), "kept": kept}
        content |= {"choices": repr(choices), "level": self.level}
        if self.level == "at":
            content |= {"router": repr(self._router_of(chip))}
        text = json.dumps({"sources": sources_of_runs()} | content)
        path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        if (known := _read(path)) is not None:
            return known
        plans = planned()
        ran = self._measured(what, chip, plans, path)
        record = content | {"kernels": [mapped.kernel for _, mapped in plans]} | ran._asdict()
        self._keep(path, record)
        return ran

    def _measured(
        self, what: str, chip: Chip, plans: Sequence[tuple[Place, Mapped]], path: Path
    ) -> Ran:
        if self.level == "at":
            what = f"{what}, {self._held_cost(chip, plans)}"
        self._tell(what)
        cycles = [self._cycles(chip, *each) for each in plans]
        return Ran(tuple(mapped.cycles for _, mapped in plans), tuple(cycles))

    def _keep(self, path: Path, record: dict[str, Any]) -> None:
        with whole_file(path) as scratch:
            scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _cycles(self, chip: Chip, place: Place, mapped: Mapped) -> int:
        program = KERNELS[mapped.kernel].program(mapped.plan)
        if self.level == "at":
            from tlm.on_routers import formula_memory, run_on_routers  # slow to import: the same

            router, memory = self._router_of(chip), formula_memory(place.offchip)
            return run_on_routers(program, router, offchip=memory)[0].cycles
        from tlm.engines.lt import run_lt  # slow to import: only at its level

        return run_lt(program, place.timing, offchip=place.offchip).cycles

    def _router_of(self, chip: Chip) -> PacketRouter:
        return chip_router(chip) if self._router is None else self._router

    def _held_cost(self, chip: Chip, plans: Sequence[tuple[Place, Mapped]]) -> Cost:
        """What programs cost at level `at`.

        Raises:
            InputError: if it is too much.
        """
        bound, cost = self._router_of(chip).packet_flits, Cost()
        for place, mapped in plans:
            cost += Cost.of(KERNELS[mapped.kernel].program(mapped.plan), bound, place.offchip)
        cost.check(_INSTEAD)
        return cost


class CountedRuns(LevelRuns):
    """Counts what measurements at level `at` cost that have not been made, and makes none.

    Args:
        folder: Where measurements are kept.

    Attributes:
        cost: Of all so far.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__("at", folder)
        self.cost = Cost()
        self._counted: set[Path] = set()

    def _measured(
        self, what: str, chip: Chip, plans: Sequence[tuple[Place, Mapped]], path: Path
    ) -> Ran:
        if path not in self._counted:
            self._counted.add(path)
            self.cost += self._held_cost(chip, plans)
            if self.cost.steps + self.cost.packets > BOUND:
                raise InputError(
                    f"--level: at takes {self.cost} and more; allowed: {BOUND:,}; take {_INSTEAD}"
                )
        perf = tuple(mapped.cycles for _, mapped in plans)
        return Ran(perf, perf)

    def _keep(self, path: Path, record: dict[str, Any]) -> None:
        """Nothing was measured."""


def _read(path: Path) -> Ran | None:
    """What is kept in a file; None if there is none, or not what was written."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Ran(tuple(record["perf"]), tuple(record["measured"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


@cache
def sources_of_runs() -> str:
    """Hash of the code that decides cycles."""
    places = [REPOSITORY / name for name in _SOURCES]
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    ]
    return combined_hash(source_hashes(files))
