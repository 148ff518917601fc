"""The mesh in Verilog: every packet once, in order and intact, and in the cycles of the model."""

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.benches.mesh_bench import expected_deliveries, judge
from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH, RtlMesh, Sink
from cosim.spec.flits import payload
from cosim.spec.project import mesh_timing
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, TileSet
from tlm.interconnect.traffic import Traffic

Item = tuple[int, int, TileSet, int]
#: The large mesh takes minutes to build.
MESHES = [FIT_MESH, pytest.param(CHECK_MESH, marks=pytest.mark.slow)]
both = pytest.mark.parametrize("mesh", MESHES, ids=["4x4", "8x8"])


def mixed(mesh: RtlMesh, seed: int, packets: int = 400, rate: float = 0.2) -> Packets:
    """Unicasts of 1 to 20 flits and multicasts up to the bound, to strided sets and itself too."""
    rng = np.random.default_rng(seed)
    nodes = mesh.rows * mesh.cols
    items: list[Item] = []
    for _ in range(packets):
        where = TileSet(_some(mesh.rows, rng), _some(mesh.cols, rng))
        if rng.random() < 0.7:
            where = TileSet.tile(where.rows[0], where.cols[0])
        most = mesh.fifo_depth if len(where) > 1 else 20
        cycle = int(rng.integers(int(packets / (rate * nodes))))
        items.append((cycle, int(rng.integers(nodes)), where, int(rng.integers(1, most + 1))))
    return Packets.of(sorted(items, key=lambda item: item[0]))


def _some(size: int, rng: np.random.Generator) -> range:
    first, last = sorted(int(value) for value in rng.integers(0, size, 2))
    return range(first, last + 1, int(rng.integers(1, 4)))


def model_of(mesh: RtlMesh) -> HandshakeMesh:
    return HandshakeMesh(mesh.rows, mesh.cols, mesh_timing(mesh))


def assert_equal(rtl: Deliveries, model: Deliveries) -> None:
    for name in Deliveries.__slots__:
        np.testing.assert_array_equal(getattr(model, name), getattr(rtl, name), err_msg=name)


def assert_in_order(packets: Packets, seen: Deliveries) -> None:
    """At a tile packets do not mix, and those of one source arrive in the order of sending."""
    order = np.lexsort((seen.head_ejected, seen.node))
    same_node = np.diff(seen.node[order]) == 0
    gaps = seen.head_ejected[order][1:] - seen.tail_ejected[order][:-1]
    assert (gaps[same_node] > 0).all(), "packets mixed at a tile"
    source = packets.source[seen.packet]
    order = np.lexsort((seen.packet, source, seen.node))
    same_pair = (np.diff(seen.node[order]) == 0) & (np.diff(source[order]) == 0)
    assert (np.diff(seen.head_ejected[order])[same_pair] > 0).all(), "a packet was overtaken"


@pytest.mark.rtl
@pytest.mark.parametrize("stall", [0.1, 0.5, 0.9])
def test_packets_survive_tiles_that_refuse(stall: float) -> None:
    packets = mixed(FIT_MESH, seed=round(10 * stall))
    free = FIT_MESH.simulate(packets)
    stalled = FIT_MESH.simulate(packets, sink=Sink(stall_fraction=stall, seed=3))
    for seen in (free, stalled):
        assert_in_order(packets, seen)
    assert stalled.latency_cycles().mean() > free.latency_cycles().mean()


@pytest.mark.rtl
@pytest.mark.slow
def test_tiles_that_refuse_on_the_large_mesh() -> None:
    packets = mixed(CHECK_MESH, seed=5, packets=1500, rate=0.1)
    assert_in_order(packets, CHECK_MESH.simulate(packets, sink=Sink(stall_fraction=0.3, seed=8)))


@pytest.mark.rtl
def test_a_mesh_that_fills_up_empties_again() -> None:
    packets = mixed(FIT_MESH, seed=6, rate=2.0)
    seen = FIT_MESH.simulate(packets, sink=Sink(hold_cycles=1500))
    assert_in_order(packets, seen)
    assert seen.head_ejected.min() == 1500


@pytest.mark.rtl
@pytest.mark.parametrize("seed", [1, 2])
def test_tiles_that_wait_long_and_then_refuse_are_no_hang(seed: int) -> None:
    packets = Packets.of([(0, 0, TileSet.tile(0, 1), 3)])
    seen = FIT_MESH.simulate(packets, sink=Sink(1500, stall_fraction=0.95, seed=seed))
    assert seen.tail_ejected[0] >= 1502


@pytest.mark.rtl
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
@both
def test_every_packet_takes_the_cycles_of_the_model(mesh: RtlMesh, rate: float) -> None:
    # Packets of five flits on average and many copies: the last rate is far beyond saturation.
    packets = mixed(mesh, seed=round(100 * rate), packets=1000, rate=rate)
    assert_equal(mesh.simulate(packets), model_of(mesh).simulate(packets))


@pytest.mark.rtl
@pytest.mark.parametrize("pattern", ["hotspot", "tornado"])
@both
def test_long_unicasts_beyond_saturation_take_the_cycles_of_the_model(
    mesh: RtlMesh, pattern: str
) -> None:
    packets = Traffic(mesh.rows, mesh.cols, pattern, 0.9, 7, 600, seed=11).packets()
    assert_equal(mesh.simulate(packets), model_of(mesh).simulate(packets))


@pytest.mark.rtl
def test_zero_load_latency_of_all_pairs() -> None:
    nodes = range(16)
    pairs = [(a, b) for a in nodes for b in nodes]
    flits = np.random.default_rng(2).integers(1, 40, len(pairs)).tolist()
    items: list[Item] = [
        (60 * i, a, TileSet.tile(*divmod(b, 4)), flits[i]) for i, (a, b) in enumerate(pairs)
    ]
    timing = rtl_timing()
    law = [
        timing.unicast_cycles(abs(a // 4 - b // 4) + abs(a % 4 - b % 4), length)
        for (a, b), length in zip(pairs, flits, strict=True)
    ]
    assert FIT_MESH.simulate(Packets.of(items)).latency_cycles().tolist() == law


# The scoreboard: two packets on a 1x3 mesh, 0 to 2 in two flits, 1 to all in two.
PLAN = Packets.of([(0, 0, TileSet.tile(0, 2), 2), (0, 1, TileSet(range(1), range(3)), 2)])
WANTED = expected_deliveries(PLAN, 3)


def good_log() -> NDArray[np.uint64]:
    """(0 injected or 1 ejected, node, cycle, last, payload) a handshake."""
    streams = [(0, 0, 0, 5), (0, 1, 1, 5), (1, 2, 0, 8), (1, 0, 1, 7), (1, 1, 1, 6), (1, 2, 1, 12)]
    rows = []
    for kind, node, packet, cycle in streams:
        for flit in range(2):
            word = payload(np.array(packet, np.uint64), np.array(flit, np.uint64))
            rows.append((kind, node, cycle + flit, flit, int(word)))
    return np.array(sorted(rows, key=lambda row: row[2]), dtype=np.uint64)


def row_of(log: NDArray[np.uint64], kind: int, node: int, packet: int, flit: int) -> int:
    number, index = log[:, 4] >> np.uint64(32), log[:, 4] >> np.uint64(16) & np.uint64(0xFFFF)
    chosen = (log[:, 0] == kind) & (log[:, 1] == node) & (number == packet) & (index == flit)
    return int(np.nonzero(chosen)[0][0])


def test_the_scoreboard_condenses_a_good_log() -> None:
    seen = judge(PLAN, good_log(), WANTED)
    assert seen.head_injected.tolist() == [5, 5]
    assert seen.packet.tolist() == [0, 1, 1, 1]
    assert seen.node.tolist() == [2, 0, 1, 2]
    assert seen.head_ejected.tolist() == [8, 7, 6, 12]
    assert seen.tail_ejected.tolist() == [9, 8, 7, 13]


@pytest.mark.parametrize("kind", [0, 1])
def test_the_scoreboard_sees_a_lost_and_a_doubled_flit(kind: int) -> None:
    log = good_log()
    row = row_of(log, kind, 1, 1, 1)
    for bad, count in ((np.delete(log, row, 0), -1), (np.insert(log, row, log[row], 0), 1)):
        total = (4 if kind == 0 else 8) + count
        with pytest.raises(AssertionError, match=f"flits {('injected', 'ejected')[kind]}: {total}"):
            judge(PLAN, bad, WANTED)


def test_the_scoreboard_sees_a_flit_at_a_wrong_node() -> None:
    log = good_log()
    log[row_of(log, 1, 2, 0, 1), 1] = 1
    with pytest.raises(AssertionError, match=r"never sent there \[\(0, 1\)\]"):
        judge(PLAN, log, WANTED)


def test_the_scoreboard_sees_a_copy_that_never_came() -> None:
    log = good_log()
    keep = (log[:, 0] == 0) | (log[:, 1] != 0)
    with pytest.raises(AssertionError, match=r"missing \[\(1, 0\)\]"):
        judge(PLAN, log[keep], WANTED)


@pytest.mark.parametrize("bit", [0, 7, 16, 31])
def test_the_scoreboard_sees_a_changed_bit(bit: int) -> None:
    log = good_log()
    log[row_of(log, 1, 0, 1, 0), 4] ^= np.uint64(1 << bit)
    with pytest.raises(AssertionError, match="packet 1 ejected at node 0: flit 0 has payload"):
        judge(PLAN, log, WANTED)


def test_the_scoreboard_sees_a_wrong_last_bit() -> None:
    log = good_log()
    log[row_of(log, 1, 0, 1, 0), 3] = 1
    with pytest.raises(AssertionError, match="packet 1 ejected at node 0: flit 0"):
        judge(PLAN, log, WANTED)


def test_the_scoreboard_sees_flits_that_change_places() -> None:
    log = good_log()
    first, second = row_of(log, 1, 2, 1, 0), row_of(log, 1, 2, 1, 1)
    log[[first, second], 3:] = log[[second, first], 3:]
    with pytest.raises(AssertionError, match="packet 1 ejected at node 2: flit 0"):
        judge(PLAN, log, WANTED)
