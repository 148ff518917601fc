"""Area of a chip's cores, between the points that its profile has."""

import math
from collections.abc import Sequence

import numpy as np

from tlm.chips.profile import Chip


def core_mm2(chip: Chip) -> float | None:
    """Area of a core in square millimetres, by its array and its share of memory bandwidth.

    Between the points of the profile's table it is linear in elements and in bandwidth. None
    without a table, and beyond its points.
    """
    table, memory = chip.area, chip.memory
    if table is None or memory is None:
        return None
    elements = chip.tile.matrix.compute().macs_per_cycle
    bandwidth = memory.bandwidth_bytes_per_s / (chip.grid.rows * chip.grid.cols)
    by_array = [_between(bandwidth, table.memory_bytes_per_s, row) for row in table.core_mm2]
    area = _between(elements, table.array_elements, by_array)
    return None if math.isnan(area) else area


def _between(at: float, points: Sequence[float], values: Sequence[float]) -> float:
    """Value at a place between points; not a number beyond them."""
    return float(np.interp(at, points, values, left=math.nan, right=math.nan))
