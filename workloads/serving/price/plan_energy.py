"""Energy of a kernel by its plan: of what the plan computes and moves."""

from functools import lru_cache

import numpy as np

from tlm.chips import Chip
from tlm.offchip.edge import Edge
from workloads.kernels.catalogue import Plan, moved_of, moves
from workloads.machine.place import Place
from workloads.serving.price.energy import TileTraffic, kernel_energy_j

_OPERAND_BYTES = 2


def plan_energy_j(chip: Chip, place: Place, plan: Plan, macs: int) -> float | None:
    """Energy of a kernel's operations; None for a chip without energies.

    None, too, if hops cost energy and the plan does not know what it moves.

    The matrix engine reads an operand once for each of its rows or columns of results, filled or
    not. Vector engines count with all lanes while they work.

    Args:
        chip: The chip.
        place: Where the kernel runs; without memory, what it reads is at hand.
        plan: The kernel's plan.
        macs: Multiply-accumulates of the problem, without padding.
    """
    if chip.energy is None:
        return None
    if chip.energy.hop_byte_pj and not moves(plan):
        return None
    grains, moved = chip.tile.matrix.grains, moved_of(plan)
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
    return kernel_energy_j(chip.energy, traffic)


@lru_cache(256)
def _mean_hops(edge: Edge) -> float:
    """Mean hops between a tile and its channel."""
    tiles = [(row, col) for row in range(edge.rows) for col in range(edge.cols)]
    return float(np.mean([edge.hops(tile) for tile in tiles]))
