"""Models whose iterations pass groups of units in micro-batches: plans, and what they cost."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from itertools import groupby
from typing import Any, Protocol, Self

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.models import Model
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    OfModel,
    layers_in_sram,
)
from workloads.serving.price.die_plan import DiePlan
from workloads.serving.price.iteration import rounded
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.part_price import Price
from workloads.serving.price.tile_price import End


class Planner(Protocol):
    """Says what runs where."""

    def planned(self, batch: Batch) -> DiePlan:
        """An iteration."""
        ...


class Prices(Protocol):
    """Of parts of iterations, and of what goes between groups."""

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        ...

    def of(self, part: Any) -> Price:
        """Price of a part."""
        ...

    def ends(self, part: Any) -> tuple[float, float]:
        """The least and the most cycles that a part may take."""
        ...

    def plans(self, part: Any) -> Sequence[tuple[Any, Any]]:
        """Plans of a part's kernels, each behind what has its place."""
        ...


class PlannedPrice(OfModel, ABC):
    """What is common to such models (`workloads.serving.price.cost.ServingModel`).

    Args:
        model: The model.
        chip: The chip, with the engines of its elements.
        planner: Plans iterations.
        prices: Prices their parts.
    """

    def __init__(self, model: Model, chip: Chip, planner: Planner, prices: Prices) -> None:
        super().__init__(model)
        self._chip = chip
        self._planner, self._prices = planner, prices
        self._end: End | None = None
        self._decoded: dict[tuple[int, int, int, int], tuple[DiePlan, float]] = {}

    def at_end(self, end: End) -> Self:
        """The same, with times as low or as high as the errors of the prices let them be."""
        other = copy(self)
        other._end, other._decoded = end, {}
        return other

    def at_level(self, runs: LevelRuns) -> Self:
        """Refused: what goes between dies has no grid of sizes at other levels.

        Raises:
            InputError: always.
        """
        raise InputError(f"--level: found '{runs.level}' with '{self._chip.name}'; allowed: perf")

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        return self._prices.not_compared

    @property
    def prices(self) -> Prices:
        """Prices of the parts of its iterations."""
        return self._prices

    def parts(self, made_of: Mapping[DiePlan, int]) -> dict[Any, int]:
        """Parts of iterations, and how often each ran, from what they were made of."""
        found: Counter[Hashable] = Counter()
        for plan, times in made_of.items():
            for part, count in plan.counted():
                found[part] += times * count
        return found

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        plan = self._planner.planned(batch)
        made_of = (plan,) if self._end is None else ()
        seconds = plan.cycles(self._cycles) / self._chip.clock_hz
        return IterationCost(seconds, self._joules(plan), self._expert_bytes(plan), made_of)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        seen_by_each = (-(-context_tokens // sequences)).tolist()
        kept = layers_in_sram(self.layers, context_tokens, spilled_tokens)
        keys = zip((rounded(each + width) for each in seen_by_each), kept, strict=True)
        runs = [(*key, len(list(alike))) for key, alike in groupby(keys)]
        found = [
            self._decoding(sequences, seen - width, width, in_sram) for seen, in_sram, _ in runs
        ]
        plans, seconds = zip(*found, strict=True)
        energy = None
        if self._chip.energy is not None:
            energy = [self._joules(plan) or 0.0 for plan in plans]
        made_of = [(plan,) for plan in plans] if self._end is None else ()
        times = [count for *_, count in runs]
        return DecodeCosts(seconds, energy, times, self._expert_bytes(plans[0]), made_of)

    def _decoding(
        self, sequences: int, context: int, width: int, kept: int
    ) -> tuple[DiePlan, float]:
        """Plan and seconds of an iteration that only decodes, once for each of these.

        Of the layers so many find the tokens of the cache in SRAM.
        """
        key = sequences, context, width, kept
        if key not in self._decoded:
            cached = sequences * context
            in_sram = round(cached * kept / self.layers)
            batch = Batch((), sequences, cached, sequences * width, None, width, in_sram)
            plan = self._planner.planned(batch)
            self._decoded[key] = plan, plan.cycles(self._cycles) / self._chip.clock_hz
        return self._decoded[key]

    def _cycles(self, part: Any) -> float:
        if self._end is None:
            return self._prices.of(part).cycles
        low, high = self._prices.ends(part)
        return low if self._end == "low" else high

    @abstractmethod
    def _joules(self, plan: DiePlan) -> float | None:
        """Of all units; None without figures."""

    @abstractmethod
    def _expert_bytes(self, plan: DiePlan) -> float:
        """Bytes of experts' weights that all units read."""
