"""The contract that every command keeps: one object, exit statuses, messages, names."""

import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from calibration.campaign import EXPERIMENTS
from tlm.calibrated import load_result
from tlm.comparisons import load_chips, load_levels, load_tiles
from tlm.errors import InputError
from wafertlm import __version__, cli
from wafertlm.output import CheckFailedError

_KERNEL = (
    *("kernel", "mesh-gemm", "--chip", "rtl-4x4", "--grid", "4x4"),
    *("--shape", "64,64,64", "--dtype", "int8"),
)
_SERVE = (
    *("serve", "--model", "llama3-8b", "--chip", "flat32", "--scheduler", "chunked"),
    *("--workload", "sharegpt", "--rate", "8", "--requests", "20", "--seed", "3"),
)
_NOC = ("noc", "--mesh", "4x4", "--traffic", "uniform", "--rate", "0.1", "--cycles", "200")
_RUNS = {
    "doctor": ("doctor",),
    "calibrate": ("calibrate",),
    "noc": _NOC,
    "collective": ("noc", "--mesh", "4x4", "--collective", "multicast")
    + ("--group", "all", "--source", "0,0", "--flits", "8"),
    "kernel at": (*_KERNEL, "--level", "at"),
    "kernel lt": _KERNEL,
    "kernel perf": (*_KERNEL, "--level", "perf"),
    "check": ("check", *_KERNEL[1:]),
    "dies": ("dies", "--chip", "flat32-wafer", "--collective", "all-reduce", "--bytes", "4096"),
    "serve": _SERVE,
    "show": ("show", "model", "llama3-8b"),
    "report": ("report",),
}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in; `calibrate` finds everything measured."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    stored = [load_result(experiment.name) for experiment in EXPERIMENTS]
    monkeypatch.setattr("wafertlm.api.calibration_run.campaign.calibrate", lambda **options: stored)
    points = load_levels().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_levels", lambda **given: points)
    tiles = load_tiles().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_tiles", lambda **given: tiles)
    chips = load_chips().points
    monkeypatch.setattr("wafertlm.api.calibration_run.compare_chips", lambda **given: chips)
    return tmp_path


def _object(text: str) -> dict[str, Any]:
    """The one object that the text is; NaN and Infinity are not JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    result = json.loads(text, parse_constant=refuse)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("name", _RUNS)
def test_json_is_one_object_with_its_origin_and_cost(
    wafertlm: Any, elsewhere: Path, name: str
) -> None:
    ran = wafertlm(*_RUNS[name], "--json")
    assert ran.status == 0, ran.stderr
    result = _object(ran.stdout)
    assert result["command"] == _RUNS[name][0]
    assert list(result["provenance"]) == [
        *("version", "config_hash", "rtl_hash", "calibration", "seed")
    ]
    assert result["provenance"]["version"] == __version__
    for cost in ("cpu_s", "wall_s", "compile_s"):
        assert math.isfinite(result[cost])
        assert result[cost] >= 0


@pytest.mark.parametrize("name", _RUNS)
def test_without_json_a_person_can_read_it(wafertlm: Any, elsewhere: Path, name: str) -> None:
    ran = wafertlm(*_RUNS[name])
    assert ran.status == 0, ran.stderr
    assert ran.stdout.strip()
    assert not ran.stdout.lstrip().startswith("{")


def test_figures_of_rtl_name_it_and_random_ones_their_seed(wafertlm: Any) -> None:
    kernel, serve, noc = (
        _object(wafertlm(*arguments, "--json").stdout)["provenance"]
        for arguments in (_KERNEL, _SERVE, _NOC)
    )
    assert kernel["rtl_hash"] == noc["rtl_hash"] is not None
    assert serve["rtl_hash"] is None
    assert (kernel["seed"], serve["seed"], noc["seed"]) == (None, 3, 0)


def test_the_configuration_hash_tells_settings_apart(wafertlm: Any) -> None:
    def config_hash(*more: str) -> str:
        result = _object(wafertlm(*_KERNEL, *more, "--json").stdout)
        return str(result["provenance"]["config_hash"])

    assert config_hash() == config_hash("--level", "lt")
    assert config_hash() != config_hash("--level", "perf")


@pytest.mark.parametrize("name", ["kernel lt", "kernel at", "serve"])
def test_stored_results_hold_no_times_and_are_equal_bytes_twice(
    wafertlm: Any, tmp_path: Path, name: str
) -> None:
    beside = ("--requests-csv", "csv") if name == "serve" else ("--map", "npz")
    folders = (tmp_path / "first", tmp_path / "again")
    for folder in folders:
        out, table = folder / "run.json", folder / f"run.{beside[1]}"
        assert wafertlm(*_RUNS[name], "--out", out, beside[0], table).status == 0
    first, again = ([path.read_bytes() for path in sorted(f.iterdir())] for f in folders)
    assert len(first) == 2
    assert first == again
    result = _object((folders[0] / "run.json").read_text())
    assert not {"cpu_s", "wall_s", "compile_s"} & set(result)
    assert "provenance" in result


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_lists_the_names_it_knows(wafertlm: Any, elsewhere: Path, name: str) -> None:
    names = _object(wafertlm(name, "--list", "--json").stdout)
    assert all(isinstance(known, list) for known in names.values())
    text = wafertlm(name, "--list").stdout
    for known in names.values():
        assert all(entry in text for entry in known)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_tells_of_itself(wafertlm: Any, name: str) -> None:
    ran = wafertlm(name, "--help")
    assert ran.status == 0
    for option in ("--json", "--list", "--help"):
        assert option in ran.stdout


def test_help_comes_without_loading_what_the_commands_need() -> None:
    program = (
        "import sys; from wafertlm.cli import run; status = run(['--help'])\n"
        "heavy = {'cocotb', 'matplotlib', 'numba', 'numpy', 'pydantic', 'scipy', 'simpy'}\n"
        "print(sorted(heavy & set(sys.modules)), status, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr == "[] 0\n"
    assert all(name in ran.stdout for name in cli.COMMANDS)


def test_the_version(wafertlm: Any) -> None:
    assert wafertlm("--version").stdout == f"wafertlm, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("fly",),
            "unknown command 'fly'; known: doctor, calibrate, noc, memory, kernel, check, dies, "
            "iteration, serve, compare, gates, explore, show, study, replay, report",
        ),
        (("doctor", "--fast"), "No such option"),
        (("noc",), "error: --mesh: not given; write ROWSxCOLS, such as 4x4\n"),
        (("kernel", "fft", *_KERNEL[2:]), "error: unknown kernel 'fft'; known: allgather-gemm"),
        (("kernel", "mesh-gemm"), "error: kernel: chip not given"),
        (("serve", "--model", "gpt"), "error: --chip: not given; known: a100x1"),
        (("report", "--results", "nowhere"), "error: --results: no folder 'nowhere'"),
        (("calibrate", "--workers", "0"), "--workers: found 0; allowed: 1 or more"),
        ((*_KERNEL, "--out", "/dev/null/x.json"), "error: /dev/null/x.json: cannot be written"),
    ],
)
def test_bad_input_is_status_2_and_a_message(
    wafertlm: Any, elsewhere: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = wafertlm(*arguments)
    assert ran.status == 2
    assert ran.stdout == ""
    assert message in ran.stderr


def test_the_installed_program_shows_no_traceback() -> None:
    line = [sys.executable, "-m", "wafertlm.cli", "kernel", "mesh-gemm", "--chip", "moon"]
    rest = ["--grid", "4x4", "--shape", "64,64,64", "--dtype", "int8", "--json"]
    ran = subprocess.run(line + rest, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: unknown chip 'moon'; known: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        (InputError("a.toml: no"), 2, "error: a.toml: no\n"),
        (CheckFailedError("too far"), 1, "check failed: too far\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_how_a_command_ends_decides_the_status(
    wafertlm: Any,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    status: int,
    message: str,
) -> None:
    def end() -> None:
        raise raised

    module = ModuleType("wafertlm.commands.probe")
    module.command = click.Command("probe", callback=end)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "probe", "Ends badly.")
    ran = wafertlm("probe")
    assert (ran.status, ran.stdout) == (status, "")
    assert ran.stderr.strip() == message.strip()
