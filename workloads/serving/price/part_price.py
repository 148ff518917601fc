"""Prices of the parts of iterations on tiles: sums of their kernels, at a level.

At `perf` a kernel takes the cycles of its closed form, and may be off by the errors of the cases
that it was compared with `lt` on. At `lt` and `at` it takes as many times more as it does at the
points of a grid around it, and may be off by what interpolation is in the worst of some checks.
At `perf` and `lt` it may also be off by the errors of cases in which `lt` was compared with `at`.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from tlm.chips import Chip
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import Place
from workloads.models import Model
from workloads.models.operators import Attention
from workloads.serving.price.compared_prices import ComparedPrices, Price
from workloads.serving.price.energy import TileTraffic, kernel_energy_j
from workloads.serving.price.level_ratios import LevelRatios, scaled
from workloads.serving.price.level_runs import LevelRuns, Ran
from workloads.serving.price.mapping import Mapped, Mapping
from workloads.serving.price.parts import (
    AnyPart,
    Decode,
    Head,
    Kept,
    Layer,
    Routed,
    Unneeded,
    alike,
    needed,
    part_operators,
)
from workloads.serving.price.plan_energy import plan_energy_j
from workloads.serving.price.residency import Residency

#: An operator's plan, and the mapping that it is of.
Planned = tuple[Mapping, Mapped]


class Residents(NamedTuple):
    """Mappings of products whose weights lie in the tiles.

    Attributes:
        beside: With activations in the tiles, too.
        apart: With activations in off-chip memory.
        tokens: Up to so many have activations in the tiles.
    """

    beside: Mapping
    apart: Mapping
    tokens: int

    @classmethod
    def of(cls, place: Place, choices: Choices, residency: Residency) -> "Residents":
        """Mappings of what the tiles of a place keep."""
        beside, apart = (
            Mapping(each, choices, held=residency.held)
            for each in (replace(place, offchip=None), place)
        )
        return cls(beside, apart, residency.activation_tokens)

    def __repr__(self) -> str:
        """What decides the plans of what is kept."""
        return f"{self.beside.held!r}, {self.tokens} tokens"


class PartPrices(ComparedPrices[AnyPart]):
    """Prices parts of a model's iterations, each once.

    Args:
        model: The model.
        chip: The chip, with the engines of its elements.
        mappings: Of operators on the place, and of attention on what the tiles' SRAM holds.
        compared_as: The shipped chip whose comparisons hold; None: those of all.
        network_pct: Error of the calibration of a network that stands in for the chip's.
        runs: Runs kernels at another level; None: prices are those of level `perf`.
        residents: Mappings of what is kept in the tiles, if anything is.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        mappings: tuple[Mapping, Mapping],
        compared_as: str | None,
        network_pct: float = 0.0,
        runs: LevelRuns | None = None,
        residents: Residents | None = None,
    ) -> None:
        super().__init__(compared_as, network_pct, runs)
        self._model, self._chip = model, chip
        self._mapping, self._kept = mappings
        self._residents = residents
        self._plans: dict[AnyPart, list[Planned]] = {}
        self._ratios = LevelRatios(self._ran)
        self._others: Callable[[AnyPart], tuple[float, float]] | None = None

    def at_level(self, runs: LevelRuns) -> "PartPrices":
        """The same at the level of some runs."""
        mappings = self._mapping, self._kept
        of = self._model, self._chip, mappings, self._compared_as, self._network_pct
        return PartPrices(*of, runs, self._residents)

    def bounded(self, bounds: Callable[[AnyPart], tuple[float, float]]) -> "PartPrices":
        """The same prices, between others' bounds: the least and the most cycles of a part."""
        other = copy(self)
        other._ends, other._others = {}, bounds
        return other

    @property
    def chip(self) -> Chip:
        """The chip, with the engines of its elements."""
        return self._chip

    def plans(self, part: AnyPart) -> list[Planned]:
        """Plans of a part's operators."""
        if part not in self._plans:
            self._find(alike(part))
        return self._plans[part]

    def _price(self, part: AnyPart) -> Price:
        joules = 0.0
        for mapping, mapped in self.plans(part):
            macs = KERNELS[mapped.kernel].macs(mapped.sizes, mapped.choices)
            joules += plan_energy_j(self._chip, mapping.place, mapped.plan, macs)
        cycles, read = sum(self._cycles(part)), self.expert_bytes(part)
        if isinstance(part, Kept | Unneeded):
            loaded = TileTraffic(0.0, 0.0, read, 0.0, 0.0)  # by no kernel
            joules += kernel_energy_j(self._chip.energy, loaded)
        return Price(cycles, joules, read)

    def _cycles(self, part: AnyPart) -> list[float]:
        """Cycles of a part's operators."""
        perf = [mapped.cycles for _, mapped in self.plans(part)]
        return scaled(perf, self._ratios.of(part)) if self._is_measured(part) else [*perf]

    def _is_measured(self, part: AnyPart) -> bool:
        """Whether a part has kernels, and these a level of their own."""
        return self._runs is not None and not isinstance(part, Unneeded)

    def of_kernels(self, part: AnyPart) -> list[tuple[float, float, float]]:
        """Cycles of each of a part's kernels: the least that they may be, their own, the most."""
        off = self._ratios.error(part) if self._is_measured(part) else 0.0
        found = []
        for (mapping, mapped), cycles in zip(self.plans(part), self._cycles(part), strict=True):
            ends = self._between(mapping, mapped, cycles)
            low, high = cycles * ends.low / (1 + off), cycles * ends.high / (1 - off)
            found.append((low, cycles, high))
        return found

    def interpolation_beside(self, other: "PartPrices", part: AnyPart) -> float:
        """How far ratios of a part's cycles to another's may be off by interpolation between sizes.

        As a part of 1, in the worst of the checks of the part's kind.
        """
        if not self._is_measured(part):
            return 0.0
        pairs = zip(self._ratios.errors(part), other._ratios.errors(part), strict=True)
        return max(abs((1 + mine) / (1 + its) - 1) for mine, its in pairs)

    def _bounds(self, part: AnyPart) -> tuple[float, float]:
        if self._others is not None:
            return self._others(part)
        low = high = 0.0
        for least, _, most in self.of_kernels(part):
            low, high = low + least, high + most
        return low, high

    def _ran(self, part: AnyPart) -> Ran:
        """A part at the level of the runs."""
        assert self._runs is not None

        def planned() -> list[tuple[Place, Mapped]]:
            return [(mapping.place, mapped) for mapping, mapped in self._planned([part])[0]]

        operators = list(part_operators(self._model, part))
        kept = repr(self._residents) if isinstance(part, Kept) else _is_kept(part)
        mapping, what = self._mapping, str(part)
        return self._runs.ran(
            what, self._chip, mapping.place, operators, mapping.choices, planned, kept=kept
        )

    def _find(self, parts: Sequence[AnyPart]) -> None:
        """Plans of parts that differ in how much there is to do alone."""
        self._plans |= zip(parts, self._planned(parts), strict=True)

    def _planned(self, parts: Sequence[AnyPart]) -> list[list[Planned]]:
        if not isinstance(parts[0], Kept):
            return self._planned_by(parts, self._mapping)
        residents = self._residents
        assert residents is not None  # or nothing were kept
        # Weights are in off-chip memory, too: many tokens may be no slower with them from there.
        tried = [self._planned_by(parts, mapping) for mapping in (residents.apart, self._mapping)]
        few = [number for number, each in enumerate(parts) if _tokens(each) <= residents.tokens]
        beside = self._planned_by([parts[number] for number in few], residents.beside)
        found = [min(each, key=_cycles_of) for each in zip(*tried, strict=True)]
        for number, plans in zip(few, beside, strict=True):
            found[number] = min(plans, found[number], key=_cycles_of)
        return found

    def _planned_by(self, parts: Sequence[AnyPart], own: Mapping) -> list[list[Planned]]:
        """Plans of parts by a mapping, but for attention on what is kept in the tiles."""
        found: list[list[Planned]] = [[] for _ in parts]
        for operators in zip(*(part_operators(self._model, each) for each in parts), strict=True):
            kept = _is_kept(parts[0]) and isinstance(operators[0], Attention)
            mapping = self._kept if kept else own
            for plans, mapped in zip(found, mapping.of_all(operators), strict=True):
                plans.append((mapping, mapped))
        return found

    def expert_bytes(self, part: AnyPart) -> float:
        """Bytes of experts' weights that a part reads."""
        if isinstance(part, Unneeded) or (isinstance(part, Kept) and part.fetched):
            return float(self._model.expert_bytes)
        if isinstance(part, Kept):
            return 0.0
        if isinstance(part, Routed):
            return part.needed * self._model.expert_bytes
        if not isinstance(part, Layer) or not part.experts:
            return 0.0
        return needed(self._model, part.tokens) * self._model.expert_bytes


def _is_kept(part: AnyPart) -> bool:
    """Whether keys and values are in the tiles' SRAM."""
    return isinstance(part, Decode) and part.in_sram


def _tokens(part: AnyPart) -> int:
    """Tokens, or those that experts get, of a part whose weights are kept."""
    assert isinstance(part, Kept)
    of = part.part
    return of.rows if isinstance(of, Head) else of.copies if isinstance(of, Routed) else of.tokens


def _cycles_of(plans: Sequence[Planned]) -> int:
    return sum(mapped.cycles for _, mapped in plans)
