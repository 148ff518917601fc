"""The kernels of an iteration of a model, planned on what a chip has of tiles."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

from tlm.chips import Chip, find_tiles
from tlm.errors import InputError
from wafertlm.asked.iteration import LEVELS, IterationOptions
from wafertlm.asked.kernel import KernelOptions
from wafertlm.die_options import die_mapping
from wafertlm.group_options import group_parallel
from wafertlm.iteration.dies import DieIteration
from wafertlm.iteration.groups import GroupIteration
from wafertlm.iteration.room import check_grid_room, tokens_of
from wafertlm.iteration.wafer import WaferIteration
from wafertlm.kernel.setup import Ground, Setup, grounded
from wafertlm.options import dashed
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.machine.dtypes import activation_dtype, computed_dtype
from workloads.machine.place import Place
from workloads.models import Model
from workloads.models.operators import Operator
from workloads.serving.price.cost import Batch
from workloads.serving.price.grid_layer import GridOperator
from workloads.serving.price.group_mapping import Relayout
from workloads.serving.price.iteration import Iterations
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.mapping import Mapping as Mapper
from workloads.serving.price.part_price import PartPrices, Residents
from workloads.serving.price.parts import part_operators
from workloads.serving.price.residency import Residency, residency_of

#: Variants of kernels that an iteration's options choose.
_CHOICES = ("collective", "schedule", "group")
#: What of the model a kernel's options say.
FLAGS = ("latent", "causal", "skewed", "resident")


class PlannedKernel(NamedTuple):
    """A kernel that is to run: see `wafertlm.iteration.result.Ran`."""

    operator: Operator | GridOperator | Relayout
    mapped: Mapped
    times: int
    ground: Ground
    tiles: int | None = None

    def setup(self) -> Setup:
        """It as its options ask for it, ready to run: an error is that of the variant that runs."""
        ground, mapped = self.ground, self.mapped
        kernel, known = KERNELS[mapped.kernel], mapped.choices
        shape = ",".join(map(str, mapped.sizes))
        chosen: dict[str, Any] = {name: None for name in _CHOICES if name not in kernel.choices}
        if isinstance(mapped.plan, StreamPlan):
            chosen["weight_bits"] = mapped.plan.weight_bits
        chosen |= {name: bool(getattr(known, name)) for name in FLAGS}
        asked = replace(ground.options, kernel=mapped.kernel, shape=shape, **chosen)
        macs = kernel.macs(mapped.sizes, known)
        return Setup.of(replace(ground, options=asked), kernel, macs, mapped.plan)


class PlannedIteration(NamedTuple):
    """The kernels of an iteration, and how it lies on a chip.

    Attributes:
        kernels: In the order in which a layer first meets them.
        wafer: How regions of a wafer work.
        dies: How its dies do.
        groups: How stages of a pipeline do, on groups of tiles.
        residency: What tiles keep, of a chip whose profile asks for it.
    """

    kernels: list[PlannedKernel]
    wafer: WaferIteration | None = None
    dies: DieIteration | None = None
    groups: GroupIteration | None = None
    residency: Residency | None = None


@contextmanager
def named(operator: Operator | GridOperator | Relayout) -> Iterator[None]:
    """Name the operator where a kernel names its shape, which an iteration does not have."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("--shape:", f"--model: {operator.name}:", 1)) from None


def plan_iteration(options: IterationOptions, model: Model) -> PlannedIteration:
    """Plan an iteration.

    Raises:
        InputError: as `wafertlm.iteration.run_iteration`.
    """
    batch = options.batch
    asked, chip = _kernel_options(options, model)
    mapping, parallel = die_mapping(options, chip), group_parallel(options, chip, model)
    for name in ("expert_parallel", "links"):
        if mapping is None and getattr(options, name) is not None:
            found = f"{dashed(name)}: found with '{chip.name}'"
            raise InputError(f"{found}; allowed: with wafers of dies")
    wafer = None if asked.memory else WaferIteration.of(asked, model, batch)
    if wafer is not None:
        of_regions = [
            PlannedKernel(operator, mapped, count, wafer.grounds[grid], lines)
            for (grid, operator), mapped, count, lines in wafer.kernels()
        ]
        return PlannedIteration(of_regions, wafer=wafer)
    ground = grounded(asked)
    if parallel is not None:
        groups = GroupIteration.of(ground, model, batch, parallel)
        of_groups = [
            PlannedKernel(each.operator, each.mapped, times, on, each.ground.tiles)
            for each, times, on in groups.kernels()
        ]
        return PlannedIteration(of_groups, groups=groups)
    if mapping is None:
        check_grid_room(ground, model, batch)
    if ground.chip.residency is not None:
        return _beside_kept(ground, model, batch)
    mapper, dies = Mapper(ground.place, asked.choices), None
    if mapping is not None:
        dies = DieIteration.of(ground, model, batch, mapping, options.links or "perf")
    operators = Iterations(model).operators(batch) if dies is None else dies.operators()
    planned = []
    for each, count in operators:
        with named(each):
            planned.append(PlannedKernel(each, mapper.of(each), count, ground))
    return PlannedIteration(planned, dies=dies)


def _beside_kept(ground: Ground, model: Model, batch: Batch) -> PlannedIteration:
    """Kernels on tiles that keep what has room of keys and values and weights."""
    residency = residency_of(model, ground.chip, ground.place, None, tokens_of(batch))
    place, choices = replace(ground.place, tile_bytes=residency.buffers), ground.options.choices
    in_sram = Mapper(replace(place, offchip=None), choices, kept=True)
    prices = PartPrices(
        model,
        ground.chip,
        (Mapper(place, choices), in_sram),
        ground.compared_as,
        residents=Residents.of(place, choices, residency),
    )
    decoded = min(batch.decode_context_tokens, residency.kv_tokens)
    iterations = Iterations(model, residency.keeping)
    found: dict[tuple[Operator, Place], PlannedKernel] = {}
    for part, count in iterations.counted(batch._replace(decode_sram_tokens=decoded)):
        for operator, (_, mapped) in zip(
            part_operators(model, part), prices.plans(part), strict=True
        ):
            there = ground.on(cast(Any, mapped.plan).place)
            known = found.get((operator, there.place))
            times = count if known is None else count + known.times
            found[operator, there.place] = PlannedKernel(operator, mapped, times, there)
    return PlannedIteration(list(found.values()), residency=residency)


def _kernel_options(options: IterationOptions, model: Model) -> tuple[KernelOptions, Chip]:
    """The options of its kernels, but for their names and shapes, and the chip."""
    if options.level not in LEVELS:
        raise InputError(f"--level: found '{options.level}'; allowed: {', '.join(LEVELS)}")
    chip = find_tiles(options.chip, options.set)
    # Of other chips the formula is taken, unless a model of DRAM is asked for.
    modelled = (options.noc or options.level) == "at" and chip.calibration is not None
    memory = options.memory or ("at" if modelled else None if chip.memory is None else "perf")
    whole = f"{chip.grid.rows}x{chip.grid.cols}"
    if chip.dies is not None and options.grid not in (None, whole):
        raise InputError(f"--grid: found {options.grid}; allowed with dies: a whole one, {whole}")
    plain = chip.dies is None
    asked = KernelOptions(
        kernel="",
        chip=options.chip,
        grid=options.grid or ("" if memory is None else whole),
        shape="",
        dtype=activation_dtype(chip) if plain else computed_dtype(chip, model.weights),
        level=options.level,
        noc=options.noc,
        memory=memory,
        compute=options.compute,
        rtl=options.rtl,
        allow_stale=options.allow_stale,
        set=options.set,
        **{name: getattr(options, name) for name in _CHOICES},
    )
    return asked, chip
