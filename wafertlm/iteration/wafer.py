"""One iteration on a chip without off-chip memory: weights, keys and values stay in its tiles."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tlm.errors import InputError
from wafertlm.asked.kernel import KernelOptions
from wafertlm.kernel.options import chip_grid
from wafertlm.kernel.setup import Ground, grounded
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.grid_layer import GridOperator
from workloads.serving.price.group_mapping import Relayout
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.reshuffle import Reshuffle
from workloads.serving.price.wafer import AnyPart, Item, Planned, Wafer

#: A kernel of an iteration: its tiles, and what it computes there, or moves.
Key = tuple[tuple[int, int], GridOperator | Relayout]
#: Cycles of a kernel's run.
Cycles = Callable[[Key], float]


@dataclass(frozen=True, slots=True)
class WaferIteration:
    """An iteration on regions of a chip.

    Attributes:
        wafer: The chip's grids.
        planned: What runs where.
        grounds: Tiles of a region, or of a line of the chip, by rows and columns.
    """

    wafer: Wafer
    planned: Planned
    grounds: dict[tuple[int, int], Ground]

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
        found = cls(wafer, planned, {})
        for (grid, _), *_ in found.kernels():
            if grid not in found.grounds:
                found.grounds[grid] = grounded(replace(options, grid=f"{grid[0]}x{grid[1]}"))
        return found

    def kernels(self) -> list[tuple[Key, Mapped, int, int | None]]:
        """Kernels, their plans, how often each runs, and on how many lines of the chip, if on any.

        In the order of a layer, and reshuffles behind.
        """
        found: dict[Key, tuple[Mapped, int, int | None]] = {}
        for side, item in self.planned.items():
            for part, count in item.parts:
                for key, mapped, lines in self._of(side, part):
                    _, before, _ = found.get(key, (mapped, 0, None))
                    found[key] = mapped, before + count * item.times, lines
        return [(key, *value) for key, value in found.items()]

    def _of(self, side: int, part: AnyPart) -> Iterator[tuple[Key, Mapped, int | None]]:
        """Kernels of a part, their plans, and of how many lines of the chip each is, if of any."""
        if not isinstance(part, Reshuffle):
            for operator, mapped in self.wafer.mapping(side).of(part):
                yield ((side, side), operator), mapped, None
            return
        name = f"reshuffle to {part.target.side}x{part.target.side}"
        for line, mapped in self.wafer.reshuffled(part):
            moved, place = Relayout(name, *mapped.sizes), line.place
            yield ((place.rows, place.cols), moved), mapped, line.lines

    def cycles(self, of: Cycles) -> float:
        """Cycles of all phases, by those of the kernels."""
        return self.planned.cycles(partial(self._cycles, of))

    def _cycles(self, of: Cycles, side: int, item: Item) -> float:
        return item.total(lambda part: sum(of(key) for key, *_ in self._of(side, part)))

    def record(self, of: Cycles) -> dict[str, Any]:
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
            "reshuffle_cycles": round(self.planned.reshuffle_cycles(partial(self._cycles, of))),
        }
