"""A chip in two pools."""

from tlm.chips import AnyChip
from tlm.chips.gpu import GpuBox
from tlm.chips.parts import noc_timing
from tlm.errors import InputError
from workloads.models import Model, find_model
from workloads.serving.engine.run import Pools
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
) -> Pools:
    """Cut a chip into a prefill and a decode pool.

    Args:
        model: Name of a shipped model, a file of one, or a model.
        chip: Name of a shipped chip, a file of one, or a chip.
        prefill_units: GPUs, or tiles in whole rows, that compute prompts; None: the rest, or half.
        decode_units: Those that decode; None: the rest.
        link_bytes_per_s: Bandwidth between the pools; None: that of the links of the smaller pool's
            GPUs, or of the mesh between two rows of tiles.
        link_latency_s: Its latency; None: that of a small message, or of a column of the mesh.
        expert_parallel: Groups of GPUs in each pool that experts are dealt out to.
        kv_sram_tokens: Tokens whose keys and values have room set aside in the SRAM of each pool.

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
    bandwidth, latency = _link(chip, min(prefill_units, decode_units))
    carried_byte_j, idle_unit_w = _energy(chip)
    shape = find_model(model) if isinstance(model, str) else model
    prefill, decode = (
        serving_model(
            shape,
            chip,
            units=pool,
            expert_parallel=expert_parallel,
            kv_sram_tokens=kv_sram_tokens,
        )
        for pool in (prefill_units, decode_units)
    )
    return Pools(
        prefill,
        decode,
        prefill_units / units,
        decode_units / units,
        shape.kv_bytes_per_token,
        bandwidth if link_bytes_per_s is None else link_bytes_per_s,
        latency if link_latency_s is None else link_latency_s,
        carried_byte_j,
        (units - prefill_units - decode_units) * idle_unit_w,
    )


def _whole(chip: AnyChip, units: int) -> int:
    """Units in whole rows, where the units are tiles."""
    row = 1 if isinstance(chip, GpuBox) else chip.grid.cols
    return max(row, units // row * row)


def _energy(chip: AnyChip) -> tuple[float | None, float]:
    """Joules of a byte that is read, carried and written, if known; watts of an idle unit."""
    if isinstance(chip, GpuBox):
        moved = Traffic(memory_bytes=2.0, link_bytes=1.0)
        return traffic_energy_j(chip.energy, moved), chip.energy.idle_w
    if chip.energy is None:
        return None, 0.0
    rows, cols = chip.grid.rows, chip.grid.cols
    return carried_byte_j(chip.energy, rows - 1), chip.energy.idle_w / (rows * cols)


def _link(chip: AnyChip, units: int) -> tuple[float, float]:
    """Bandwidth in bytes/s and latency in seconds between pools, the smaller of ``units``."""
    if isinstance(chip, GpuBox):
        return units * chip.link_bytes_per_s * chip.efficiency.link, chip.all_reduce_latency_s
    noc = noc_timing(chip)
    cycles = (chip.grid.rows - 1) * noc.hop_cycles + noc.ejection_cycles
    return chip.grid.cols * noc.flit_bytes * chip.clock_hz, cycles / chip.clock_hz
