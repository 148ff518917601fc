"""From a chip profile to the models of its parts."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tlm.chips.profile import CalibratedNoc, Chip
from tlm.compute.base import Compute
from tlm.compute.vector_unit import VectorUnit
from tlm.errors import InputError
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming, Profiled
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.streams import channel_costs
from tlm.offchip.dram import DramOfTile
from tlm.offchip.edge import Edge
from tlm.tiles.layout import WORD_BITS
from tlm.tiles.timing import TileTiming

# A foreign network streams a multicast: no packet of it ever waits for an empty buffer.
_UNBOUNDED_FLITS = 2**30
# Figures of a foreign memory are its latency and bandwidth: no queue holds requests up beside them.
_UNBOUNDED_REQUESTS = 2**30
_WHOLE = Fraction(1)
# Bytes a cycle are a ratio whose denominator is no larger, so that its products are 64-bit numbers.
_FINEST = 10_000


def noc_timing(chip: Chip) -> NocTiming:
    """Timing of a chip's network: measured, or what its profile says.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    if isinstance(chip.noc, CalibratedNoc):
        return rtl_timing()
    return Profiled(
        hop_cycles=chip.noc.hop_cycles,
        ejection_cycles=chip.noc.ejection_cycles,
        fifo_depth=_UNBOUNDED_FLITS,
        multicast_gap_cycles=0,
        flit_bytes=chip.noc.flit_bytes,
        reduce_cycles=chip.noc.reduce_cycles or 1,
        channel=chip.noc.channel,
        request_cycles=chip.noc.request_cycles,
        acknowledge_cycles=chip.noc.acknowledge_cycles,
        data_cycles=chip.noc.data_cycles,
        buffer_flits=chip.noc.buffer_flits,
        packet_flits=chip.noc.packet_flits,
    )


class PacketRouter(NamedTuple):
    """What packets go through at level `at`.

    Attributes:
        timing: Of a router; its ``fifo_depth`` is what an input holds.
        packet_flits: Longest packet of a multicast or a reduction.
    """

    timing: NocTiming
    packet_flits: int


def chip_router(chip: Chip) -> PacketRouter:
    """A chip's router: measured, or what its profile says.

    Raises:
        InputError: if the calibration is missing or stale, or a stream would have gaps without any
            contention, which it has at no other level.
    """
    timing, noc = noc_timing(chip), chip.noc
    if isinstance(noc, CalibratedNoc):
        return PacketRouter(timing, timing.fifo_depth)
    least = noc.packet_flits + noc.hop_cycles + (noc.reduce_cycles or 0)
    if noc.buffer_flits < least:
        raise InputError(
            f"chip '{chip.name}': noc.buffer_flits: found {noc.buffer_flits}; allowed at level at: "
            f"at least {least}, for a packet and what moves on meanwhile"
        )
    mesh = replace(
        timing, fifo_depth=noc.buffer_flits, cut_through=noc.cut_through, arbiter=noc.arbiter
    )
    return PacketRouter(mesh, noc.packet_flits)


def combines_in_network(chip: Chip) -> bool:
    """Whether a chip's network reduces: the project's own does."""
    return isinstance(chip.noc, CalibratedNoc) or chip.noc.reduce_cycles is not None


def offchip_channels(
    chip: Chip, rows: int, cols: int, *, rows_below: int = 0, share: Fraction = _WHOLE
) -> Edge:
    """Channels of off-chip memory of a chip's grid, or of a rectangle of its tiles.

    The project's own chips have one of rtl/memory below every column. Other chips have one at each
    tile, or spread theirs evenly below the columns, some of which have their share.

    Args:
        chip: The chip.
        rows: Rows of tiles that are used.
        cols: Columns.
        rows_below: Rows of tiles between these and the edge.
        share: What the tiles have of the channels of their columns, which others use besides. A
            channel at each tile is its own.

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
            bytes_per_cycle=_at_least_a_byte(
                chip, Fraction(device.burst_bytes, device.bl) * share, cols
            ),
            queue_depth=channel.controller.response_depth,
        )
        return Edge(
            rows=rows,
            cols=cols,
            channels=cols,
            flit_bytes=flit_bytes,
            burst_bytes=device.burst_bytes,
            capacity_bytes=int(device.bursts * device.burst_bytes * share),
            timing=timing,
            rows_below=rows_below,
        )
    memory = chip.memory
    if memory is None:
        raise InputError(
            f"chip '{chip.name}': found no off-chip memory; allowed for --memory: a chip with some"
        )
    grid = chip.grid
    rate = Fraction(memory.bandwidth_bytes_per_s) / Fraction(chip.clock_hz)
    if memory.per_tile:
        channels = rows * cols
        bandwidth, share = rate / (grid.rows * grid.cols), _WHOLE
        capacity = memory.capacity_bytes // (grid.rows * grid.cols)
    else:
        channels = min(cols, max(1, memory.channels * cols // grid.cols))
        bandwidth = rate * cols / grid.cols / channels
        capacity = int(memory.capacity_bytes * cols // grid.cols // channels * share)
    return Edge(
        rows=rows,
        cols=cols,
        channels=channels,
        flit_bytes=flit_bytes,
        burst_bytes=DEVICES[memory.device].burst_bytes,
        capacity_bytes=capacity,
        timing=ChannelTiming(
            latency_cycles=memory.latency_cycles,
            bytes_per_cycle=_at_least_a_byte(chip, bandwidth * share, channels),
            queue_depth=_UNBOUNDED_REQUESTS,
            costs=channel_costs(
                memory.device, bandwidth * Fraction(chip.clock_hz), at_tiles=memory.per_tile
            ),
        ),
        at_tiles=memory.per_tile,
        rows_below=0 if memory.per_tile else rows_below,
        dram=DramOfTile.of(memory.device, bandwidth, chip.clock_hz, memory.latency_cycles)
        if memory.per_tile
        else None,
    )


def _at_least_a_byte(chip: Chip, bandwidth: Fraction, channels: int) -> Fraction:
    """Bytes a cycle of a channel's, of which there is one at least.

    Raises:
        InputError: if not.
    """
    if bandwidth < 1:
        memory = chip.memory
        whole = "a share of memory: found"
        if memory is not None:
            whole = f"memory.bandwidth_bytes_per_s: found {memory.bandwidth_bytes_per_s:g},"
        raise InputError(
            f"chip '{chip.name}': {whole} {float(bandwidth):.3g} bytes a cycle of each of "
            f"{channels} channels; allowed: at least 1"
        )
    return bandwidth.limit_denominator(_FINEST)


def own_tile(chip: Chip) -> TileTiming | None:
    """What a tile of the project's own costs beside the laws of its engines; None of other chips.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    banks, words = chip.tile.sram_banks, int(chip.tile.sram_kib * 1024) * 8 // WORD_BITS
    return chip.tile.matrix.own_tile(banks, words // banks * banks)


def matrix_engine(chip: Chip, element_bits: int) -> Compute:
    """What multiplies matrices in a tile, of elements of some bits."""
    tile, rate = chip.tile, chip.tile.sram_bytes_per_cycle
    elements = None if rate is None else 8 * rate / element_bits
    return tile.matrix.products(tile.vector_flop_per_cycle, elements)


def vector_engine(chip: Chip) -> VectorUnit:
    """A tile's vector engine; of a core that multiplies in software, its lanes."""
    unit = chip.tile.matrix.vector_unit(chip.tile.vector_flop_per_cycle)
    if unit is None:
        raise InputError(f"chip '{chip.name}': tile.vector_flop_per_cycle is not given")
    return unit
