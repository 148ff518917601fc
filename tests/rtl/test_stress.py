"""Random traffic of all kinds on meshes of many forms: all of it arrives, as it should."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from calibration.routers.coverage import empty_bins, merge, read_coverage
from calibration.routers.rtl_mesh import RtlMesh
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, PacketKind, Packets, TileSet
from verification import stress
from verification.scenes import FAMILIES, Scene
from verification.stress import FEW_MESHES, MESHES, campaign, disorder, play

#: Kinds of packets that the project's mesh knows.
_KINDS = {PacketKind.UNICAST, PacketKind.MULTICAST, PacketKind.SUM, PacketKind.MAXIMUM}
# Bins that no form in MESHES can fill, and why.
IMPOSSIBLE: dict[str, str] = {}


def failures(outcomes: list[stress.Outcome]) -> list[str]:
    return [outcome.failure for outcome in outcomes if outcome.failure]


@pytest.mark.rtl
def test_twenty_thousand_packets_arrive() -> None:
    outcomes = list(play(campaign(FEW_MESHES, 20_000, seed=1, run_packets=2000)))
    assert failures(outcomes) == []
    assert sum(outcome.packets for outcome in outcomes) >= 20_000


@pytest.mark.rtl
@pytest.mark.slow
def test_a_million_packets_arrive_and_everything_happens() -> None:
    outcomes = list(play(campaign(MESHES, 1_000_000, seed=1)))
    assert failures(outcomes) == []
    assert sum(outcome.packets for outcome in outcomes) >= 1_000_000
    empty = empty_bins(merge(outcome.coverage for outcome in outcomes))
    assert sorted(empty) == sorted(IMPOSSIBLE)


def test_a_campaign_brings_everything_together() -> None:
    runs = campaign(MESHES, 1_000_000, seed=3)
    assert {run.scene.mesh for run in runs} == set(MESHES)
    assert {run.scene.family for run in runs} == set(FAMILIES)
    assert sum(run.scene.packets for run in runs) == 1_000_000
    assert len({run.scene.seed for run in runs}) == len(runs)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mesh", MESHES, ids=stress.name_of)
def test_a_scene_has_all_kinds_within_their_bounds(mesh: RtlMesh, family: str) -> None:
    packets = Scene(mesh, 3000, 0.1, family, seed=4).draw()
    # Scenes are checked for the order of reductions as they are drawn.
    assert set(packets.kind.tolist()) == _KINDS
    many = packets.kind != PacketKind.UNICAST
    assert packets.flits[many].max() == mesh.fifo_depth
    assert packets.flits[~many].max() > 20
    again = Scene(mesh, 3000, 0.1, family, seed=4).draw()
    for one, other in zip(packets.columns(), again.columns(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_counts_of_routers_and_runs_add_up(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_coverage(tmp_path)
    (tmp_path / "coverage_0_0.txt").write_text("3 output east stalled\n0 sum of 2 operands\n")
    (tmp_path / "coverage_0_1.txt").write_text("4 output east stalled\n0 sum of 2 operands\n")
    counts = read_coverage(tmp_path)
    assert counts == {"output east stalled": 7, "sum of 2 operands": 0}
    assert empty_bins(counts) == ["sum of 2 operands"]
    assert merge([counts, {"sum of 2 operands": 1}, {}]) == {
        "output east stalled": 7,
        "sum of 2 operands": 1,
    }


def seen(packets: list[int], heads: list[int], tails: list[int]) -> Deliveries:
    """Deliveries at node 1."""
    nothing = np.zeros(2, dtype=np.int64)
    columns = (packets, [1] * len(packets), heads, tails)
    return Deliveries(nothing, nothing, *(np.array(c, dtype=np.int64) for c in columns))


def test_packets_that_mix_and_packets_that_overtake_are_found() -> None:
    packets = Packets.of([(0, 0, TileSet.tile(0, 1), 2), (0, 0, TileSet.tile(0, 1), 2)])
    assert disorder(packets, seen([0, 1], [5, 7], [6, 8])) == ""
    assert disorder(packets, seen([0, 1], [5, 6], [7, 8])) == (
        "packet 0 is mixed with another one at node 1"
    )
    assert disorder(packets, seen([0, 1], [7, 5], [8, 6])) == (
        "packet 0 was overtaken on its way to node 1"
    )


def test_a_campaign_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="found 0 packets"):
        campaign(MESHES, 0, seed=1)


def test_coverage_needs_all_that_it_counts() -> None:
    with pytest.raises(InputError, match="coverage: found a mesh without"):
        replace(MESHES[0], reduction=False)


@pytest.mark.rtl
def test_the_command_fails_with_its_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "MESHES", FEW_MESHES[:1])
    good = CliRunner().invoke(stress.main, ["--packets", "400", "--seed", "2", "--json"])
    assert good.exit_code == 0
    figures = json.loads(good.stdout)
    assert figures["packets"] >= 400
    assert figures["failures"] == []
    monkeypatch.setattr(stress, "disorder", lambda packets, seen: "packet 3 was overtaken")
    bad = CliRunner().invoke(stress.main, ["--packets", "400", "--json"])
    assert bad.exit_code == 1
    assert "packet 3 was overtaken" in json.loads(bad.stdout)["failures"]
    assert CliRunner().invoke(stress.main, ["--packets", "0"]).exit_code == 2
