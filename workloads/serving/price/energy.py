"""Energy of an iteration: arithmetic, SRAM, off-chip memory, links, and being awake.

On tiles links are those of the mesh, and a byte pays for each that it takes.

Every term is a count times an energy of the chip's profile. What is drawn whether or not anything
runs is not part of it: that is the model's ``static_power_w``. Per-token figures, by output tokens
alone or by prompt and output tokens, are made of both by the run's summary.
"""

from math import isnan, nan
from typing import NamedTuple

from tlm.chips import TileEnergy
from tlm.chips.gpu import GpuEnergy

_PJ = 1e-12
#: Joules of what has no figures: no sum that it is part of is known, either.
UNKNOWN = nan
# Operands of a product pass SRAM once for each tile of 128 x 128 results: two operands of 2 bytes
# for 128 multiply-accumulates each.
SRAM_BYTES_PER_FLOP = 2 * 2 / 128 / 2


class Traffic(NamedTuple):
    """What an activity does, on all units together."""

    flops: float = 0.0
    memory_bytes: float = 0.0
    link_bytes: float = 0.0

    @property
    def sram_bytes(self) -> float:
        """Bytes through SRAM: operands of products, and what memory and links bring."""
        return self.flops * SRAM_BYTES_PER_FLOP + self.memory_bytes + self.link_bytes


def traffic_energy_j(figures: GpuEnergy, traffic: Traffic) -> float:
    """Energy of the operations themselves."""
    return _PJ * (
        traffic.flops * figures.flop_pj
        + traffic.sram_bytes * figures.sram_byte_pj
        + traffic.memory_bytes * figures.memory_byte_pj
        + traffic.link_bytes * figures.link_byte_pj
    )


class TileTraffic(NamedTuple):
    """What a kernel does on all tiles together.

    Attributes:
        flops: Of the matrix engines, and operations of the vector engines.
        operand_bytes: Read from local memory by full matrix engines.
        memory_bytes: Of off-chip memory.
        delivered_bytes: Taken in from the network. What is multicast counts once for each tile that
            it reaches: as each passes it on to the next, that is also the links it takes.
        memory_hops: Between a tile and its memory.
    """

    flops: float
    operand_bytes: float
    memory_bytes: float
    delivered_bytes: float
    memory_hops: float


def known_j(joules: float) -> float | None:
    """None of what is not known."""
    return None if isnan(joules) else joules


def kernel_energy_j(figures: TileEnergy | None, traffic: TileTraffic) -> float:
    """Energy of a kernel's operations on tiles; `UNKNOWN` without figures.

    What is delivered to a tile is written to its local memory, from which the matrix engine reads
    its operands: at least all that was delivered.
    """
    if figures is None:
        return UNKNOWN
    delivered = traffic.delivered_bytes
    operand_bytes = max(traffic.operand_bytes, delivered)
    byte_hops = delivered + traffic.memory_bytes * traffic.memory_hops
    return _PJ * (
        traffic.flops * figures.flop_pj
        + (operand_bytes + delivered) * figures.sram_byte_pj
        + traffic.memory_bytes * figures.memory_byte_pj
        + byte_hops * figures.hop_byte_pj
    )


def carried_byte_j(figures: TileEnergy, hops: int) -> float:
    """Energy of a byte from the memory of one tile to that of another, so many hops away."""
    ends = 2 * (figures.memory_byte_pj + figures.sram_byte_pj)
    return _PJ * (ends + hops * figures.hop_byte_pj)
