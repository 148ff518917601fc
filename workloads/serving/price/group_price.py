"""A model on a pipeline of tensor-parallel groups of a chip's tiles.

Products, attention and what works on rows are kernels of the group or of its tiles
(`workloads.serving.price.group_mapping`); so is what a stage hands on, over the links between it
and the next one, while all replicas do so (`workloads.kernels.vector.exchange`).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

from tlm.chips import Chip
from tlm.chips.find import shipped_as
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.level_errors import EXACT, Between, chip_steps
from workloads.kernels.catalogue import KERNELS, KERNELS_OWN, Choices
from workloads.kernels.vector.exchange import exchange_cycles, plan_hand_over
from workloads.machine.dtypes import DTYPE_BITS, activation_dtype
from workloads.machine.groups import Groups, Parallel, Pipeline, hand_over_moves
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.machine.network import Network, chip_network
from workloads.machine.place import Place, Rectangle, chip_place
from workloads.models import Model
from workloads.models.operators import Operator
from workloads.serving.price.cost import Work, macs_of
from workloads.serving.price.die_plan import DiePlan, stretches_of
from workloads.serving.price.die_price import stage_weight_bytes
from workloads.serving.price.group_mapping import Ground, GroupKernel, GroupMapping, Relayout
from workloads.serving.price.group_plan import GroupPlanner
from workloads.serving.price.iteration import (
    Decode,
    Head,
    Kept,
    Layer,
    Part,
    StageHandOver,
    needed,
    part_operators,
)
from workloads.serving.price.level_ratios import LevelRatios
from workloads.serving.price.level_runs import LevelRuns, Ran
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.part_price import Price, between_at
from workloads.serving.price.plan_energy import plan_energy_j
from workloads.serving.price.planned_price import PlannedPrice
from workloads.serving.price.residency import Residency, stage_residencies

#: Parts of an iteration on a pipeline.
GroupPart = Part | StageHandOver | Kept


class GroupKernels:
    """Kernels of the parts of iterations, each planned once.

    Args:
        model: The model.
        chip: The chip, with the engines of its elements.
        pipelines: All replicas.
        parallel: How the model is dealt out to them.
        network: Of the chip, or what stands in for it.
        stretches: Of each stage its layers, and bytes of a token's keys and values in its tiles.
        kv_wanted_tokens: Tokens that running requests of a pipeline have at most, of which tiles
            that keep what there is room for keep as many.
        choices: Variants of kernels.

    Raises:
        InputError: for a chip without off-chip memory, or as `GroupMapping`.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        pipelines: Sequence[Pipeline],
        parallel: Parallel,
        network: Network,
        stretches: Sequence[tuple[range, int]],
        kv_wanted_tokens: int = 0,
        choices: Choices = KERNELS_OWN,
    ) -> None:
        if chip.memory is None:
            raise InputError(
                f"{parallel.of}tp: found {parallel.tensor}; allowed: on chips with off-chip "
                f"memory, which '{chip.name}' has not"
            )
        self._model, self._pipelines = model, pipelines
        stages = [stage for each in pipelines for stage in each.stages]
        farthest = min(stages, key=lambda stage: stage.row)  # from channels at the edge
        rows, share = chip.grid.rows, Fraction(farthest.rows, chip.grid.rows)
        timing, combines, _ = network
        bits = DTYPE_BITS[activation_dtype(chip)]

        def place(tiles: Rectangle, share: Fraction) -> Place:
            found = chip_place(chip, tiles, timing, *bits, memory=True, share=share)
            return replace(found, in_network=combines)

        group = replace(place(farthest, share), placement=parallel.placement)
        tile = place(Rectangle(farthest.row, farthest.col, 1, 1), Fraction(1, rows))
        self.residencies: list[Residency] = []
        own, partition = chip.residency, parallel.partition
        if own is not None:
            wanted = kv_wanted_tokens
            # Where each tile would have all weights of its stage, none are kept.
            self.residencies = stage_residencies(
                model, chip, tile, parallel.tensor, stretches, wanted, weights=partition != "input"
            )
            buffers = min(each.buffers + each.activations for each in self.residencies)
            group, tile = (replace(each, tile_bytes=buffers) for each in (group, tile))
        self.mapping = GroupMapping(model, group, tile, partition, choices)
        self._tile, self._partition, self._choices = tile, partition, choices
        self._kept: dict[tuple[str, ...], GroupMapping] = {}
        # Sends go from anywhere to anywhere.
        self._chip_place = replace(group, rows=rows, cols=chip.grid.cols, offchip=None)
        self._found: dict[GroupPart, list[GroupKernel]] = {}

    def of(self, part: GroupPart) -> list[GroupKernel]:
        """Kernels of a part, in order."""
        if part not in self._found:
            self._found[part] = self._kernels(part)
        return self._found[part]

    def decided_by(self, part: GroupPart) -> tuple[object, ...]:
        """What decides the kernels of a part beside its operators."""
        mapping = self._keeping(part.only) if isinstance(part, Kept) else self.mapping
        between = self._pipelines if isinstance(part, StageHandOver) else ()
        return *mapping.decided_by, between

    def operators(self, part: GroupPart) -> list[Operator]:
        """Operators of a part; none of what only moves."""
        return [] if isinstance(part, StageHandOver) else [*part_operators(self._model, part)]

    def _kernels(self, part: GroupPart) -> list[GroupKernel]:
        if isinstance(part, StageHandOver):
            return [self._hand_over(part)]
        operators = self.operators(part)
        if isinstance(part, Layer | Head):
            return self.mapping.layer(operators)
        if isinstance(part, Kept):
            # Weights are in off-chip memory, too, and may come from there as fast.
            ways = (self._keeping(part.only).layer(operators), self.mapping.layer(operators))
            return min(ways, key=lambda kernels: sum(each.cycles for each in kernels))
        in_sram = isinstance(part, Decode) and part.in_sram
        return self.mapping.attention(operators, in_sram=in_sram)

    def _keeping(self, only: tuple[str, ...]) -> GroupMapping:
        """Plans products whose weights, or those of some of them, lie in the tiles."""
        if only not in self._kept:
            by = "k" if self._partition == "auto" else self._partition
            there, held = replace(self.mapping.group, offchip=None), self.residencies[0].held
            self._kept[only] = GroupMapping(
                self._model, there, self._tile, by, self._choices, held, only, self.mapping
            )
        return self._kept[only]

    def _hand_over(self, part: StageHandOver) -> GroupKernel:
        """Of the rows that a tile has at the end of a layer, between the stages that take longest.

        All replicas hand on at the same time.
        """
        dense = self._model.dense_layers > 0
        last = self.of(Layer(part.tokens, not dense))[-1].mapped.sizes
        rows = int(last[0])
        plans = [
            plan_hand_over(
                self._chip_place,
                hand_over_moves(self._pipelines, stage),
                (rows, self._model.hidden),
            )
            for stage in range(len(self._pipelines[0].stages) - 1)
        ]
        timing = self._chip_place.timing
        cycles, plan = max(
            ((exchange_cycles(plan, timing), plan) for plan in plans), key=lambda each: each[0]
        )
        sizes = rows, self._model.hidden
        mapped = Mapped("hand-over", sizes, plan, cycles)
        ground = Ground(self._chip_place, KERNELS_OWN, 1)
        return GroupKernel(Relayout("hand-over", *sizes), ground, mapped, 1)


class GroupPrices:
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
        self._model, self._chip, self._kernels = model, chip, kernels
        self._compared_as, self._network_pct = compared_as, network_pct
        self._runs, self._ratios = runs, LevelRatios(self._ran)
        self._prices: dict[GroupPart, Price] = {}
        self._ends: dict[GroupPart, tuple[float, float]] = {}

    def at_level(self, runs: LevelRuns) -> "GroupPrices":
        """The same at the level of some runs."""
        of = self._model, self._chip, self._kernels, self._compared_as, self._network_pct
        return GroupPrices(*of, runs)

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        if self._runs is not None and self._runs.level == "at":
            return []
        used = {
            (each.mapped.kernel, _variant(each), each.ground.place.offchip is not None)
            for part in self._prices
            for each in self._kernels.of(part)
        }
        return sorted(
            {
                f"{kernel} {variant}".strip()
                for kernel, variant, memory in used
                if chip_steps(self._compared_as, kernel, "perf", memory=memory, variant=variant)
                is None
            }
        )

    def of(self, part: GroupPart) -> Price:
        """Price of a part on one group."""
        if part not in self._prices:
            kernels, joules = self._kernels.of(part), 0.0
            for each in kernels:
                macs = KERNELS[each.mapped.kernel].macs(each.mapped.sizes, each.mapped.choices)
                of_one = plan_energy_j(self._chip, each.ground.place, each.mapped.plan, macs)
                joules += (of_one or 0.0) * each.times * each.ground.tiles
            cycles = sum(each.cycles for each in kernels) * self._ratio(part)
            self._prices[part] = Price(cycles, joules, self._expert_bytes(part))
        return self._prices[part]

    def ends(self, part: GroupPart) -> tuple[float, float]:
        """The least and the most cycles that a part may take at level `at`.

        Raises:
            InputError: if the comparison of the levels is missing or stale.
        """
        if part not in self._ends:
            ratio = self._ratio(part)
            off = 0.0 if self._runs is None else self._ratios.error(part)
            low = high = 0.0
            for each in self._kernels.of(part):
                cycles = ratio * each.mapped.cycles
                ends = self._between(each, cycles) or EXACT
                low += each.times * cycles * ends.low / (1 + off)
                high += each.times * cycles * ends.high / (1 - off)
            self._ends[part] = low, high
        return self._ends[part]

    def _between(self, kernel: GroupKernel, cycles: float) -> Between | None:
        """Between what `at` may be by the comparisons, as a part of the cycles."""
        level = "perf" if self._runs is None else self._runs.level
        if level == "at":
            return EXACT
        place, mapped = kernel.ground.place, kernel.mapped
        of = self._compared_as, self._network_pct, level
        return between_at(*of, place, _variant(kernel), mapped, cycles)

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
        if not isinstance(part, Layer) or not part.experts:
            return 0.0
        return needed(self._model, part.tokens) * self._model.expert_bytes


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
        compared_as = None if network is not None else shipped_as(chip)
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
        self._group_prices = GroupPrices(model, fitted, kernels, compared_as, pct)
        super().__init__(model, fitted, planner, self._group_prices)
        self.planner = planner
        self._kv_tokens = self._kept_tokens()

    def at_level(self, runs: LevelRuns) -> Self:
        """The same with prices of the level of some runs."""
        other = copy(self)
        other._prices, other._decoded = self._group_prices.at_level(runs), {}
        return other

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
        """Of a pipeline; None without figures."""
        if self._chip.energy is None:
            return None
        return sum(count * self._prices.of(part).joules for part, count in plan.counted())

    def _expert_bytes(self, plan: DiePlan) -> float:
        return sum(count * self._prices.of(part).expert_bytes for part, count in plan.counted())


def _variant(kernel: GroupKernel) -> str:
    """What comparisons of levels know a kernel's choices by."""
    mapped, ground = kernel.mapped, kernel.ground
    choices = replace(ground.choices, causal=mapped.choices.causal)
    return KERNELS[mapped.kernel].variant(choices, ground.place)
