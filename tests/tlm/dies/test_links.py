"""The links between dies: laws, and the handshake mesh where both describe the same thing."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips import find_tiles, load_chip
from tlm.dies.collectives import COLLECTIVES, Dealt, collective
from tlm.dies.links import DieMesh, die_mesh
from tlm.dies.messages import MessagePlan, Messages
from tlm.dies.perf import MOST_PACKETS, coarse, collective_ticks, link_loads, worst_pct
from tlm.dies.simulate import simulate
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Packets, TileSet
from tlm.interconnect.zero_load import NocTiming


def mesh_of(rows: int, cols: int, packet: int = 4, buffer: int = 16, hop: int = 1) -> DieMesh:
    """A mesh like that of the project's routers: a flit a cycle, one cycle until room is known."""
    return DieMesh(rows, cols, 1, 1, hop, 1, 1, packet, buffer)


def link_ticks(mesh: DieMesh, units: int) -> int:
    """Time that some units take on a link: a buffer's worth of packets in each round trip."""
    round_trip = mesh.hop_ticks + mesh.credit_ticks + mesh.packet_units * mesh.ticks_per_unit
    per_buffer = mesh.buffer_units // mesh.packet_units * mesh.packet_units
    return max(units * mesh.ticks_per_unit, -(-units * round_trip // per_buffer))


def random_messages(mesh: DieMesh, count: int, size: int, seed: int) -> Messages:
    rng, plan = np.random.default_rng(seed), MessagePlan()
    for _ in range(count):
        source, target = rng.choice(mesh.dies, 2, replace=False).tolist()
        plan.send(source, target, size)
    return plan.messages()


def handshake_cycles(messages: Messages, mesh: DieMesh) -> int:
    """The same messages, flit by flit."""
    timing = NocTiming(mesh.hop_ticks, 1, mesh.buffer_units, 1, 8)
    items = [
        (0, source, TileSet.tile(*divmod(target, mesh.cols)), min(mesh.packet_units, units - at))
        for source, target, units in zip(
            messages.source.tolist(), messages.target.tolist(), messages.units.tolist(), strict=True
        )
        for at in range(0, units, mesh.packet_units)
    ]
    came = HandshakeMesh(mesh.rows, mesh.cols, timing).simulate(Packets.of(items))
    return int(came.tail_ejected.max()) + 1


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 4), st.integers(1, 60), st.data())
@settings(max_examples=60, deadline=None)
def test_a_message_alone_is_as_fast_as_on_the_handshake_mesh(
    rows: int, cols: int, hop: int, size: int, data: st.DataObject
) -> None:
    mesh = mesh_of(rows, cols, hop=hop, buffer=64)
    source, target = data.draw(st.permutations(range(mesh.dies)))[:2]
    plan = MessagePlan()
    plan.send(source, target, size)
    messages = plan.messages()
    assert simulate(messages, mesh).ticks == handshake_cycles(messages, mesh)


def test_contention_is_within_some_percent_of_the_handshake_mesh() -> None:
    """Buffers of four packets, all-to-all and random messages; docs/dies.md states the errors."""
    errors = []
    for side in (2, 3, 4, 8):
        for packet, buffer in ((1, 4), (4, 16)):
            mesh = mesh_of(side, side, packet, buffer)
            everywhere = TileSet(range(side), range(side))
            for size in (4, 32):
                for messages in (
                    collective("all-to-all", mesh, everywhere, size),
                    random_messages(mesh, 20 * mesh.dies, size, seed=1),
                ):
                    truth = handshake_cycles(messages, mesh)
                    errors.append(abs(simulate(messages, mesh).ticks - truth) / truth)
    assert np.mean(errors) < 0.03
    assert max(errors) < 0.11


def test_a_link_shared_by_two_messages() -> None:
    """Packets of two units take turns: 0 to 2 and 1 to 2 over the link from 1 to 2."""
    mesh = DieMesh(1, 3, 10, 10, 100, 5, 100, 2, 64)
    plan = MessagePlan()
    plan.send(0, 2, 4)
    plan.send(1, 2, 4)
    traffic = simulate(plan.messages(), mesh)
    # Die 1 has the link from 0 to 40; heads of die 0 come to it at 100 and 120.
    assert traffic.arrived.tolist() == [245, 145]
    assert traffic.link_units[0, :, 1].tolist() == [4, 8, 0]


def test_what_waits_is_sent_when_all_it_waits_for_has_arrived() -> None:
    mesh = DieMesh(1, 3, 10, 10, 100, 0, 100, 64, 64)
    plan = MessagePlan()
    first, second = plan.send(0, 1, 4), plan.send(2, 1, 8)
    plan.send(1, 0, 1, [first, second])
    traffic = simulate(plan.messages(), mesh)
    # The port into die 1 takes one packet after the other: 100 to 140, 140 to 220.
    assert traffic.arrived.tolist() == [140, 220, 330]
    assert traffic.sent.tolist() == [0, 0, 220]


@pytest.mark.parametrize("buffered", [1, 2, 4, 8, 16])
def test_credits_bound_the_rate_of_a_link(buffered: int) -> None:
    mesh = DieMesh(1, 2, 1, 1, 100, 0, 100, 20, 20 * buffered)
    plan = MessagePlan()
    plan.send(0, 1, 20 * 200)
    ticks = simulate(plan.messages(), mesh).ticks
    assert ticks == pytest.approx(link_ticks(mesh, 20 * 200) + mesh.hop_ticks, rel=0.06)


@given(st.integers(1, 4), st.integers(2, 4), st.integers(1, 40), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_loads_are_the_units_that_crossed_each_link(
    rows: int, cols: int, count: int, seed: int
) -> None:
    mesh = mesh_of(rows, cols)
    messages = random_messages(mesh, count, 7, seed)
    traffic = simulate(messages, mesh)
    assert (traffic.link_units == link_loads(messages, mesh)).all()
    busiest = int(traffic.link_units.max())
    assert traffic.ticks >= busiest * mesh.ticks_per_unit


def test_a_faster_port_serves_two_links() -> None:
    plan = MessagePlan()
    plan.send(1, 0, 64)
    plan.send(1, 2, 64)
    ticks = [
        simulate(plan.messages(), DieMesh(1, 3, 4, port, 1, 0, 1, 4, 64)).ticks for port in (4, 2)
    ]
    assert ticks[0] == 2 * 64 * 4 + 1
    # In order: packets of the second wait in the die until those of the first have left it.
    assert 64 * 4 < ticks[1] < ticks[0]


@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_few_packets_are_run_as_they_are(name: str) -> None:
    """Level perf is level lt at a power of two of which each message has few packets."""
    mesh = mesh_of(4, 4, packet=4)
    group = TileSet(range(2 if name == "hand-over" else 4), range(4))
    ticks = simulate(collective(name, mesh, group, 8), mesh).ticks
    assert collective_ticks(name, mesh, group, 8) == ticks


@pytest.mark.parametrize(("rows", "cols"), [(4, 8), (8, 4), (4, 4), (2, 8), (1, 8)])
@pytest.mark.parametrize("size", [8192, 57_344, 262_144])
def test_level_perf_meets_the_links_in_all_to_all(rows: int, cols: int, size: int) -> None:
    """Experts on 8 to 32 dies; messages of a few packets, and of half a buffer."""
    mesh, group = die_mesh(load_chip("flat32-wafer")), TileSet(range(rows), range(cols))
    ticks = simulate(collective("all-to-all", mesh, group, size), mesh).ticks
    assert collective_ticks("all-to-all", mesh, group, size) == pytest.approx(ticks, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols"), [(4, 8), (8, 4), (8, 8)])
def test_level_perf_meets_the_links_in_the_messages_of_experts(rows: int, cols: int) -> None:
    """As above: 512 tokens of a die, 8 experts each, of 7,168 bytes."""
    mesh, group = die_mesh(load_chip("flat32-wafer")), TileSet(range(rows), range(cols))
    size = 512 * 8 * 7168 // (rows * cols)
    ticks = simulate(collective("all-to-all", mesh, group, size), mesh).ticks
    assert collective_ticks("all-to-all", mesh, group, size) == pytest.approx(ticks, rel=0.1)


@given(st.integers(1, 64), st.integers(1, 16), st.integers(1, 10**7))
def test_larger_packets_leave_links_their_rate(packet: int, buffered: int, units: int) -> None:
    mesh = DieMesh(1, 2, 1, 1, 100, 0, 100, packet, packet * buffered)
    larger = coarse(mesh, units)
    assert larger.packet_units * MOST_PACKETS >= units or larger == mesh
    assert link_ticks(larger, 10**6) <= link_ticks(mesh, 10**6)
    if larger != mesh:
        assert larger.buffer_units - mesh.buffer_units < 2 * larger.packet_units


@pytest.mark.parametrize("way", ["sent", "got"])
def test_uneven_shares_of_an_all_to_all(way: str) -> None:
    """Each die sends, or gets, its share; the most of all takes longest."""
    mesh, group = mesh_of(2, 2, buffer=64), TileSet(range(2), range(2))
    shares = Dealt(**{way: (2.5, 0.5, 0.5, 0.5)})
    messages = collective("all-to-all", mesh, group, 40, shares)
    dies = messages.source if way == "sent" else messages.target
    assert np.bincount(dies, messages.units).tolist() == [300, 60, 60, 60]
    even = collective_ticks("all-to-all", mesh, group, 40)
    assert 300 <= collective_ticks("all-to-all", mesh, group, 40, shares) < 3 * even


@pytest.mark.parametrize("dealt", [Dealt(), Dealt(got=(2.5, 0.5, 0.5, 0.5))])
def test_pieces_of_an_all_to_all_are_its_messages(dealt: Dealt) -> None:
    """A die turns to each other one with every piece, and sends no more than without."""
    mesh, group = mesh_of(2, 2, buffer=64), TileSet(range(2), range(2))
    whole = collective("all-to-all", mesh, group, 40, dealt)
    pieces = collective("all-to-all", mesh, group, 40, dealt._replace(piece=12))
    assert len(pieces) == 4 * len(whole)  # of up to 12 each
    sums = np.zeros((2, 4, 4), dtype=np.int64)
    for found, sent in zip(sums, (whole, pieces), strict=True):
        np.add.at(found, (sent.source, sent.target), sent.units)
    assert (sums[0] == sums[1]).all()
    first = pieces.target[pieces.source == 0]
    assert first.tolist() == [1, 2, 3] * 4
    with pytest.raises(InputError, match="--piece-bytes: found 1; allowed for 12 messages of 2000"):
        collective("all-to-all", mesh, group, 2_000_000, Dealt(piece=1))


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (4, 4), (2, 8), (4, 8), (8, 4)])
@pytest.mark.parametrize("tokens", [8, 100, 256])
@pytest.mark.parametrize("rate", ["1e12", "160e9"])
def test_level_perf_meets_the_links_token_by_token(
    rows: int, cols: int, tokens: int, rate: str
) -> None:
    """Tokens of 7,168 bytes, each for 8 experts: a die turns to another one with each copy."""
    held_token_by_token(rows, cols, tokens, rate)


@pytest.mark.parametrize(
    ("rows", "cols", "tokens", "fs"),
    [
        (1, 2, 19, 612),
        (1, 3, 42, 2944),
        (2, 2, 351, 4034),
        (2, 3, 59, 3575),
        (3, 3, 272, 1118),
        (8, 4, 459, 933),
    ],
)
def test_the_farthest_of_drawn_messages_are_within_what_is_counted(
    rows: int, cols: int, tokens: int, fs: int
) -> None:
    """With links of a byte in so many fs; of each size of groups the worst of many."""
    held_token_by_token(rows, cols, tokens, repr(1e15 / fs))


def held_token_by_token(rows: int, cols: int, tokens: int, rate: str) -> None:
    """Hold that level perf is as near as it says."""
    slower = [f"dies.{part}_bytes_per_s={rate}" for part in ("link", "port")]
    mesh, group = die_mesh(find_tiles("flat32-wafer", slower)), TileSet(range(rows), range(cols))
    size, dealt = tokens * 8 * 7168 // (rows * cols), Dealt(piece=7168)
    ticks = simulate(collective("all-to-all", mesh, group, size, dealt), mesh).ticks
    found = collective_ticks("all-to-all", mesh, group, size, dealt)
    assert found == pytest.approx(ticks, rel=worst_pct(group) / 100)


@pytest.mark.parametrize(("rows", "cols"), [(4, 8), (8, 4), (8, 8)])
def test_many_dies_are_done_sooner_token_by_token(rows: int, cols: int) -> None:
    """Messages as a whole are all on the same links at the same time."""
    mesh, group = die_mesh(load_chip("flat32-wafer")), TileSet(range(rows), range(cols))
    size = 256 * 8 * 7168 // (rows * cols)
    pieces, whole = (
        simulate(collective("all-to-all", mesh, group, size, Dealt(piece=piece)), mesh).ticks
        for piece in (7168, 0)
    )
    assert pieces < 0.95 * whole


def test_all_to_all_is_no_faster_than_its_bisection() -> None:
    """An 8x8 mesh: 4 columns x 4 columns x 8 rows of messages through a link in the middle."""
    mesh = die_mesh(load_chip("flat32-wafer"))
    messages = collective("all-to-all", mesh, TileSet(range(8), range(8)), 1000)
    assert link_loads(messages, mesh).max() == 128_000


@pytest.mark.parametrize("name", ["all-gather", "all-reduce"])
@pytest.mark.parametrize(
    "group", [TileSet(range(1), range(5)), TileSet(range(1, 4), range(0, 6, 2))]
)
def test_every_die_hears_of_every_other(name: str, group: TileSet) -> None:
    """Along the messages, in an order that what they wait for allows, data spread to all dies."""
    mesh = mesh_of(4, 6)
    messages = collective(name, mesh, group, 60)
    traffic = simulate(messages, mesh)
    known = {die: {die} for die in group.nodes(6)}
    for number in np.argsort(traffic.arrived, kind="stable").tolist():
        source, target = int(messages.source[number]), int(messages.target[number])
        waited = messages.before[messages.after == number]
        assert (traffic.arrived[waited] <= traffic.sent[number]).all()
        known[target] |= known[source]
    assert all(heard == set(known) for heard in known.values())


def test_all_gather_moves_each_block_once_to_each_die() -> None:
    mesh = mesh_of(3, 4)
    messages = collective("all-gather", mesh, TileSet(range(3), range(4)), 5)
    came = np.bincount(messages.target, messages.units, minlength=12)
    assert (came == 11 * 5).all()


def test_bad_input() -> None:
    mesh = mesh_of(4, 6)
    everywhere = TileSet(range(4), range(6))
    for name, group, size, message in (
        ("all-to-none", everywhere, 1, "unknown collective 'all-to-none'; known: all-gather, "),
        ("all-to-all", everywhere, 0, "--bytes: found 0; allowed: 1 or more"),
        ("all-gather", TileSet.tile(0, 0), 1, "--group: found 1 die; all-gather needs 2 or more"),
        (
            "hand-over",
            TileSet(range(3), range(3)),
            1,
            "--group: found 3x3 dies from 0,0 on; allowed: the first of equal groups that cut the "
            "4x6 mesh into a pipeline",
        ),
        ("hand-over", TileSet(range(2), range(3, 6)), 1, "--group: found 2x3 dies from 0,3 on; "),
    ):
        with pytest.raises(InputError, match=message):
            collective(name, mesh, group, size)
    with pytest.raises(InputError, match="--chip: 'flat32' is a single die"):
        die_mesh(load_chip("flat32"))
    with pytest.raises(InputError, match="buffer_units: found 3; allowed: 4 or more"):
        mesh_of(2, 2, 4, 3)


def test_the_document_states_the_errors_of_level_perf() -> None:
    text = (Path(__file__).parents[3] / "docs" / "dies.md").read_text(encoding="utf-8")
    mesh = die_mesh(load_chip("flat32-wafer"))
    table = re.findall(r"^\| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert len(table) == 4
    for size, cells in table[:3]:  # the last takes seconds
        for name, stated in zip(COLLECTIVES, cells.split(" | "), strict=True):
            side = 4 if name == "hand-over" else 8
            group = TileSet(range(side), range(side))
            ticks = simulate(collective(name, mesh, group, int(size)), mesh).ticks
            error = 100 * (collective_ticks(name, mesh, group, int(size)) / ticks - 1)
            assert float(stated) == pytest.approx(error, abs=0.051), (name, size)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_times_of_the_largest_size_fit_into_64_bits(name: str) -> None:
    mesh = mesh_of(4, 6)
    group = TileSet(range(2 if name == "hand-over" else 4), range(6))
    largest = 2**62 // (4 * 24**2 * max(mesh.ticks_per_unit, mesh.port_ticks_per_unit))
    messages = collective(name, mesh, group, largest)
    assert 0 < sum(messages.units.tolist()) * mesh.ticks_per_unit < 2**62
    assert 0 < collective_ticks(name, mesh, group, largest) < 2**63
    with pytest.raises(InputError, match=f"--bytes: found .*; allowed: 1 to {largest}"):
        collective(name, mesh, group, largest + 1)
