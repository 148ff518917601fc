"""A model on a pipeline of tensor-parallel groups of a chip's tiles."""

from typing import Any

from tlm.chips import Chip
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.level_errors import compared_as
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.dtypes import activation_dtype
from workloads.machine.groups import Groups, Parallel
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.machine.network import Network, chip_network
from workloads.models import Model
from workloads.serving.price.cost import Work, macs_of
from workloads.serving.price.die_plan import DiePlan, stretches_of
from workloads.serving.price.die_price import stage_weight_bytes
from workloads.serving.price.energy import known_j
from workloads.serving.price.group_kernels import GroupKernels
from workloads.serving.price.group_part_price import GroupPrices
from workloads.serving.price.group_plan import GroupPlanner
from workloads.serving.price.planned_price import PlannedPrice


class GroupsPrice(PlannedPrice):
    """``ServingModel`` of a model on one pipeline of several that are alike.

    Args:
        model: The model.
        groups: Where all of them lie.
        pool: Which pool's; 0: of the only one.
        parallel: How the model is dealt out to them.
        chip: The chip, or one with other cores in the pool's place; None: that of the groups.
        network: What stands in for the chip's own; None: nothing.
        choices: Variants of kernels.
        kv_wanted_tokens: See `GroupKernels`.

    Raises:
        InputError: for more stages than layers, weights that do not fit, and as `GroupKernels`.
    """

    def __init__(
        self,
        model: Model,
        groups: Groups,
        parallel: Parallel,
        *,
        pool: int = 0,
        chip: Chip | None = None,
        network: Network | None = None,
        choices: Choices = KERNELS_OWN,
        kv_wanted_tokens: int = 0,
    ) -> None:
        chip = chip or groups.chip
        self.pipelines, self._groups = groups.pipelines[pool], groups
        if parallel.pipeline > model.layers:
            raise InputError(
                f"{parallel.of}pp: found {parallel.pipeline}; allowed for '{model.name}': 1 to its "
                f"{model.layers} layers"
            )
        compared = compared_as(chip, rerouted=network is not None)
        own = network or chip_network(chip)
        fitted = chip.for_dtype(activation_dtype(chip))
        self.parallel, stretches = parallel, stretches_of(model.layers, parallel.pipeline)
        of_tokens = [self._token_bytes(model, layers) for layers in stretches]
        kernels = GroupKernels(
            model,
            fitted,
            self.pipelines,
            parallel,
            own,
            [*zip(stretches, of_tokens, strict=True)],
            kv_wanted_tokens,
            choices,
        )
        self.kernels = kernels
        keepings = [each.keeping for each in kernels.residencies]
        planner = GroupPlanner(model, parallel.pipeline, parallel.micro_batch, keepings)
        pct = 0.0 if network is None else own.error_pct
        prices = GroupPrices(model, fitted, kernels, compared, pct)
        super().__init__(model, fitted, planner, prices)
        self.planner = planner
        self._kv_tokens = self._kept_tokens()

    @property
    def tiles(self) -> int:
        """Tiles of a pipeline."""
        return self.parallel.tensor * self.parallel.pipeline

    @property
    def share(self) -> float:
        """Of the chip's tiles."""
        return self.tiles / self._groups.tiles

    @property
    def idle_w(self) -> float:
        """Power of the tiles of the chip that are in no group."""
        energy = self._chip.energy
        return 0.0 if energy is None else energy.idle_w * self.idle_tiles / self._groups.tiles

    @property
    def idle_tiles(self) -> int:
        """Tiles of the chip that are in no group."""
        return self._groups.idle_tiles

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, in tiles that have the same ones once each."""
        return self._model.kv_bytes_per_token * self._copies_of(self._model)

    def _copies_of(self, model: Model) -> int:
        """Tiles that have the same heads of keys."""
        return max(1, self.parallel.tensor // model.kv_heads)

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values, in whole blocks, that fit beside the weights."""
        return self._kv_tokens

    @property
    def kv_sram_tokens(self) -> int | None:
        """Tokens whose keys and values have room in the tiles' SRAM; None: of none they have."""
        return min((each.kv_tokens for each in self.kernels.residencies), default=None)

    def record(self) -> dict[str, Any]:
        """Where it lies, for a result."""
        parallel, group = self.parallel, self.pipelines[0].stages[0]
        return {
            "tp": parallel.tensor,
            "pp": parallel.pipeline,
            "dp": len(self.pipelines),
            "group": f"{group.rows}x{group.cols}",
            "idle_tiles": self.idle_tiles,
            "layers": [len(stretch) for stretch in self.planner.stretches],
            "weight_bytes": self.stage_bytes(),
            "kv_capacity_tokens": self.kv_capacity_tokens,
        }

    @property
    def residency(self) -> dict[str, Any] | None:
        """What the tiles of each stage keep; None of a chip whose profile does not ask for it."""
        records = [each.record() for each in self.kernels.residencies]
        return {"stages": records} if records else None

    @property
    def static_power_w(self) -> float | None:
        """Power of its tiles without work; None without figures."""
        energy = self._chip.energy
        return None if energy is None else energy.idle_w * self.share

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over its tiles' peak in ``span_s``."""
        of_tile = self.kernels.mapping.group.matrix.macs_per_cycle * self._chip.clock_hz
        return macs_of(work, self._model) / (self.tiles * of_tile * span_s)

    def stage_bytes(self) -> list[int]:
        """Bytes of the weights of each stage, in all of its tiles."""
        stretches = self.planner.stretches
        copies = self.parallel.tensor if self.parallel.partition == "input" else 1
        if len(stretches) == 1:
            return [copies * self._model.weight_bytes]
        found = (
            stage_weight_bytes(self._model, stretches, number) for number in range(len(stretches))
        )
        return [copies * each for each in found]

    def _kept_tokens(self) -> int:
        """Tokens that each stage has memory for."""
        memory, model = self._chip.memory, self._model
        assert memory is not None  # as checked
        if not memory.per_tile:  # all share the weights, and what they leave
            return self._whole(int((memory.capacity_bytes - model.weight_bytes) * self.share), None)
        there = memory.capacity_bytes * self.parallel.tensor // self._groups.tiles
        kept = zip(self.planner.stretches, self.stage_bytes(), strict=True)
        return min(self._whole(there - weights, layers) for layers, weights in kept)

    def _token_bytes(self, model: Model, layers: range) -> int:
        """Bytes of the keys and values of a token in the tiles of a stage with some layers."""
        seen = model.count(layers).full if model.full_layers else len(layers)
        of_token = model.kv_bytes_per_token * self._copies_of(model)
        return ceil_div(of_token * seen, model.full_layers or model.layers)

    def _whole(self, left: int, layers: range | None) -> int:
        """Tokens in whole blocks that bytes left by weights have room for; None: all layers."""
        model, parallel = self._model, self.parallel
        if left <= 0:
            of = parallel.of
            raise InputError(
                f"{of}tp, {of}pp: found {parallel.tensor} and {parallel.pipeline}; allowed for "
                f"'{model.name}' on '{self._chip.name}': more of both together, as the weights of "
                f"a stage take {-left} bytes more than its tiles' memory"
            )
        of_token = self.kv_bytes_per_token
        if layers is not None:
            of_token = self._token_bytes(model, layers)
        return left // max(1, of_token) // BLOCK_TOKENS * BLOCK_TOKENS

    def _joules(self, plan: DiePlan) -> float | None:
        """Of a pipeline; None where that is not known."""
        return known_j(sum(count * self._prices.of(part).joules for part, count in plan.counted()))

    def _expert_bytes(self, plan: DiePlan) -> float:
        return sum(count * self._prices.of(part).expert_bytes for part, count in plan.counted())
