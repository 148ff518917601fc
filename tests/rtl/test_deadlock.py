"""What hangs the mesh, what protects it, and what a failed run leaves to be looked at."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cosim.errors import HangError, SimulationError
from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.ordering import check_reductions
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.zero_load import NocTiming
from verification.stress import FEW_MESHES

SAFE = FEW_MESHES[1]
WORMHOLE = replace(SAFE, cut_through=False, coverage=False)

FLITS = 16
ROW, ALL = TileSet(range(1), range(4)), TileSet(range(2), range(4))
#: Two sources and the tiles to which both send: from both ends of a row, and from two corners.
PAIRS = {"row": (0, 3, ROW), "rectangle": (0, 7, ALL)}

pytestmark = pytest.mark.rtl


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed simulation leaves goes here: no wave, but in the tests about waves."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("WAFERTLM_EXPECT_FAILURES", "1")


def multicasts(
    name: str, offset: int, start: int = 0, bound: int = FLITS
) -> list[tuple[int, int, TileSet, int]]:
    """Both transfers of a pair, the second one ``offset`` cycles later, in packets of the bound."""
    one, other, where = PAIRS[name]
    sends = ((start, one), (start + offset, other))
    return [(cycle, node, where, part) for cycle, node in sends for part in cut(FLITS, bound)]


def hangs(name: str, offset: int) -> bool:
    """Whether a pair of packets longer than a buffer hangs the mesh without protection."""
    try:
        WORMHOLE.simulate(Packets.of(multicasts(name, offset)))
    except HangError:
        return True
    return False


def hanging(name: str, offsets: Iterable[int]) -> list[bool]:
    WORMHOLE.build()
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda offset: hangs(name, offset), offsets))


def test_overlapping_multicasts_hang_without_protection() -> None:
    # Each holds tiles' ports that the other's branches wait for, and neither fits into the buffers.
    row = replace(WORMHOLE, rows=1)
    with pytest.raises(HangError, match=r"1x4 mesh stands still since cycle (\d|1\d|2\d)$"):
        row.simulate(Packets.of(multicasts("row", 0)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_overlaps_hang_up_to_an_offset(name: str) -> None:
    found = hanging(name, range(51))
    assert 0 < sum(found) < len(found)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", PAIRS)
def test_no_overlap_hangs_with_protection(name: str) -> None:
    # Each pair has the mesh for itself: the whole sweep is one run.
    sends = [
        item
        for offset in range(51)
        for item in multicasts(name, offset, start=200 * offset, bound=SAFE.fifo_depth)
    ]
    packets = Packets.of(sends)
    seen = SAFE.simulate(packets)
    assert len(seen.packet) == len(packets) * len(PAIRS[name][2])
    finish = seen.last_ejected().reshape(51, -1).max(axis=1)
    assert all(finish[at] < 200 * (at + 1) for at in range(51))


def test_a_stream_of_overlaps_does_not_hang_with_protection() -> None:
    sends = [
        item
        for turn in range(200)
        for name in PAIRS
        for item in multicasts(name, turn % 51, start=30 * turn, bound=SAFE.fifo_depth)
    ]
    assert (SAFE.simulate(Packets.of(sends)).tail_ejected >= 0).all()


def test_a_multicast_longer_than_a_buffer_is_refused_by_the_router() -> None:
    with pytest.raises(SimulationError, match="multicast packet of 5 flits, buffers of 4"):
        SAFE.simulate(Packets.of([(0, 0, ALL, 5)]))


def test_a_reduction_longer_than_a_buffer_is_refused_by_the_router() -> None:
    packets = Packets.of((0, node, ReductionGoal(ALL, 0), 5) for node in range(8))
    with pytest.raises(SimulationError, match="reduce_unit: packet of 5 flits, buffers of 4"):
        SAFE.simulate(packets)


@pytest.mark.parametrize("goal", [ALL, ReductionGoal(ALL, 0)], ids=["multicast", "reduction"])
def test_a_packet_longer_than_its_header_can_tell_is_refused(goal: TileSet | ReductionGoal) -> None:
    # Nine flits read as one in the header's three bits, which alone would look legal.
    packets = Packets.of(
        (0, node, goal, 9) for node in range(8 if isinstance(goal, ReductionGoal) else 1)
    )
    with pytest.raises(SimulationError, match="flit 2 of a packet whose header says 1"):
        SAFE.simulate(packets)


@pytest.mark.slow  # a mesh of its own is built
def test_a_packet_to_nowhere_is_found() -> None:
    # Column 5 of four: it goes east until the mesh ends.
    with pytest.raises(SimulationError, match="mesh: a packet leaves the mesh"):
        replace(SAFE, cols=3).simulate(Packets.of([(0, 0, TileSet.tile(0, 3), 1)]))


def test_the_model_reports_a_deadlock() -> None:
    timing = NocTiming(1, 1, fifo_depth=4, multicast_gap_cycles=0, flit_bytes=8)
    everyone = TileSet(range(4), range(4))
    with pytest.raises(DeadlockError, match=r"waiting packets: \[0, 1\]"):
        HandshakeMesh(4, 4, timing).simulate(
            Packets.of([(0, 0, everyone, 5), (0, 15, everyone, 5)])
        )


def swapped_reductions() -> Packets:
    """Two tiles that issue two reductions in opposite order, of groups that share both tiles."""
    first, second = TileSet(range(1), range(2)), TileSet(range(1), range(3))
    goals = ReductionGoal(first, 0), ReductionGoal(second, 0)
    return Packets.of(
        [(0, 0, goals[0], 2), (0, 0, goals[1], 2)]
        + [(0, 1, goals[1], 2), (0, 1, goals[0], 2), (0, 2, goals[1], 2)]
    )


def test_reductions_out_of_order_are_found() -> None:
    with pytest.raises(InputError, match="reductions of packets 0 and 1"):
        check_reductions(swapped_reductions(), SAFE.cols)
    with pytest.raises(SimulationError, match="reduce_unit: reductions out of order"):
        SAFE.simulate(swapped_reductions())


def signals(wave: Path) -> str:
    """The declarations of a VCD."""
    return wave.read_text().split("$enddefinitions")[0]


@pytest.mark.slow  # a mesh with waves is built
def test_a_hang_leaves_a_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAFERTLM_EXPECT_FAILURES")
    late = [(4000 + cycle, *rest) for cycle, *rest in multicasts("row", 0)]
    with pytest.raises(HangError, match="stands still since cycle 40") as error:
        WORMHOLE.simulate(Packets.of(late))
    text, path = str(error.value).splitlines()[-1].split(": ")
    # The part that matters: from some time before the failure.
    assert text.startswith("wave from cycle 20")
    assert "u_router" in signals(Path(path))
    times = [int(line[1:]) for line in Path(path).read_text().splitlines() if line[:1] == "#"]
    # Picoseconds of 2 ns cycles.
    assert 2000 < times[0] / 2000 < 2100
    assert times[-1] / 2000 > 5000


@pytest.mark.slow  # on the same mesh
def test_an_assertion_leaves_a_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAFERTLM_EXPECT_FAILURES")
    with pytest.raises(SimulationError, match="reductions out of order") as error:
        WORMHOLE.simulate(swapped_reductions())
    wave = Path(str(error.value).splitlines()[-1].split(": ")[1])
    assert "operand_valid_i" in signals(wave)
    assert wave.stat().st_size > 10_000
