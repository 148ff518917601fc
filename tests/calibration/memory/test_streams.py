"""Streams of blocks on DRAM: what is stored, and that the model of its commands shows it again."""

from itertools import pairwise

import pytest

from calibration.memory.streams import BlockStream
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.streams import FITTED_TILES, StreamPoint, load_streams

#: Mean and worst errors that are allowed of the costs, in per cent, by situation. Stores alone are
#: no stream of kernels: a tile's find their rows open, which its loads close otherwise.
ALLOWED = {
    "loads and stores": (2.0, 12.0),
    "other numbers of tiles": (2.0, 6.0),
    "several pseudo-channels": (3.0, 16.0),
}


def test_there_are_costs_of_every_device() -> None:
    stored = load_streams()
    found = [(each.device, each.tiles) for each in stored.costs]
    assert found == [(device, tiles) for device in DEVICES for tiles in FITTED_TILES]
    for costs in stored.costs:
        for each in (costs.loads, costs.stores):
            assert all(more > less for less, more in pairwise((0.0, *each)))
            assert all(cost > length for length, cost in zip(costs.lengths, each, strict=True))


@pytest.mark.parametrize("situation", ALLOWED)
def test_errors_of_other_streams(situation: str) -> None:
    points = [p for p in load_streams().points if p.situation == situation and not p.fitted]
    errors = [abs(point.error_pct) for point in points]
    mean, worst = ALLOWED[situation]
    assert sum(errors) / len(errors) < mean
    assert max(errors) < worst


def _stream(point: StreamPoint) -> BlockStream:
    fields = point.model_dump(exclude={"fitted", "measured", "law"})
    return BlockStream(**fields)


@pytest.mark.parametrize("tiles", FITTED_TILES)
def test_a_stream_is_measured_again(tiles: int) -> None:
    stored = load_streams()
    which = ("hbm4", tiles, 1, 2048, 0.25, False)
    [point] = [
        p
        for p in stored.points
        if (p.device, p.tiles, p.pseudo_channels, p.block_bytes, p.stores, p.fitted) == which
    ]
    stream = _stream(point)
    [costs] = [c for c in stored.costs if (c.device, c.tiles) == ("hbm4", tiles)]
    assert stream.measured() == point.measured
    assert stream.law(costs.of_blocks) == point.law


def test_refresh_and_turns_cost_more_than_nothing() -> None:
    """Long blocks lose refreshes' share; short ones rows besides; stores turn the bus."""
    long, short, mixed = (
        BlockStream("hbm2", 1, length, 32, stores, 5).measured()
        for length, stores in ((65536, 0.0), (128, 0.0), (256, 0.5))
    )
    assert 0.87 < long < 1 - DEVICES["hbm2"].t_rfc / DEVICES["hbm2"].t_refi
    assert short < 0.5 < mixed < long
