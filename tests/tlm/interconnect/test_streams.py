"""Long messages whose flits pass at once take the times of those that go buffer by buffer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.handshake.records import NEVER, Mesh
from tlm.interconnect.packets import Packets, TileSet
from tlm.interconnect.zero_load import ARBITERS, CHANNELS, NocTiming

ROWS, COLS = 2, 4
PLAIN = NocTiming(1, 1, fifo_depth=4, multicast_gap_cycles=0, flit_bytes=8)
TIMINGS = st.builds(
    lambda hop, ejection, depth, buffered, channel, arbiter, back, interval: replace(
        PLAIN,
        hop_cycles=hop + (buffered > 0),
        ejection_cycles=ejection + (buffered > 0),
        fifo_depth=depth,
        output_depth=buffered,
        channel=channel,
        arbiter=arbiter,
        return_cycles=back,
        link_interval_cycles=interval,
    ),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([1, 2, 3, 4, 8]),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from(CHANNELS),
    st.sampled_from(ARBITERS),
    st.integers(0, 2),
    st.sampled_from([1, 1, 2]),
)
NODES = st.integers(0, ROWS * COLS - 1)
#: Cycle, source, receiver, flits.
MESSAGES = st.lists(
    st.tuples(st.integers(0, 300), NODES, NODES, st.integers(1, 300)), min_size=1, max_size=20
)


def run(timing: NocTiming, packets: Packets, *, streams: bool) -> list[list[int]]:
    """All times of all packets, and what they waited for outputs."""
    mesh = HandshakeMesh(ROWS, COLS, timing)
    if not streams:
        mesh._mesh[Mesh.STREAM_FROM] = NEVER
    came = mesh.simulate(packets)
    times = (came.head_injected, came.tail_injected, came.head_ejected, came.tail_ejected)
    return [*(each.tolist() for each in times), mesh.waited_cycles.ravel().tolist()]


@given(TIMINGS, MESSAGES)
@settings(deadline=None, max_examples=150)
def test_all_times_are_the_same(
    timing: NocTiming, messages: list[tuple[int, int, int, int]]
) -> None:
    packets = Packets.of(
        (cycle, source, TileSet.tile(*divmod(to, COLS)), flits)
        for cycle, source, to, flits in messages
    )
    assert run(timing, packets, streams=True) == run(timing, packets, streams=False)


@pytest.mark.parametrize("channel", ["none", "output"])
def test_a_flit_more_is_a_cycle_more_however_long_the_message(channel: str) -> None:
    """Half a billion flits would take a minute one buffer after the other."""
    timing, flits = replace(PLAIN, channel=channel), np.array([1000, 2**29])
    ends = [
        HandshakeMesh(ROWS, COLS, timing)
        .simulate(Packets.of([(0, 0, TileSet.tile(1, 3), length)]))
        .tail_ejected
        for length in flits.tolist()
    ]
    assert np.diff(np.concatenate(ends)) == np.diff(flits)
