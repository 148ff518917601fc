"""From a chip profile to the models of its parts."""

from tlm.chips.profile import CalibratedNoc, Chip
from tlm.compute.vector_unit import VectorUnit
from tlm.errors import InputError
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.devices import DEVICES
from tlm.offchip.edge import Edge
from tlm.tiles.timing import TileTiming

# A foreign network streams a multicast: no packet of it ever waits for an empty buffer.
_UNBOUNDED_FLITS = 2**30
# Figures of a foreign memory are its latency and bandwidth: no queue holds requests up beside them.
_UNBOUNDED_REQUESTS = 2**30


def noc_timing(chip: Chip) -> NocTiming:
    """Timing of a chip's network: measured, or what its profile says.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    if isinstance(chip.noc, CalibratedNoc):
        return rtl_timing()
    return NocTiming(
        hop_cycles=chip.noc.hop_cycles,
        ejection_cycles=chip.noc.ejection_cycles,
        fifo_depth=_UNBOUNDED_FLITS,
        multicast_gap_cycles=0,
        flit_bytes=chip.noc.flit_bytes,
        reduce_cycles=chip.noc.reduce_cycles or 1,
    )


def combines_in_network(chip: Chip) -> bool:
    """Whether a chip's network reduces: the project's own does."""
    return isinstance(chip.noc, CalibratedNoc) or chip.noc.reduce_cycles is not None


def offchip_channels(chip: Chip, rows: int, cols: int) -> Edge:
    """Channels of off-chip memory at the edge of a chip's grid, or of a part of it.

    The project's own chips have one of rtl/memory below every column; other chips spread theirs
    evenly, and a part of their columns has its share.

    Args:
        chip: The chip.
        rows: Rows of tiles that are used.
        cols: Columns.

    Raises:
        InputError: if the chip has no such channels, or they are slower than a byte a cycle, or the
            calibration is missing or stale.
    """
    flit_bytes = noc_timing(chip).flit_bytes
    if chip.calibration is not None:
        channel = rtl_channel()
        device = channel.device
        timing = ChannelTiming(
            latency_cycles=1 + device.t_rcd_rd + device.rl,  # of a read whose bank is closed
            bytes_per_cycle=device.burst_bytes // device.bl,
            queue_depth=channel.controller.response_depth,
        )
        capacity = device.bursts * device.burst_bytes
        return Edge(rows, cols, cols, flit_bytes, device.burst_bytes, capacity, timing)
    memory = chip.memory
    if memory is None or memory.per_tile:
        found = "a part of off-chip memory at each tile" if memory else "no off-chip memory"
        raise InputError(
            f"chip '{chip.name}': found {found}; allowed for --memory: channels at the edge"
        )
    share = min(cols, max(1, memory.channels * cols // chip.grid.cols))
    bandwidth = memory.bandwidth_bytes_per_s * cols / chip.grid.cols / share / chip.clock_hz
    if bandwidth < 1:
        raise InputError(
            f"chip '{chip.name}': memory.bandwidth_bytes_per_s: found "
            f"{memory.bandwidth_bytes_per_s:g}, {bandwidth:.3g} bytes a cycle of each of {share} "
            "channels; allowed: at least 1"
        )
    timing = ChannelTiming(memory.latency_cycles, int(bandwidth), _UNBOUNDED_REQUESTS)
    burst = DEVICES[memory.device].burst_bytes
    capacity = memory.capacity_bytes * cols // chip.grid.cols // share
    return Edge(rows, cols, share, flit_bytes, burst, capacity, timing)


def own_tile(chip: Chip) -> TileTiming | None:
    """What a tile of the project's own costs beside the laws of its engines; None of other chips.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    return chip.tile.matrix.own_tile(chip.tile.sram_banks)


def vector_engine(chip: Chip) -> VectorUnit:
    """A tile's vector engine; of a core that multiplies in software, its lanes."""
    unit = chip.tile.matrix.vector_unit(chip.tile.vector_flop_per_cycle)
    if unit is None:
        raise InputError(f"chip '{chip.name}': tile.vector_flop_per_cycle is not given")
    return unit
