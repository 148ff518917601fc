"""What a user may do to the command by mistake or on purpose: one line, and nothing lost."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tlm.errors import InputError
from wafertlm.cli import one_line

_KERNEL = (
    *("kernel", "mesh-gemm", "--grid", "4x4", "--shape", "64,64,64", "--dtype", "int8"),
    *("--level", "perf", "--chip"),
)
_NOC = ("noc", "--mesh", "4x4", "--traffic", "uniform", "--rate", "0.1", "--cycles")
_SERVE = (
    *("serve", "--model", "llama3-8b", "--chip", "h100x2", "--scheduler", "chunked"),
    *("--workload", "sharegpt", "--rate", "4", "--requests", "5"),
)
_DIGITS = "9" * 5000
_LONG = "a" * 300
_DEEP = {
    "key.toml": f"a{'.a' * 3000} = 1",
    "list.toml": f"a = {'[' * 3000}{']' * 3000}",
    "table.toml": f"a = {'{a = ' * 3000}1{'}' * 3000}",
    "digits.toml": f"a = {_DIGITS}",
    "config.json": f"{'[' * 100_000}{']' * 100_000}",
}


def hold_one_line(ran: Any, status: int = 2) -> None:
    """The outcome of bad input."""
    assert (ran.status, ran.stdout) == (status, "")
    assert ran.stderr.count("\n") == 1
    assert len(ran.stderr) <= 301
    assert ran.stderr.startswith(("error: ", "check failed: "))


@pytest.mark.parametrize(
    "asked",
    [
        (*_KERNEL, "rtl-RxC"),
        (*_KERNEL, f"{_LONG}.toml"),
        (*_KERNEL, "rtl-4x4", "--out", _LONG),
        (*_KERNEL, "rtl-4x4", "--out", "/proc/nowhere/x.json"),
        (*_KERNEL, "rtl-4x4", "--out", "."),
        (*_KERNEL, "rtl-4x4", "--level", "lt", "--out", "a", "--map", "./a"),
        (*_KERNEL, "flat32", "--set", f"noc.hop_cycles={_DIGITS}"),
        (*_KERNEL, "flat32", "--set", f"a{'.a' * 1500}=1"),
        ("noc", "--traffic", "uniform", "--mesh", f"{_DIGITS}x4"),
        ("noc", "--traffic", "uniform", "--mesh", "1_0x4"),
        *((*_NOC, cycles) for cycles in ("1_00", " 100", "٣٣", _DIGITS, "1e3")),
        (*_NOC, "100", "--rate", "0_1"),
        ("noc", "--mesh", "4x4", "--traffic", "u" * 140_000),
        (*_SERVE, "--seeds", "99999999999"),
        (*_SERVE, "--checkpoint", "/proc/nowhere/state"),
        (*_SERVE, "--requests-csv", "/proc/nowhere/rows.csv"),
        ("show", "chip", "/dev/zero"),
        ("report", "--results", _LONG),
        ("no\nsuch\x1b[2J\ncommand",),
    ],
    ids=lambda asked: " ".join(asked)[-40:],
)
def test_bad_input_is_one_line(
    wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    hold_one_line(wafertlm(*asked))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", _DEEP)
@pytest.mark.parametrize("option", ["--chip", "--model", "--rtl"])
def test_a_deep_file_is_one_line(wafertlm: Any, tmp_path: Path, name: str, option: str) -> None:
    (tmp_path / name).write_text(_DEEP[name])
    hold_one_line(wafertlm(*_SERVE[:5], *_SERVE[5:], "--chip", "flat32", option, tmp_path / name))


def test_a_long_message_keeps_its_ends() -> None:
    line = one_line(f"error: x: found {'u' * 1000}; allowed: less\n\nlog\n%Error: a.sv:1: no")
    assert 298 <= len(line) <= 300
    assert line.startswith("error: x: found uuu")
    assert line.endswith("; allowed: less %Error: a.sv:1: no")
    assert one_line("yosys failed:\na.sv:3: ERROR: no") == "yosys failed: a.sv:3: ERROR: no"


def test_a_result_goes_through_a_device(wafertlm: Any, tmp_path: Path) -> None:
    """As root, the device was replaced by a file."""
    (tmp_path / "out").symlink_to("/dev/full")
    ran = wafertlm(*_KERNEL, "rtl-4x4", "--json", "--out", tmp_path / "out")
    assert (ran.status, ran.stdout[:1]) == (2, "{")  # nothing is lost
    assert "out: cannot be written: No space left on device" in ran.stderr
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


@pytest.mark.parametrize("name", ["unicast", "collective"])
@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"{}", b""])
def test_a_damaged_calibration_is_told_and_measured_again(
    wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    from calibration import campaign
    from tlm import calibrated

    monkeypatch.setattr("tlm.calibrated.RESULTS_FOLDER", tmp_path)
    (tmp_path / f"{name}.json").write_bytes(content)
    calibrated.forget()
    experiment = next(each for each in campaign.EXPERIMENTS if each.name == name)
    assert not campaign._holds(experiment)
    hold_one_line(wafertlm(*_NOC, "100"))
    calibrated.forget()


@pytest.mark.parametrize("mode", ["--json", "--list"])
@pytest.mark.parametrize("stdout", [">/dev/full", ">&-", "| true"])
def test_output_that_nobody_takes_is_told(stdout: str, mode: str) -> None:
    command = f"{sys.executable} -m wafertlm.cli show model llama3-8b {mode} {stdout}"
    if stdout.startswith("|"):
        command = command.replace(" | true", " | (exec <&-; sleep 3); exit ${PIPESTATUS[0]}")
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    # Who closes a pipe has seen enough; else the output is lost.
    assert ran.returncode == (1 if stdout.startswith("|") else 2)
    assert "Traceback" not in ran.stderr and ran.stderr.count("\n") <= 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_asked(tmp_path: Path, how: signal.Signals) -> None:
    """A trace that nobody ends: SIGTERM ends the wait as SIGINT does."""
    os.mkfifo(tmp_path / "trace.csv")
    writer = os.open(tmp_path / "trace.csv", os.O_RDWR)
    command = [sys.executable, "-m", "wafertlm.cli", *_SERVE[:7], "--trace"]
    child = subprocess.Popen(
        [*command, tmp_path / "trace.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)
    child.send_signal(how)
    told = child.communicate(timeout=10)
    assert (told[0], told[1].strip()) == ("", "interrupted")
    assert child.returncode == 130
    os.close(writer)


def test_a_width_of_a_specification_is_bounded(wafertlm: Any, tmp_path: Path) -> None:
    spec = Path("docs/custom_rtl/mesh.toml").read_text()
    (tmp_path / "mesh.toml").write_text(spec.replace("bits = 64", "bits = 99999999999"))
    assert "99999999999" in (tmp_path / "mesh.toml").read_text()
    ran = wafertlm(*_NOC, "100", "--rtl", tmp_path / "mesh.toml")
    hold_one_line(ran)
    assert "found 99999999999; allowed: 1 to 4096" in ran.stderr


def test_what_fails_as_it_is_ended_is_no_failure() -> None:
    """Python drops what is raised in some places, and what was ended is missed later."""
    lines = (
        "import os, signal, time",
        "from wafertlm import cli",
        "def run():",
        "    try:",
        "        os.kill(os.getpid(), signal.SIGTERM)",
        "        time.sleep(60)",
        "    except KeyboardInterrupt:",
        "        raise RuntimeError from None",
        "cli.run = run",
        "cli.main()",
    )
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


def _ran(*lines: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(program, capture_output=True, text=True, timeout=30)


def test_a_signal_that_python_drops_is_heard() -> None:
    """What is raised where C calls Python is printed and forgotten: the work went on."""
    ran = _ran(
        "import ctypes, os, signal, time",
        "from wafertlm import cli",
        "def called():",
        "    os.kill(os.getpid(), signal.SIGINT)",
        "    time.sleep(0)",
        "def run():",
        "    ctypes.CFUNCTYPE(None)(called)()",
        "    time.sleep(60)",
        "cli.run = run",
        "cli.main()",
    )
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_compiled_code_ends_at_once(how: signal.Signals) -> None:
    ran = _ran(
        "import os, signal",
        "from wafertlm.signals import ends_at_once",
        "signal.signal(signal.SIGINT, lambda number, frame: None)",
        "with ends_at_once():",
        "    pass",
        "os.kill(os.getpid(), signal.SIGINT)",
        "print('as before', flush=True)",
        "with ends_at_once():",
        f"    os.kill(os.getpid(), {how})",
        "print('too late')",
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (-how, "as before\n", "")


@pytest.mark.parametrize(("level", "at_once"), [("at", True), ("perf", True), ("rtl", False)])
def test_networks_end_at_once_where_nothing_is_built(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch, level: str, at_once: bool
) -> None:
    met = []

    def run_noc(*given: object) -> NoReturn:
        met.append(signal.getsignal(signal.SIGINT) == signal.SIG_DFL)
        raise InputError("enough")

    monkeypatch.setattr("wafertlm.noc.run.run_noc", run_noc)
    hold_one_line(wafertlm(*_NOC, "100", "--level", level))
    assert met == [at_once]


_TERM = "os.kill(os.getpid(), signal.SIGTERM)"


@pytest.mark.parametrize(
    ("works", "status"),
    [(f"lambda: {_TERM}", 130), (f"lambda: atexit.register(lambda: {_TERM}) and 0", 0)],
    ids=["before", "after"],
)
def test_the_signal_may_come_beside_the_work(works: str, status: int) -> None:
    """Python then ended by it, with a traceback, as no program's end was at hand to take it."""
    program = (
        "import atexit, os, signal",
        "from wafertlm import cli",
        f"cli.run = {works}",
        "cli.main()",
    )
    ran = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True)
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False)


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "RuntimeError from None"])
def test_what_is_ended_keeps_no_folder_of_its_runs(tmp_path: Path, raised: str) -> None:
    """Those of runs that fail stay for who looks for the fault; here there is none."""
    lines = (
        "import os, signal, time",
        "from tlm.scratch import run_folder",
        "from wafertlm import cli",
        "def main(*given, **named):",
        "    (run_folder() / 'half').touch()",
        "    try:",
        "        os.kill(os.getpid(), signal.SIGTERM)",
        "        time.sleep(60)",
        "    except KeyboardInterrupt:",
        f"        raise {raised}",
        "cli.cli.main = main",
        "cli.main()",
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment)
    assert ran.returncode == 130
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("folder", ["/dev/null", "/proc/x", "file/plots"])
def test_plots_without_a_folder_are_told_before_the_study(
    wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A device was found to be none after the work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wafertlm.api.study_run.study_result", None)  # nothing runs
    Path("file").touch()
    ran = wafertlm("study", "waferllm", "--quick", "--plots", folder)
    hold_one_line(ran)
    assert f"{folder}: cannot be written to: " in ran.stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
