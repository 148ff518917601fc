"""The `perf` level of the mesh against the handshake model."""

from dataclasses import replace

import pytest

from tlm.errors import InputError
from tlm.interconnect.closed_form import estimate, highest_load
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Packets, TileSet
from tlm.interconnect.traffic import Traffic
from tlm.interconnect.zero_load import NocTiming

TIMING = NocTiming(1, 1, 4, 1, 8)
LOCKED = replace(TIMING, channel="output", acknowledge_cycles=2)


def test_a_packet_alone_takes_its_zero_load_latency() -> None:
    for source, target in ((0, 24), (24, 0), (4, 20), (20, 4), (12, 12), (12, 13), (7, 2)):
        hops = abs(source // 5 - target // 5) + abs(source % 5 - target % 5)
        where = TileSet.tile(*divmod(target, 5))
        seen = estimate(Packets.of([(3, source, where, 6)]), 5, 5, 10_000, TIMING)
        assert seen.latency_cycles().tolist() == [TIMING.unicast_cycles(hops, 6)]
        assert seen.node.tolist() == [target]
        assert seen.head_ejected.tolist() == [3 + TIMING.head_cycles(hops)]


# It takes arrivals at every link as random, though a packet does not meet those before it on the
# way again: too long with long packets.
@pytest.mark.parametrize(
    ("rate", "packet_flits", "bound_pct"),
    [(0.02, 1, 1), (0.02, 4, 3), (0.05, 1, 2), (0.05, 4, 8), (0.1, 1, 7), (0.1, 4, 15)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_mean_latency_of_light_uniform_traffic(
    rate: float, packet_flits: int, bound_pct: float, seed: int
) -> None:
    traffic = Traffic(8, 8, "uniform", rate, packet_flits, 4000, seed)
    packets = traffic.packets()
    model = HandshakeMesh(8, 8, TIMING).simulate(packets).latency_cycles().mean()
    form = estimate(packets, 8, 8, traffic.cycles, TIMING).latency_cycles().mean()
    assert abs(100 * (form - model) / model) < bound_pct


def test_more_load_means_longer_waits() -> None:
    means = []
    for rate in (0.02, 0.1, 0.2, 0.3):
        packets = Traffic(8, 8, "uniform", rate, 4, 2000, seed=5).packets()
        means.append(estimate(packets, 8, 8, 2000, TIMING).latency_cycles().mean())
    assert means == sorted(set(means))


def test_load_from_one_line_does_not_delay_another() -> None:
    # Row 0 is full of eastward packets; row 1 carries a single one.
    crowd = [(cycle, 0, TileSet.tile(0, 3), 1) for cycle in range(90)]
    alone = (0, 4, TileSet.tile(1, 3), 1)
    back = (0, 3, TileSet.tile(0, 1), 1)
    seen = estimate(Packets.of([*crowd, alone, back]), 2, 4, 100, TIMING).latency_cycles()
    assert seen[-2] == TIMING.unicast_cycles(3, 1)
    assert seen[-1] == TIMING.unicast_cycles(2, 1)
    assert (seen[:-2] > TIMING.unicast_cycles(3, 1)).all()


def test_multicasts_are_out_of_its_reach() -> None:
    packets = Packets.of([(0, 0, TileSet(range(2), range(2)), 1)])
    with pytest.raises(AssertionError, match="the closed form knows unicasts only"):
        estimate(packets, 2, 2, 10, TIMING)


def test_a_locked_channel_alone_takes_its_zero_load_latency() -> None:
    timing = replace(LOCKED, link_interval_cycles=2)
    for source, target, flits in ((0, 24, 6), (24, 0, 1), (4, 20, 9), (12, 12, 3)):
        packets = Packets.of([(3, source, TileSet.tile(*divmod(target, 5)), flits)])
        seen = estimate(packets, 5, 5, 2**62, timing)
        model = HandshakeMesh(5, 5, timing).simulate(packets)
        assert seen.head_ejected.tolist() == model.head_ejected.tolist()
        assert seen.tail_ejected.tolist() == model.tail_ejected.tolist()


# Requests, acknowledges and data wait, at a few links of many: what holds of packets holds of them.
@pytest.mark.parametrize("channel", ["output", "receiver"])
@pytest.mark.parametrize(
    ("rate", "packet_flits", "bound_pct"), [(0.01, 1, 1), (0.02, 4, 4), (0.05, 4, 8), (0.1, 4, 15)]
)
def test_mean_latency_over_locked_channels(
    channel: str, rate: float, packet_flits: int, bound_pct: float
) -> None:
    timing = replace(LOCKED, channel=channel)
    packets = Traffic(8, 8, "uniform", rate, packet_flits, 4000, seed=1).packets()
    model = HandshakeMesh(8, 8, timing).simulate(packets).latency_cycles().mean()
    form = estimate(packets, 8, 8, 4000, timing).latency_cycles().mean()
    alone = estimate(packets, 8, 8, 2**62, timing).latency_cycles().mean()
    assert alone < form
    assert abs(100 * (form - model) / model) < bound_pct


def test_one_message_at_a_time_is_a_limit() -> None:
    # Of one flit each: three ways of 1 and 1 cycle, and 4 of the interfaces.
    to = TileSet.tile(0, 1)
    packets = Packets.of([(cycle, 0, to, 1) for cycle in range(0, 1000, 4)])
    assert highest_load(packets, 1, 2, 1000, TIMING) == pytest.approx(0.25)
    assert highest_load(packets, 1, 2, 1000, LOCKED) == pytest.approx(250 * 9 / 1000)
    last = HandshakeMesh(1, 2, LOCKED).simulate(packets).tail_ejected[-1]
    assert last == pytest.approx(250 * 9, rel=0.01)


def test_ways_along_columns_first_are_out_of_its_reach() -> None:
    packets = Packets.of([(0, 0, TileSet.tile(1, 1), 1)])
    with pytest.raises(InputError, match="found packets along columns first"):
        estimate(packets, 2, 2, 10, replace(TIMING, y_first=True))
