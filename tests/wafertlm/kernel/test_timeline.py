"""``wafertlm kernel`` with a timeline and with maps."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wafertlm import cli

_KERNEL = (
    *("kernel", "summa", "--chip", "rtl-4x4", "--grid", "4x4", "--shape", "32,32,32"),
    *("--dtype", "int8", "--level", "at", "--allow-stale", "--json"),
)


def run(path: Path, *options: str) -> list[dict[str, Any]]:
    assert cli.run([*_KERNEL, "--timeline", str(path), *options]) == 0
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def test_all_tiles_of_a_small_grid_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = run(tmp_path / "run.json.gz")
    cycles = json.loads(capsys.readouterr().out)["cycles"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == set(range(16))
    assert {event["name"] for event in spans} == {"A", "B", "C"}
    assert max(event["ts"] + event["dur"] for event in spans) == cycles


def test_a_loosely_timed_run_of_a_foreign_chip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json.gz"
    grid = ("--grid", "24x24", "--shape", "48,48,48", "--region", "20:24,0:2")
    command = ("kernel", "mesh-gemm", "--chip", "wse2", "--dtype", "fp16", *grid)
    assert cli.run([*command, "--timeline", str(path), "--json"]) == 0
    watched = json.loads(capsys.readouterr().out)["cycles"]
    assert cli.run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == watched
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    shown = {divmod(event["pid"], 24) for event in events}
    assert shown == {(row, col) for row in range(20, 24) for col in (0, 1)}


def test_a_region_and_every_third_operation(tmp_path: Path) -> None:
    """Of each step of SUMMA the multicast of A is the first of three operations."""
    events = run(tmp_path / "run.json.gz", "--region", "1:2,0:4", "--every", "3")
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {4, 5, 6, 7}
    assert {event["name"] for event in spans} == {"A"}


def test_maps_hold_the_flits_of_each_link(tmp_path: Path) -> None:
    """Blocks of 8x8 bytes are 8 flits; root c sends over all links away from column c."""
    path = tmp_path / "maps.npz"
    assert cli.run([*_KERNEL, "--map", str(path)]) == 0
    maps = np.load(path)
    assert maps["link_flits_east"].tolist() == [[8, 16, 24, 0]] * 4
    assert maps["link_flits_west"].tolist() == [[0, 24, 16, 8]] * 4
    assert (maps["link_flits_south"] == maps["link_flits_east"].T).all()
    assert (maps["link_flits_north"] == maps["link_flits_west"].T).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--region", "0:9,0:1"),
            "--region: rectangle 0:9,0:1 is empty or lies outside the 4x4 mesh",
        ),
        (("--every", "0"), "--every: found 0; allowed: 1 or more"),
        (
            ("--level", "perf"),
            "--timeline: level perf has no operations to show; others do: at, lt",
        ),
    ],
)
def test_bad_input(
    options: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*_KERNEL, "--timeline", str(tmp_path / "t.json.gz"), *options]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
