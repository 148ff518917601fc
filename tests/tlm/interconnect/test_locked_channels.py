"""Messages by request, acknowledge and data, whose outputs are locked: the model by itself.

Against Verilog: tests/calibration/routers/test_locked_mesh.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.base import EventKind
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.handshake.records import NEVER, Output
from tlm.interconnect.handshake.state import output_column
from tlm.interconnect.lines import MeshPort, hops
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import CHANNELS, NocTiming
from tlm.tiles.mesh import TiledMesh

BY_OUTPUT = NocTiming(1, 1, fifo_depth=4, multicast_gap_cycles=0, flit_bytes=8, channel="output")
BY_RECEIVER = replace(BY_OUTPUT, channel="receiver")
BOTH = pytest.mark.parametrize("timing", [BY_OUTPUT, BY_RECEIVER], ids=["output", "receiver"])

Item = tuple[int, int, TileSet, int]


def run(timing: NocTiming, *items: Item) -> Deliveries:
    """Messages on a 3x4 mesh."""
    return HandshakeMesh(3, 4, timing).simulate(Packets.of(items))


def crowd(seed: int, count: int = 300) -> list[Item]:
    """Far more than the mesh can take; some go to their own tile."""
    rng = np.random.default_rng(seed)
    items: list[Item] = []
    for turn in range(count):
        source, to, flits = rng.integers([0, 0, 1], [12, 12, 9]).tolist()
        items.append((turn // 3, source, TileSet.tile(*divmod(to, 4)), flits))
    return items


@given(
    channel=st.sampled_from(CHANNELS[1:]),
    flits=st.integers(1, 12),
    ends=st.tuples(st.integers(0, 11), st.integers(0, 11)),
    depths=st.tuples(st.integers(4, 6), st.sampled_from([0, 2])),
    own=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
    interval=st.integers(1, 3),
)
@settings(deadline=None)
def test_a_message_alone_takes_the_closed_form(
    channel: str,
    flits: int,
    ends: tuple[int, int],
    depths: tuple[int, int],
    own: tuple[int, int, int],
    interval: int,
) -> None:
    buffered = int(depths[1] > 0)
    timing = NocTiming(
        hop_cycles=2 + buffered,
        ejection_cycles=1 + buffered,
        fifo_depth=depths[0],
        multicast_gap_cycles=0,
        flit_bytes=8,
        output_depth=depths[1],
        link_interval_cycles=interval,
        channel=channel,
        request_cycles=own[0],
        acknowledge_cycles=own[1],
        data_cycles=own[2],
    )
    source, to = (divmod(end, 4) for end in ends)
    seen = run(timing, (5, ends[0], TileSet.tile(*to), flits))
    way = hops(source, to)
    # Three ways, of which the data's is as that of a packet without a lock.
    plain = replace(timing, channel="none")
    assert timing.unicast_cycles(way, flits) == (
        sum(own) + 2 * plain.unicast_cycles(way, 1) + plain.unicast_cycles(way, flits)
    )
    assert seen.head_injected.tolist() == [5]
    assert seen.head_ejected.tolist() == [5 + timing.head_cycles(way)]
    assert seen.tail_ejected.tolist() == [5 + timing.unicast_cycles(way, flits)]


@BOTH
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_crowd_is_delivered_and_none_waits_for_ever(
    timing: NocTiming, depth: int, seed: int
) -> None:
    items = crowd(seed)
    mesh = HandshakeMesh(3, 4, replace(timing, fifo_depth=depth))
    seen = mesh.simulate(Packets.of(items))
    assert mesh.idle
    assert seen.packet.tolist() == list(range(len(items)))
    assert (seen.tail_ejected >= seen.head_ejected + [item[3] - 1 for item in items]).all()
    assert seen.tail_ejected.max() > 2 * items[-1][0]
    # A tile sends one message after the other.
    for source in range(12):
        own = [number for number, item in enumerate(items) if item[1] == source]
        assert (seen.head_injected[own][1:] > seen.tail_injected[own][:-1]).all()


@BOTH
def test_fed_message_by_message_it_does_the_same(timing: NocTiming) -> None:
    items = crowd(seed=4)
    whole = HandshakeMesh(3, 4, timing).simulate(Packets.of(items))
    mesh, events = HandshakeMesh(3, 4, timing), []
    for number, item in enumerate(items):
        while found := mesh.advance(item[0]):
            events += found
        assert mesh.inject(*item) == number
    while found := mesh.advance(100_000):
        events += found
    assert mesh.idle
    for kind, cycles in (
        (EventKind.INJECTED, whole.tail_injected),
        (EventKind.EJECTED, whole.tail_ejected),
    ):
        seen = {event.packet: event.cycle for event in events if event.kind is kind}
        assert [seen[number] for number in range(len(items))] == cycles.tolist()


@BOTH
def test_messages_to_one_receiver(timing: NocTiming) -> None:
    pair = [(0, node, TileSet.tile(0, 1), 8) for node in (0, 2)]
    first, second = sorted(run(timing, *pair).head_ejected.tolist())
    assert second - first == {"output": 8, "receiver": 1}[timing.channel]


@BOTH
@pytest.mark.parametrize(
    ("source", "to"),
    [
        pytest.param(1, 2, id="request"),
        pytest.param(2, 1, id="acknowledge"),
        pytest.param(1, 0, id="acknowledge-behind-the-data"),
    ],
)
def test_what_meets_a_locked_output_waits(timing: NocTiming, source: int, to: int) -> None:
    long, short = (0, 0, TileSet.tile(0, 3), 100), (60, source, TileSet.tile(0, to), 1)
    seen = run(timing, long, short)
    assert seen.head_ejected[1] > seen.tail_injected[0]
    # Without a lock in its way, and in another row, it does not.
    free = run(replace(timing, channel="none"), (60, source, TileSet.tile(0, to), 1))
    assert free.tail_ejected[0] < 70
    beside = (60, 4 + source, TileSet.tile(1, to), 1)
    assert run(timing, long, beside).latency_cycles()[1] == timing.unicast_cycles(1, 1)


@BOTH
def test_a_standstill_names_the_messages(timing: NocTiming) -> None:
    # No traffic brings one about: here the output from 0,1 to 0,2 is never free.
    mesh = HandshakeMesh(1, 4, timing)
    output_column(mesh._mesh, Output.FREE_FROM)[1, MeshPort.EAST] = NEVER
    free, held = [(0, 3, TileSet.tile(0, 2), 2)] * 3, (0, 1, TileSet.tile(0, 3), 2)
    with pytest.raises(DeadlockError) as error:
        mesh.simulate(Packets.of([*free, held, (0, 0, TileSet.tile(0, 2), 2)]))
    assert error.value.waiting == [3, 4]


def test_what_it_cannot_be() -> None:
    for fields, message in (
        ({"channel": "both"}, "unknown channel 'both'; known: none, output, receiver"),
        ({"data_cycles": 0}, "data_cycles: found 0; allowed: 1 or more"),
        ({"turnaround_cycles": 1}, "turnaround_cycles: found 1; allowed with channel receiver: 0"),
    ):
        with pytest.raises(InputError) as error:
            replace(BY_RECEIVER, **fields)
        assert str(error.value) == message


def test_what_it_does_not_carry() -> None:
    pair = TileSet(range(1), range(2))
    for goal, kind in ((pair, "multicast"), (ReductionGoal(pair, 0), "sum")):
        with pytest.raises(InputError) as error:
            HandshakeMesh(3, 4, BY_OUTPUT).simulate(Packets.of([(0, 0, goal, 1)]))
        assert str(error.value) == (
            f"packets: found a {kind}; allowed with locked channels: unicasts"
        )
    for form, kind in (
        (BY_OUTPUT.multicast_cycles, "multicast"),
        (BY_OUTPUT.reduction_cycles, "reduction"),
    ):
        with pytest.raises(InputError) as error:
            form(2, 4)
        assert str(error.value) == f"channel: found output with a {kind}; allowed: unicasts"


def test_tiles_do_not_stand_at_locked_channels() -> None:
    with pytest.raises(InputError) as error:
        TiledMesh(2, 2, BY_OUTPUT, tile=None)
    assert str(error.value) == "channel: found output; allowed with tiles: none"


@BOTH
def test_waits_are_counted_at_the_output_that_is_locked(timing: NocTiming) -> None:
    """A request of 1,1 meets a message of 100 flits that goes east through its router."""
    long, short = (0, 4, TileSet.tile(1, 3), 100), (30, 5, TileSet.tile(1, 2), 1)
    mesh = HandshakeMesh(3, 4, timing)
    seen = mesh.simulate(Packets.of([long, short]))
    waited = mesh.waited_cycles
    assert waited[1, 1, MeshPort.EAST] == waited.sum() > 0
    assert seen.latency_cycles()[1] == timing.unicast_cycles(1, 1) + waited.sum()
