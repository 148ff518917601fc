"""Tiles of each channel of off-chip memory, against the law of one tile."""

import numpy as np
import pytest

from tlm.compiled import compiled
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from workloads.kernels.parts.channels import of_tiles, sooner


@pytest.mark.parametrize("at", [{}, {"rows_below": 3}, {"at_tiles": True, "channels": 8 * 6}])
def test_channels_and_hops_of_all_tiles_are_those_of_each(at: dict[str, int]) -> None:
    edge = Edge(
        **{"rows": 8, "cols": 6, "channels": 4} | at, flit_bytes=8, burst_bytes=32,
        capacity_bytes=1 << 28, timing=ChannelTiming(30, 16, 16),
    )  # fmt: skip
    channel, hops = of_tiles(edge, 5, 6)
    tiles = [[(row, col) for col in range(6)] for row in range(5)]
    assert np.array_equal(channel, [[edge.channel(tile) for tile in line] for line in tiles])
    assert np.array_equal(hops, [[edge.hops(tile) for tile in line] for line in tiles])


@compiled
def _compiled_sooner(tiles: int, apart: int, cycles: int) -> int:
    found: int = sooner(tiles, apart, cycles)
    return found


def test_tiles_that_ask_sooner_are_those_that_one_would_count() -> None:
    """Of numbers, of arrays, and in compiled code."""
    cases = np.array([*np.ndindex(7, 13, 14)]) + [1, 0, 1]
    counted = [
        sum(apart > 0 and tile * apart >= cycles * (tiles - 1) for tile in range(1, tiles))
        for tiles, apart, cycles in cases.tolist()
    ]
    assert sooner(*cases.T).tolist() == counted
    assert [sooner(*case) for case in cases.tolist()] == counted
    assert [_compiled_sooner(*case) for case in cases.tolist()] == counted
