"""A model on a chip, by their names."""

from tlm.chips import Chip, chip_names, load_chip
from tlm.chips.gpu import gpu_box_names, load_gpu_box
from tlm.errors import InputError
from workloads.mapping.machine import is_modelled
from workloads.models import Model, load_model
from workloads.serving.cost import ServingModel
from workloads.serving.gpu_cost import GpuCost
from workloads.serving.tile_cost import TileCost


def serving_chips() -> tuple[str, ...]:
    """Names of the chips that models can be served on."""
    tiles = (name for name in chip_names() if name != "rtl-RxC" and is_modelled(load_chip(name)))
    return (*tiles, *gpu_box_names())


def units_of(chip: str) -> int:
    """Units of a chip that pools can be made of: GPUs, or tiles.

    Raises:
        InputError: for a chip that is not known, or not modelled.
    """
    if chip in gpu_box_names():
        return load_gpu_box(chip)[1]
    return _tile_chip(chip).grid.rows * _tile_chip(chip).grid.cols


def serving_model(
    model: str | Model,
    chip: str,
    *,
    units: int | None = None,
    expert_parallel: int = 1,
    kv_sram_tokens: int | None = None,
) -> ServingModel:
    """A model on a chip, or on a pool of ``units`` of its GPUs or tiles.

    Args:
        model: name of a shipped model, or a model.
        chip: one of ``serving_chips()``.
        units: GPUs or tiles of the pool; None: all.
        expert_parallel: groups of GPUs that experts are dealt out to; 1: every GPU has a part of
            each expert. Tile chips run every expert on all tiles.
        kv_sram_tokens: tokens whose keys and values have room set aside in the tiles' SRAM.

    Raises:
        InputError: for an unknown name, a pool or groups that cannot be, or weights, or keys and
            values in SRAM, that do not fit.
    """
    shape = load_model(model) if isinstance(model, str) else model
    there = units_of(chip)
    pool = there if units is None else units
    if not 1 <= pool <= there:
        raise InputError(f"units of '{chip}': found {pool}; allowed: 1 to {there}")
    if chip in gpu_box_names():
        if kv_sram_tokens is not None:
            raise InputError(
                f"--kv-sram-tokens: found {kv_sram_tokens}; allowed on '{chip}': none, GPUs keep "
                "keys and values in memory"
            )
        gpu, _ = load_gpu_box(chip)
        return GpuCost(shape, gpu, pool, expert_parallel=expert_parallel)
    if expert_parallel != 1:
        raise InputError(
            f"expert parallelism: found {expert_parallel}; allowed on '{chip}': 1, as all of its "
            "tiles run every expert; GPU servers have more"
        )
    return TileCost(shape, _tile_chip(chip), units=pool, kv_sram_tokens=kv_sram_tokens or 0)


def _tile_chip(name: str) -> Chip:
    if name not in chip_names() or not is_modelled(load_chip(name)):
        raise InputError(f"unknown serving chip '{name}'; known: {', '.join(serving_chips())}")
    return load_chip(name)
