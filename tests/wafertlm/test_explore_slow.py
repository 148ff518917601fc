"""Explorations that are killed, that share a server, and that go down to the Verilog."""

import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.documents import assert_near
from tests.wafertlm.test_explore import SUMMA, written
from tlm.calibrated import REPOSITORY

LEARNING = (('"grid"', '"tpe"'), ("batch = 4", "batch = 6"), ("trials = 14", "trials = 50"))


def begun(file: Path, *more: str) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", "wafertlm.cli", "explore", str(file), *more)
    return subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def outcome(file: Path, *more: str) -> str:
    """What a run to the end stores."""
    out = file.with_suffix(".json")
    running = begun(file, "--out", str(out), *more)
    _, told = running.communicate()
    assert running.returncode == 0, told
    return out.read_text()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result of a run that nothing happens to."""
    return outcome(written(tmp_path_factory.mktemp("alone"), SUMMA, *LEARNING))


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path, alone: str) -> None:
    file = written(tmp_path, SUMMA, *LEARNING)
    moments, amid = random.Random(0), 0
    for _ in range(50):
        running = begun(file, "--workers", "2")
        assert running.stderr is not None
        line = running.stderr.readline()
        time.sleep(moments.uniform(0, 0.4))
        running.send_signal(signal.SIGKILL)
        running.wait()
        amid += "50 of 50" not in line
    assert amid >= 5, "this machine is faster than the moments are long"
    assert outcome(file, "--workers", "2") == alone


@pytest.mark.slow
def test_what_is_interrupted_says_so_and_no_more(tmp_path: Path) -> None:
    file = written(tmp_path, SUMMA, LEARNING[0], ("trials = 14", "trials = 5000"))
    running = begun(file, "--workers", "2")
    assert running.stderr is not None
    assert "0 of 5000 trials are done" in running.stderr.readline()
    time.sleep(1)
    running.send_signal(signal.SIGTERM)
    assert running.stderr.read().strip() == "interrupted"
    assert running.wait() == 130


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a PostgreSQL server of its own."""
    pgserver = pytest.importorskip("pgserver")
    with TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        running = pgserver.get_server(folder)
        yield running.get_uri()
        running.cleanup()


def runs_of(file: Path) -> set[str]:
    """What a machine has run."""
    return {path.name for path in file.with_suffix(".explored").glob("*.json")}


@pytest.mark.slow
def test_two_machines_share_a_study_and_do_nothing_twice(
    tmp_path: Path, server: str, alone: str
) -> None:
    files = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        files.append(written(folder, SUMMA, *LEARNING))
    outs = [file.with_suffix(".json") for file in files]
    shared = ("--storage", server, "--workers", "1")
    running = [begun(f, "--out", str(out), *shared) for f, out in zip(files, outs, strict=True)]
    for each in running:
        _, told = each.communicate()
        assert each.returncode == 0, told
    assert outs[0].read_text() == outs[1].read_text() == alone
    mine, its = map(runs_of, files)
    assert mine and its and not mine & its


@pytest.mark.slow
def test_what_a_machine_that_died_had_begun_another_runs(
    tmp_path: Path, server: str, alone: str
) -> None:
    files = []
    for name in ("dies", "stays"):
        folder = tmp_path / name
        folder.mkdir()
        files.append(written(folder, SUMMA, *LEARNING))
    dying = begun(files[0], "--storage", server, "--workers", "2")
    assert dying.stderr is not None
    dying.stderr.readline()
    time.sleep(0.3)
    dying.send_signal(signal.SIGKILL)
    dying.wait()
    assert outcome(files[1], "--storage", server, "--workers", "1") == alone


def children_s() -> float:
    """Processor's seconds of all that this process has started and waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@pytest.mark.slow
def test_a_thousand_runs_take_two_processes_ten_minutes_at_most(tmp_path: Path) -> None:
    more = (("trials = 14", "trials = 1000\nconfirm = 'none'"), ('"grid"', '"random"'))
    wider = ("high = 4 }", 'high = 8 }\n"set:noc.flit_bytes" = { low = 16, high = 512 }')
    before_s = children_s()
    found = json.loads(outcome(written(tmp_path, SUMMA, *more, wider), "--workers", "2"))
    assert (found["trials"], found["failed"]) == (1000, 0)
    assert found["copies"] < 100
    # A machine that other tests share tells no wall time.
    assert children_s() - before_s < 2 * 10 * 60


@pytest.mark.slow
def test_the_example_of_the_document(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "explore.md").read_text()
    (asked,) = re.findall(r"```toml\n# budget.toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "budget.toml").write_text(asked)
    (shown,) = re.findall(r"--plot budget.pdf\n```\n\n((?:    .*\n)+)", text)
    command = [sys.executable, "-m", "wafertlm.cli", "explore", str(tmp_path / "budget.toml")]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert_near("\n".join(ran.stdout.splitlines()[:-1]), shown)


@pytest.mark.slow
@pytest.mark.rtl
def test_a_buffer_s_depth_in_verilog_in_first_tokens_against_gates(tmp_path: Path) -> None:
    mesh = (REPOSITORY / "docs" / "custom_rtl" / "mesh.toml").read_text()
    (tmp_path / "mesh.toml").write_text(mesh.replace("../../rtl", str(REPOSITORY / "rtl")))
    file = tmp_path / "depth.toml"
    file.write_text(
        'command = "serve"\nconfirm = "none"\ncalibration = "quick"\n'
        '[options]\nmodel = "qwen3-1.7b"\nchip = "flat32"\nscheduler = "chunked"\n'
        'set = ["grid.rows=8", "grid.cols=8", "noc.flit_bytes=8"]\n'
        'workload = "fixed:64:4"\nrequests = 3\nrate = 5\nrtl = "mesh.toml"\n'
        '[parameters]\n"rtl:FifoDepth" = { choices = [2, 4] }\n'
        '[objectives]\nttft_s.mean = "minimize"\ngates.router.nand2 = "minimize"\n'
        '[sampler]\nkind = "grid"\n'
    )
    found: dict[str, Any] = json.loads(outcome(file, "--workers", "2"))
    by_depth = {each["parameters"]["rtl:FifoDepth"]: each for each in found["pareto"]}
    shallow, deep = (by_depth[depth]["objectives"] for depth in (2, 4))
    assert deep["ttft_s.mean"] < shallow["ttft_s.mean"]
    assert 1.3 < deep["gates.router.nand2"] / shallow["gates.router.nand2"] < 2
    for depth, each in by_depth.items():
        assert each["rests_on"]["calibration"] == f"custom-mesh-fifodepth-{depth} (quick)"
    hashes = {each["rests_on"]["rtl_hash"] for each in by_depth.values()}
    assert len(hashes) == 2 and None not in hashes
