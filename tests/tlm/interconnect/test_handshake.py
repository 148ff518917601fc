"""The handshake model by itself: the laws of an idle mesh, and what holds under any load.

That it takes the cycles of the RTL is shown in tests/rtl/test_mesh.py.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.zero_load import NocTiming

Item = tuple[int, int, TileSet, int]
ROWS, COLS = 5, 6
ANY_NODE = st.integers(0, ROWS * COLS - 1)
TIMING = NocTiming(
    hop_cycles=1, ejection_cycles=1, fifo_depth=4, multicast_gap_cycles=1, flit_bytes=8
)


def run(items: list[Item], rows: int = ROWS, cols: int = COLS) -> Deliveries:
    return HandshakeMesh(rows, cols, TIMING).simulate(Packets.of(items))


@st.composite
def spans(draw: st.DrawFn, size: int) -> range:
    first, last = sorted((draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))))
    return range(first, last + 1, draw(st.integers(1, 3)))


@st.composite
def tile_sets(draw: st.DrawFn) -> TileSet:
    return TileSet(draw(spans(ROWS)), draw(spans(COLS)))


@st.composite
def traffic(draw: st.DrawFn, nodes: st.SearchStrategy[int] = ANY_NODE) -> list[Item]:
    """Up to 40 packets in the order of their cycles, close enough together to meet."""
    items = []
    for _ in range(draw(st.integers(1, 40))):
        where = draw(tile_sets())
        flits = draw(st.integers(1, TIMING.fifo_depth if len(where) > 1 else 12))
        items.append((draw(st.integers(0, 60)), draw(nodes), where, flits))
    return sorted(items, key=lambda item: item[0])


def hops_to(source: int, where: TileSet) -> dict[int, int]:
    row, col = divmod(source, COLS)
    return {r * COLS + c: abs(r - row) + abs(c - col) for r in where.rows for c in where.cols}


@given(
    ANY_NODE,
    ANY_NODE,
    st.integers(1, 50),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_an_idle_mesh_keeps_the_unicast_law(
    source: int, target: int, flits: int, hop: int, ejection: int
) -> None:
    # A router that holds each flit for n cycles needs n + 1 places to pass one a cycle.
    timing = NocTiming(hop, ejection, 4, 1, 8)
    where = TileSet.tile(*divmod(target, COLS))
    seen = HandshakeMesh(ROWS, COLS, timing).simulate(Packets.of([(7, source, where, flits)]))
    hops = hops_to(source, where)[target]
    assert seen.latency_cycles().tolist() == [timing.unicast_cycles(hops, flits)]
    assert seen.head_ejected.tolist() == [7 + timing.head_cycles(hops)]
    assert seen.head_injected.tolist() == [7]
    assert seen.tail_injected.tolist() == [7 + flits - 1]


@given(ANY_NODE, tile_sets(), st.integers(1, 60), st.integers(2, 9))
def test_an_idle_mesh_keeps_the_multicast_law(
    source: int, where: TileSet, flits: int, depth: int
) -> None:
    if len(where) == 1:
        return
    timing = NocTiming(1, 1, depth, 1, 8)
    packets = Packets.of([(0, source, where, part) for part in cut(flits, depth)])
    seen = HandshakeMesh(ROWS, COLS, timing).simulate(packets)
    farthest = max(hops_to(source, where).values())
    cycles = int(seen.tail_ejected.max() - seen.head_injected.min())
    assert cycles == timing.multicast_cycles(farthest, flits)


@given(ANY_NODE, tile_sets(), st.integers(1, 4))
def test_each_copy_of_a_multicast_arrives_like_a_unicast(
    source: int, where: TileSet, flits: int
) -> None:
    seen = run([(0, source, where, flits)])
    expected = {node: TIMING.unicast_cycles(h, flits) for node, h in hops_to(source, where).items()}
    assert dict(zip(seen.node.tolist(), seen.tail_ejected.tolist(), strict=True)) == expected


@settings(deadline=None)
@given(traffic())
def test_every_packet_arrives_once_everywhere_and_never_early(items: list[Item]) -> None:
    packets, seen = Packets.of(items), run(items)
    expected = [(i, n) for i, item in enumerate(items) for n in sorted(item[2].nodes(COLS))]
    assert list(zip(seen.packet.tolist(), seen.node.tolist(), strict=True)) == expected
    law = [
        TIMING.unicast_cycles(hops_to(items[i][1], items[i][2])[n], items[i][3])
        for i, n in expected
    ]
    assert (seen.tail_ejected - seen.head_injected[seen.packet] >= law).all()
    assert (seen.head_injected >= packets.cycle).all()
    assert (seen.tail_injected - seen.head_injected >= packets.flits - 1).all()


def test_a_multicast_is_passed_over_by_one_packet_at_most() -> None:
    # An unbroken stream along the row never lets the buffer behind run empty by itself.
    stream: list[Item] = [(0, 0, TileSet.tile(0, 2), 3)] * 50
    seen = run([*stream, (10, 1, TileSet(range(1), range(1, 3)), 4)], rows=1, cols=3)
    assert seen.latency_cycles()[50] <= 3 + TIMING.fifo_depth + TIMING.multicast_cycles(1, 4)


def test_reductions_are_refused_where_there_is_no_unit() -> None:
    mesh = HandshakeMesh(1, 2, TIMING, reductions=False)
    with pytest.raises(InputError, match="made without reductions"):
        mesh.simulate(Packets.of([(0, 0, ReductionGoal(TileSet.tile(0, 0), 1), 1)]))


@settings(deadline=None)
@given(traffic())
def test_a_port_passes_one_packet_at_a_time(items: list[Item]) -> None:
    packets, seen = Packets.of(items), run(items)
    sides = [
        (packets.source, seen.head_injected, seen.tail_injected),
        (seen.node, seen.head_ejected, seen.tail_ejected),
    ]
    for node, head, tail in sides:
        order = np.lexsort((head, node))
        same = np.diff(node[order]) == 0
        assert (head[order][1:] > tail[order][:-1])[same].all()


@settings(deadline=None)
@given(traffic())
def test_packets_between_two_tiles_keep_their_order(items: list[Item]) -> None:
    packets, seen = Packets.of(items), run(items)
    source = packets.source[seen.packet]
    order = np.lexsort((seen.packet, source, seen.node))
    same = (np.diff(seen.node[order]) == 0) & (np.diff(source[order]) == 0)
    assert (np.diff(seen.head_ejected[order]) > 0)[same].all()


@settings(deadline=None)
@given(traffic(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 100))
def test_place_and_start_do_not_matter(items: list[Item], down: int, right: int, late: int) -> None:
    cols = COLS + right + 1
    moved = [
        (
            cycle + late,
            (source // COLS + down) * cols + source % COLS + right,
            TileSet(
                range(where.rows.start + down, where.rows.stop + down, where.rows.step),
                range(where.cols.start + right, where.cols.stop + right, where.cols.step),
            ),
            flits,
        )
        for cycle, source, where, flits in items
    ]
    here, there = run(items), run(moved, ROWS + down + 1, cols)
    for name in ("head_injected", "tail_injected", "head_ejected", "tail_ejected"):
        assert (getattr(here, name) + late == getattr(there, name)).all()


@settings(deadline=None)
@given(traffic(nodes=st.just(14)), st.sampled_from(["rows", "columns"]))
def test_what_one_source_sends_is_the_same_in_a_mirror(items: list[Item], axis: str) -> None:
    # With two sources it is not: ports are served in the order of their numbers.
    def flip(values: range, size: int) -> range:
        return range(size - 1 - values[-1], size - values[0], values.step)

    row, col = divmod(14, COLS)
    if axis == "rows":
        source = (ROWS - 1 - row) * COLS + col
        mirrored = [(t, source, TileSet(flip(w.rows, ROWS), w.cols), f) for t, _, w, f in items]
    else:
        source = row * COLS + COLS - 1 - col
        mirrored = [(t, source, TileSet(w.rows, flip(w.cols, COLS)), f) for t, _, w, f in items]
    assert run(items).last_ejected().tolist() == run(mirrored).last_ejected().tolist()


@settings(deadline=None)
@given(traffic())
def test_unicasts_of_one_source_are_the_same_transposed(items: list[Item]) -> None:
    size = max(ROWS, COLS)
    source, there = 2 * size + 1, 1 * size + 2
    tiles = [(t, w.rows[0], w.cols[0], f) for t, _, w, f in items]
    plain = run([(t, source, TileSet.tile(r, c), f) for t, r, c, f in tiles], size, size)
    turned = run([(t, there, TileSet.tile(c, r), f) for t, r, c, f in tiles], size, size)
    assert plain.tail_ejected.tolist() == turned.tail_ejected.tolist()


@settings(deadline=None)
@given(traffic(), st.booleans())
def test_packet_by_packet_is_the_same_as_all_at_once(items: list[Item], all_first: bool) -> None:
    mesh, events = HandshakeMesh(ROWS, COLS, TIMING), list[Event]()
    for number, item in enumerate(items):
        while not all_first and (found := mesh.advance(item[0])):
            events += found
        assert mesh.inject(*item) == number
    while found := mesh.advance(10_000):
        assert len({event.cycle for event in found}) == 1
        events += found
    assert mesh.idle
    seen, packets = run(items), Packets.of(items)
    expected = [
        Event(EventKind.INJECTED, i, int(packets.source[i]), int(seen.tail_injected[i]))
        for i in range(len(items))
    ] + [
        Event(EventKind.EJECTED, int(p), int(n), int(c))
        for p, n, c in zip(seen.packet, seen.node, seen.tail_ejected, strict=True)
    ]

    def key(event: Event) -> tuple[Any, ...]:
        return event.cycle, event.kind.value, event.packet, event.node

    assert sorted(events, key=key) == sorted(expected, key=key)
    assert [event.cycle for event in events] == sorted(event.cycle for event in events)


def test_many_short_packets_go_into_a_deep_buffer_ahead_of_the_clock() -> None:
    mesh = HandshakeMesh(1, 2, replace(TIMING, fifo_depth=256))
    for _ in range(400):
        mesh.inject(0, 0, TileSet.tile(0, 1), 1)
    events: list[Event] = []
    while found := mesh.advance(10_000):
        events += found
    cycles = {kind: [e.cycle for e in events if e.kind is kind] for kind in EventKind}
    assert cycles[EventKind.INJECTED] == list(range(400))
    assert cycles[EventKind.EJECTED] == list(range(2, 402))
    assert mesh.idle


def test_advance_stops_before_the_cycle_it_is_given() -> None:
    mesh = HandshakeMesh(1, 2, TIMING)
    assert mesh.idle and mesh.advance(50) == []
    mesh.inject(60, 0, TileSet.tile(0, 1), 3)
    assert not mesh.idle
    assert mesh.advance(62) == []
    assert mesh.advance(63) == [Event(EventKind.INJECTED, 0, 0, 62)]
    assert mesh.advance(64) == []
    assert mesh.advance(10**9) == [Event(EventKind.EJECTED, 0, 1, 64)]
    assert mesh.idle and mesh.advance(10**9) == []


def test_a_hot_tile_takes_one_flit_a_cycle_and_never_rests() -> None:
    rng = np.random.default_rng(4)
    spot = TileSet.tile(2, 3)
    items = [(0, n, spot, int(rng.integers(1, 20))) for _ in range(9) for n in range(ROWS * COLS)]
    seen = run(items)
    assert seen.tail_ejected.max() - seen.head_ejected.min() + 1 == sum(i[3] for i in items)


def test_waiting_inputs_of_a_router_take_turns() -> None:
    # From the tile itself and from all sides to the centre of a 3x3, twice: ports 0 to 4 each time.
    around = (4, 1, 5, 7, 3)
    seen = run([(0, node, TileSet.tile(1, 1), 2) for _ in range(2) for node in around], 3, 3)
    assert seen.packet.tolist() == list(range(10))
    assert seen.head_ejected.tolist() == list(range(1, 21, 2))


def test_a_multicast_longer_than_a_buffer_never_goes() -> None:
    with pytest.raises(DeadlockError, match=r"no flit can move after cycle \d+; .*: \[1\]"):
        run([(0, 0, TileSet.tile(0, 0), 1), (0, 0, TileSet(range(2), range(2)), 5)])


PAIR = TileSet(range(1), range(2))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([(0, -1, TileSet.tile(0, 0), 3)], "packet 0: found source -1"),
        ([(0, ROWS * COLS, TileSet.tile(0, 0), 3)], f"packet 0: found source {ROWS * COLS}"),
        ([(0, 0, TileSet.tile(0, 0), 3), (0, 0, TileSet.tile(0, COLS), 3)], "packet 1: found"),
        ([(0, 0, TileSet(range(-1, 2), range(2)), 3)], "packet 0: found"),
        ([(0, 0, ReductionGoal(PAIR, 99), 3)], "root 99"),
        ([(0, 2, ReductionGoal(PAIR, 0), 3)], "operands from tiles of their own set"),
        (
            [(0, 0, ReductionGoal(PAIR, 0), 2), (0, 1, ReductionGoal(PAIR, 0), 4)],
            "packet 1: found 4 flits",
        ),
        ([(0, 0, TileSet.tile(0, 0), 2**30)], "found 1073741824 flits; allowed: up to 1073741823"),
        ([(2**30, 0, TileSet.tile(0, 0), 3)], "found cycles 1073741824 to 1073741824; allowed: 0"),
    ],
)
def test_packets_that_do_not_fit_are_refused(
    items: list[tuple[int, int, TileSet | ReductionGoal, int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        HandshakeMesh(ROWS, COLS, TIMING).simulate(Packets.of(items))


def test_a_packet_that_comes_too_late_is_refused() -> None:
    mesh = HandshakeMesh(ROWS, COLS, TIMING)
    mesh.inject(10, 0, TileSet.tile(0, 1), 3)
    while not mesh.idle:
        mesh.advance(100)
    with pytest.raises(InputError, match="found cycles 5 to 5; allowed: 1"):
        mesh.inject(5, 0, TileSet.tile(0, 1), 3)
    with pytest.raises(InputError, match="has been used"):
        mesh.simulate(Packets.of([(200, 0, TileSet.tile(0, 1), 3)]))


@pytest.mark.parametrize(
    "field", ["hop_cycles", "ejection_cycles", "fifo_depth", "output_depth", "reduce_cycles"]
)
def test_routers_that_cannot_be_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=rf"{field}: found -1; allowed: \d or more"):
        replace(TIMING, **{field: -1})
    with pytest.raises(InputError, match="hop_cycles: found 1; allowed: 2 or more"):
        replace(TIMING, hop_cycles=1, output_depth=2)
    with pytest.raises(InputError, match="mesh: found 0x3"):
        HandshakeMesh(0, 3, TIMING)


def test_idle_cycles_cost_nothing() -> None:
    # A billion of them: a look at each thousandth would take seconds.
    begin = time.process_time()
    seen = run([(0, 0, TileSet.tile(1, 1), 3), (10**9, 0, TileSet.tile(1, 1), 3)])
    assert time.process_time() - begin < 1
    assert seen.latency_cycles()[0] == seen.latency_cycles()[1]


def test_reports_of_both_buffers_of_a_tile_find_room() -> None:
    mesh = HandshakeMesh(1, 1, replace(TIMING, fifo_depth=256))
    one = TileSet.tile(0, 0)
    for _ in range(400):
        mesh.inject(0, 0, one, 1)
        mesh.inject(0, 0, ReductionGoal(one, 0), 1)
    events = []
    while not mesh.idle:
        events += mesh.advance(10**6)
    assert len(events) == 2 * 800


def test_operands_may_wait_for_others_that_are_not_there_yet() -> None:
    mesh = HandshakeMesh(ROWS, COLS, TIMING)
    mesh.inject(0, 0, ReductionGoal(PAIR, 0), 2)
    while not mesh.idle:
        mesh.advance(1000)
    mesh.inject(500, 1, ReductionGoal(PAIR, 0), 2)
    events = []
    while not mesh.idle:
        events += mesh.advance(1000)
    assert [(e.packet, e.node) for e in events if e.kind is EventKind.EJECTED] == [(0, 0)]
    with pytest.raises(DeadlockError, match="for operands that have not come"):
        HandshakeMesh(ROWS, COLS, TIMING).simulate(Packets.of([(0, 0, ReductionGoal(PAIR, 0), 2)]))


def test_a_hang_among_operands_and_output_buffers_names_its_cycle() -> None:
    # Everything has been sent, but what meets shares an output's buffer with what blocks it.
    timing = replace(
        TIMING, hop_cycles=3, ejection_cycles=3, output_depth=2, reduce_cycles=0, cut_through=False
    )
    goal = ReductionGoal(TileSet(range(1, 4, 2), range(1)), 3)
    there, here = TileSet.tile(2, 0), TileSet.tile(0, 0)
    items: list[tuple[int, int, TileSet | ReductionGoal, int]] = [
        (2, 2, there, 11), (4, 3, there, 1), (3, 3, here, 17),
        (3, 2, TileSet(range(4), range(1)), 6), (3, 1, goal, 2), (3, 3, goal, 2),
        (0, 1, goal, 3), (0, 3, goal, 3),
    ]  # fmt: skip
    with pytest.raises(DeadlockError) as hang:
        HandshakeMesh(4, 1, timing).simulate(Packets.of(items))
    assert len(hang.value.cycle) > 1
    assert not hang.value.too_long
    mesh = HandshakeMesh(4, 1, timing)
    for item in items:
        mesh.inject(*item)
    with pytest.raises(DeadlockError):
        while not mesh.idle:
            mesh.advance(1000)


def test_every_hang_names_its_cycle() -> None:
    rng = np.random.default_rng(8)
    hangs = 0
    for _ in range(300):
        timing = replace(
            TIMING, hop_cycles=2, ejection_cycles=2, output_depth=int(rng.choice([0, 2, 3])),
            reduce_cycles=int(rng.integers(3)), cut_through=False,
        )  # fmt: skip
        group = ReductionGoal(TileSet(range(0, 3, 2), range(2)), int(rng.integers(6)))
        items: list[tuple[int, int, TileSet | ReductionGoal, int]] = []
        for _ in range(12):
            where = TileSet(range(int(rng.integers(1, 4))), range(int(rng.integers(1, 3))))
            items.append(
                (int(rng.integers(9)), int(rng.integers(6)), where, int(rng.integers(1, 14)))
            )
        for turn in range(2):
            flits, when = int(rng.integers(1, 5)), int(rng.integers(20))
            items += [(when + turn, node, group, flits) for node in group.operands.nodes(2)]
        try:
            HandshakeMesh(3, 2, timing).simulate(Packets.of(items))
        except DeadlockError as hang:
            hangs += 1
            assert hang.cycle, hang
    assert hangs > 20
