"""A model on a chip, each given by its name, by a file, or as it is."""

from functools import cache

from tlm.chips import AnyChip, Chip, chip_names, find_chip, load_chip
from tlm.chips.gpu import GpuBox, gpu_box_names
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.die_groups import rows_of_dies
from workloads.machine.dtypes import has_activations
from workloads.machine.groups import Parallel, groups_on
from workloads.machine.network import Network
from workloads.machine.side_by_side import Lot, side_by_side
from workloads.models import Model, find_model
from workloads.serving.price.cost import ServingModel
from workloads.serving.price.die_price import DieMapping, DiesPrice
from workloads.serving.price.gpu_cost import GpuCost
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.price.wafer_price import WaferPrice

#: Prices of models on tiles.
OnTiles = TilePrice | WaferPrice | DiesPrice | GroupsPrice


@cache
def serving_chips() -> tuple[str, ...]:
    """Names of the shipped chips that models can be served on."""
    tiles = (
        name for name in chip_names() if name != "rtl-RxC" and not missing_parts(load_chip(name))
    )
    return (*tiles, *gpu_box_names())


def serving_chip(chip: str | AnyChip) -> AnyChip:
    """A chip that models can be served on.

    Raises:
        InputError: for a name that is not known, a file at fault, and a chip that lacks parts.
    """
    if isinstance(chip, str):
        chip = find_chip(chip)
    if not isinstance(chip, GpuBox) and (lacks := missing_parts(chip)):
        raise InputError(
            f"--chip: nothing can be served on '{chip.name}': it lacks {'; '.join(lacks)}. "
            f"Shipped chips that serve: {', '.join(sorted(serving_chips()))}"
        )
    return chip


def units_of(chip: str | AnyChip) -> int:
    """Units of a chip that pools can be made of: GPUs, tiles, or dies of a wafer.

    Raises:
        InputError: for a chip that is not known, or not modelled.
    """
    chip = serving_chip(chip)
    if isinstance(chip, GpuBox):
        return chip.count
    units = chip.grid if chip.dies is None else chip.dies
    return units.rows * units.cols


def serving_model(
    model: str | Model,
    chip: str | AnyChip,
    *,
    units: int | Lot | None = None,
    expert_parallel: int = 1,
    kv_sram_tokens: int | None = None,
    kv_wanted_tokens: int = 0,
    network: Network | None = None,
    choices: Choices = KERNELS_OWN,
    prompts_only: bool = False,
    dies: DieMapping | None = None,
) -> ServingModel:
    """A model on a chip, or on a pool of ``units`` of its GPUs, tiles, or dies.

    Args:
        model: name of a shipped model, a file of one, or a model.
        chip: name of a shipped chip, a file of one, or a chip.
        units: GPUs, tiles, or dies in whole rows of the pool, or where its tiles lie; None: all.
        expert_parallel: groups of GPUs that experts are dealt out to; 1: every GPU has a part of
            each expert. Tile chips run every expert on all tiles.
        kv_sram_tokens: tokens whose keys and values have room set aside in the tiles' SRAM.
        kv_wanted_tokens: tokens that running requests have at most, of which tiles that keep what
            there is room for keep as many.
        network: what stands in for the network of a chip of tiles; None, and of GPUs: nothing.
        choices: variants of kernels on tiles.
        prompts_only: whether it never decodes, as a pool for prompts.
        dies: how it lies on the dies of a wafer; None: experts on all of them.

    Raises:
        InputError: for an unknown name, a pool or groups that cannot be, or weights, or keys and
            values in SRAM, that do not fit.
    """
    shape = find_model(model) if isinstance(model, str) else model
    chip = serving_chip(chip)
    if isinstance(chip, GpuBox):
        pool = chip.count if units is None else units
        if isinstance(pool, Lot) or not 1 <= pool <= chip.count:
            raise InputError(f"units of '{chip.name}': found {pool}; allowed: 1 to {chip.count}")
        if kv_sram_tokens is not None:
            raise InputError(
                f"--kv-sram-tokens: found {kv_sram_tokens}; allowed on '{chip.name}': none, GPUs "
                "keep keys and values in memory"
            )
        return GpuCost(shape, chip, pool, expert_parallel=expert_parallel)
    if chip.dies is not None:
        mapping = dies or DieMapping()
        if kv_sram_tokens is not None or isinstance(units, Lot):
            raise InputError(
                f"--kv-sram-tokens: found {kv_sram_tokens}; allowed on '{chip.name}': none, dies "
                "keep keys and values in memory"
            )
        part = chip if units is None else rows_of_dies(chip, units)
        return DiesPrice(shape, part, mapping, network=network, choices=choices)
    if expert_parallel != 1:
        raise InputError(
            f"expert parallelism: found {expert_parallel}; allowed on '{chip.name}': 1, as all of "
            "its tiles run every expert; GPU servers have more"
        )
    lot = side_by_side(chip, [units])[0] if isinstance(units, int) else units
    if chip.memory is None:
        if kv_sram_tokens is not None:
            raise InputError(
                f"--kv-sram-tokens: found {kv_sram_tokens}; allowed on '{chip.name}': none, all "
                "keys and values are in the tiles"
            )
        return WaferPrice(
            shape, chip, lot=lot, network=network, prompts_only=prompts_only, choices=choices
        )
    return TilePrice(
        shape,
        chip,
        lot=lot,
        kv_sram_tokens=kv_sram_tokens,
        kv_wanted_tokens=kv_wanted_tokens,
        network=network,
        choices=choices,
    )


def replicated_model(
    model: str | Model,
    chip: str | AnyChip,
    parallel: Parallel,
    *,
    network: Network | None = None,
    choices: Choices = KERNELS_OWN,
    kv_wanted_tokens: int = 0,
) -> GroupsPrice:
    """A model on one of as many pipelines of tensor-parallel groups as a chip of tiles has.

    Args:
        model: name of a shipped model, a file of one, or a model.
        chip: name of a shipped chip, a file of one, or a chip.
        parallel: how the model is dealt out.
        network: what stands in for the chip's network; None: nothing.
        choices: variants of kernels.
        kv_wanted_tokens: tokens that running requests have at most; a pipeline has its share.

    Raises:
        InputError: for another kind of chip, and as `GroupsPrice`.
    """
    shape = find_model(model) if isinstance(model, str) else model
    chip = serving_chip(chip)
    if isinstance(chip, GpuBox) or chip.dies is not None:
        raise InputError(
            f"{parallel.of}tp: found with '{chip.name}'; allowed: with one die of tiles"
        )
    groups = groups_on(chip, parallel)
    return GroupsPrice(
        shape,
        groups,
        parallel,
        network=network,
        choices=choices,
        kv_wanted_tokens=ceil_div(kv_wanted_tokens, len(groups.pipelines[0])),
    )


def missing_parts(chip: Chip) -> list[str]:
    """What serving needs and a chip of tiles does not have."""
    tile = chip.tile
    parts = {
        "tile.vector_flop_per_cycle, a vector engine": tile.matrix.vector_unit(
            tile.vector_flop_per_cycle
        ),
        "tile.dtypes of 2 bytes, as activations are": has_activations(chip),
        "[memory], as dies have each": chip.dies is None or chip.memory is not None,
    }
    return [part for part, there in parts.items() if not there]
