"""Meshes of other forms: in Verilog and in the model every packet takes the same cycles."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH, RtlMesh
from cosim.errors import HangError
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.traffic import Traffic
from verification.accuracy_cases import network_model
from verification.scenes import FAMILIES, Scene
from verification.stress import FEW_MESHES, MESHES, name_of

pytestmark = pytest.mark.rtl

RATES = (0.02, 0.08, 0.5)  # packets a node a cycle; the last one is far beyond saturation
OTHER_MESHES = [mesh for mesh in MESHES if name_of(mesh) not in map(name_of, FEW_MESHES)]
DEPTHS = (RtlMesh(4, 4, 2), RtlMesh(4, 4, 8))
#: Without protection: multicasts that overlap can hang it.
WORMHOLE = replace(FEW_MESHES[1], cut_through=False, coverage=False)


def assert_equal(rtl: Deliveries, model: Deliveries) -> None:
    for name in Deliveries.__slots__:
        np.testing.assert_array_equal(getattr(model, name), getattr(rtl, name), err_msg=name)


def assert_same_cycles(mesh: RtlMesh, packets: Packets) -> None:
    assert_equal(mesh.simulate(packets), network_model(mesh).simulate(packets))


@pytest.mark.parametrize("mesh", FEW_MESHES, ids=name_of)
@pytest.mark.parametrize(("number", "family"), list(enumerate(FAMILIES)))
def test_mixes_with_reductions(mesh: RtlMesh, number: int, family: str) -> None:
    packets = Scene(mesh, 2000, RATES[number % 3], family, seed=8100 + number).draw()
    assert packets.reduces.any()
    assert_same_cycles(mesh, packets)


@pytest.mark.slow
def test_mixes_with_reductions_on_the_large_mesh() -> None:
    assert_same_cycles(CHECK_MESH, Scene(CHECK_MESH, 3000, 0.08, "quarters", seed=8200).draw())


@pytest.mark.slow
@pytest.mark.parametrize("mesh", OTHER_MESHES, ids=name_of)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rate", RATES)
def test_mixes_with_reductions_on_other_forms(mesh: RtlMesh, family: str, rate: float) -> None:
    assert_same_cycles(mesh, Scene(mesh, 4000, rate, family, seed=8300).draw())


@pytest.mark.parametrize("pattern", ["uniform", "hotspot"])
def test_unicasts_through_output_buffers_and_two_stages(pattern: str) -> None:
    mesh = FEW_MESHES[1]
    assert_same_cycles(mesh, Traffic(2, 4, pattern, 0.6, 7, 3000, seed=8400).packets())


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [*DEPTHS, *OTHER_MESHES], ids=name_of)
@pytest.mark.parametrize("pattern", ["uniform", "hotspot", "tornado"])
@pytest.mark.parametrize("flits", [1, 20])
def test_unicasts_beyond_saturation(mesh: RtlMesh, pattern: str, flits: int) -> None:
    traffic = Traffic(mesh.rows, mesh.cols, pattern, 0.7, flits, 1500, seed=8500)
    assert_same_cycles(mesh, traffic.packets())


# ---- without protection ----


def overlap(source: int, other: int, where: TileSet, offset: int) -> Packets:
    """Two multicasts of four buffers' length to the same tiles."""
    flits = 4 * WORMHOLE.fifo_depth
    return Packets.of([(0, source, where, flits), (offset, other, where, flits)])


def model_hangs(packets: Packets) -> bool:
    try:
        network_model(WORMHOLE).simulate(packets)
    except DeadlockError:
        return True
    return False


@pytest.mark.parametrize(
    ("source", "other", "rows"), [(0, 3, 1), (0, 7, 2)], ids=["row", "rectangle"]
)
def test_a_mesh_without_cut_through_hangs_where_the_model_says_deadlock(
    source: int, other: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what a failed simulation leaves,
    monkeypatch.setenv("WAFERTLM_EXPECT_FAILURES", "1")  # which is no wave
    where = TileSet(range(rows), range(4))
    hangs = [model_hangs(overlap(source, other, where, offset)) for offset in range(51)]
    last = max(offset for offset in range(51) if hangs[offset])
    assert all(hangs[: last + 1]) and last < 50
    for offset in (0, last):
        with pytest.raises(HangError):
            WORMHOLE.simulate(overlap(source, other, where, offset))
    # One cycle later they pass, and in the model's cycles.
    assert_same_cycles(WORMHOLE, overlap(source, other, where, last + 1))


def test_transfers_that_do_not_meet_need_no_protection() -> None:
    # Multicasts up to four buffers long: only without protection may they be so.
    everyone = TileSet(range(2), range(4))
    items: list[tuple[int, int, TileSet | ReductionGoal, int]] = []
    for turn in range(30):
        items += [(120 * turn, turn % 8, everyone, 1 + turn % 16)]
        items += [
            (120 * turn + 60, node, ReductionGoal(everyone, turn % 8), 1 + turn % 4)
            for node in range(8)
        ]
    assert_same_cycles(WORMHOLE, Packets.of(items))


def test_the_comparison_sees_one_cycle() -> None:
    packets = Scene(FIT_MESH, 200, 0.08, "rows", seed=8600).draw()
    seen = FIT_MESH.simulate(packets)
    late = seen.tail_ejected.copy()
    late[57] += 1
    with pytest.raises(AssertionError, match="tail_ejected"):
        assert_equal(seen, replace(seen, tail_ejected=late))
