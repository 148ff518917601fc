"""Prices of the parts of iterations on a pipeline of groups, at a level, and their errors."""

from tlm.chips import Chip
from workloads.kernels.catalogue import KERNELS
from workloads.models import Model
from workloads.serving.price.compared_prices import ComparedPrices, Price
from workloads.serving.price.energy import TileTraffic, kernel_energy_j
from workloads.serving.price.group_kernels import GroupKernels, GroupPart
from workloads.serving.price.group_mapping import Ground
from workloads.serving.price.level_ratios import LevelRatios
from workloads.serving.price.level_runs import LevelRuns, Ran
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.parts import Decode, Kept, Layer, WithExperts, needed
from workloads.serving.price.plan_energy import plan_energy_j


class GroupPrices(ComparedPrices[GroupPart]):
    """Prices of the parts of iterations, each once.

    Args:
        model: The model.
        chip: The chip, with the engines of its elements.
        kernels: Kernels of parts.
        compared_as: The shipped chip whose comparisons hold; None: those of all.
        network_pct: Error of the calibration of a network that stands in for the chip's.
        runs: Runs kernels at another level; None: prices are those of level `perf`.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        kernels: GroupKernels,
        compared_as: str | None,
        network_pct: float = 0.0,
        runs: LevelRuns | None = None,
    ) -> None:
        super().__init__(compared_as, network_pct, runs)
        self._model, self._chip, self._kernels = model, chip, kernels
        self._ratios = LevelRatios(self._ran)

    def at_level(self, runs: LevelRuns) -> "GroupPrices":
        """The same at the level of some runs."""
        of = self._model, self._chip, self._kernels, self._compared_as, self._network_pct
        return GroupPrices(*of, runs)

    def _price(self, part: GroupPart) -> Price:
        """Price of a part on one group."""
        kernels, joules = self._kernels.of(part), 0.0
        for each in kernels:
            macs = KERNELS[each.mapped.kernel].macs(each.mapped.sizes, each.mapped.choices)
            of_one = plan_energy_j(self._chip, each.ground.place, each.mapped.plan, macs)
            joules += of_one * each.times * each.ground.tiles
        if _loads(part):
            loaded = TileTraffic(0.0, 0.0, self._model.expert_bytes, 0.0, 0.0)  # by no kernel
            joules += kernel_energy_j(self._chip.energy, loaded)
        cycles = sum(each.cycles for each in kernels) * self._ratio(part)
        return Price(cycles, joules, self._expert_bytes(part))

    def _bounds(self, part: GroupPart) -> tuple[float, float]:
        ratio = self._ratio(part)
        off = 0.0 if self._runs is None else self._ratios.error(part)
        low = high = 0.0
        for each in self._kernels.of(part):
            cycles = ratio * each.mapped.cycles
            ends = self._between(each.ground, each.mapped, cycles)
            low += each.times * cycles * ends.low / (1 + off)
            high += each.times * cycles * ends.high / (1 - off)
        return low, high

    def _ratio(self, part: GroupPart) -> float:
        """How many times as long as at `perf` the kernels of a part take together."""
        if self._runs is None:
            return 1.0
        (ratio,) = self._ratios.of(part)
        return ratio

    def _ran(self, part: GroupPart) -> Ran:
        """All kernels of a part at the level of the runs: others may have other kernels."""
        assert self._runs is not None
        kernels = self._kernels.of(part)
        place, operators = self._kernels.decided_by(part), self._kernels.operators(part)
        plans = [(each.ground.place, each.mapped) for each in kernels]
        choices, kept = kernels[0].ground.choices, isinstance(part, Decode) and part.in_sram
        of = str(part), self._chip, place
        ran = self._runs.ran(*of, operators, choices, lambda: plans, kept=kept)
        perf, measured = (
            sum(each.times * cycles for each, cycles in zip(kernels, found, strict=True))
            for found in ran
        )
        return Ran((perf,), (measured,))

    def plans(self, part: GroupPart) -> list[tuple[Ground, Mapped]]:
        """Plans of a part's kernels, each as often as it runs."""
        return [
            (each.ground, each.mapped) for each in self._kernels.of(part) for _ in range(each.times)
        ]

    def _expert_bytes(self, part: GroupPart) -> float:
        """Bytes of experts' weights that a part reads."""
        if isinstance(part, Kept) and isinstance(part.part, WithExperts):
            read = _loads(part) + (part.part.away.needed if part.part.away else 0)
        elif isinstance(part, Layer) and part.experts:
            read = needed(self._model, part.tokens)
        else:
            return 0.0
        return read * self._model.expert_bytes


def _loads(part: GroupPart) -> bool:
    """Whether an expert is loaded while tokens come to the gate of a part's experts."""
    return isinstance(part, Kept) and isinstance(part.part, WithExperts) and part.part.loads
