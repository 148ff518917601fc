"""Models whose iterations pass groups of units in micro-batches: plans, and what they cost."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from itertools import groupby
from math import fsum
from typing import Any, NamedTuple, Protocol, Self

from tlm.chips import Chip
from workloads.models import Model
from workloads.serving.price.compared_prices import Price
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    OfModel,
    layers_in_sram,
)
from workloads.serving.price.die_plan import DiePlan
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.parts import rounded
from workloads.serving.price.tile_price import End

#: Plans that are kept; those of a long run are not all wanted again.
_MOST_PLANS = 4096


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

    def at_level(self, runs: LevelRuns) -> "Prices":
        """The same at the level of some runs."""
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


class _Plan(NamedTuple):
    """An iteration.

    Attributes:
        plan: What runs.
        joules: Of all units; None where that is not known.
        expert_bytes: Bytes of experts' weights that they read.
        seconds: At the ends of the prices' error at which it was asked for, and between them.
    """

    plan: DiePlan
    joules: float | None
    expert_bytes: float
    seconds: dict[End | None, float]


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
        self._forget()

    def _forget(self) -> None:
        """Forget what iterations cost: prices are others from here on."""
        self._plans: dict[Batch, _Plan] = {}

    def at_end(self, end: End) -> Self:
        """The same, with times as low or as high as the errors of the prices let them be."""
        other = copy(self)
        other._end = end
        return other

    def at_level(self, runs: LevelRuns) -> Self:
        """The same with prices of the level of some runs."""
        other = copy(self)
        other._prices = self._prices.at_level(runs)
        other._forget()
        return other

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        return self._prices.not_compared

    @property
    def prices(self) -> Prices:
        """Prices of the parts of its iterations."""
        return self._prices

    def seconds_of(self, made_of: Mapping[DiePlan, int]) -> float:
        """Time of iterations, from what they were made of."""
        cycles = fsum(times * plan.cycles(self._cycles) for plan, times in made_of.items())
        return cycles / self._chip.clock_hz

    def parts(self, made_of: Mapping[DiePlan, int]) -> dict[Any, int]:
        """Parts of iterations, and how often each ran, from what they were made of."""
        found: Counter[Hashable] = Counter()
        for plan, times in made_of.items():
            for part, count in plan.counted():
                found[part] += times * count
        return found

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        found = self._planned(batch)
        made_of = (found.plan,) if self._end is None else ()
        return IterationCost(found.seconds[self._end], found.joules, found.expert_bytes, made_of)

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
        made_of = [(each.plan,) for each in found] if self._end is None else ()
        times = [count for *_, count in runs]
        seconds = [each.seconds[self._end] for each in found]
        energy = [each.joules for each in found]
        return DecodeCosts(seconds, energy, times, found[0].expert_bytes, made_of)

    def _decoding(self, sequences: int, context: int, width: int, kept: int) -> _Plan:
        """An iteration that only decodes; of the layers so many find the cache in SRAM."""
        cached = sequences * context
        in_sram = round(cached * kept / self.layers)
        batch = Batch((), sequences, cached, sequences * width, None, width, in_sram)
        return self._planned(batch)

    def _planned(self, batch: Batch) -> _Plan:
        """An iteration, planned and priced once at each end, with seconds at the one at hand."""
        found = self._plans.get(batch)
        if found is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._planner.planned(batch)
            found = _Plan(plan, self._joules(plan), self._expert_bytes(plan), {})
            self._plans[batch] = found
        if self._end not in found.seconds:
            cycles = found.plan.cycles(self._cycles)
            found.seconds[self._end] = cycles / self._chip.clock_hz
        return found

    def _cycles(self, part: Any) -> float:
        if self._end is None:
            return self._prices.of(part).cycles
        low, high = self._prices.ends(part)
        return low if self._end == "low" else high

    @abstractmethod
    def _joules(self, plan: DiePlan) -> float | None:
        """Of all units; None where that is not known."""

    @abstractmethod
    def _expert_bytes(self, plan: DiePlan) -> float:
        """Bytes of experts' weights that all units read."""
