"""The tutorial "Calibrate a custom router" works word for word."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tlm.calibrated import REPOSITORY
from wafertlm.cli import run

DOCUMENT = REPOSITORY / "docs" / "custom_rtl" / "README.md"


def lines() -> list[str]:
    return [line[4:] for line in DOCUMENT.read_text().splitlines() if line.startswith("    ")]


def execute(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """A line of the tutorial; the command also prints JSON."""
    words = shlex.split(line, comments=True)
    if words[0] != "wafertlm":
        return subprocess.run(words, check=False).returncode, ""
    status = run([*words[1:], "--json"])
    return status, capsys.readouterr().out


@pytest.mark.rtl
@pytest.mark.slow
def test_every_line_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(
        DOCUMENT.parent,
        tmp_path / "docs" / "custom_rtl",
        ignore=shutil.ignore_patterns("*.calibration.json"),
    )
    monkeypatch.chdir(tmp_path)
    found = []
    for line in lines():
        wanted = 2 if "# exit status 2" in line else 0
        status, printed = execute(line, capsys)
        assert status == wanted, line
        if "calibrate" in line:
            found.append(json.loads(printed))
    quick, whole, slower, locked = found
    for result in found:
        assert all(row["max_abs_error_pct"] == 0 for row in result["experiments"])
        assert result["not_represented"] == []
    assert quick["network"]["reduce_cycles"] == whole["network"]["reduce_cycles"] == 3
    changed = {"reduce_cycles": 5, "reduce_interval_cycles": 5}
    assert slower["network"] == {**quick["network"], **changed}
    assert locked["network"]["channel"] == "output"
    assert whole["stored"] == "mask-mesh.calibration.json"


def test_stale_calibrations_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "mask_mesh" / "mask_mesh.toml"
    shutil.copytree(DOCUMENT.parent / "mask_mesh", spec.parent)
    arguments = ["noc", "--rtl", str(spec), "--mesh", "4x4", "--traffic", "uniform"]
    assert run([*arguments, "--rate", "0.1"]) == 2
    assert "no calibration of 'mask-mesh'" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--fifo-depth", "4"], ["--stages", "2"], ["--unprotected"]])
def test_options_of_the_projects_mesh_are_refused(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    spec = DOCUMENT.parent / "mask_mesh" / "mask_mesh.toml"
    arguments = ["noc", "--rtl", str(spec), "--mesh", "4x4", "--traffic", "uniform", *option]
    assert run(arguments) == 2
    assert "found with --rtl" in capsys.readouterr().err
