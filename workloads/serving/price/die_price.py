"""A model on a wafer of dies: the kernels of a die, and what goes between dies.

Kernels of a die are priced as on any chip of tiles (`workloads.serving.price.part_price`), links
by `tlm.dies`. What ``wafertlm iteration`` prints is added up here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from tlm.chips import Chip
from tlm.errors import InputError
from tlm.level_errors import compared_as
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.die_groups import DieGroups, die_groups
from workloads.machine.dtypes import DTYPE_BITS, computed_dtype
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.machine.network import Network, chip_network
from workloads.machine.place import Place, chip_place
from workloads.models import Model
from workloads.models.model import Linear
from workloads.serving.price.compared_prices import Price
from workloads.serving.price.cost import (
    Work,
    macs_of,
)
from workloads.serving.price.die_links import DieLinks, Exchange, HandOver, Link, Routing
from workloads.serving.price.die_plan import DiePlan, DiePlanner
from workloads.serving.price.energy import known_j
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.mapping import Mapping as Mapper
from workloads.serving.price.part_price import PartPrices
from workloads.serving.price.part_price import Planned as PlannedKernel
from workloads.serving.price.parts import AnyPart, Routed
from workloads.serving.price.planned_price import PlannedPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class DieMapping:
    """How a model lies on the dies of a wafer.

    Attributes:
        expert_parallel: Dies that experts are dealt out to; None: all that the pipeline leaves.
        pipeline: Groups of dies that have a stretch of the layers each; None: the rest.
        routing: How tokens find their experts.
        overlap: Whether halves of a micro-batch take turns on dies and links.
    """

    expert_parallel: int | None = None
    pipeline: int | None = None
    routing: Routing = Routing()
    overlap: bool = False


class DiesOfModel:
    """Dies of a wafer for a model: who has which weights, and the plans of iterations.

    Args:
        model: A model whose attention sees all tokens.
        chip: The wafer.
        mapping: How the model lies on it.

    Raises:
        InputError: for groups that do not cut the wafer, a model with sliding windows, or weights
            that do not fit.
    """

    def __init__(self, model: Model, chip: Chip, mapping: DieMapping) -> None:
        if model.sliding_window is not None:
            raise InputError(
                f"model '{model.name}' has sliding windows; allowed on '{chip.name}': models whose "
                "attention sees all tokens"
            )
        self.model, self.dtype = model, computed_dtype(chip, model.weights)
        self.groups: DieGroups = die_groups(chip, mapping.expert_parallel, mapping.pipeline)
        if self.groups.count > model.layers:
            raise InputError(
                f"--pp: found {self.groups.count}; allowed for '{model.name}': 1 to its "
                f"{model.layers} layers"
            )
        self._chip = chip.for_dtype(self.dtype)
        self.element_bytes = DTYPE_BITS[self.dtype][0] // 8
        self.links = DieLinks(
            model, self.groups, mapping.routing, self.element_bytes, chip.clock_hz
        )
        self.planner = DiePlanner(model, self.groups, self.links, overlap=mapping.overlap)
        self.kv_tokens = self._kv_tokens()

    def _kv_tokens(self) -> int:
        """Tokens that the dies of a group hold together, each for its own requests."""
        memory, found = self._chip.memory, []
        if memory is None:
            raise InputError(f"--chip: '{self._chip.name}' has dies without off-chip memory")
        for number, stretch in enumerate(self.planner.stretches):
            weights, kept = self.stage_bytes(number), len(stretch)
            if number == self.groups.count - 1:
                kept += self.model.draft_layers
            left = int(memory.capacity_bytes) - weights
            if left <= 0:
                raise InputError(
                    f"model '{self.model.name}' on chip '{self._chip.name}': weights of stage "
                    f"{number + 1} take {weights} bytes of a die; allowed: less than its memory's "
                    f"{int(memory.capacity_bytes)}"
                )
            of_token = kept * self.model.kept_elements * self.element_bytes
            found.append(left // of_token // BLOCK_TOKENS * BLOCK_TOKENS)
        return min(found) * self.groups.dies

    def stage_bytes(self, number: int) -> int:
        """Bytes of the weights in a die of a group."""
        stretches, dies = self.planner.stretches, self.groups.dies
        return stage_weight_bytes(self.model, stretches, number, dies)

    def place(self, network: Network | None = None) -> Place:
        """The tiles of a die."""
        timing, combines, _ = network or chip_network(self._chip)
        grid, bits = self._chip.grid, DTYPE_BITS[self.dtype]
        place = chip_place(self._chip, (grid.rows, grid.cols), timing, *bits, memory=True)
        return replace(place, in_network=combines)


class DiePrices:
    """Prices of the parts of iterations and of what goes between dies, each once."""

    def __init__(self, parts: PartPrices, links: DieLinks) -> None:
        self._parts, self._links = parts, links

    def at_level(self, runs: LevelRuns) -> "DiePrices":
        """The same with kernels at the level of some runs; links are those of the closed form."""
        return DiePrices(self._parts.at_level(runs), self._links)

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        return self._parts.not_compared

    def of(self, part: AnyPart | Link) -> Price:
        """Price of a part."""
        if isinstance(part, Exchange | HandOver):
            return Price(self._links.cycles(part))
        return self._parts.of(part)

    def ends(self, part: AnyPart | Link) -> tuple[float, float]:
        """The least and the most cycles that a part may take: at level `at`, links at `lt`.

        Raises:
            InputError: if the comparison of the levels is missing or stale.
        """
        if isinstance(part, Exchange | HandOver):
            cycles, between = self._links.cycles(part), self._links.between(part)
            return cycles * between.low, cycles * between.high
        return self._parts.ends(part)

    def plans(self, part: AnyPart | Link) -> list[PlannedKernel]:
        """Plans of a part's kernels; none of what goes over links."""
        return [] if isinstance(part, Exchange | HandOver) else self._parts.plans(part)


class DiesPrice(PlannedPrice):
    """``ServingModel`` of a model on a wafer of dies.

    Args:
        model: A model whose attention sees all tokens.
        chip: The wafer.
        mapping: How the model lies on it.
        network: What stands in for the network of its dies; None: nothing.
        choices: Variants of kernels.

    Raises:
        InputError: as `DiesOfModel`.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        mapping: DieMapping,
        *,
        network: Network | None = None,
        choices: Choices = KERNELS_OWN,
    ) -> None:
        self._dies = DiesOfModel(model, chip, mapping)
        self._model, self._chip = model, chip.for_dtype(self._dies.dtype)
        self._place = self._dies.place(network)
        compared = compared_as(chip, rerouted=network is not None)
        network_pct = 0.0 if network is None else network.error_pct
        mapper = Mapper(self._place, choices)
        parts = PartPrices(model, self._chip, (mapper, mapper), compared, network_pct)
        prices = DiePrices(parts, self._dies.links)
        super().__init__(model, self._chip, self._dies.planner, prices)

    @property
    def dies(self) -> DiesOfModel:
        """The dies, and what lies on which."""
        return self._dies

    @property
    def ranks(self) -> int:
        """Each die has requests of its own, of all micro-batches together."""
        return self._dies.groups.mesh.dies

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, in the width that dies compute in."""
        return self._model.kv_bytes_per_token * self._dies.element_bytes // 2

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens that the wafer holds beside the weights, requests dealt out evenly."""
        return self._dies.kv_tokens

    @property
    def kv_sram_tokens(self) -> int | None:
        """None is kept in the tiles."""
        return None

    @property
    def static_power_w(self) -> float | None:
        """Power of the dies without work; None without figures."""
        energy = self._chip.energy
        return None if energy is None else energy.idle_w * self._dies.groups.mesh.dies

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the dies' peak in ``span_s``."""
        place, dies = self._place, self._dies.groups.mesh.dies
        of_die = place.rows * place.cols * place.matrix.macs_per_cycle * self._chip.clock_hz
        return macs_of(work, self._model) / (dies * of_die * span_s)

    def _joules(self, plan: DiePlan) -> float | None:
        """Of all dies, links not counted; None where that is not known."""
        of_die = sum(count * self._prices.of(part).joules for part, count in plan.counted())
        return known_j(of_die * self._dies.groups.dies)

    def _expert_bytes(self, plan: DiePlan) -> float:
        """Bytes of experts' weights that all dies read."""
        of_die = sum(
            count * part.needed * self._model.expert_bytes
            for part, count in plan.counted()
            if isinstance(part, Routed)
        )
        return of_die * self._dies.groups.dies


def _weights(linears: tuple[Linear, ...]) -> int:
    return sum(linear.weights for linear in linears)


def stage_weight_bytes(model: Model, stretches: Sequence[range], number: int, dies: int = 1) -> int:
    """Bytes of the weights of a stage of a pipeline; a draft module's are with the last layers.

    Args:
        model: The model.
        stretches: Layers of each stage.
        number: Which stage.
        dies: Of a stage, to which experts are dealt out, while each has all else.
    """
    stretch, first, last = stretches[number], number == 0, number == len(stretches) - 1
    dense, with_experts, *_ = model.count(stretch)
    plain, of_experts = 0, with_experts
    if last and model.draft_layers:
        if model.experts is None:
            dense += model.draft_layers
        else:
            of_experts += model.draft_layers
        plain += 2 * model.hidden**2 * model.draft_layers
    plain += (dense + of_experts) * _weights(model.attention_linears)
    plain += dense * _weights(model.dense_linears)
    plain += of_experts * _weights(model.shared_linears)
    experts = 0 if model.experts is None else ceil(model.experts.count / dies)
    heads = (first or (last and model.tied_embeddings)) + (last and not model.tied_embeddings)
    return round(
        plain * model.weight_width_bytes
        + of_experts * experts * model.expert_bytes
        + heads * model.head.weights * model.head_width_bytes
    )
