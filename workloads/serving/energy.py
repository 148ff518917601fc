"""Energy of an iteration: arithmetic, SRAM, off-chip memory, links, and being awake.

Every term is a count times an energy of the chip's profile. What is drawn whether or not anything
runs is not part of it: that is the model's ``static_power_w``. Per-token figures, by output tokens
alone or by prompt and output tokens, are made of both by the run's summary.
"""

from typing import NamedTuple

from tlm.chips.gpu import GpuEnergy

_PJ = 1e-12
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
