"""Reductions that may be in flight together, and those that may not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.ordering import check_reductions, tree_links
from tlm.interconnect.packets import REDUCTIONS, PacketKind, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import NocTiming

ROWS, COLS = 4, 5
RULE = (
    "reductions in flight together need the same operand tiles, in the same order at each, "
    "or trees without a common link"
)


def spans(size: int) -> st.SearchStrategy[range]:
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1), st.integers(1, 3))
    return ends.map(lambda e: range(min(e[:2]), max(e[:2]) + 1, e[2]))


groups = st.builds(TileSet, spans(ROWS), spans(COLS))
roots = st.integers(0, ROWS * COLS - 1)


def walked(operands: TileSet, root: int, *, y_first: bool) -> set[tuple[int, int]]:
    """Every operand's way, a step at a time."""
    links = set()
    for node in operands.nodes(COLS):
        links.add((node, node))
        at, goal = list(divmod(node, COLS)), divmod(root, COLS)
        for axis in (0, 1) if y_first else (1, 0):
            while at[axis] != goal[axis]:
                before = at[0] * COLS + at[1]
                at[axis] += 1 if goal[axis] > at[axis] else -1
                links.add((before, at[0] * COLS + at[1]))
    return links


def issue(*reductions: ReductionGoal) -> Packets:
    """All operands of each reduction in turn."""
    return Packets.of(
        (turn, node, reduction, 2)
        for turn, reduction in enumerate(reductions)
        for node in reduction.operands.nodes(COLS)
    )


@given(groups, roots, st.booleans())
def test_a_tree_is_the_union_of_the_ways_of_its_operands(
    operands: TileSet, root: int, y_first: bool
) -> None:
    assert tree_links(operands, root, COLS, y_first=y_first) == walked(
        operands, root, y_first=y_first
    )


@given(
    groups,
    st.lists(st.tuples(roots, st.sampled_from(REDUCTIONS)), min_size=1, max_size=6),
    st.booleans(),
)
def test_one_group_may_have_any_roots(
    operands: TileSet, goals: list[tuple[int, PacketKind]], y_first: bool
) -> None:
    packets = issue(*(ReductionGoal(operands, root, kind) for root, kind in goals))
    check_reductions(packets, COLS, y_first=y_first)


@given(groups, roots, groups, roots, st.booleans())
def test_different_groups_pass_if_and_only_if_their_ways_are_apart(
    one: TileSet, one_root: int, other: TileSet, other_root: int, y_first: bool
) -> None:
    packets = issue(ReductionGoal(one, one_root), ReductionGoal(other, other_root))
    shared = walked(one, one_root, y_first=y_first) & walked(other, other_root, y_first=y_first)
    if shared and one != other:
        with pytest.raises(InputError, match="reductions of packets 0 and"):
            check_reductions(packets, COLS, y_first=y_first)
    else:
        check_reductions(packets, COLS, y_first=y_first)


def test_rows_do_not_meet() -> None:
    rows = [TileSet(range(row, row + 1), range(COLS)) for row in range(ROWS)]
    check_reductions(issue(*(ReductionGoal(row, row.rows[0] * COLS) for row in rows)), COLS)


def test_a_swapped_order_is_refused() -> None:
    pair = TileSet(range(1), range(2))
    to_0, to_1 = ReductionGoal(pair, 0), ReductionGoal(pair, 1)
    packets = Packets.of([(0, 0, to_0, 1), (0, 0, to_1, 1), (0, 1, to_1, 1), (0, 1, to_0, 1)])
    with pytest.raises(InputError) as error:
        check_reductions(packets, COLS)
    assert str(error.value) == (
        "reductions of packets 0 and 1: issued in another order by node 1 than by node 0; " + RULE
    )


def test_groups_that_meet_on_a_link_are_refused() -> None:
    left, right = TileSet(range(1), range(2)), TileSet(range(1), range(2, 4))
    with pytest.raises(InputError) as error:
        check_reductions(issue(ReductionGoal(left, 4), ReductionGoal(right, 4)), COLS)
    assert str(error.value) == (
        "reductions of packets 0 and 2: of different tiles, both need the link from node 2 to "
        "node 3; " + RULE
    )


def test_groups_that_meet_in_a_tile_alone_are_refused() -> None:
    row, column = TileSet(range(1), range(3)), TileSet(range(3), range(1))
    with pytest.raises(InputError, match="both need node 0's own operands"):
        check_reductions(issue(ReductionGoal(row, 2), ReductionGoal(column, 10)), COLS)


def test_a_reduction_without_all_its_operands_is_refused() -> None:
    goal = ReductionGoal(TileSet(range(1), range(3)), 0)
    with pytest.raises(InputError) as error:
        check_reductions(Packets.of([(0, 0, goal, 1), (0, 2, goal, 1)]), COLS)
    assert str(error.value) == (
        "reduction of packet 0: found operands of 2 tiles; allowed: one of each of its 3 tiles"
    )
    with pytest.raises(InputError, match="found an operand of node 4; allowed: one of each of the"):
        check_reductions(Packets.of([(0, n, goal, 1) for n in (0, 1, 4)]), COLS)


def test_a_hundred_thousand_operands_are_checked() -> None:
    rng = np.random.default_rng(1)
    everyone = TileSet(range(ROWS), range(COLS))
    packets = issue(
        *(ReductionGoal(everyone, int(root)) for root in rng.integers(ROWS * COLS, size=5000))
    )
    check_reductions(packets, COLS)


def test_units_that_take_the_first_in_line_ask_for_more() -> None:
    """Each pair is allowed where units wait for complete operands, and hangs where they do not."""
    square, flits = TileSet(range(2), range(2)), 2
    roots = [
        (cycle, node, ReductionGoal(square, root), flits)
        for root, cycles in ((1, (53, 35, 9, 54)), (0, (92, 92, 29, 64)), (1, (141, 137, 56, 81)))
        for node, cycle in enumerate(cycles)
    ]
    timing = NocTiming(
        2, 2, 2, 0, 8, reduce_cycles=1, reduce_interval_cycles=2, unit_lock_on_transfer=True
    )
    packets = Packets.of(roots)
    check_reductions(packets, 2)
    HandshakeMesh(2, 2, timing).simulate(packets)
    with pytest.raises(DeadlockError):
        HandshakeMesh(2, 2, replace(timing, unit_choice="first")).simulate(packets)
    with pytest.raises(InputError) as caught:
        check_reductions(packets, 2, unit_choice="first")
    assert str(caught.value) == (
        "reductions of packets 0 and 4: to different roots, both need the unit of node 0; where "
        "units take the first in line, reductions in flight together need the same operand tiles, "
        "in the same order at each, and the same root, or trees without a common router"
    )
    # They meet in the router in the middle, and need each other's room.
    north = ReductionGoal(TileSet(range(1, 2), range(0, 3, 2)), 1)
    middle = ReductionGoal(TileSet(range(0, 3, 2), range(1, 2)), 4)
    crossing = Packets.of(
        (0, node, goal, 1) for goal in (north, middle) for node in goal.operands.nodes(3)
    )
    check_reductions(crossing, 3)
    with pytest.raises(InputError, match="of different tiles, both need the unit of node 1"):
        check_reductions(crossing, 3, unit_choice="first")


@given(groups, roots, st.integers(2, 4))
def test_reductions_of_one_tree_are_allowed_whomever_units_take(
    group: TileSet, root: int, count: int
) -> None:
    packets = issue(*[ReductionGoal(group, root)] * count)
    check_reductions(packets, COLS, unit_choice="first")


def test_trees_without_a_common_router_are_allowed_whomever_units_take() -> None:
    rows = [TileSet(range(row, row + 1), range(COLS)) for row in range(ROWS)]
    packets = issue(*(ReductionGoal(row, row.rows[0] * COLS) for row in rows))
    check_reductions(packets, COLS, unit_choice="first")
