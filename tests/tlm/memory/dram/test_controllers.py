"""The compiled controllers against plain ones that look at everything in every tick."""

from dataclasses import replace

import numpy as np
import pytest

from tests.tlm.memory.dram.plain_controllers import PLAIN_CONTROLLERS, Asked
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.device import Device
from tlm.memory.dram.devices import HBM2, HBM3, HBM4
from tlm.memory.dram.traffic import DramTraffic

# Pattern, share of writes, bits of the addresses that are kept, so that rows are met again.
_CASES = [("sequential", 0.0, 60), ("mixed", 0.5, 60), ("random", 0.3, 11), ("strided", 0.2, 60)]
_LOOPS = [(1, 1), (1, 48), (3, 2), (4, 16)]


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize(
    "device",
    [HBM2, pytest.param(HBM3, marks=pytest.mark.slow), HBM4],
    ids=["hbm2", "hbm3", "hbm4"],
)
@pytest.mark.parametrize(("requesters", "depth"), _LOOPS)
@pytest.mark.parametrize(("pattern", "writes", "bits"), _CASES)
def test_every_request_ends_in_the_same_tick(
    pattern: str, writes: float, bits: int, requesters: int, depth: int, device: Device, name: str
) -> None:
    few = pattern == "strided" or depth == 1
    count = 30 if few else 120 if requesters == 1 else 60
    traffic = DramTraffic(
        pattern=pattern, requests=count, requesters=requesters, write_fraction=writes, seed=31
    )
    stream = traffic.stream(device)
    stream = replace(stream, burst=stream.burst & ((1 << bits) - 1))
    # The first refresh comes in the middle of things.
    device = replace(device, t_refi=device.t_rfc + 3 * device.t_rc)
    channel = DramChannel.of(device, CONTROLLERS[name])
    places = channel.address_map.places(stream.burst)
    columns = (stream.write, places.bank, places.row, places.column)
    asked = [Asked(*fields) for fields in zip(*(c.tolist() for c in columns), strict=True)]
    stops = np.cumsum(stream.counts)
    parts = [asked[stop - count : stop] for stop, count in zip(stops, stream.counts, strict=True)]
    PLAIN_CONTROLLERS[name](device).run(parts, depth)
    found = channel.simulate(stream, depth)
    assert found.end_req.tolist() == [a.taken for a in asked]
    assert found.end_resp.tolist() == [a.ended for a in asked]
