"""What blocks cost: on lines between the lengths that are known, in one channel and in several."""

import numpy as np
import pytest

from tlm.memory.block_costs import BlockCosts

COSTS = BlockCosts((32, 256, 1024), (100.0, 400.0, 1300.0), (120.0, 600.0, 1500.0))


def test_costs_are_on_lines_from_nothing_on() -> None:
    lengths = np.array([16, 32, 144, 256, 640, 1024, 2048])
    loads = [50, 100, 250, 400, 850, 1300, 2500]
    assert COSTS.busy_bytes(lengths, writes=False).tolist() == loads
    assert [COSTS.busy_bytes(each, writes=False) for each in lengths.tolist()] == loads
    assert COSTS.busy_bytes(640, writes=True) == 1050


@pytest.mark.parametrize("count", [2, 8])
def test_several_channels_share_a_block(count: int) -> None:
    """Up to the grain it lies in one of them; as often as long, a part of it in each."""
    several = COSTS.of_channels(count, 256)
    for length in (32, 100, 256):
        assert several.busy_bytes(length, writes=False) == COSTS.busy_bytes(length, writes=False)
    for length in (256, 640, 1024, 4096):
        one = COSTS.busy_bytes(length, writes=True)
        assert several.busy_bytes(count * length, writes=True) == count * one
    # In between others have a grain of it each, and cost as much each.
    assert several.busy_bytes(512, writes=False) == 2 * COSTS.busy_bytes(256, writes=False)
    assert COSTS.of_channels(1, 256) == COSTS
