"""A chip in two pools."""

from tlm.chips import AnyChip, Chip
from tlm.chips.gpu import GpuBox
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.network import Network, chip_network
from workloads.machine.side_by_side import Lot, hops_between, links_between, side_by_side
from workloads.models import Model, find_model
from workloads.serving.engine.run import Pools
from workloads.serving.price.die_price import DieMapping, DiesPrice
from workloads.serving.price.energy import Traffic, carried_byte_j, traffic_energy_j
from workloads.serving.price.models import serving_chip, serving_model, units_of


def make_pools(
    model: str | Model,
    chip: str | AnyChip,
    *,
    prefill_units: int | None = None,
    decode_units: int | None = None,
    link_bytes_per_s: float | None = None,
    link_latency_s: float | None = None,
    expert_parallel: int = 1,
    kv_sram_tokens: int | None = None,
    kv_wanted_tokens: int = 0,
    network: Network | None = None,
    choices: Choices = KERNELS_OWN,
    dies: DieMapping | None = None,
) -> Pools:
    """Cut a chip into a prefill and a decode pool.

    Args:
        model: Name of a shipped model, a file of one, or a model.
        chip: Name of a shipped chip, a file of one, or a chip.
        prefill_units: GPUs, tiles of a rectangle, or dies of whole rows, that compute prompts;
            None: the rest, or half.
        decode_units: Those that decode; None: the rest.
        link_bytes_per_s: Bandwidth between the pools; None: that of the links of the smaller pool's
            GPUs, or of the mesh between the two rectangles.
        link_latency_s: Its latency; None: that of a small message, or of a way across both.
        expert_parallel: Groups of GPUs in each pool that experts are dealt out to.
        kv_sram_tokens: Tokens whose keys and values have room set aside in the SRAM of each pool.
        kv_wanted_tokens: Tokens that running requests have at most, as `serving_model` has it.
        network: What stands in for the network of a chip of tiles; None: nothing.
        choices: Variants of kernels on tiles.
        dies: How the model lies on the dies of each pool of a wafer.

    Raises:
        InputError: if there are not as many units, or a pool cannot hold the model.
    """
    chip = serving_chip(chip)
    units = units_of(chip)
    if prefill_units is None:
        half = units // 2 if decode_units is None else units - decode_units
        prefill_units = half if decode_units is not None else _whole(chip, half)
    if decode_units is None:
        decode_units = units - prefill_units
    if prefill_units < 1 or decode_units < 1 or prefill_units + decode_units > units:
        raise InputError(
            f"pools of '{chip.name}': found {prefill_units} prefill and {decode_units} decode "
            f"units; allowed: 1 or more each, {units} together"
        )
    pools: list[int] | list[Lot] = [prefill_units, decode_units]
    if isinstance(chip, GpuBox):
        bandwidth, latency = _gpu_link(chip, min(prefill_units, decode_units))
        carried_byte_j, idle_unit_w = _gpu_energy(chip)
    elif chip.dies is not None:
        # Across the row of links between both, from the far side of one to that of the other.
        bandwidth = chip.dies.cols * chip.dies.link_bytes_per_s
        latency = (chip.dies.rows - 1) * chip.dies.link_latency_s
        carried_byte_j, idle_unit_w = None, 0.0
    else:
        prompts, decoding = pools = side_by_side(chip, [prefill_units, decode_units])
        hops = hops_between(prompts.tiles, decoding.tiles)
        links = links_between(prompts.tiles, decoding.tiles)
        bandwidth, latency = _tile_link(chip, network or chip_network(chip), links, hops)
        carried_byte_j, idle_unit_w = _tile_energy(chip, hops)
    shape = find_model(model) if isinstance(model, str) else model
    prefill, decode = (
        serving_model(
            shape,
            chip,
            units=pool,
            expert_parallel=expert_parallel,
            kv_sram_tokens=kv_sram_tokens,
            kv_wanted_tokens=kv_wanted_tokens,
            network=network,
            choices=choices,
            prompts_only=prompts_only,
            dies=dies,
        )
        for pool, prompts_only in ((pools[0], True), (pools[1], False))
    )
    return Pools(
        prefill,
        decode,
        prefill_units / units,
        decode_units / units,
        prefill.kv_bytes_per_token if isinstance(prefill, DiesPrice) else shape.kv_bytes_per_token,
        bandwidth if link_bytes_per_s is None else link_bytes_per_s,
        latency if link_latency_s is None else link_latency_s,
        carried_byte_j,
        (units - prefill_units - decode_units) * idle_unit_w,
    )


def _whole(chip: AnyChip, units: int) -> int:
    """Units in whole rows, where the units are tiles."""
    row = 1 if isinstance(chip, GpuBox) else (chip.dies or chip.grid).cols
    return max(row, units // row * row)


def _gpu_energy(box: GpuBox) -> tuple[float | None, float]:
    """Joules of a byte that is read, carried and written; watts of an idle GPU."""
    moved = Traffic(memory_bytes=2.0, link_bytes=1.0)
    return traffic_energy_j(box.energy, moved), box.energy.idle_w


def _tile_energy(chip: Chip, hops: int) -> tuple[float | None, float]:
    """The same of a byte that is carried over some hops, if known, and of an idle tile."""
    if chip.energy is None:
        return None, 0.0
    idle_w = chip.energy.idle_w / (chip.grid.rows * chip.grid.cols)
    return carried_byte_j(chip.energy, hops), idle_w


def _gpu_link(box: GpuBox, units: int) -> tuple[float, float]:
    """Bandwidth in bytes/s and latency in seconds between pools, the smaller of ``units``."""
    return units * box.link_bytes_per_s * box.efficiency.link, box.all_reduce_latency_s


def _tile_link(chip: Chip, network: Network, links: int, hops: int) -> tuple[float, float]:
    """The same over some links of a network, for tiles that lie some hops apart at most."""
    noc = network.timing
    cycles = hops * noc.hop_cycles + noc.ejection_cycles
    return links * noc.flit_bytes * chip.clock_hz, cycles / chip.clock_hz
