"""Laws of the handshake model over all kinds of packets and all forms of the mesh.

tests/tlm/interconnect/test_handshake.py has those of one form without reductions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import (
    REDUCTIONS,
    Deliveries,
    Int64s,
    Packets,
    ReductionGoal,
    TileSet,
    cut,
)
from tlm.interconnect.traffic import Traffic
from tlm.interconnect.zero_load import NocTiming

Item = tuple[int, int, TileSet | ReductionGoal, int]
ROWS, COLS = 3, 4
NODES = st.integers(0, ROWS * COLS - 1)
FAR_CYCLE = 1_000_000
TIMES = ("head_injected", "tail_injected", "head_ejected", "tail_ejected")


@dataclass(frozen=True)
class Mesh:
    """A mesh, to be made anew for each run."""

    rows: int
    cols: int
    timing: NocTiming

    def model(self) -> HandshakeMesh:
        return HandshakeMesh(self.rows, self.cols, self.timing)

    def run(self, items: list[Item]) -> Deliveries:
        return self.model().simulate(Packets.of(items))

    def hops(self, source: int, target: int) -> int:
        (row, col), (to_row, to_col) = divmod(source, self.cols), divmod(target, self.cols)
        return abs(row - to_row) + abs(col - to_col)

    def destinations(self, source: int, where: TileSet) -> list[int]:
        """Where copies come; without loopback a multicast leaves its own source out."""
        nodes = where.nodes(self.cols)
        alone = len(nodes) == 1 or self.timing.loopback
        return [node for node in nodes if alone or node != source]


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Every parameter of rtl/noc/mesh.sv that the model knows."""
    output_depth = draw(st.sampled_from([0, 1, 2, 4]))
    hop_cycles = draw(st.integers(1, 2)) + (output_depth > 0)
    timing = NocTiming(
        hop_cycles=hop_cycles,
        ejection_cycles=hop_cycles,
        fifo_depth=draw(st.sampled_from([2, 4, 8])),
        multicast_gap_cycles=1,
        flit_bytes=8,
        output_depth=output_depth,
        reduce_cycles=draw(st.integers(0, 2)),
        y_first=draw(st.booleans()),
        loopback=draw(st.booleans()),
    )
    return Mesh(ROWS, COLS, timing)


@st.composite
def spans(draw: st.DrawFn, size: int) -> range:
    first, last = sorted((draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))))
    return range(first, last + 1, draw(st.integers(1, 3)))


@st.composite
def tile_sets(draw: st.DrawFn) -> TileSet:
    return TileSet(draw(spans(ROWS)), draw(spans(COLS)))


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Mesh, list[Item]]:
    """Packets of all kinds close enough together to meet, in the order of their cycles.

    The reductions are those of one group, issued in the same order by each of its tiles.
    """
    mesh = draw(meshes())
    cycles, bound = st.integers(0, 40), st.integers(1, mesh.timing.fifo_depth)
    items: list[Item] = []
    for _ in range(draw(st.integers(1, 20))):
        where = draw(tile_sets())
        flits = draw(bound if len(where) > 1 else st.integers(1, 12))
        items.append((draw(cycles), draw(NODES), where, flits))
    group = draw(tile_sets())
    late = draw(st.lists(cycles, min_size=len(group), max_size=len(group)))
    for cycle in sorted(draw(st.lists(cycles, max_size=4))):
        goal, flits = (
            ReductionGoal(group, draw(NODES), draw(st.sampled_from(REDUCTIONS))),
            draw(bound),
        )
        tiles = zip(group.nodes(COLS), late, strict=True)
        items += [(cycle + after, node, goal, flits) for node, after in tiles]
    return mesh, sorted(items, key=lambda item: item[0])


@st.composite
def lonely(draw: st.DrawFn) -> tuple[Mesh, list[Item]]:
    """Transfers of all kinds, each when the mesh has long been empty."""
    mesh = draw(meshes())
    items: list[Item] = []
    for turn in range(draw(st.integers(1, 6))):
        start, flits = 1000 * turn, draw(st.integers(1, 64))
        source, root, where = draw(NODES), draw(NODES), draw(tile_sets())
        parts = cut(flits, mesh.timing.fifo_depth)
        kind = draw(st.sampled_from(["unicast", "multicast", "reduction"]))
        if kind == "reduction":
            goal = ReductionGoal(where, root, draw(st.sampled_from(REDUCTIONS)))
            items += [(start, node, goal, part) for part in parts for node in where.nodes(COLS)]
        elif kind == "multicast" and len(where) > 1:
            items += [(start, source, where, part) for part in parts]
        else:
            items.append((start, source, TileSet.tile(*divmod(root, COLS)), flits))
    return mesh, items


@given(crowds())
def test_every_flit_arrives_once_and_ports_pass_one_at_a_time(
    crowd: tuple[Mesh, list[Item]],
) -> None:
    mesh, items = crowd
    packets, seen = Packets.of(items), mesh.run(items)
    expected = []
    for number, (_, source, goal, _) in enumerate(items):
        if isinstance(goal, TileSet):
            expected += [(number, node) for node in mesh.destinations(source, goal)]
        elif packets.joint[number] == number:
            expected.append((number, goal.root))
    assert list(zip(seen.packet.tolist(), seen.node.tolist(), strict=True)) == expected
    sides = [
        (packets.source, seen.head_injected, seen.tail_injected, packets.flits),
        (seen.node, seen.head_ejected, seen.tail_ejected, packets.flits[seen.packet]),
    ]
    for node, head, tail, flits in sides:
        # Room for every flit, and for those of one packet at a time.
        assert (tail - head + 1 >= flits).all()
        order = np.lexsort((head, node))
        same = np.diff(node[order]) == 0
        assert (head[order][1:] > tail[order][:-1])[same].all()


@given(crowds())
def test_nothing_is_faster_than_in_an_idle_mesh(crowd: tuple[Mesh, list[Item]]) -> None:
    mesh, items = crowd
    packets, seen = Packets.of(items), mesh.run(items)
    assert (seen.head_injected >= packets.cycle).all()
    for number, node, tail in zip(seen.packet, seen.node, seen.tail_ejected, strict=True):
        # A result cannot come before its slowest operand; `joint` finds them, or the packet.
        for sent in np.nonzero(packets.joint == number)[0].tolist():
            law = mesh.timing.unicast_cycles(mesh.hops(items[sent][1], int(node)), items[sent][3])
            assert tail - seen.head_injected[sent] >= law


@given(crowds(), st.integers(1, 10**9))
def test_the_calendar_does_not_matter(crowd: tuple[Mesh, list[Item]], late: int) -> None:
    mesh, items = crowd
    here, there = mesh.run(items), mesh.run([(item[0] + late, *item[1:]) for item in items])
    for name in TIMES:
        assert (getattr(here, name) + late == getattr(there, name)).all()


@given(crowds(), st.booleans())
def test_packet_by_packet_is_the_same_as_all_at_once(
    crowd: tuple[Mesh, list[Item]], all_first: bool
) -> None:
    mesh, items = crowd
    model, events = mesh.model(), list[Event]()
    for number, item in enumerate(items):
        while not all_first and (found := model.advance(item[0])):
            events += found
        assert model.inject(*item) == number
    while found := model.advance(FAR_CYCLE):
        events += found
    assert model.idle
    seen = mesh.run(items)
    expected = [
        (int(seen.tail_injected[i]), EventKind.INJECTED, i, items[i][1]) for i in range(len(items))
    ] + [
        (cycle, EventKind.EJECTED, packet, node)
        for cycle, packet, node in zip(
            seen.tail_ejected.tolist(), seen.packet.tolist(), seen.node.tolist(), strict=True
        )
    ]
    told = [(event.cycle, event.kind, event.packet, event.node) for event in events]
    assert [event[0] for event in told] == sorted(event[0] for event in told)

    def key(event: tuple[int, EventKind, int, int]) -> tuple[int, str, int, int]:
        return event[0], str(event[1].value), event[2], event[3]

    assert sorted(told, key=key) == sorted(expected, key=key)


# ---- symmetry ----


def flip(values: range, size: int) -> range:
    return range(size - 1 - values[-1], size - values[0], values.step)


def mirrored(mesh: Mesh, item: Item) -> Item:
    """Rows and columns counted from the other end."""

    def tiles(where: TileSet) -> TileSet:
        return TileSet(flip(where.rows, mesh.rows), flip(where.cols, mesh.cols))

    return moved(item, lambda node: mesh.rows * mesh.cols - 1 - node, tiles)


def transposed(mesh: Mesh, item: Item) -> Item:
    """Rows for columns."""

    def node(at: int) -> int:
        return at % mesh.cols * mesh.rows + at // mesh.cols

    return moved(item, node, lambda where: TileSet(where.cols, where.rows))


def moved(item: Item, node: Callable[[int], int], tiles: Callable[[TileSet], TileSet]) -> Item:
    cycle, source, goal, flits = item
    if isinstance(goal, ReductionGoal):
        return cycle, node(source), replace(goal, operands=tiles(goal.operands),
                                            root=node(goal.root)), flits  # fmt: skip
    return cycle, node(source), tiles(goal), flits


def images(mesh: Mesh, items: list[Item]) -> list[tuple[Mesh, list[Item]]]:
    """The same traffic in a mirror, and with rows for columns and the other dimension first."""
    other = replace(mesh.timing, y_first=not mesh.timing.y_first)
    return [
        (mesh, [mirrored(mesh, item) for item in items]),
        (Mesh(mesh.cols, mesh.rows, other), [transposed(mesh, item) for item in items]),
    ]


@given(lonely())
def test_transfers_that_do_not_meet_are_the_same_in_a_mirror_and_transposed(
    transfers: tuple[Mesh, list[Item]],
) -> None:
    mesh, items = transfers
    seen = mesh.run(items)
    for image, turned in images(mesh, items):
        found = image.run(turned)
        assert found.head_injected.tolist() == seen.head_injected.tolist()
        assert found.last_ejected().tolist() == seen.last_ejected().tolist()


def unicasts(traffic: Traffic) -> list[Item]:
    packets = traffic.packets()
    return [
        (cycle, source, packets.tiles(number), flits)
        for number, (cycle, source, flits) in enumerate(
            zip(packets.cycle.tolist(), packets.source.tolist(), packets.flits.tolist(),
                strict=True)
        )
    ]  # fmt: skip


@settings(max_examples=10)
@given(meshes(), st.integers(0, 10**6))
def test_means_are_nearly_the_same_in_a_mirror_and_transposed(mesh: Mesh, seed: int) -> None:
    # Not the same: where two ports ask in the same cycle their numbers decide who goes first, and
    # numbers are not mirrored.
    items = unicasts(Traffic(ROWS, COLS, "uniform", 0.25, 5, 10_000, seed))
    mean = mesh.run(items).latency_cycles().mean()
    for image, turned in images(mesh, items):
        assert image.run(turned).latency_cycles().mean() == pytest.approx(mean, rel=0.02)


def waiting_cycles(packets: Packets, seen: Deliveries) -> Int64s:
    """From joining the source's queue to the last ejection."""
    return seen.last_ejected() - packets.cycle


@settings(max_examples=10)
@given(meshes(), st.integers(0, 10**6), st.sampled_from(["uniform", "hotspot", "tornado"]))
def test_the_mean_latency_rises_with_the_load(mesh: Mesh, seed: int, pattern: str) -> None:
    # The same packets, offered at denser times. It need not hold for each packet: who meets whom
    # changes, and one that waited at a tight port may find it free.
    sparse = Traffic(ROWS, COLS, pattern, 0.02, 5, 40_000, seed).packets()
    means = []
    for denser in (1, 2, 4, 8, 16):
        packets = replace(sparse, cycle=sparse.cycle // denser)
        means.append(waiting_cycles(packets, mesh.model().simulate(packets)).mean())
    assert all(more > less for less, more in zip(means, means[1:], strict=False))


def test_a_single_packet_may_gain_from_load() -> None:
    # What the comment above says: this traffic has such packets.
    mesh = Mesh(ROWS, COLS, NocTiming(1, 1, 4, 1, 8))
    sparse = Traffic(ROWS, COLS, "uniform", 0.2, 5, 4000, 1).packets()
    dense = replace(sparse, cycle=sparse.cycle // 2)
    before = waiting_cycles(sparse, mesh.model().simulate(sparse))
    after = waiting_cycles(dense, mesh.model().simulate(dense))
    assert (after < before).any() and after.mean() > before.mean()
