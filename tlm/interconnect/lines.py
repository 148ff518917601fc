"""The links of a mesh: where they lead, how many are between tiles, and what goes over a line."""

from enum import IntEnum
from typing import TypeVar

import numpy as np

from tlm.interconnect.packets import Int64s

_Place = TypeVar("_Place", int, Int64s)


class MeshPort(IntEnum):
    """Ports of a router, and directions: where packets come from, and where they go."""

    LOCAL = 0  # the tile's, or the die's own
    NORTH = 1
    EAST = 2
    SOUTH = 3
    WEST = 4


def line_loads(
    line: Int64s, start: Int64s, end: Int64s, amount: Int64s, shape: tuple[int, int]
) -> tuple[Int64s, Int64s]:
    """What crosses each link upwards, and downwards; link i of a line joins places i and i + 1.

    Args:
        line: Shape (ways,): the line of each way.
        start: Shape (ways,): its first place there.
        end: Shape (ways,): its last one.
        amount: Shape (ways,): what crosses its links.
        shape: Lines, and places of each, as those of the results.
    """
    up, down = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for chosen, load, low, high in ((end > start, up, start, end), (end < start, down, end, start)):
        np.add.at(load, (line[chosen], low[chosen]), amount[chosen])
        np.subtract.at(load, (line[chosen], high[chosen]), amount[chosen])
        np.cumsum(load, axis=1, out=load)
    return up, down


def leaving(down: Int64s) -> Int64s:
    """Loads downwards by the place that they leave, shape (lines, places).

    Link i leaves place i + 1.
    """
    return np.roll(down, 1, axis=1)


def hops(tile: tuple[_Place, _Place], other: tuple[_Place, _Place]) -> _Place:
    """Links between tiles, each its row and its column; of several tiles, between each two."""
    return abs(tile[0] - other[0]) + abs(tile[1] - other[1])
