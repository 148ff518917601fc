"""Whom a router's reduction unit takes, and what that does to two reductions that meet."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.routers.meetings import meeting_pairs
from calibration.routers.subject import Subject
from cosim.spec.mesh import MeshSpec
from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet
from tlm.interconnect.transfer_times import reduction_cycles_over
from tlm.interconnect.zero_load import ARBITERS, UNIT_CHOICES, NocTiming

TIMING = NocTiming(2, 2, 4, 0, 8, cut_through=False)
KINDS = [
    replace(TIMING, unit_choice=choice, unit_arbiter=arbiter, unit_lock_on_transfer=late)
    for choice, arbiter, late in product(UNIT_CHOICES, ARBITERS, (False, True))
]
#: From the west and the east, and from the north and the south, of the tile in the middle.
ACROSS = ReductionGoal(TileSet(range(1, 2), range(0, 3, 2)), 4)
ALONG = ReductionGoal(TileSet(range(0, 3, 2), range(1, 2)), 4)
WEST, EAST, NORTH, SOUTH = 3, 5, 1, 7


def ends(timing: NocTiming, *sends: tuple[int, int, ReductionGoal, int]) -> list[int]:
    """When each result has come, in the order of the reductions' first operands."""
    packets = Packets.of(sends)
    deliveries = HandshakeMesh(3, 3, timing).simulate(packets)
    order = np.argsort(deliveries.packet)
    return [int(cycle) for cycle in deliveries.tail_ejected[order]]


@pytest.mark.parametrize("timing", KINDS)
@pytest.mark.parametrize("share", [False, True])
def test_one_that_is_alone_sees_no_difference(timing: NocTiming, share: bool) -> None:
    timing = replace(timing, operands_share=share)
    plain = replace(TIMING, operands_share=share)
    sends = ((0, WEST, ACROSS, 3), (9, EAST, ACROSS, 3))
    assert ends(timing, *sends) == ends(plain, *sends)


def test_a_unit_waits_for_a_late_partner_or_takes_who_is_complete() -> None:
    sends = (
        (0, WEST, ACROSS, 2),
        (3, NORTH, ALONG, 2),
        (3, SOUTH, ALONG, 2),
        (40, EAST, ACROSS, 2),
    )
    across, along = ends(TIMING, *sends)
    assert along < 20 < 40 < across
    waited_for, waits = ends(replace(TIMING, unit_choice="first"), *sends)
    assert waited_for == across
    assert waits > waited_for
    # Until its first result is begun the unit may change its mind: the north is first in line.
    assert ends(replace(TIMING, unit_choice="first", unit_lock_on_transfer=True), *sends) == [
        across,
        along,
    ]


def test_inputs_take_turns_at_a_unit_or_the_first_always_wins() -> None:
    sends = [
        (0, node, goal, 4)
        for _ in range(3)
        for node, goal in ((WEST, ACROSS), (EAST, ACROSS), (NORTH, ALONG), (SOUTH, ALONG))
    ]
    turns, fixed, tree = (
        np.argsort(ends(replace(TIMING, unit_arbiter=arbiter), *sends)).tolist()
        for arbiter in ARBITERS
    )
    # Reductions in the order of their sending: across, along, across, along, ...
    assert turns == [1, 0, 3, 2, 5, 4]
    assert fixed == [1, 3, 5, 0, 2, 4]
    # North and east stand in places 1 and 2, in different pairs. The pointer goes 0, 1, 2, 1:
    # only in place 2 its bit says that the pair of the east comes first.
    assert tree == [1, 3, 0, 5, 2, 4]


def test_a_unit_that_holds_more_results_is_free_earlier() -> None:
    """Unicasts have the output to the tile; meanwhile the unit adds up what it has room for."""
    crowd = [(0, node, TileSet.tile(1, 1), 12) for node in (0, 2, 6, 8)]
    sums = [(0, node, ACROSS, 4) for node in (WEST, EAST)]
    sums += [(0, node, ALONG, 4) for node in (NORTH, SOUTH)]
    packets = Packets.of([*crowd, *sums])
    left = []
    for places in (1, 4, 8):
        mesh = HandshakeMesh(3, 3, replace(TIMING, unit_places=places, reduce_cycles=1))
        left.append(int(mesh.simulate(packets).tail_ejected.max()))
    assert left == sorted(left, reverse=True)


def test_units_that_wait_for_partners_can_wait_for_each_other(mesh_spec: MeshSpec) -> None:
    """Complete ones that buffers hold whole, and whose trees share no link, never do."""
    subject = Subject(mesh_spec)
    vars(subject)["operand_limit"] = 5
    rng = np.random.default_rng(3)
    hung = 0
    for pair in meeting_pairs(subject, (4, 4), rng)[:60]:
        packets = Packets.of(
            (int(rng.integers(20)), node, goal, TIMING.fifo_depth)
            for goal in pair.goals
            for node in goal.operands.nodes(4)
        )
        for timing in KINDS:
            try:
                HandshakeMesh(4, 4, timing).simulate(packets)
            except DeadlockError as error:
                hung += 1
                assert timing.unit_choice == "first"
                assert pair.routers > 1
                assert len(error.cycle) > 1
    assert hung > 0


def test_room_that_comes_in_the_cycle_of_the_choice_is_seen() -> None:
    """The second reduction's unit is kept in cycle 10, in which the first one leaves its way."""
    row = TileSet(range(1), range(3))
    sends = ((2, 2, 1, 2), (3, 0, 1, 2), (4, 1, 1, 2), (4, 0, 2, 1), (4, 2, 2, 1), (5, 1, 2, 1))
    packets = Packets.of((c, node, ReductionGoal(row, root), n) for c, node, root, n in sends)
    for choice in UNIT_CHOICES:
        timing = NocTiming(2, 2, 2, 0, 8, reduce_cycles=0, return_cycles=0, unit_choice=choice)
        assert HandshakeMesh(1, 3, timing).simulate(packets).tail_ejected.tolist() == [8, 11]


@st.composite
def units(draw: st.DrawFn) -> NocTiming:
    """Routers whose units take who is complete."""
    late, cycles = draw(st.booleans()), draw(st.integers(0, 2))
    return NocTiming(
        hop_cycles=draw(st.integers(1, 2)),
        ejection_cycles=1,
        fifo_depth=draw(st.integers(1, 3)),
        multicast_gap_cycles=0,
        flit_bytes=8,
        reduce_cycles=cycles,
        reduce_interval_cycles=draw(st.integers(1, 2)),
        cut_through=draw(st.sampled_from([True, True, False])),
        return_cycles=draw(st.sampled_from([0, 0, 0, 1])),
        unit_arbiter=draw(st.sampled_from(ARBITERS)),
        unit_lock_on_transfer=late,
        unit_places=draw(st.integers(int(late or cycles > 0), 3)),
        unit_return_cycles=draw(st.integers(0, 1)),
    )


@settings(max_examples=300)
@given(units(), st.data())
def test_reductions_of_one_tree_come_alike_whomever_units_take(
    timing: NocTiming, data: st.DataObject
) -> None:
    """All bring their operands in one order, so that none stands in another's way."""
    rows, cols = data.draw(st.sampled_from([(1, 2), (1, 3), (2, 2), (2, 3)]))
    nodes = rows * cols
    goal = ReductionGoal(
        TileSet(range(rows), range(cols)), data.draw(st.integers(0, nodes - 1), "root")
    )
    sends = [
        (data.draw(st.integers(0, 4)), node, goal, flits)
        for flits in data.draw(st.lists(st.integers(1, timing.fifo_depth), min_size=1, max_size=4))
        for node in range(nodes)
    ]
    packets = Packets.of(sends)
    complete, first = (
        HandshakeMesh(rows, cols, replace(timing, unit_choice=choice)).simulate(packets)
        for choice in UNIT_CHOICES
    )
    assert first.packet.tolist() == complete.packet.tolist()
    assert first.tail_ejected.tolist() == complete.tail_ejected.tolist()


@pytest.mark.parametrize("late", [False, True])
def test_only_reductions_that_wait_for_each_other_hang(late: bool) -> None:
    """Results go north from the middle while others' operands come south, past crowded tiles.

    If the middle prefers those that go to its tile, it keeps its unit for none that waits for room.
    """
    north = replace(ACROSS, root=1)
    rng = np.random.default_rng(1)
    timing = NocTiming(2, 2, 2, 0, 8, return_cycles=0, unit_choice="first", unit_arbiter="fixed")
    timing = replace(timing, unit_lock_on_transfer=late)
    hung = 0
    for number in range(200):
        sends: list[tuple[int, int, ReductionGoal | TileSet, int]] = []
        for goal in (north, ALONG):
            flits = int(rng.integers(1, 3)) if goal is north else 1
            nodes = goal.operands.nodes(3)
            sends += [
                (int(rng.integers(30)), node, goal, flits) for _ in range(3) for node in nodes
            ]
        sends += [
            (int(rng.integers(30)), node, TileSet.tile(0, 1), int(rng.integers(1, 9)))
            for _ in range(4)
            for node in (0, 2)
        ]
        line = (2, 4, 0, 1, 3, 5) if number % 2 else (1, 3, 0, 2, 4, 5)
        try:
            HandshakeMesh(3, 3, replace(timing, line=line)).simulate(Packets.of(sends))
        except DeadlockError as error:
            hung += 1
            assert number % 2
            assert len(error.cycle) == 4
    assert hung > 0


@given(
    flits=st.integers(1, 8),
    places=st.integers(1, 4),
    cycles=st.integers(0, 6),
    back=st.integers(0, 2),
    intervals=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    tiles=st.integers(1, 4),
)
def test_a_unit_gives_as_many_results_a_round_as_it_has_places(
    flits: int, places: int, cycles: int, back: int, intervals: tuple[int, int], tiles: int
) -> None:
    timing = replace(
        TIMING,
        fifo_depth=8,
        reduce_cycles=cycles,
        unit_places=places,
        unit_return_cycles=back,
        reduce_interval_cycles=intervals[0],
        link_interval_cycles=intervals[1],
    )
    goal = ReductionGoal(TileSet(range(1), range(tiles)), root=0)
    packets = Packets.of((0, node, goal, flits) for node in range(tiles))
    seen = HandshakeMesh(1, 4, timing).simulate(packets)
    assert int(seen.last_ejected()[0]) == timing.reduction_cycles(tiles - 1, flits)
    many = reduction_cycles_over(timing, np.array([tiles - 1]), np.array([flits]))
    assert many.tolist() == [timing.reduction_cycles(tiles - 1, flits) + 1]


@pytest.mark.parametrize("flits", [5, 8, 11, 16])
def test_cut_reductions_wait_for_places_within_packets(flits: int) -> None:
    """Packets take turns with the buffers: within 15 %, where the intervals alone are 70 % off."""
    timing = NocTiming(2, 2, 4, 2, 8, reduce_cycles=5, unit_places=1)
    goal = ReductionGoal(TileSet(range(1), range(3)), root=0)
    parts = [min(4, flits - at) for at in range(0, flits, 4)]
    packets = Packets.of((0, node, goal, part) for part in parts for node in range(3))
    last = int(HandshakeMesh(1, 3, timing).simulate(packets).tail_ejected.max())
    assert timing.reduction_cycles(2, flits) == pytest.approx(last, rel=0.15)
    plain = replace(timing, unit_places=None)
    assert plain.reduction_cycles(2, flits) < 0.85 * last


def test_a_unit_that_is_held_late_has_a_place_for_its_result() -> None:
    with pytest.raises(InputError, match="result_places: found 0"):
        replace(TIMING, reduce_cycles=0, unit_lock_on_transfer=True)
