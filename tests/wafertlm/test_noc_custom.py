"""The command `noc` on routers in Verilog that are not the project's."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from calibration.routers.stored import CustomCalibration, calibration_file
from cosim.network.model import LoopModel
from cosim.spec.mesh import load_spec
from tests.conftest import Wafertlm
from tests.specifications import LOCKED_TIMING
from tests.wafertlm.test_noc import figures
from tlm.calibrated import REPOSITORY, Parameter, load_result, source_hashes
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.collectives import CollectiveTraffic
from tlm.interconnect.packets import Packets
from tlm.sealed import sealed
from wafertlm.cli import run


@pytest.fixture
def mask_spec(tmp_path: Path) -> str:
    """The mask mesh with a calibration in which the two bounds differ."""
    shutil.copytree(REPOSITORY / "docs" / "custom_rtl" / "mask_mesh", tmp_path / "mask")
    spec = load_spec(tmp_path / "mask" / "mask_mesh.toml")
    found = CustomCalibration(
        sources=source_hashes([spec.file, *spec.source_files()], spec.folder),
        tools={},
        network=asdict(replace(rtl_timing(), fifo_depth=6)),
        packet_flits=64,
        multicast_flits=6,
        reduction_flits=3,
        not_represented=[],
        results=[load_result("unicast")],
    )
    calibration_file(spec).write_text(sealed(found))
    return str(spec.file)


def test_the_projects_mesh_has_no_ands(wafertlm: Any, tmp_path: Path) -> None:
    traffic = tmp_path / "and.csv"
    traffic.write_text("cycle,source,destinations,flits,kind\n0,0:0,0:0 0:1 0:1,1,and\n")
    ran = wafertlm("noc", "--mesh", "4x4", "--traffic", traffic)
    assert (ran.status, ran.stderr) == (
        2,
        "error: mesh.sv: operation: found a packet of kind and; allowed: maximum, multicast, sum, "
        "unicast\n",
    )


@pytest.mark.parametrize("level", ["at", "rtl"])
@pytest.mark.parametrize(
    ("packets", "message"),
    [
        (["0,0:0,0:3 0:1,1,multicast"], "packet 0: found multicast to rows 0:3, columns 0:1; "),
        (
            ["0,0:0,3:3 0:2 0:1,1,sum", "0,1:0,3:3 0:2 0:1,1,sum"],
            "packet 0: found sum of rows 0:2, columns 0:1 to tile 3,3; allowed with reduction = ",
        ),
        (
            ["0,0:0,0:0 0:2 0:1,1,maximum", "0,1:0,0:0 0:2 0:1,1,maximum"],
            "operation: found a packet of kind maximum; allowed: multicast, sum, unicast",
        ),
        (
            ["0,0:0,0:0 0:2 0:1,4,sum", "0,1:0,0:0 0:2 0:1,4,sum"],
            "reduction_flits: packet 0: found sum of 4 flits; allowed: 1 to 3",
        ),
    ],
)
def test_what_custom_routers_cannot_carry_is_refused_before_a_build(
    mask_spec: str,
    level: str,
    packets: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delattr(LoopModel, "build")
    path = tmp_path / "packets.csv"
    path.write_text("\n".join(["cycle,source,destinations,flits,kind", *packets, ""]))
    options = ("--rtl", mask_spec, "--mesh", "4x4", "--level", level, "--traffic", str(path))
    assert run(["noc", *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: mask_mesh.toml: {message}")


def test_custom_multicasts_longer_than_found(
    mask_spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "packets.csv"
    for flits, status in ((6, 0), (7, 2)):
        path.write_text(f"cycle,source,destinations,flits,kind\n0,0:0,0:2 0:1,{flits},multicast\n")
        assert run(["noc", "--rtl", mask_spec, "--mesh", "4x4", "--traffic", str(path)]) == status
    assert "a multicast packet has at most 6 flits, found 7" in capsys.readouterr().err


@pytest.mark.parametrize(("collective", "bound"), [("multicast", 6), ("reduce", 3)])
def test_custom_collectives_are_cut_to_the_bound_of_their_kind(
    mask_spec: str,
    collective: str,
    bound: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lengths: set[int] = set()
    packets = CollectiveTraffic.packets

    def noted(self: CollectiveTraffic) -> Packets:
        lengths.update(packets(self).flits.tolist())
        return packets(self)

    monkeypatch.setattr(CollectiveTraffic, "packets", noted)
    options = ("--rtl", mask_spec, "--mesh", "16x4", "--collective", collective)
    found = figures(capsys, *options, "--group", "column", "--source", "0,0", "--flits", "12")
    assert found["cycles"] > 15
    assert lengths == {bound}


def test_a_mesh_is_no_larger_than_its_flits_can_name(
    mask_spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["noc", "--rtl", mask_spec, "--mesh", "17x4", "--traffic", "uniform"]
    assert run([*arguments, "--rate", "0.1"]) == 2
    assert capsys.readouterr().err == (
        "error: mask_mesh.toml: flit: row: found 4 bits; allowed on 17x4: 5 and more\n"
    )


def test_tiles_beside_custom_routers_add_as_the_projects_own(
    mask_spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--mesh", "4x4", "--collective", "tree-reduce", "--group", "row", "--source", "1,0")
    own = figures(capsys, *options, "--flits", "16")
    custom = figures(capsys, "--rtl", mask_spec, *options, "--flits", "16")
    assert custom["addition_cycles"] == own["addition_cycles"]
    assert custom["cycles"] == own["cycles"]  # the timing is that of the project's mesh


@pytest.mark.slow  # a build of the custom mesh
@pytest.mark.parametrize("collective", ["seq-reduce", "tree-multicast"])
def test_custom_routers_in_verilog_carry_the_messages_of_tiles(
    mask_spec: str, collective: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--mesh", "4x4", "--collective", collective, "--group", "1:4,0:2", "--source", "0,3")
    shown = [
        figures(capsys, "--rtl", mask_spec, *options, "--flits", "9", "--level", level)
        for level in ("rtl", "at")
    ]
    rtl, at = ({name: each[name] for name in ("cycles", "messages", "deadlock")} for each in shown)
    assert rtl["messages"] == at["messages"] == 6
    assert not rtl["deadlock"]
    # The timing of the fixture is not that of the custom mesh.
    assert abs(rtl["cycles"] - at["cycles"]) < 0.2 * rtl["cycles"]


def locked_spec(folder: Path, off_pct: float = 0.0, **fields: Any) -> str:
    """The locked mesh with a calibration: what is found, but for an error and some fields."""
    shutil.copytree(REPOSITORY / "docs" / "custom_rtl" / "locked_mesh", folder)
    spec = load_spec(folder / "locked_mesh.toml")
    law = {"serialisation_cycles": Parameter.exact(1, "cycles/flit")}
    unicast = load_result("unicast").model_copy(
        update={"parameters": law, "max_abs_error_pct": off_pct}
    )
    found = CustomCalibration(
        sources=source_hashes([spec.file, *spec.source_files()], spec.folder),
        tools={},
        network=asdict(replace(LOCKED_TIMING, **fields)),
        packet_flits=64,
        multicast_flits=None,
        reduction_flits=None,
        not_represented=[],
        results=[unicast],
    )
    calibration_file(spec).write_text(sealed(found))
    return str(spec.file)


@pytest.mark.parametrize(
    "level", ["at", "perf", pytest.param("rtl", marks=[pytest.mark.rtl, pytest.mark.slow])]
)
def test_locked_channels_at_all_levels(
    level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--rtl", locked_spec(tmp_path / "locked"), "--mesh", "4x4", "--level", level)
    path = tmp_path / "packets.csv"
    path.write_text("cycle,source,destinations,flits,kind\n0,0:0,0:3,4,unicast\n")
    alone = figures(capsys, *options, "--traffic", str(path))
    assert alone["latency_cycles"]["max"] == 4 + 3 * (2 + 3 * 2) + 4 - 1
    light = figures(
        capsys, *options, "--traffic", "uniform", "--rate", "0.02", "--packet-flits", "4"
    )
    assert light["latency_cycles"]["mean"] == pytest.approx(29, rel=0.03)
    assert not light["saturated"]
    assert figures(capsys, *options, "--traffic", "uniform", "--rate", "0.3")["saturated"]


@pytest.mark.parametrize(("off_pct", "level"), [(12.5, "at"), (0.0, "at"), (12.5, "perf")])
def test_how_far_the_model_is_off_is_told(
    off_pct: float, level: str, wafertlm: Wafertlm, tmp_path: Path
) -> None:
    traffic = ("--traffic", "uniform", "--rate", "0.02", "--cycles", "500", "--level", level)
    options = ("noc", "--rtl", locked_spec(tmp_path / "locked", off_pct), "--mesh", "4x4", *traffic)
    error = json.loads(wafertlm(*options, "--json").stdout)["error"]
    assert error == {"level_pct": None if level == "perf" else off_pct}
    told = "error: up to 12.5 %, as in the worst of the calibration's blind checks."
    assert (told in wafertlm(*options).stdout) == (level == "at" and off_pct > 0)


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ({"y_first": True}, [], "--level: found perf with "),
        ({"link_interval_cycles": 2}, [], "--level: found perf with "),
        (
            {},
            ["--collective", "tree-multicast"],
            "--collective: found with --rtl and level perf; allowed: levels rtl, at",
        ),
    ],
)
def test_where_custom_routers_have_no_closed_form(
    fields: dict[str, Any],
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = locked_spec(tmp_path / "locked", **fields)
    traffic = options or ["--traffic", "uniform", "--rate", "0.1"]
    assert run(["noc", "--rtl", spec, "--mesh", "4x4", "--level", "perf", *traffic]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_collectives_over_locked_channels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = ("--mesh", "4x4", "--group", "row", "--source", "1,0", "--flits", "8")
    options = ("--rtl", locked_spec(tmp_path / "locked"), *group)
    by_tiles = figures(capsys, *options, "--collective", "seq-multicast")
    plain = locked_spec(tmp_path / "plain", channel="none")
    free = figures(capsys, "--rtl", plain, *group, "--collective", "seq-multicast")
    assert by_tiles["cycles"] > free["cycles"]
    assert run(["noc", *options, "--collective", "multicast"]) == 2
    assert "found a packet of kind multicast; allowed: unicast" in capsys.readouterr().err
