"""Kernels of the parts of iterations on a pipeline of tensor-parallel groups of a chip's tiles.

Products, attention and what works on rows are kernels of the group or of its tiles
(`workloads.serving.price.group_mapping`); so is what a stage hands on, over the links between it
and the next one, while all replicas do so (`workloads.kernels.vector.exchange`).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.kernels.vector.exchange import exchange_cycles, plan_hand_over
from workloads.machine.dtypes import DTYPE_BITS, activation_dtype
from workloads.machine.groups import Parallel, Pipeline, hand_over_moves
from workloads.machine.network import Network
from workloads.machine.place import Place, Rectangle, chip_place
from workloads.models import Model
from workloads.models.operators import Operator, Product, before_experts
from workloads.serving.price.group_mapping import Ground, GroupKernel, GroupMapping, Relayout
from workloads.serving.price.kept_weights import Held, Matrix
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.parts import (
    Decode,
    Head,
    Kept,
    Layer,
    Part,
    StageHandOver,
    part_operators,
)
from workloads.serving.price.residency import Residency, stage_residencies, weights_of_group

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
        kv_wanted_tokens: int,
        choices: Choices,
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
        self._partition, self._choices = parallel.partition, choices
        self.residencies: list[Residency] = []
        self._held: dict[Matrix, Held] = {}
        if chip.residency is not None:
            if parallel.partition != "input":  # each tile would have all weights of its stage
                self._held = weights_of_group(model, parallel.tensor)
            mapping = self._of_kept(group, tile)
            self.residencies = stage_residencies(
                model,
                chip,
                group,
                stretches,
                kv_wanted_tokens,
                self._held,
                lambda tokens: _product_cycles(mapping, list(before_experts(model, tokens))),
            )
            buffers = min(each.buffers + each.activations for each in self.residencies)
            group, tile = (replace(each, tile_bytes=buffers) for each in (group, tile))
        self.mapping = GroupMapping(model, group, tile, parallel.partition, choices)
        self._tile = tile
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
            self._kept[only] = self._of_kept(self.mapping.group, self._tile, only, self.mapping)
        return self._kept[only]

    def _of_kept(
        self,
        group: Place,
        tile: Place,
        only: tuple[str, ...] = (),
        others: GroupMapping | None = None,
    ) -> GroupMapping:
        by = "k" if self._partition == "auto" else self._partition
        there, of = replace(group, offchip=None), (by, self._choices, self._held)
        return GroupMapping(self._model, there, tile, *of, only, others)

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


def _product_cycles(mapping: GroupMapping, operators: list[Operator]) -> int:
    """Cycles of the products among some operators."""
    kernels = mapping.layer(operators)
    return sum(each.cycles for each in kernels if isinstance(each.operator, Product))
