"""The example of a custom mesh, docs/custom_rtl/mask_mesh: its laws, its traffic, its hangs."""

from collections.abc import Iterator

import numpy as np
import pytest

from calibration.routers.mesh import BlackBoxMesh
from cosim.errors import HangError
from cosim.spec.mesh import load_spec
from tests.verilog_lint import lint
from tlm.calibrated import REPOSITORY
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet

pytestmark = pytest.mark.rtl

SPEC = load_spec(REPOSITORY / "docs" / "custom_rtl" / "mask_mesh" / "mask_mesh.toml")
SQUARE, OBLONG = BlackBoxMesh(SPEC, 4, 4), BlackBoxMesh(SPEC, 3, 4)
ADD_CYCLES = 3
#: Further apart than any transfer takes that is alone.
APART_CYCLES = 200
ROW = TileSet(range(1), range(4))

Item = tuple[int, int, TileSet | ReductionGoal, int]


def variant(rows: int, cols: int, **parameters: int) -> BlackBoxMesh:
    """The mesh with other parameters."""
    rtl = SPEC.rtl.model_copy(update={"parameters": parameters})
    return BlackBoxMesh(SPEC.model_copy(update={"rtl": rtl}), rows, cols)


def named(mesh: BlackBoxMesh, rng: np.random.Generator) -> TileSet:
    """A set that a header can name."""
    while True:
        sides = []
        for size in (mesh.rows, mesh.cols):
            first, last = sorted(rng.integers(0, size, 2).tolist())
            sides.append(range(first, last + 1, int(rng.integers(1, 3))))
        if mesh.layout().names(found := TileSet(*sides)):
            return found


def hops(mesh: BlackBoxMesh, source: int, node: int) -> int:
    """Links on the way between two nodes."""
    (row, col), (to_row, to_col) = divmod(source, mesh.cols), divmod(node, mesh.cols)
    return abs(row - to_row) + abs(col - to_col)


def lines(mesh: BlackBoxMesh) -> Iterator[ReductionGoal]:
    """Sums of several tiles of a row or column, the root at an end: two operands meet at most."""
    sides = [
        range(first, last + 1, step)
        for first in range(4)
        for last in range(first + 1, 4)
        for step in (1, 2)
    ]
    sets = [TileSet(range(mesh.rows - 1, mesh.rows), side) for side in sides]
    sets += [TileSet(side, range(1, 2)) for side in sides]
    for operands in sets:
        nodes = operands.nodes(mesh.cols)
        for root in (nodes[0], nodes[-1]):
            goal = ReductionGoal(operands, root)
            if len(nodes) > 1 and mesh.layout().names(goal):
                yield goal


def sums_take(
    mesh: BlackBoxMesh, router_cycles: int, add_cycles: int, interval_cycles: int
) -> None:
    """Hold the law of sums; a flit follows another ``interval_cycles`` later."""
    goals, flits = list(lines(mesh)), 3
    items = [
        (turn * APART_CYCLES, node, goal, flits)
        for turn, goal in enumerate(goals)
        for node in goal.operands.nodes(mesh.cols)
    ]
    deliveries = mesh.simulate(Packets.of(items))
    starts = APART_CYCLES * np.arange(len(goals))
    expected = [
        router_cycles * (1 + max(hops(mesh, node, goal.root) for node in nodes))
        + add_cycles * (len(nodes) - 1)
        + interval_cycles * (flits - 1)
        for goal in goals
        for nodes in [goal.operands.nodes(mesh.cols)]
    ]
    assert (deliveries.tail_ejected - starts).tolist() == expected


def copies_take(
    mesh: BlackBoxMesh, router_cycles: int, interval_cycles: int, *, loopback: bool = True
) -> None:
    """Hold the law of a unicast and of each copy of a multicast that are alone."""
    rng = np.random.default_rng(3)
    items: list[Item] = [
        (turn * APART_CYCLES, int(rng.integers(mesh.rows * mesh.cols)), named(mesh, rng), flits)
        for turn, flits in enumerate(rng.integers(1, 9, 40).tolist())
    ]
    packets = Packets.of(items)
    deliveries = mesh.simulate(packets, loopback=loopback)
    assert {PacketKind.UNICAST, PacketKind.MULTICAST} == set(packets.kind.tolist())
    far = np.array(
        [
            hops(mesh, int(packets.source[packet]), int(node))
            for packet, node in zip(deliveries.packet, deliveries.node, strict=True)
        ]
    )
    heads = deliveries.head_ejected - deliveries.head_injected[deliveries.packet]
    assert heads.tolist() == (router_cycles * (1 + far)).tolist()
    # Not over links: the sender's own copy.
    linked = far > 0
    tails = (deliveries.tail_ejected - deliveries.head_ejected)[linked]
    flits = packets.flits[deliveries.packet][linked]
    assert tails.tolist() == (interval_cycles * (flits - 1)).tolist()


def test_verilog_has_no_warning() -> None:
    for values in ({}, {"ExtraStages": 2, "LinkInterval": 3, "Loopback": 0, "Arbiter": 1}):
        outcome = lint(SPEC.rtl.top, SPEC.source_files(), **values)
        assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    "mesh",
    [pytest.param(SQUARE, id="4x4", marks=pytest.mark.slow), pytest.param(OBLONG, id="3x4")],
)
class TestMesh:
    def test_a_hop_takes_two_cycles(self, mesh: BlackBoxMesh) -> None:
        copies_take(mesh, router_cycles=2, interval_cycles=1)

    def test_a_meeting_takes_an_addition(self, mesh: BlackBoxMesh) -> None:
        sums_take(mesh, router_cycles=2, add_cycles=ADD_CYCLES, interval_cycles=ADD_CYCLES)

    def test_traffic_arrives_whole(self, mesh: BlackBoxMesh) -> None:
        # Four packets a cycle are more than the links can carry. The multicasts have one flit each:
        # a fork then holds no output while it waits for another, and nothing hangs.
        rng = np.random.default_rng(4)
        nodes, items = mesh.rows * mesh.cols, list[Item]()
        for turn in range(2000):
            source, goal, flits = int(rng.integers(nodes)), named(mesh, rng), 1
            if turn % 3:
                row, col = divmod(int(rng.integers(nodes)), mesh.cols)
                goal, flits = TileSet.tile(row, col), int(rng.integers(1, 17))
            items.append((turn // 4, source, goal, flits))
        deliveries = mesh.simulate(Packets.of(items))
        assert deliveries.tail_ejected.max() > 2 * items[-1][0]

    def test_sums_are_right_amid_unicasts(self, mesh: BlackBoxMesh) -> None:
        rng = np.random.default_rng(5)
        nodes, items = mesh.rows * mesh.cols, list[Item]()
        for turn in range(1000):
            if turn % 40 == 0:
                flits = int(rng.integers(1, 9))
                for node in range(nodes):
                    row = node // mesh.cols
                    tiles = TileSet(range(row, row + 1), range(mesh.cols))
                    items.append((turn, node, ReductionGoal(tiles, row * mesh.cols), flits))
            row, col = divmod(int(rng.integers(nodes)), mesh.cols)
            goal, flits = TileSet.tile(row, col), int(rng.integers(1, 9))
            items.append((turn, int(rng.integers(nodes)), goal, flits))
        deliveries = mesh.simulate(Packets.of(items))
        assert len(deliveries.packet) == 1000 + 25 * mesh.rows


def hang_from(mesh: BlackBoxMesh, flits: int, offset_cycles: int) -> None:
    """Hold that two multicasts along one row hang from this length on."""

    def both(flits: int) -> Packets:
        return Packets.of([(0, 0, ROW, flits), (offset_cycles, 3, ROW, flits)])

    assert len(mesh.simulate(both(flits - 1)).packet) == 8
    with pytest.raises(HangError, match="stands still since cycle"):
        mesh.simulate(both(flits))


@pytest.mark.parametrize("offset_cycles", [0, 5])
def test_long_multicasts_that_overlap_hang(offset_cycles: int) -> None:
    # Four flits find room between the waiting routers; the tile has its copy of the fifth already.
    hang_from(OBLONG, 6, offset_cycles)


def test_a_sum_of_three_operands_hangs() -> None:
    with pytest.raises(HangError):
        OBLONG.simulate(Packets.of([(0, node, ReductionGoal(ROW, root=1), 1) for node in range(4)]))


def contended(mesh: BlackBoxMesh) -> list[int]:
    """Sources, in order of arrival, of three packets from the west and three from the east."""
    items: list[Item] = [(0, source, TileSet.tile(0, 1), 4) for source in [0, 2] * 3]
    deliveries = mesh.simulate(Packets.of(items))
    return [items[packet][1] for packet in np.argsort(deliveries.head_ejected).tolist()]


def test_packets_take_turns_at_an_output() -> None:
    assert contended(OBLONG) == [2, 0] * 3


@pytest.mark.slow
def test_extra_stages_slow_links_and_no_loopback() -> None:
    mesh = variant(3, 4, ExtraStages=1, LinkInterval=2, AddCycles=1, Loopback=0, Arbiter=1)
    copies_take(mesh, router_cycles=3, interval_cycles=2, loopback=False)
    sums_take(mesh, router_cycles=3, add_cycles=1, interval_cycles=2)


@pytest.mark.slow
def test_deeper_buffers_and_a_fixed_arbiter() -> None:
    mesh = variant(3, 4, InDepth=4, OutDepth=3, Arbiter=1)
    assert contended(mesh) == [2, 2, 2, 0, 0, 0]  # the lowest port first
    hang_from(mesh, 4 + 3 + 2, 0)
