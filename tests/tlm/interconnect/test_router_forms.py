"""Forms of routers that the project's own Verilog does not take; others' are told by them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import FORKS, NocTiming

PLAIN = NocTiming(1, 1, fifo_depth=4, multicast_gap_cycles=1, flit_bytes=8)
WORMHOLE = replace(PLAIN, cut_through=False)
ROW = TileSet(range(1), range(1, 3))


def run(timing: NocTiming, *items: tuple[int, int, TileSet | ReductionGoal, int]) -> Deliveries:
    """Packets on a 3x4 mesh."""
    return HandshakeMesh(3, 4, timing).simulate(Packets.of(items))


def order(timing: NocTiming, sources: list[int], packets_each: int = 3) -> list[int]:
    """Sources in the order in which tile 1,1 gets their packets, all offered from cycle 0 on."""
    items = [(0, node, TileSet.tile(1, 1), 2) for _ in range(packets_each) for node in sources]
    seen = run(timing, *items)
    return [sources[p % len(sources)] for p in seen.packet[np.argsort(seen.tail_ejected)]]


@given(
    interval=st.integers(1, 4),
    flits=st.integers(1, 12),
    destination=st.integers(0, 11),
    output_depth=st.sampled_from([0, 2]),
)
def test_a_throttled_link_takes_a_flit_an_interval(
    interval: int, flits: int, destination: int, output_depth: int
) -> None:
    buffered = int(output_depth > 0)
    timing = replace(
        PLAIN,
        link_interval_cycles=interval,
        output_depth=output_depth,
        hop_cycles=1 + buffered,
        ejection_cycles=1 + buffered,
    )
    row, col = divmod(destination, 4)
    seen = run(timing, (0, 0, TileSet.tile(row, col), flits))
    # The closed form; injection is not throttled, so the head's handshake is the first cycle.
    assert seen.latency_cycles()[0] == timing.unicast_cycles(row + col, flits)


def test_packets_over_a_throttled_link_keep_its_interval() -> None:
    timing = replace(PLAIN, link_interval_cycles=3)
    seen = run(timing, *[(0, 0, TileSet.tile(0, 1), 1)] * 5)
    assert np.diff(seen.tail_ejected).tolist() == [3, 3, 3, 3]


@given(cycles=st.integers(0, 3), flits=st.integers(1, 5))
def test_an_output_idles_between_packets(cycles: int, flits: int) -> None:
    timing = replace(PLAIN, turnaround_cycles=cycles)
    seen = run(timing, *[(0, 0, TileSet.tile(0, 1), flits)] * 3)
    assert np.diff(np.sort(seen.tail_ejected)).tolist() == [flits + cycles] * 2


@pytest.mark.parametrize("fork", FORKS)
def test_forks_are_alike_without_contention(fork: str) -> None:
    everywhere = TileSet(range(3), range(4))
    seen = run(replace(PLAIN, fork=fork), (0, 5, everywhere, 4))
    row, col = np.divmod(seen.node, 4)
    assert (seen.tail_ejected == 1 + abs(row - 1) + abs(col - 1) + 3).all()


@pytest.mark.parametrize(
    ("fork", "head", "tail"),
    [("own-pace", 7, 10), ("flit-by-flit", 7, 45), ("lockstep", 42, 45)],
)
def test_how_far_a_branch_runs_ahead_of_one_that_stands_still(
    fork: str, head: int, tail: int
) -> None:
    # A long unicast holds the link from 0,1 to 0,2 until cycle 41; the fork at 0,1 also ejects.
    timing = replace(WORMHOLE, fork=fork)
    blocked = (0, 1, TileSet.tile(0, 3), 41)
    seen = run(timing, blocked, (5, 0, TileSet(range(1), range(1, 4)), 4))
    here = (seen.packet == 1) & (seen.node == 1)
    assert (seen.head_ejected[here], seen.tail_ejected[here]) == (head, tail)


def test_lockstep_branches_send_in_the_same_cycles() -> None:
    timing = replace(PLAIN, fork="lockstep")
    seen = run(timing, (0, 1, TileSet.tile(0, 3), 9), (3, 0, ROW, 4), (0, 5, TileSet.tile(0, 1), 7))
    mine = seen.packet == 1
    assert set(np.diff(seen.tail_ejected[mine])) == {1}  # a hop farther, a cycle later


@pytest.mark.parametrize(("return_cycles", "interval"), [(0, 1), (1, 2), (3, 4)])
def test_a_register_passes_a_flit_a_cycle_where_its_place_returns_at_once(
    return_cycles: int, interval: int
) -> None:
    timing = replace(WORMHOLE, fifo_depth=1, return_cycles=return_cycles)
    seen = run(timing, (0, 0, TileSet.tile(0, 3), 8))
    assert seen.tail_ejected[0] == 4 + 7 * interval


@pytest.mark.parametrize("late", [False, True])
def test_room_that_comes_in_a_cycle_is_given_away_in_it(late: bool) -> None:
    # One flit a packet: every output is given away anew each cycle, and all buffers are full.
    timing = replace(WORMHOLE, fifo_depth=1, return_cycles=0, lock_on_transfer=late)
    seen = run(timing, *[(0, 0, TileSet.tile(0, 3), 1)] * 8)
    assert seen.tail_ejected.tolist() == list(range(4, 12))


@given(
    tile_depth=st.integers(0, 3),
    output_depth=st.sampled_from([0, 2]),
    hops=st.integers(0, 3),
    flits=st.integers(1, 9),
)
def test_the_output_to_the_tile_has_a_buffer_of_its_own_depth(
    tile_depth: int, output_depth: int, hops: int, flits: int
) -> None:
    timing = replace(
        PLAIN,
        hop_cycles=2,
        ejection_cycles=2,
        output_depth=output_depth,
        tile_depth=tile_depth,
    )
    seen = run(timing, (0, 0, TileSet.tile(0, hops), flits))
    slow = 2 if tile_depth == 1 else 1  # one place takes a flit every second cycle
    assert seen.head_ejected[0] == 2 + 2 * hops
    assert seen.tail_ejected[0] == seen.head_ejected[0] + slow * (flits - 1)


def test_a_fixed_arbiter_starves_the_last_in_line() -> None:
    timing = replace(PLAIN, arbiter="fixed")
    assert order(timing, [1, 4, 9]) == [1, 1, 1, 9, 9, 9, 4, 4, 4]
    assert order(replace(timing, line=(4, 3, 2, 1, 0, 5)), [1, 4, 9]) == [4] * 3 + [9] * 3 + [1] * 3


def test_round_robin_goes_on_behind_the_winner_in_the_order_of_the_line() -> None:
    assert order(PLAIN, [1, 4, 9]) == [1, 9, 4] * 3
    assert order(replace(PLAIN, line=(4, 3, 2, 1, 0, 5)), [1, 4, 9]) == [4, 9, 1] * 3


def test_a_tree_goes_by_the_bits_of_its_pointer() -> None:
    # Inputs 1, 3 and 4 stand in places 1, 3 and 4. The pointer is 0, then 1, 3, 4, 1, ...:
    # place 1 wins by pointers 0 and 1, place 3 by 3, place 4 by 4.
    timing = replace(PLAIN, arbiter="tree")
    assert order(timing, [1, 4, 9], 4)[:8] == [1, 1, 9, 4, 1, 9, 4, 1]


@given(flits=st.integers(1, 4), interval=st.integers(1, 3), cycles=st.integers(1, 4))
def test_a_slower_adder_costs_its_interval_a_flit(flits: int, interval: int, cycles: int) -> None:
    timing = replace(PLAIN, reduce_cycles=cycles, reduce_interval_cycles=interval)
    goal = ReductionGoal(TileSet(range(1), range(4)), root=0)
    seen = run(timing, *[(0, node, goal, flits) for node in range(4)])
    assert seen.last_ejected()[0] == timing.reduction_cycles(3, flits)


def test_operands_that_share_the_input_buffers_stand_in_the_way() -> None:
    goal = ReductionGoal(TileSet(range(1), range(2)), root=1)
    items = [(0, 0, goal, 1), (1, 0, TileSet.tile(0, 3), 1), (30, 1, goal, 1)]
    apart, shared = run(WORMHOLE, *items), run(replace(WORMHOLE, operands_share=True), *items)
    assert apart.last_ejected()[1] < 10
    assert shared.last_ejected()[1] > 30
    assert shared.last_ejected()[0] == apart.last_ejected()[0]


def test_a_lone_operand_passes_like_a_unicast_where_operands_share() -> None:
    timing = replace(WORMHOLE, operands_share=True, reduce_cycles=5)
    goal = ReductionGoal(TileSet(range(1), range(0, 4, 3)), root=1)  # tiles 0,0 and 0,3 meet at 0,1
    seen = run(timing, (0, 0, goal, 1), (0, 3, goal, 1))
    assert seen.last_ejected()[0] == 2 + 1 + 5  # two hops, the ejection, one addition


def test_reductions_that_a_router_cannot_combine_are_refused() -> None:
    timing = replace(PLAIN, operand_limit=2)
    row = TileSet(range(1), range(3))
    run(timing, *[(0, node, ReductionGoal(row, root=0), 1) for node in range(3)])
    with pytest.raises(InputError, match="3 operands meet in a router; allowed: 2"):
        run(timing, *[(0, node, ReductionGoal(row, root=1), 1) for node in range(3)])


def test_overlapping_long_multicasts_hang_where_forks_go_flit_by_flit() -> None:
    timing = replace(WORMHOLE, fork="flit-by-flit", fifo_depth=2)
    both = TileSet(range(1), range(1, 3))
    with pytest.raises(DeadlockError) as caught:
        run(timing, (0, 1, both, 40), (0, 2, both, 40))
    assert len(caught.value.cycle) >= 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fork": "sideways"}, "fork.*sideways.*own-pace"),
        ({"arbiter": "coin"}, "arbiter.*coin.*round-robin"),
        ({"line": (0, 1, 2)}, "line: found"),
        ({"operands_share": True}, "operands_share: found with cut_through"),
        ({"return_cycles": -1}, "return_cycles: found -1; allowed: 0 or more"),
        ({"tile_depth": 1}, "ejection_cycles: found 1; allowed: 2 or more"),
        ({"link_interval_cycles": 0}, "link_interval_cycles: found 0; allowed: 1 or more"),
    ],
)
def test_forms_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(PLAIN, **changes)
