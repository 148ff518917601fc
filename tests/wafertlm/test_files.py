"""Chips and models of files at the commands: the same bytes as by name, changes that are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tlm.chips.find import text_of as chip_text
from workloads.models.find import text_of as model_text

_GRID = ("--grid", "4x4", "--shape", "64,64,64", "--dtype")
_LOAD = ("--scheduler", "chunked", "--workload", "sharegpt", "--rate", "4", "--requests", "10")


def file_of(folder: Path, text: str, name: str = "mine.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def kernel(chip: object, dtype: str = "fp16", *more: str) -> tuple[str, ...]:
    return ("kernel", "summa", "--chip", str(chip), *_GRID, dtype, *more, "--json")


def serve(model: object, chip: object, *more: str) -> tuple[str, ...]:
    return ("serve", "--model", str(model), "--chip", str(chip), *_LOAD, *more, "--json")


def result_of(wafertlm: Any, command: tuple[str, ...]) -> dict[str, Any]:
    ran = wafertlm(*command)
    assert ran.status == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    for cost in ("cpu_s", "wall_s", "compile_s"):
        del result[cost]
    return result


def without_names(result: dict[str, Any]) -> str:
    """All but names and provenance, as bytes and so in order."""
    options = {name: value for name, value in result["options"].items()}
    for name in ("chip", "model", "kind"):
        options.pop(name, None)
    return json.dumps(result | {"options": options, "provenance": None})


@pytest.mark.parametrize(
    ("chip", "dtype", "level"),
    [("flat32", "fp16", "lt"), ("rtl-4x4", "int8", "at"), ("rtl-4x4", "int16", "perf")],
)
def test_a_kernel_on_a_files_chip_gives_the_bytes_of_its_name(
    wafertlm: Any, tmp_path: Path, chip: str, dtype: str, level: str
) -> None:
    path = file_of(tmp_path, chip_text(chip))
    named, read = (
        result_of(wafertlm, kernel(asked, dtype, "--level", level)) for asked in (chip, path)
    )
    assert without_names(named) == without_names(read)
    assert (named["options"]["chip"], read["options"]["chip"]) == (chip, "mine")
    assert named["provenance"]["rtl_hash"] == read["provenance"]["rtl_hash"]


@pytest.mark.parametrize(
    ("model", "chip", "more"),
    [
        ("llama3-8b", "flat32", ()),
        ("qwen3-30b-a3b", "h100x2", ()),
        ("gpt-oss-20b", "h100x4", ("--weights", "bf16")),
        ("llama3-8b", "flat32", ("--scheduler", "pd-disaggregation")),
    ],
)
def test_serving_of_files_gives_the_bytes_of_their_names(
    wafertlm: Any, tmp_path: Path, model: str, chip: str, more: tuple[str, ...]
) -> None:
    own_chip = file_of(tmp_path, chip_text(chip), "a.toml")
    own_model = file_of(tmp_path, model_text(model), "b.toml")
    named, read = (
        result_of(wafertlm, serve(*asked, *more))
        for asked in ((model, chip), (own_model, own_chip))
    )
    assert without_names(named) == without_names(read)
    assert (read["options"]["model"], read["options"]["chip"]) == ("b", "a")


def test_checks_and_dies_take_files(wafertlm: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, chip_text("flat32-wafer"))
    for command in (
        ("check", "summa", "--chip", "?", *_GRID, "fp8", "--json"),
        ("dies", "--chip", "?", "--collective", "all-to-all", "--bytes", "4096", "--json"),
    ):
        named, read = (
            result_of(wafertlm, tuple(str(chip) if part == "?" else part for part in command))
            for chip in ("flat32-wafer", path)
        )
        assert without_names(named) == without_names(read)
        changed = tuple("flat32-wafer" if part == "?" else part for part in command)
        told = result_of(wafertlm, (*changed, "--set", "dies.packet_bytes=1024"))
        assert told["options"]["set"] == ["dies.packet_bytes=1024"]


def test_foreign_tiles_on_the_measured_network_name_its_rtl(wafertlm: Any, tmp_path: Path) -> None:
    head, network, rest = chip_text("flat32").partition("[noc]")
    others = rest[rest.index("[memory]") :]
    path = file_of(tmp_path, f'{head}{network}\nkind = "calibrated"\n\n{others}')
    result = result_of(wafertlm, kernel(path, "fp16", "--level", "at"))
    assert result["provenance"]["calibration"] == "rtl"
    assert result["provenance"]["rtl_hash"] is not None
    assert result["error"]["level_pct"] is result["error"]["profile_pct"] is None
    rests_on = result["error"]["rests_on"]
    assert rests_on["noc"]["rtl_hash"] == result["provenance"]["rtl_hash"]
    assert rests_on["compute"]["rtl_hash"] == "profile only"


def test_a_change_moves_the_figures_and_is_told(wafertlm: Any, tmp_path: Path) -> None:
    plain = result_of(wafertlm, kernel("flat32"))
    changed = result_of(wafertlm, kernel("flat32", "fp16", "--set", "noc.hop_cycles=9"))
    text = chip_text("flat32").replace("hop_cycles = 1", "hop_cycles = 9")
    read = result_of(wafertlm, kernel(file_of(tmp_path, text)))
    assert "set" not in plain["options"]
    assert changed["options"]["set"] == ["noc.hop_cycles=9"]
    assert plain["cycles"] < changed["cycles"] == read["cycles"]
    told = wafertlm(*kernel("flat32", "fp16", "--set", "noc.hop_cycles=9")[:-1]).stdout
    assert "flat32 with noc.hop_cycles=9" in " ".join(told.split())


def test_the_configuration_hash_covers_changes_and_what_files_hold(
    wafertlm: Any, tmp_path: Path
) -> None:
    def of_kernel(*more: str, chip: object = "flat32") -> str:
        return str(result_of(wafertlm, kernel(chip, "fp16", *more))["provenance"]["config_hash"])

    def of_serving(model: object) -> str:
        return str(result_of(wafertlm, serve(model, "flat32"))["provenance"]["config_hash"])

    chip, model = chip_text("flat32"), model_text("llama3-8b")
    hashes = [
        of_kernel(),
        of_kernel("--set", "noc.hop_cycles=1"),
        of_kernel("--set", "noc.hop_cycles=2"),
        of_kernel(chip=file_of(tmp_path, chip, "flat32.toml")),
        of_kernel(chip=file_of(tmp_path, chip.replace("965.0e6", "966.0e6"), "flat32.toml")),
        of_serving("llama3-8b"),
        of_serving(file_of(tmp_path, model, "llama3-8b.toml")),
        of_serving(file_of(tmp_path, model.replace("32", "16"), "llama3-8b.toml")),
    ]
    assert len(set(hashes)) == len(hashes)


def test_a_file_that_changes_between_runs_is_read_again(wafertlm: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, model_text("llama3-8b"))
    before = result_of(wafertlm, serve(path, "h100x1"))
    file_of(tmp_path, model_text("llama3-8b").replace("layers = 32", "layers = 16"))
    after = result_of(wafertlm, serve(path, "h100x1"))
    assert after["tbt_ms"]["mean"] < before["tbt_ms"]["mean"]


def test_a_state_of_a_run_is_of_one_chip(wafertlm: Any, tmp_path: Path) -> None:
    state, path = tmp_path / "state", file_of(tmp_path, chip_text("flat32"))
    kept = ("--checkpoint", str(state), "--checkpoint-every", "0")
    first = result_of(wafertlm, serve("llama3-8b", path, *kept))
    text = chip_text("flat32").replace(
        "bandwidth_bytes_per_s = 2.0e12", "bandwidth_bytes_per_s = 1e12"
    )
    file_of(tmp_path, text)
    slower = result_of(wafertlm, serve("llama3-8b", path, *kept))
    assert slower["tbt_ms"]["mean"] > first["tbt_ms"]["mean"]


def test_a_changed_profile_has_no_error_of_the_shipped_one(wafertlm: Any) -> None:
    command = serve("qwen3-30b-a3b", "h100x2", "--set", "efficiency.gemm=0.5")
    assert result_of(wafertlm, command)["error"]["profile_pct"] is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (kernel("nowhere.toml"), "error: nowhere.toml: cannot be read: No such file or directory"),
        (kernel("./flat32"), "error: ./flat32: cannot be read: No such file or directory"),
        (serve("config.json", "flat32"), "error: config.json: cannot be read: No such file"),
        (
            serve("gpt-oss-20b", "flat32-wafer"),
            "error: model 'gpt-oss-20b' has sliding windows; allowed on 'flat32-wafer'",
        ),
        (kernel("h100x2"), "error: --chip: 'h100x2' is a server of GPUs, which lacks [grid]"),
        (
            kernel("rtl-4x4", "int8", "--set", "tile.sram_kib=1"),
            "error: --set: chip 'rtl-4x4': tile.sram_kib: found 1.0; allowed: 64.0, as the RTL",
        ),
    ],
)
def test_a_fault_is_one_line(
    wafertlm: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = wafertlm(*command)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1
