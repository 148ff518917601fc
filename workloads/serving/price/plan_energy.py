"""Energy of a kernel by its plan: of what the plan computes and moves."""

from functools import lru_cache

import numpy as np

from tlm.chips import Chip
from tlm.offchip.edge import Edge
from workloads.kernels.catalogue import Plan, moved_of, moves
from workloads.machine.place import Place
from workloads.serving.price.energy import UNKNOWN, TileTraffic, kernel_energy_j

_OPERAND_BYTES = 2


def plan_energy_j(chip: Chip, place: Place, plan: Plan, macs: int) -> float:
    """Energy of a kernel's operations; `UNKNOWN` for a chip without energies.

    It is unknown, too, where something costs energy of which nobody counts how much there is: hops
    and local memory if the plan does not say what it moves, and local memory if products are on an
    engine of which nothing says how often it reads an operand.

    The matrix engine reads an operand once for each of its rows or columns of results, filled or
    not. Vector engines count with all lanes while they work.

    Args:
        chip: The chip.
        place: Where the kernel runs; without memory, what it reads is at hand.
        plan: The kernel's plan.
        macs: Multiply-accumulates of the problem, without padding.
    """
    figures, grains, moved = chip.energy, chip.tile.matrix.grains, moved_of(plan)
    if figures is None:
        return UNKNOWN
    if (figures.hop_byte_pj or figures.sram_byte_pj) and not moves(plan):
        return UNKNOWN
    if figures.sram_byte_pj and macs and grains is None:
        return UNKNOWN
    reads = 0.0 if grains is None else 1 / grains.rows + 1 / grains.columns
    lanes = place.rows * place.cols * place.vector.lanes
    memory_bytes = 0 if place.offchip is None else moved.read + moved.written
    traffic = TileTraffic(
        flops=2 * macs + lanes * plan.tile_vector_cycles,
        operand_bytes=macs * _OPERAND_BYTES * reads,
        memory_bytes=memory_bytes,
        delivered_bytes=moved.delivered,
        memory_hops=0.0 if place.offchip is None else _mean_hops(place.offchip),
    )
    return kernel_energy_j(figures, traffic)


@lru_cache(256)
def _mean_hops(edge: Edge) -> float:
    """Mean hops between a tile and its channel."""
    tiles = [(row, col) for row in range(edge.rows) for col in range(edge.cols)]
    return float(np.mean([edge.hops(tile) for tile in tiles]))
