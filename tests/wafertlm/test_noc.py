"""The command `noc` beyond what all commands have in common."""

import json
from pathlib import Path
from typing import Any

import pytest

from wafertlm.cli import run


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["noc", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("level", ["at", "perf"])
def test_packets_of_a_file_count_until_the_last_has_come(
    level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "packets.csv"
    path.write_text("cycle,source,destinations,flits,kind\n0,0:0,0:3,4,unicast\n")
    result = figures(capsys, "--mesh", "4x4", "--traffic", str(path), "--level", level)
    assert result["latency_cycles"]["max"] == 1 + 3 + 4 - 1
    assert result["accepted"] == result["offered"] > 0
    assert not result["saturated"]
    assert result["provenance"]["seed"] is None


def test_a_file_is_recorded_by_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "packets.csv"
    hashes = set()
    for flits in (4, 5):
        path.write_text(f"cycle,source,destinations,flits,kind\n0,0:0,0:3,{flits},unicast\n")
        result = figures(capsys, "--mesh", "4x4", "--traffic", str(path))
        hashes.add(result["provenance"]["config_hash"])
    assert len(hashes) == 2


def test_closed_form_knows_when_a_link_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = ("--mesh", "8x8", "--traffic", "uniform", "--level", "perf")
    light = figures(capsys, *mesh, "--rate", "0.1")
    heavy = figures(capsys, *mesh, "--rate", "0.9")
    assert not light["saturated"] and light["accepted"] == light["offered"]
    assert heavy["saturated"] and heavy["accepted"] < 0.7 * heavy["offered"]


def test_unwritable_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = [
        "kernel",
        "mesh-gemm",
        "--chip",
        "rtl-2x2",
        "--grid",
        "2x2",
        "--shape",
        "16,16,16",
        "--dtype",
        "int8",
    ]
    assert run([*kernel, "--out", ""]) == 2
    assert "no name of a file" in capsys.readouterr().err
