"""One iteration on a chip without off-chip memory: weights, keys and values stay in its tiles."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tlm.errors import InputError
from wafertlm.asked.kernel import KernelOptions
from wafertlm.kernel.options import chip_grid
from wafertlm.kernel.setup import Ground, grounded
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.grid_layer import GridOperator
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.wafer import Item, Planned, Wafer

#: Cycles of a kernel's run: of an operator, on a grid of some side.
Cycles = Callable[[int, GridOperator], float]


@dataclass(frozen=True, slots=True)
class WaferIteration:
    """An iteration on regions of a chip.

    Attributes:
        wafer: The chip's grids.
        planned: What runs where.
        grounds: Tiles of a region, by the side.
    """

    wafer: Wafer
    planned: Planned
    grounds: dict[int, Ground]

    @classmethod
    def of(cls, options: KernelOptions, model: Model, batch: Batch) -> "WaferIteration":
        """Plan an iteration.

        Args:
            options: Of its kernels; the grid is that of all regions, or empty.
            model: A dense model.
            batch: What is computed.

        Raises:
            InputError: for a model whose layers are of another kind, or a grid that is not square.
        """
        ground, asked = grounded(replace(options, grid=options.grid or "1x1")), None
        if options.grid:
            rows, asked = chip_grid(options.grid, ground.chip)
            if rows != asked:
                raise InputError(
                    f"--grid: found {options.grid}; allowed on '{ground.chip.name}': square ones"
                )
        wafer = Wafer(model, ground.chip, asked, options.choices)
        new, before = max(batch.prefills, default=(0, 0), key=sum)
        requests = max(1, batch.decode_sequences)
        decode = wafer.decode_side(max(new + before, -(-batch.decode_context_tokens // requests)))
        prefill = wafer.prefill_side(new, before) if new > 1 else decode
        planned = wafer.planned(batch, prefill, decode)
        sides = {phase.regions.side for phase in planned.phases}
        return cls(
            wafer,
            planned,
            {side: grounded(replace(options, grid=f"{side}x{side}")) for side in sorted(sides)},
        )

    def kernels(self) -> list[tuple[int, GridOperator, Mapped, int]]:
        """Side of the grid, operator, plan, and how often it runs, in the order of a layer."""
        found: dict[tuple[int, GridOperator], tuple[Mapped, int]] = {}
        for phase in self.planned.phases:
            side = phase.regions.side
            for item in phase.items:
                for part, count in item.parts:
                    for operator, mapped in self.wafer.mapping(side).of(part):
                        _, before = found.get((side, operator), (mapped, 0))
                        found[side, operator] = mapped, before + count * item.times
        return [(*key, *value) for key, value in found.items()]

    def cycles(self, of: Cycles) -> float:
        """Cycles of all phases, by those of the kernels."""

        def cycles(side: int, item: Item) -> float:
            grid = self.wafer.mapping(side)
            return item.total(lambda part: sum(of(side, operator) for operator, _ in grid.of(part)))

        return self.planned.cycles(cycles)

    def record(self) -> dict[str, Any]:
        """Where it ran, for the result."""
        return {
            "regions": {
                phase.name: {
                    "grid": f"{phase.regions.side}x{phase.regions.side}",
                    "count": phase.regions.count,
                    "layers_each": phase.regions.layers_each,
                    "fits": phase.regions.left_bytes >= 0,
                    "kv_tokens": {
                        "concat": phase.regions.concat_tokens,
                        "shift": phase.regions.shift_tokens,
                    },
                    "bubble_pct": phase.bubble_pct,
                }
                for phase in self.planned.phases
            },
            "reshuffle_cycles": round(self.planned.reshuffle_cycles),
        }
