"""How a model is dealt out to groups of a chip's tiles, as options of several commands say it."""

from dataclasses import replace
from typing import Any

from tlm.chips import AnyChip, Chip
from tlm.chips.gpu import GpuBox
from tlm.errors import InputError, choose
from wafertlm.asked.mapped import ON_GROUPS, ON_POOLS
from wafertlm.options import dashed
from workloads.kernels.gemm.partition_plan import PARTITIONS
from workloads.machine.groups import Parallel, most_tensor
from workloads.machine.order import PLACEMENTS
from workloads.models import Model
from workloads.serving.price.group_mapping import tensor_sizes

_NUMBERS = ("tp", "pp", "dp")


def group_parallel(options: Any, chip: AnyChip, model: Model, pool: str = "") -> Parallel | None:
    """What options of a command say of groups of tiles; None if they say nothing.

    Without a number of tiles a group the tiles of the chip, or of the pool, are shared out: a group
    has as many as there are for it, and as the model's heads and the placement go with.

    Args:
        options: A record of options.
        chip: Of which chip.
        model: Of which model.
        pool: First part of the names of the options of a pool, which come before those of all.

    Raises:
        InputError: for another kind of chip, and unknown names.
    """
    own = {name: getattr(options, f"{pool}_{name}") if pool else None for name in _NUMBERS}
    found = {name: getattr(options, name) if each is None else each for name, each in own.items()}
    of_pools = {name: getattr(options, name, None) for name in ON_POOLS}
    of_all = {name: getattr(options, name) for name in ON_GROUPS}
    if isinstance(chip, GpuBox) or chip.dies is not None:
        for name, given in (of_all | of_pools).items():
            if given is not None:
                raise InputError(
                    f"{dashed(name)}: found with '{chip.name}'; allowed: with one die "
                    "of tiles, such as npusim-large"
                )
        return None
    if all(each is None for each in (*found.values(), *of_all.values(), *of_pools.values())):
        return None
    partition, placement = options.partition, options.placement
    _hold_memory(chip)
    partition, placement = partition or "auto", placement or PLACEMENTS[0]
    choose("partition", partition, PARTITIONS)
    choose("placement", placement, PLACEMENTS)
    tensor, pipeline, replicas = found["tp"], found["pp"], found["dp"]
    parallel = Parallel(
        tensor=1 if tensor is None else tensor,
        pipeline=1 if pipeline is None else pipeline,
        replicas=replicas,
        micro_batch=options.micro_batch,
        partition=partition,
        placement=placement,
        stage_rows=options.stage_rows,
        of=f"--{pool}-" if any(own.values()) else "--",
    )
    if tensor is not None:
        return parallel
    tiles = _tiles(options, chip, pool)
    return replace(parallel, tensor=most_tensor(chip, parallel, tiles, tensor_sizes(model)))


def _tiles(options: Any, chip: Chip, pool: str) -> int:
    """Tiles of the chip, or of a pool: those asked for, what the other one leaves, or half."""
    tiles = chip.grid.rows * chip.grid.cols
    if not pool:
        return tiles
    own, other = options.prefill_units, options.decode_units
    if pool == "decode":
        own, other = other, own
    if own is not None:
        return int(own)
    return tiles // 2 if other is None else tiles - int(other)


def _hold_memory(chip: Chip) -> None:
    if chip.memory is None:
        raise InputError(
            f"--tp, --pp, --dp: found with '{chip.name}'; allowed: with tiles that have off-chip "
            "memory, such as npusim-large"
        )
