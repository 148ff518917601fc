"""Scenes that go wrong on a custom mesh: kept, run again, and the campaign goes on."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from calibration.routers.stored import calibration_file, load_custom, part_file
from cosim.spec.mesh import MeshSpec, load_spec
from tlm.calibrated import REPOSITORY

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

_MASK = REPOSITORY / "docs" / "custom_rtl" / "mask_mesh"
_WHEN_HANGING = """assign front_valid[i] = valid[ExtraStages+1] && !(i == Local
        && at == '{col: 4'd3, row: 4'd2} && flit[ExtraStages+1].header.operation == Unicast
        && flit[ExtraStages+1].header.to == '0);"""
_WHEN_MEETING = """      if (grant[i]) chosen |= in_flit[i];
    end
    if ($countones(in_valid) >= 2) chosen.payload[3] = !chosen.payload[3];
"""
_WHEN_WIDE = """  for (genvar i = 0; i < Ports; i++) begin : gen_check
    always_ff @(posedge clk) if (!rst && in_valid[i])
      narrow: assert (!(in_flit[i].header.operation == Multicast
        && in_flit[i].header.mask == '{col: 4'd3, row: 4'd3})) else $error("all of the mesh");
  end
  ports_t sum_leaves;"""
#: File, a text that stands there once, and what comes in its place.
_BUGS = {
    "hang": ("mask_router.sv", "assign front_valid[i] = valid[ExtraStages+1];", _WHEN_HANGING),
    "data": (
        "mask_output.sv",
        "      if (grant[i]) chosen |= in_flit[i];\n    end\n",
        _WHEN_MEETING,
    ),
    "assertion": ("mask_router.sv", "  ports_t sum_leaves;", _WHEN_WIDE),
}


def variant(folder: Path, bug: str | None = None) -> MeshSpec:
    """The mask mesh in one size, with a bug."""
    shutil.copytree(_MASK, folder, ignore=shutil.ignore_patterns("*.calibration.json"))
    spec_file = folder / "mask_mesh.toml"
    changes = [("mask_mesh.toml", 'check = ["3x4", "5x5"]', "check = []")]
    for name, old, new in [*changes, *([_BUGS[bug]] if bug else [])]:
        text = (folder / name).read_text()
        assert text.count(old) == 1, old
        (folder / name).write_text(text.replace(old, new))
    return load_spec(spec_file)


def calibrated(wafertlm: Any, spec: MeshSpec, *more: object) -> dict[str, Any]:
    """The JSON of a campaign in which scenes go wrong."""
    ran = wafertlm("calibrate", "--rtl", spec.file, *more, "--json")
    assert ran.status == 1
    assert " findings, first " in ran.stderr.splitlines()[-1]
    found: dict[str, Any] = json.loads(ran.stdout)
    for finding in found["findings"]:
        assert [*finding] == ["experiment", "scene", "what", "wave", "command"]
        assert "$enddefinitions" in Path(finding["wave"] or "no wave").read_text()
    return found


def test_a_pair_that_hangs(wafertlm: Any, tmp_path: Path) -> None:
    spec = variant(tmp_path / "mesh", "hang")
    found = calibrated(wafertlm, spec)
    # Whether a multicast or reduction is among the scenes that hang is the draw's matter.
    first = found["findings"][0]
    assert (first["experiment"], first["scene"]) == ("unicast", "4x4: 2,3 to 0,0, 9 flits")
    assert first["what"].startswith("hang: mask-mesh 4x4 stands still since cycle ")
    assert {f["experiment"] for f in found["findings"]} >= {"unicast", "contention", "traffic"}
    # What the other scenes say is what they say of the mesh without the bug.
    good = found["network"]
    assert (good["hop_cycles"], good["reduce_cycles"], good["fifo_depth"]) == (2, 3, 2)
    assert good["fork"] == "flit-by-flit"
    assert found["stored"] == "mask-mesh.calibration.json"
    assert all(row["max_abs_error_pct"] == 0 for row in found["experiments"])
    assert not part_file(spec).exists()
    # Stored, it tells the same.
    assert calibrated(wafertlm, spec)["findings"] == found["findings"]
    # The case that comes after one that is not there is still the one that is meant.
    (contention,) = (r for r in load_custom(spec).results if r.name == "contention")
    ran = wafertlm("replay", "contention", "--rtl", spec.file, "--case", 5, "--json")
    assert json.loads(ran.stdout)["case"] == contention.check[5].case
    # The command repeats the scene alone, until the bug is gone.
    _, *words = shlex.split(first["command"])
    ran = wafertlm(*words, "--wave", tmp_path / "again.vcd", "--json")
    assert (ran.status, json.loads(ran.stdout)["now"]) == (1, first["what"])
    assert (tmp_path / "again.vcd").is_file()
    shutil.copy(_MASK / "mask_router.sv", spec.folder)
    ran = wafertlm(*words, "--json")
    assert (ran.status, json.loads(ran.stdout)["now"]) == (0, None)


def test_a_bit_that_changes_where_packets_meet(wafertlm: Any, tmp_path: Path) -> None:
    spec = variant(tmp_path / "mesh", "data")
    found = calibrated(wafertlm, spec)
    # Single flits of a probe meet, too.
    assert {f["experiment"] for f in found["findings"]} == {"probing", "contention"}
    assert all(f["what"].startswith("wrong data: mask-mesh 4x4: ") for f in found["findings"])
    assert [row["name"] for row in found["experiments"]] == ["buffering", "unicast"]
    why = {each["experiment"]: each["why"] for each in found["not_made"]}
    assert "scenes left out after 8 findings" in why["contention"]
    assert why["traffic"] == "not made: it needs what contention did not identify"
    assert found["stored"] is None
    assert not calibration_file(spec).exists()
    assert part_file(spec).is_file()


def test_an_assertion_of_the_users_in_a_quick_campaign(wafertlm: Any, tmp_path: Path) -> None:
    spec = variant(tmp_path / "mesh", "assertion")
    found = calibrated(wafertlm, spec, "--quick")
    # The experiment on hangs has multicasts to all of the mesh, too.
    assert {f["experiment"] for f in found["findings"]} == {"multicast", "hang"}
    assert all(f["what"].startswith("assertion: ") for f in found["findings"])
    assert all("all of the mesh" in f["what"] for f in found["findings"])
    assert not found["not_made"]
    assert not [*spec.folder.glob("*.findings")]


def test_a_quick_campaign_that_is_stored(wafertlm: Any, tmp_path: Path) -> None:
    spec = variant(tmp_path / "mesh")
    found = json.loads(wafertlm("calibrate", "--rtl", spec.file, "--store-quick", "--json").stdout)
    assert (found["quick"], found["stored"]) == (True, "mask-mesh.calibration.json")
    assert found["provenance"]["calibration"] == "mask-mesh (quick)"
    on = ("--mesh", "4x4", "--traffic", "uniform", "--rate", "0.1", "--packet-flits", "4")
    used = wafertlm("noc", "--rtl", spec.file, *on, "--json")
    assert json.loads(used.stdout)["provenance"]["calibration"] == "mask-mesh (quick)"
    assert "mask-mesh: a quick calibration" in used.stderr
    ran = wafertlm("replay", "traffic", "--rtl", spec.file, "--case", "2", "--json")
    assert ran.status == 0
    page = tmp_path / "report.html"
    assert wafertlm("report", "--rtl", spec.file, "--out", page).status == 0
    assert "Mesh mask-mesh (quick) against RTL" in page.read_text()


def test_a_campaign_that_is_killed_goes_on_where_it_was(wafertlm: Any, tmp_path: Path) -> None:
    spec = variant(tmp_path / "mesh")
    command = [sys.executable, "-m", "wafertlm.cli", "calibrate", "--rtl", str(spec.file)]
    log = tmp_path / "log"
    with log.open("w") as stderr:
        campaign = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=stderr, env=dict(os.environ)
        )
        while "multicast: measuring" not in log.read_text():
            assert campaign.poll() is None
            time.sleep(0.05)
        campaign.send_signal(signal.SIGKILL)
        campaign.wait()
    assert not calibration_file(spec).exists()
    ran = wafertlm("calibrate", "--rtl", spec.file)
    assert ran.status == 0
    told = "resuming the campaign that was stopped: buffering, unicast, contention stored in"
    assert f"{told} mask-mesh.part.calibration.json" in ran.stderr
    assert "contention: measuring" not in ran.stderr
    assert "multicast: measuring" in ran.stderr
    # To the same bytes as without the kill.
    resumed = calibration_file(spec).read_bytes()
    assert wafertlm("calibrate", "--rtl", spec.file, "--force").status == 0
    assert calibration_file(spec).read_bytes() == resumed
    assert not part_file(spec).exists()
