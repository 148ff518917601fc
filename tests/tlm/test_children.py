"""Programs that end with the process that started them."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tlm import children

_GRANDCHILD = ["sh", "-c", "sleep 60 & echo $! > pid; wait"]
_PARENT = f"import os; from tlm.children import run; run({_GRANDCHILD!r}, os.environ)"


def grandchild() -> int:
    """Its number, once it is there."""
    while not (text := Path("pid").read_text() if Path("pid").exists() else ""):
        time.sleep(0.01)
    return int(text)


def lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def hold_gone(process: int) -> None:
    for _ in range(500):
        if not lives(process):
            return
        time.sleep(0.01)
    raise AssertionError(f"{process} runs still")


def test_what_is_printed_and_the_status_come_back() -> None:
    found = children.run(["sh", "-c", "echo out; echo err >&2; exit 3"], os.environ)
    assert (found.returncode, found.stdout) == (3, "out\nerr\n")


def test_all_end_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raised: list[type[BaseException]] = []

    def work() -> None:
        try:
            children.run(_GRANDCHILD, os.environ)
        except KeyboardInterrupt:
            raised.append(KeyboardInterrupt)

    thread = threading.Thread(target=work)
    thread.start()
    process = grandchild()
    children.end_all()
    thread.join(5)
    assert raised == [KeyboardInterrupt]
    hold_gone(process)


def test_what_another_thread_ends_while_it_begins_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, ends = subprocess.Popen, threading.Thread(target=children.end_all)

    def begun(*given: Any, **named: Any) -> Any:
        child = begin(*given, **named)
        if given[0][0] == "sleep":
            ends.start()
            ends.join(0.2)
        return child

    monkeypatch.setattr(children.subprocess, "Popen", begun)
    with pytest.raises(KeyboardInterrupt):
        children.run(["sleep", "10"], os.environ)
    ends.join()


def test_temporary_files_of_a_program_that_is_ended_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilers that were killed left files in the system's temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command = ["sh", "-c", 'touch "$TMPDIR/of-the-compiler"; kill -9 $$']
    assert children.run(command, os.environ).returncode == -signal.SIGKILL
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_they_end_with_a_process_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    monkeypatch.chdir(tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], env=environment)
    process = grandchild()
    parent.send_signal(how)
    parent.wait(5)
    hold_gone(process)


def test_processes_of_a_pool_end_with_what_started_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    monkeypatch.chdir(tmp_path)
    waits = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    line = f"from tlm.children import pool; pool(1).submit(exec, {waits!r}).result()"
    parent = subprocess.Popen([sys.executable, "-c", line], env=environment)
    process = grandchild()
    parent.kill()
    parent.wait()
    hold_gone(process)


def ran_or_refused(number: int, folder: Path) -> int:
    """The number, which is left in a folder; the first one is refused at once."""
    if number == 0:
        raise ValueError("refused")
    (folder / str(number)).touch()
    time.sleep(0.05)
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_calls_that_have_not_begun_are_left_out_when_one_raises(
    tmp_path: Path, workers: int
) -> None:
    tasks = {f"task {number}": (number, tmp_path) for number in range(1, 30)}
    assert {*children.as_done(ran_or_refused, tasks, workers)} == {
        (task, number) for task, (number, _) in tasks.items()
    }
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="refused"):
        [*children.as_done(ran_or_refused, {"first": (0, tmp_path)} | tasks, workers)]
    assert len([*tmp_path.iterdir()]) < 10
