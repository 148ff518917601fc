"""Synthetic traffic, packets from files, and the figures of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, PacketKind, Packets, TileSet
from tlm.interconnect.traffic import PATTERNS, Traffic, figures, highest_rate, read_packets
from tlm.interconnect.zero_load import NocTiming

HEADER = "cycle,source,destinations,flits,kind\n"


def made(**changes: Any) -> Traffic:
    plain: dict[str, Any] = {"rows": 4, "cols": 4, "pattern": "uniform", "rate": 0.2}
    plain |= {"packet_flits": 4, "cycles": 2000, "seed": 3}
    return Traffic(**(plain | changes))


def pairs(traffic: Traffic) -> set[tuple[int, int]]:
    packets = traffic.packets()
    target = packets.row_first * traffic.cols + packets.col_first
    return set(zip(packets.source.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize(
    ("pattern", "rows", "cols", "expected"),
    [
        ("neighbor", 2, 3, {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}),
        ("tornado", 1, 5, {(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)}),
        ("tornado", 1, 4, {(0, 1), (1, 2), (2, 3), (3, 0)}),
        ("transpose", 3, 3, {(1, 3), (2, 6), (3, 1), (5, 7), (6, 2), (7, 5)}),
        ("uniform", 2, 2, {(a, b) for a in range(4) for b in range(4) if a != b}),
        ("hotspot", 2, 2, {(a, b) for a in range(4) for b in range(4) if a != b}),
    ],
)
def test_who_sends_to_whom(
    pattern: str, rows: int, cols: int, expected: set[tuple[int, int]]
) -> None:
    assert pairs(made(pattern=pattern, rows=rows, cols=cols)) == expected


def test_a_hotspot_gets_its_share() -> None:
    packets = made(pattern="hotspot", rows=8, cols=8, rate=0.5, packet_flits=1).packets()
    target = packets.row_first * 8 + packets.col_first
    others = packets.source != 36
    expected = 0.2 + 0.8 / 63
    found = float((target[others] == 36).mean())
    deviation = np.sqrt(expected * (1 - expected) / others.sum())
    assert abs(found - expected) < 4 * deviation


@pytest.mark.parametrize("pattern", ["uniform", "neighbor", "hotspot"])
def test_packets_are_created_at_the_rate(pattern: str) -> None:
    packets = made(pattern=pattern, rows=8, cols=8, rate=0.3, packet_flits=5).packets()
    trials = 64 * 2000
    deviation = np.sqrt(0.06 * 0.94 / trials)
    assert abs(len(packets) / trials - 0.06) < 4 * deviation
    assert set(packets.flits.tolist()) == {5}
    assert packets.cycle.min() < 20 and 1980 < packets.cycle.max() < 2000
    busy = np.bincount(packets.source, minlength=64)
    assert busy.min() > 0.6 * busy.mean()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_seed_decides(pattern: str) -> None:
    first, again, other = (made(pattern=pattern, seed=seed).packets() for seed in (1, 1, 2))
    for a, b in zip(first.columns(), again.columns(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.cycle, other.cycle)


def test_packets_are_numbered_by_cycle_and_node() -> None:
    packets = made(multicast_fraction=0.3).packets()
    order = packets.cycle * 16 + packets.source
    assert (np.diff(order) > 0).all()


def test_a_share_goes_to_several_tiles() -> None:
    traffic = made(rows=8, cols=8, multicast_fraction=0.25, multicast_flits=2)
    packets, plain = traffic.packets(), made(rows=8, cols=8).packets()
    several = packets.destination_counts() > 1
    np.testing.assert_array_equal(several, packets.kind == PacketKind.MULTICAST)
    # One rectangle in 64 is a tile and stays a unicast.
    assert several.mean() == pytest.approx(0.25 * 63 / 64, abs=0.02)
    assert set(packets.flits[several].tolist()) == {2}
    for name in ("cycle", "source"):
        np.testing.assert_array_equal(getattr(packets, name), getattr(plain, name))
    assert packets.row_last.max() == packets.col_last.max() == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"pattern": "random"},
            "unknown traffic 'random'; known: hotspot, neighbor, tornado, transpose, uniform",
        ),
        (
            {"pattern": "transpose", "cols": 5},
            "transpose traffic needs a square mesh, found 4x5",
        ),
        ({"rows": 1, "cols": 1}, "traffic needs a mesh of at least two nodes"),
        ({"rate": 0.0}, "rate 0.0 is not in (0, 1] flits per node per cycle"),
        ({"rate": 1.5}, "rate 1.5 is not in (0, 1] flits per node per cycle"),
        ({"rate": float("nan")}, "rate nan is not in (0, 1] flits per node per cycle"),
        ({"cycles": 0}, "cycles: found 0; allowed: 1 or more"),
        ({"packet_flits": 0}, "packet flits: found 0; allowed: 1 or more"),
        ({"seed": -1}, "seed: found -1; allowed: 0 or more"),
        ({"multicast_fraction": 2.0}, "multicast fraction 2.0 is not in [0, 1]"),
        (
            {"cycles": 10**9},
            "1000000000 cycles on 4x4 nodes are 1.6e+10 node-cycles; allowed: 2.15e+09",
        ),
    ],
)
def test_impossible_traffic_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        made(**changes)
    assert str(error.value) == message


def test_packets_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "packets.csv"
    path.write_text(
        "kind,cycle,source,flits,destinations\n"
        "unicast,5,0:1,7,3:2\n"
        "multicast,2,3:3,4,0:2 1:4\n"
        "unicast,5,1:0,1,1:0\n"
    )
    packets = read_packets(path, 4, 4, bound_flits=4)
    assert packets.cycle.tolist() == [2, 5, 5]
    assert packets.source.tolist() == [15, 1, 4]
    assert packets.flits.tolist() == [4, 7, 1]
    assert packets.kind.tolist() == [1, 0, 0]
    nodes = [packets.tiles(number).nodes(4) for number in range(3)]
    assert nodes == [[1, 2, 3, 5, 6, 7], [14], [4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs the columns cycle, destinations, flits, kind, source; found nothing"),
        (
            "cycle,source\n1,2\n",
            "needs the columns cycle, destinations, flits, kind, source; found cycle, source",
        ),
        (HEADER, "found no packets below the columns' names; allowed: one or more"),
        (
            HEADER + "5,0:0,0:1,four,unicast\n",
            "line 2: flits: found 'four'; allowed: a whole number",
        ),
        (HEADER + "5,9:0,0:1,1,unicast\n", "line 2: tile 9:0 lies outside the 4x4 mesh"),
        (HEADER + "\n5,9:0,0:1,1,unicast\n", "line 3: tile 9:0 lies outside the 4x4 mesh"),
        (HEADER + "5,0,0:1,1,unicast\n", "line 2: '0' is no tile; write ROW:COL"),
        (
            HEADER + "5,0:0,0:1,1,unicast\n5,0:0,0:1,1,broadcast\n",
            "line 3: unknown kind 'broadcast'; known: and, collect, maximum, multicast, select, "
            "sum, unicast",
        ),
        (
            HEADER + "5,0:0,0:5 0:1,1,multicast\n",
            "line 2: rectangle 0:5,0:1 is empty or lies outside the 4x4 mesh",
        ),
        (
            HEADER + "5,0:0,0:2 0:1,1,unicast\n",
            "line 2: a unicast has one destination, found 2",
        ),
        (
            HEADER + "5,0:0,0:2 0:1,5,multicast\n",
            "line 2: a multicast packet has at most 4 flits, found 5",
        ),
    ],
)
def test_bad_files_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "packets.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_packets(path, 4, 4, bound_flits=4)
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    "line",
    [
        "5",  # too short
        "x,0:0,0:1,1,unicast",
        "-5,0:0,0:1,1,unicast",
        "5,0:0,0:1,0,unicast",
        "5,0:0,0:1,1.5,unicast",
        "5,0:0,0:1,99999999999999999999,unicast",
    ],
)
def test_bad_numbers_are_refused_by_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "packets.csv"
    path.write_text(f"{HEADER}{line}\n")
    with pytest.raises(InputError, match=r"packets\.csv: line 2: "):
        read_packets(path, 4, 4, bound_flits=4)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.csv", "binary.csv"):
        with pytest.raises(InputError, match=rf"{name}: cannot be read: "):
            read_packets(tmp_path / name, 4, 4, bound_flits=4)


def test_figures_count_what_was_created_after_the_warm_up() -> None:
    # Four packets of two flits on two nodes; the first is created before cycle 10.
    where = TileSet.tile(0, 1)
    packets = Packets.of([(t, 0, where, 2) for t in (9, 10, 12, 19)])
    heads = np.array([9, 11, 13, 19])
    tails = np.array([12, 14, 19, 30])
    number = np.arange(4)
    seen = Deliveries(heads, heads + 1, number, number * 0 + 1, tails - 1, tails)
    found = figures(packets, seen, nodes=2, warm_up=10, cycles=20)
    assert found.packets == 3
    assert found.offered == 6 / 20
    assert found.accepted == 6 / 20  # the first and the next two arrive within the window
    assert found.latency_cycles == {"mean": 20 / 3, "p50": 6.0, "p99": 10.9, "max": 11.0}
    assert found.source_queue_cycles == 2 / 3
    assert not found.saturated


def test_figures_need_a_packet() -> None:
    packets = Packets.of([(0, 0, TileSet.tile(0, 1), 1)])
    seen = HandshakeMesh(1, 2, NocTiming(1, 1, 4, 1, 8)).simulate(packets)
    with pytest.raises(InputError, match="no packet was created after the warm-up"):
        figures(packets, seen, nodes=2, warm_up=10, cycles=20)


def test_a_hotspot_saturates_at_one_flit_a_cycle() -> None:
    # 63 nodes send it a fifth of their packets and its share of the rest.
    share = 0.2 + 0.8 / 63
    at_limit = 1 / (63 * share)
    for rate, saturated in ((0.8 * at_limit, False), (2 * at_limit, True)):
        traffic = made(pattern="hotspot", rows=8, cols=8, rate=rate, cycles=6000)
        packets = traffic.packets()
        seen = HandshakeMesh(8, 8, NocTiming(1, 1, 4, 1, 8)).simulate(packets)
        found = figures(packets, seen, 64, traffic.warm_up_cycles, traffic.cycles)
        assert found.saturated == saturated
        at_spot = (seen.node == 36) & (seen.tail_ejected < traffic.cycles)
        assert packets.flits[seen.packet[at_spot]].sum() <= traffic.cycles


@given(st.floats(0.005, 1.2))
def test_the_highest_rate_is_the_step_below_saturation(limit: float) -> None:
    found = highest_rate(lambda rate: rate > limit)
    assert found == 1.0 if limit >= 1 else found <= limit < found + 1 / 256
