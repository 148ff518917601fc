"""One iteration on a wafer of dies: kernels of a die, and what goes between dies."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlm.errors import InputError
from tlm.level_errors import EXACT, Between
from wafertlm.iteration.room import check_room
from wafertlm.kernel.setup import Ground
from workloads.models import Model
from workloads.models.operators import Operator
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_links import Exchange, HandOver, Link
from workloads.serving.price.die_plan import DiePlan
from workloads.serving.price.die_price import DieMapping, DiesOfModel
from workloads.serving.price.parts import AnyPart, part_operators
from workloads.serving.price.tile_price import End

#: Levels of the links.
LEVELS = ("perf", "lt")
#: Cycles of an operator's kernel.
Cycles = Mapping[Operator, float]


@dataclass(frozen=True, slots=True)
class DieIteration:
    """An iteration on dies.

    Attributes:
        dies: The dies and who has which weights.
        plan: What runs where.
        level: That of the links.
    """

    dies: DiesOfModel
    plan: DiePlan
    level: str

    @classmethod
    def of(
        cls, ground: Ground, model: Model, batch: Batch, mapping: DieMapping, level: str
    ) -> "DieIteration":
        """Plan an iteration.

        Raises:
            InputError: for a level that links do not have, keys and values that do not fit, and as
                `DiesOfModel`.
        """
        if level not in LEVELS:
            raise InputError(f"--links: found '{level}'; allowed: {', '.join(LEVELS)}")
        dies = DiesOfModel(model, ground.chip, mapping)
        check_room(batch, dies.kv_tokens, f"'{ground.chip.name}'")
        return cls(dies, dies.planner.planned(batch), level)

    @property
    def count(self) -> int:
        """Dies of the wafer."""
        return self.dies.groups.mesh.dies

    @property
    def runs(self) -> int:
        """Dies and micro-batches for which what is listed stands."""
        return self.dies.groups.dies * (len(self.plan.runs) if self._alike else 1)

    def operators(self) -> list[tuple[Operator, int]]:
        """Operators of a die's kernels, and how often each runs; links are not among them."""
        found: Counter[Operator] = Counter()
        for part, count in self._counted().items():
            if not isinstance(part, Exchange | HandOver):
                for operator in part_operators(self.dies.model, part):
                    found[operator] += count
        return list(found.items())

    def links(self) -> list[tuple[Link, int, float]]:
        """What goes between dies, how often, and the cycles of each."""
        return [
            (part, count, self._link_cycles(part))
            for part, count in self._counted().items()
            if isinstance(part, Exchange | HandOver)
        ]

    def between(self, link: Link) -> Between:
        """Between what the cycles of a link may lie, as parts of them."""
        return self.dies.links.between(link) if self.level == "perf" else EXACT

    def _level_pct(self, link: Link) -> float:
        """How far that is, in per cent of the level below, as of kernels."""
        return round(100 * (1 - 1 / self.between(link).high), 9)  # what it was before 1 / x

    def cycles(self, of: Cycles, end: End | None) -> float:
        """Cycles of the iteration, by those of its kernels, with links at an end of their error."""
        times: dict[AnyPart | Link, float] = {}

        def cycles(part: AnyPart | Link) -> float:
            if part not in times:
                times[part] = self._part_cycles(part, of, end)
            return times[part]

        return self.plan.cycles(cycles)

    def link_records(self) -> list[dict[str, Any]]:
        """Lines of the result for what goes between dies; shapes are bytes of a message."""
        found = []
        for link, count, cycles in self.links():
            record: dict[str, Any] = {
                "operator": link.operator,
                "kernel": self.dies.links.name_of(link),
                "shape": str(self.dies.links.bytes_of(link)),
                "place": f"{self.dies.groups.label} dies",
                "count": count,
                "cycles": round(cycles),
                "breakdown_cycles": {
                    "compute": 0,
                    "communication": round(cycles),
                    "memory": 0,
                    "overhead": 0,
                },
                "memory_bytes": {"read": 0, "written": 0},
                "level_pct": self._level_pct(link),
            }
            found.append(record)
        return found

    def record(self) -> dict[str, Any]:
        """Where it ran, for the result."""
        groups, stretches = self.dies.groups, self.dies.planner.stretches
        weights = [self.dies.stage_bytes(number) for number in range(groups.count)]
        return {
            "dies": {
                "group": groups.label,
                "groups": groups.count,
                "dtype": self.dies.dtype,
                "layers": [len(stretch) for stretch in stretches],
                "micro_batches": len(self.plan.runs),
                "weight_bytes": weights,
                "kv_capacity_tokens": self.dies.kv_tokens,
            }
        }

    def _counted(self) -> Counter[AnyPart | Link]:
        """Parts of all micro-batches, or of one if they are alike."""
        found: Counter[AnyPart | Link] = Counter()
        runs = self.plan.runs[:1] if self._alike else self.plan.runs
        for part, count in self.plan._replace(runs=runs).counted():
            found[part] += count
        return found

    @property
    def _alike(self) -> bool:
        return len(set(self.plan.runs)) == 1

    def _part_cycles(self, part: AnyPart | Link, of: Cycles, end: End | None) -> float:
        if isinstance(part, Exchange | HandOver):
            at_end = 1.0 if end is None else getattr(self.between(part), end)
            return self._link_cycles(part) * at_end
        return sum(of[operator] for operator in part_operators(self.dies.model, part))

    def _link_cycles(self, link: Link) -> float:
        links = self.dies.links
        return links.lt_cycles(link) if self.level == "lt" else links.cycles(link)
