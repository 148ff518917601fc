"""A run in a file: what is printed is what repeats it, to the byte."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY
from wafertlm.output import TIMES

_RUNS = (
    "noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 200 --fifo-depth 8",
    "noc --mesh 4x4 --collective multicast --group row --source 1,0 --flits 16 --level perf",
    "memory --requests 100 --pattern random --seed 3",
    "kernel mesh-gemm --chip wse2 --grid 4x4 --shape 32,32,32 --set noc.hop_cycles=2 --level perf",
    "check summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8",
    "check --methods --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8",
    "dies --chip flat32-wafer --collective all-reduce --bytes 64 --level perf --kernel-s 1e-5",
    "iteration --model llama3-8b --chip flat32 --prefill 512 --prefill 16@512 --decode 8@100",
    "serve --model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt --rate inf "
    "--requests 5 --seed 2 --slo-ttft 0.5",
    "serve --model qwen3-8b --chip h100x2 --scheduler pd-disaggregation --workload fixed:100:10 "
    "--rate 3 --requests 5",
    "compare noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 200 --vary fifo-depth=4,8",
    "compare kernel mesh-gemm --grid 4x4 --shape 32,32,32 --level perf --chip wse2 "
    "--set noc.hop_cycles=1 --vary set:noc.flit_bytes=4,8 --vary shape=32,32,32;64,64,64",
)


def _result(wafertlm: Wafertlm, *words: object) -> dict[str, Any]:
    ran = wafertlm(*words, "--json")
    assert ran.status == 0, ran.stderr
    assert "another run" not in ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return {name: each for name, each in result.items() if name not in TIMES}


@pytest.mark.parametrize("line", _RUNS)
def test_both_files_of_a_run_repeat_it(wafertlm: Wafertlm, tmp_path: Path, line: str) -> None:
    command, *words = shlex.split(line.replace(";", r"\;"))
    result = _result(wafertlm, command, *words)
    printed = wafertlm(command, *words, "--print-config")
    assert (printed.status, printed.stderr) == (0, "")
    (tmp_path / "run.toml").write_text(printed.stdout)
    (tmp_path / "run.json").write_text(json.dumps(result))
    for name in ("run.toml", "run.json"):
        assert _result(wafertlm, command, "--config", tmp_path / name) == result


def test_what_is_printed_is_what_was_given(wafertlm: Wafertlm) -> None:
    line = "kernel summa --chip wse2 --shape 8,8,8 --set noc.hop_cycles=2 --serial --threads 2"
    assert wafertlm(*line.split(), "--print-config", "--json").stdout == (
        'command = "kernel"\nkernel = "summa"\nchip = "wse2"\nshape = "8,8,8"\nserial = true\n'
        'set = [\n    "noc.hop_cycles=2",\n]\nthreads = 2\n'
    )


def test_the_command_line_is_above_the_file(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('kernel = "summa"\nchip = "wse2"\nset = ["noc.hop_cycles=2"]\nserial = true\n')
    printed = wafertlm(
        *("kernel", "cannon", "--config", file, "--set", "noc.hop_cycles=3", "--print-config")
    )
    assert printed.stdout == (
        'command = "kernel"\nkernel = "cannon"\nchip = "wse2"\nserial = true\n'
        'set = [\n    "noc.hop_cycles=3",\n]\n'
    )


def test_a_result_of_a_file_is_not_taken_for_one_of_a_name(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    chip, stored = tmp_path / "flat32.toml", tmp_path / "run.json"
    shown = wafertlm("show", "chip", "flat32").stdout
    chip.write_text(shown.replace("[grid]", "[grid]\n# mine"))
    line = ("kernel", "mesh-gemm", "--grid", "4x4", "--shape", "64,64,64", "--level", "perf")
    assert wafertlm(*line, "--chip", chip, "--out", stored).status == 0
    assert "another run" in wafertlm("kernel", "--config", stored).stderr
    again = wafertlm("kernel", "--config", stored, "--chip", chip)
    assert (again.status, again.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("kernel", "chip = ", "not TOML: Invalid value"),
        ("kernel", "grids = 4", "unknown field 'grids'; known: allow-stale, at-root, "),
        ("kernel", 'command = "serve"', "command: found 'serve'; allowed: 'kernel'"),
        ("kernel", 'threads = "two"', "threads: 'two' is not a valid integer"),
        ("kernel", "threads = true", "threads: found True; allowed: text or a number"),
        ("kernel", "serial = 1", "serial: found 1; allowed: true or false"),
        ("kernel", 'set = "noc.hop_cycles=2"', "set: found 'noc.hop_cycles=2'; allowed: a list"),
        ("kernel", 'chip = "wse2"', "kernel: kernel not given; see --help and --list"),
        ("noc", 'mesh = "4"', "--mesh: found '4'; write ROWSxCOLS, such as 8x8"),
        ("noc", "[rate]\nx = 1", "rate: found {'x': 1}; allowed: text or a number"),
        ("compare", "[options]", "compared: found None; allowed: a command, its options in"),
        ("compare", 'compared = "show"', "compared: found 'show'; allowed: noc, kernel, iteration"),
        ("compare", 'compared = "noc"\n[options]\nmesk = 1', "options: unknown field 'mesk'; kn"),
    ],
)
def test_a_fault_names_file_and_field(
    wafertlm: Wafertlm, tmp_path: Path, command: str, text: str, message: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    ran = wafertlm(command, "--config", file)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {file}: {message}")


def test_files_of_the_document_are_read(wafertlm: Wafertlm, tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "config.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        (tmp_path / "run.toml").write_text(block)
        command = tomllib.loads(block)["command"]
        ran = wafertlm(command, "--config", tmp_path / "run.toml", "--print-config")
        assert tomllib.loads(ran.stdout) == tomllib.loads(block)
    (line,) = re.findall(r"^    wafertlm (.*--print-config)$", text, re.MULTILINE)
    assert 'command = "serve"' in wafertlm(*shlex.split(line)).stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "found no result of a command; allowed: a result of --json or --out"),
        ('{"command": "serve", "options": {}}', "found no result of a command"),
        (
            '{"command": "serve", "provenance": {"config_hash": "1"}, '
            '"options": {"trace": {"name": "a.csv", "hash": "2"}}}',
            "trace: a result keeps the content of a file, not where it is; name the file in a",
        ),
    ],
)
def test_what_is_no_result_and_what_none_can_say(
    wafertlm: Wafertlm, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    ran = wafertlm("serve", "--config", file)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {file}: {message}")


def test_only_commands_that_are_compared_are_printed(wafertlm: Wafertlm) -> None:
    ran = wafertlm("compare", "4x4", "--print-config")
    known = "known: iteration, kernel, noc, serve"
    assert (ran.status, ran.stderr) == (2, f"error: unknown command '4x4'; {known}\n")
