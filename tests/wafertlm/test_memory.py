"""The command `memory` beyond what all commands have in common."""

import json
from pathlib import Path
from typing import Any

import pytest

from tlm.memory.dram.address_map import ADDRESS_MAPS
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from wafertlm.cli import run

_FIELDS = ["bandwidth_fraction", "read_latency_ns", "row_hit_fraction", "refresh_fraction"]


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["memory", "--requests", "20000", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("policy", CONTROLLERS)
@pytest.mark.parametrize("pattern", ["sequential", "strided", "random", "mixed", "dma"])
def test_figures_are_shares_and_ordered_latencies(
    device: str, policy: str, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = figures(capsys, "--device", device, "--policy", policy, "--pattern", pattern)
    assert [name for name in result if name in _FIELDS] == _FIELDS
    assert 0 < result["bandwidth_fraction"] <= 1
    assert 0 <= result["row_hit_fraction"] < 1
    assert 0.05 < result["refresh_fraction"] < 0.15
    latency_ns = result["read_latency_ns"]
    assert 0 < latency_ns["p50"] <= latency_ns["p99"]
    assert latency_ns["mean"] > DEVICES[device].rl * DEVICES[device].tick_ns or pattern == "mixed"
    assert result["provenance"]["rtl_hash"] is None


def test_writes_alone_have_no_read_latency(capsys: pytest.CaptureFixture[str]) -> None:
    result = figures(capsys, "--write-fraction", "1")
    assert result["read_latency_ns"] is None
    assert result["bandwidth_fraction"] > 0.9
    assert run(["memory", "--requests", "100", "--write-fraction", "1"]) == 0
    assert "bandwidth_fraction" in capsys.readouterr().out


def test_a_result_is_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = figures(capsys, "--out", str(tmp_path / "m.json"))
    stored = json.loads((tmp_path / "m.json").read_text())
    assert {name: result[name] for name in stored} == stored
    assert set(result) - set(stored) == {"cpu_s", "wall_s", "compile_s"}


def test_equal_runs_are_equal_and_the_seed_matters(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [figures(capsys, "--pattern", "random", "--seed", seed) for seed in ("1", "1", "2")]
    kept = [{name: one[name] for name in _FIELDS} for one in runs]
    assert kept[0] == kept[1] != kept[2]
    hashes = [one["provenance"]["config_hash"] for one in runs]
    assert hashes[0] == hashes[1] != hashes[2]


def test_strides_meet_in_a_bank_unless_they_are_hashed(capsys: pytest.CaptureFixture[str]) -> None:
    plain, hashed = (
        figures(capsys, "--pattern", "strided", "--map", name)["bandwidth_fraction"]
        for name in ("bg-co-ba-ro", "bg-co-ba-ro-xor")
    )
    assert hashed > 5 * plain


def test_the_grain_of_arbitration_matters_to_dma(capsys: pytest.CaptureFixture[str]) -> None:
    dma = ("--pattern", "dma", "--requesters", "16")
    fine, coarse = (
        figures(capsys, *dma, "--grain", grain)["bandwidth_fraction"] for grain in ("1", "64")
    )
    assert coarse > 1.5 * fine


def test_every_map_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ADDRESS_MAPS:
        assert figures(capsys, "--map", name)["bandwidth_fraction"] > 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "hbm9"), "unknown device 'hbm9'; known: hbm2, hbm3, hbm4"),
        (("--policy", "p"), "unknown policy 'p'; known: dramsim3, dramsys, ramulator"),
        (("--map", "m"), "unknown map 'm'; known: bg-co-ba-ro, bg-co-ba-ro-xor"),
        (("--pattern", "x"), "unknown pattern 'x'; known: dma"),
        (("--queue-depth", "0"), "--queue-depth: found 0; allowed: 1 to 4096"),
        (("--grain", "0"), "--grain: found 0; allowed: 1 to 4096"),
        (("--requests", "3"), "--requests: found 3; allowed: 10 to"),
        (("--requesters", "2000"), "--requesters: found 2000"),
        (
            ("--pattern", "dma", "--block-bytes", "31"),
            "--block-bytes: found 31; allowed: multiples",
        ),
        (("--stride-bytes", "64"), "--stride-bytes: found 64 with pattern sequential; allowed: of"),
        (("--pattern", "strided", "--block-bytes", "64"), "with pattern strided; allowed: of dma"),
        (("--write-fraction", "-1"), "--write-fraction: found -1.0; allowed: 0 to 1"),
    ],
)
def test_bad_input_is_status_2_and_a_message(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and message in shown.err
