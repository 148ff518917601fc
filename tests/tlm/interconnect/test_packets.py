"""Tile sets, packets as arrays, and their deliveries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, PacketKind, Packets, ReductionGoal, TileSet, cut


def test_nodes_are_numbered_row_by_row() -> None:
    strided = TileSet(range(1, 4, 2), range(0, 5, 3))
    assert strided.nodes(mesh_cols=5) == [5, 8, 15, 18]
    assert len(strided) == 4
    assert TileSet.tile(2, 1).nodes(mesh_cols=5) == [11]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9),
            st.integers(0, 10**6),
            st.builds(
                TileSet,
                st.builds(range, st.integers(0, 5), st.integers(6, 99), st.integers(1, 5)),
                st.builds(range, st.integers(0, 5), st.integers(6, 99), st.integers(1, 5)),
            ),
            st.integers(1, 10**6),
        )
    )
)
def test_packets_keep_what_they_were_made_of(items: list[tuple[int, int, TileSet, int]]) -> None:
    packets = Packets.of(items)
    assert len(packets) == len(items)
    for number, (cycle, source, where, flits) in enumerate(items):
        assert (packets.cycle[number], packets.source[number], packets.flits[number]) == (
            cycle,
            source,
            flits,
        )
        kept = packets.tiles(number)
        assert kept.nodes(1000) == where.nodes(1000)
        assert packets.destination_counts()[number] == len(where)
        assert packets.kind[number] == (len(where) > 1)
    assert all(column.flags.c_contiguous for column in packets.columns())


def test_operands_of_one_reduction_meet_in_the_order_of_sending() -> None:
    row = TileSet(range(1), range(0, 3, 2))
    to_left, to_right = (
        ReductionGoal(row, root=0),
        ReductionGoal(row, root=1, kind=PacketKind.MAXIMUM),
    )
    order = [(2, to_left), (0, to_left), (0, to_right), (0, to_left), (2, to_right), (2, to_left)]
    packets = Packets.of((0, source, goal, 4) for source, goal in order)
    assert packets.kind.tolist() == [2, 2, 3, 2, 3, 2]
    assert packets.root.tolist() == [0, 0, 1, 0, 1, 0]
    assert packets.joint.tolist() == [0, 0, 2, 3, 2, 3]
    assert packets.destination_counts().tolist() == [1, 0, 1, 1, 0, 0]
    assert packets.tiles(4) == row


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ((-1, 0, TileSet.tile(0, 0), 1), "cycle -1, 1 destinations, 1 flits"),
        ((0, 0, TileSet(range(0), range(3)), 1), "cycle 0, 0 destinations, 1 flits"),
        ((0, 0, TileSet.tile(0, 0), 0), "cycle 0, 1 destinations, 0 flits"),
    ],
)
def test_impossible_packets_are_refused(item: tuple[int, int, TileSet, int], found: str) -> None:
    good = (0, 0, TileSet.tile(0, 0), 1)
    with pytest.raises(InputError) as error:
        Packets.of([good, item])
    assert str(error.value) == (
        f"packet 1: {found}; a packet needs a cycle of 0 or more, a destination and a flit"
    )


@given(st.integers(1, 10**6), st.integers(1, 300))
def test_cut_makes_full_packets_and_a_rest(flits: int, bound: int) -> None:
    parts = cut(flits, bound)
    assert sum(parts) == flits
    assert parts[:-1] == [bound] * (len(parts) - 1)
    assert 1 <= parts[-1] <= bound


def test_latency_is_from_the_head_in_to_the_last_copy_out() -> None:
    def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    seen = Deliveries(
        head_injected=column(3, 10),
        tail_injected=column(4, 11),
        packet=column(0, 0, 1),
        node=column(1, 2, 0),
        head_ejected=column(6, 5, 12),
        tail_ejected=column(9, 7, 13),
    )
    assert seen.last_ejected().tolist() == [9, 13]
    assert seen.latency_cycles().tolist() == [6, 3]
