"""One iteration on a pipeline of tensor-parallel groups: kernels of a group and of its tiles."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tlm.errors import InputError
from wafertlm.iteration.room import check_room, tokens_of
from wafertlm.kernel.setup import Ground
from workloads.machine.groups import Groups, Parallel, groups_on
from workloads.machine.network import Network
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_plan import DiePlan
from workloads.serving.price.group_mapping import GroupKernel
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.mapping import Mapped


@dataclass(frozen=True, slots=True)
class GroupIteration:
    """An iteration of one replica.

    Attributes:
        ground: The whole chip at the levels of the run.
        groups: Where all replicas lie.
        price: Who knows the kernels, and what memory there is.
        plan: What runs where.
    """

    ground: Ground
    groups: Groups
    price: GroupsPrice
    plan: DiePlan

    @classmethod
    def of(cls, ground: Ground, model: Model, batch: Batch, parallel: Parallel) -> "GroupIteration":
        """Plan an iteration.

        Raises:
            InputError: for keys and values that do not fit, or as `GroupsPrice`.
        """
        if ground.levels.compute == "perf":
            raise InputError("--compute: found perf with groups of tiles; allowed: at")
        groups = groups_on(ground.chip, parallel)
        network = Network(ground.place.timing, ground.place.in_network)
        price = GroupsPrice(
            model,
            groups,
            parallel,
            network=network,
            choices=ground.options.choices,
            kv_wanted_tokens=tokens_of(batch),
        )
        check_room(batch, price.kv_capacity_tokens, f"a pipeline of '{ground.chip.name}'")
        in_sram = min(batch.decode_context_tokens, price.kv_sram_tokens or 0)
        planned = price.planner.planned(batch._replace(decode_sram_tokens=in_sram))
        return cls(ground, groups, price, planned)

    def kernels(self) -> list[tuple[GroupKernel, int, Ground]]:
        """Kernels of all stages and micro-batches, how often each runs, and on which tiles."""
        found: dict[tuple[str, str, Mapped], tuple[GroupKernel, int]] = {}
        part: Any  # of a pipeline
        for part, count in self.plan.counted():
            for kernel in self.price.kernels.of(part):
                key = kernel.operator.name, kernel.mapped.kernel, kernel.mapped
                _, before = found.get(key, (kernel, 0))
                found[key] = kernel, before + count * kernel.times
        return [(kernel, times, self._ground(kernel)) for kernel, times in found.values()]

    def _ground(self, kernel: GroupKernel) -> Ground:
        place, choices = kernel.ground.place, kernel.ground.choices
        options = replace(
            self.ground.options,
            grid=f"{place.rows}x{place.cols}",
            partition=choices.partition,
            placement=choices.placement,
        )
        # A plan's tiles have its weights as well, where these are kept.
        plan: Any = kernel.mapped.plan
        place = replace(place, tile_bytes=plan.place.tile_bytes)
        return replace(self.ground, options=options).on(place)

    def cycles(self, of: Callable[[Mapped], float]) -> float:
        """Cycles of the iteration, by those of its kernels."""

        def cycles(part: Any) -> float:
            kernels = self.price.kernels.of(part)
            return sum(each.times * of(each.mapped) for each in kernels)

        return self.plan.cycles(cycles)

    def record(self) -> dict[str, Any]:
        """Where it ran, and what tiles keep, for the result."""
        kept = self.price.residency
        return {
            "groups": self.price.record() | {"micro_batches": len(self.plan.runs)},
            **({} if kept is None else {"residency": kept}),
        }
