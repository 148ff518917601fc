"""Channels in turn: every request goes to one of them, and each is like a channel alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import HBM3
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.traffic import DramTraffic, figures

ONE = DramChannel.of(HBM3, CONTROLLERS["ramulator"])


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 9), st.sampled_from([32, 96, 256, 4096]), st.integers(1, 5), st.integers(0, 9)
)
def test_every_request_goes_to_one_channel_in_its_requesters_order(
    count: int, interleave_bytes: int, requesters: int, seed: int
) -> None:
    channels = InterleavedChannels(ONE, count, interleave_bytes)
    traffic = DramTraffic(pattern="random", requests=200, requesters=requesters, seed=seed)
    requests = traffic.stream(HBM3, count)
    grain = interleave_bytes // HBM3.burst_bytes
    back = []
    for number, part in enumerate(channels.split(requests)):
        block = (part.burst // grain) * count + number
        begins = np.cumsum([0, *part.counts])
        burst = block * grain + part.burst % grain
        back.append([burst[a:b].tolist() for a, b in zip(begins, begins[1:], strict=False)])
    begins = np.cumsum([0, *requests.counts])
    for requester in range(requesters):
        asked = requests.burst[begins[requester] : begins[requester + 1]].tolist()
        own = [iter(parts[requester]) for parts in back]
        assert asked == [next(own[burst // grain % count]) for burst in asked]


def test_one_channel_is_the_channel_itself() -> None:
    requests = DramTraffic(pattern="random", requests=500, requesters=3).stream(HBM3)
    ((part, outcome),) = InterleavedChannels(ONE, 1, 256).simulate(requests, 8)
    assert (part.burst == requests.burst).all()
    assert (outcome.end_resp == ONE.simulate(requests, 8).end_resp).all()


def test_bandwidth_is_that_of_all_channels() -> None:
    shares = []
    for count in (1, 4):
        requests = DramTraffic(pattern="sequential", requests=20_000 * count).stream(HBM3, count)
        runs = InterleavedChannels(ONE, count, 256).simulate(requests, 64)
        shares.append(figures(HBM3, runs, count).bandwidth_fraction)
    assert shares[1] == pytest.approx(shares[0], rel=0.01)
    # Blocks as far apart as all channels' turns find one channel only.
    traffic = DramTraffic(pattern="strided", requests=4000, stride_bytes=4 * 256)
    alone = InterleavedChannels(ONE, 4, 256).simulate(traffic.stream(HBM3, 4), 64)
    assert len(alone) == 1
    assert figures(HBM3, alone, 4).bandwidth_fraction < 0.25


@pytest.mark.parametrize(
    ("count", "interleave_bytes", "message"),
    [
        (0, 256, "--channels: found 0; allowed: 1 to 4096"),
        (2, 48, "--interleave-bytes: found 48; allowed: multiples of 32"),
        (2, 0, "--interleave-bytes: found 0; allowed: multiples of 32"),
    ],
)
def test_impossible_ones_are_refused(count: int, interleave_bytes: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InterleavedChannels(ONE, count, interleave_bytes)
