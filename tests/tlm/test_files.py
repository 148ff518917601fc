"""Files that appear whole or not at all."""

import os
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tlm.errors import InputError
from tlm.files import MOST_BYTES, hold_writable, read_text, whole_file
from tlm.scratch import scratch_folder


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(path) as scratch:
        scratch.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_of_a_file_that_does_not_appear_go_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "table.csv"
    with pytest.raises(ZeroDivisionError), whole_file(path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as scratch:
        scratch.touch()
    assert path.exists()


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with whole_file(tmp_path / "link") as scratch:
        scratch.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    device = tmp_path / "full"
    device.symlink_to("/dev/full")
    with pytest.raises(InputError, match="full: cannot be written: No space left"):
        _write(device)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    _write(Path("/dev/null"))
    while True:  # until the reader is there
        with suppress(InputError):
            _write(pipe)
            break
    assert reader.communicate()[0] == b"new"
    with pytest.raises(InputError, match="pipe: cannot be written: No such device"):
        _write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def _write(path: Path) -> None:
    with whole_file(path) as scratch:
        scratch.write_text("new")


def test_a_pipe_without_a_writer_is_no_file_to_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tlm.files._PIPE_S", 0.1)
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(InputError, match="x: cannot be read: a pipe that nobody writes to"):
        read_text(pipe, "x")
    writer = subprocess.Popen(["sh", "-c", f"exec >'{pipe}'; sleep 0.5; echo late"])
    monkeypatch.setattr("tlm.files._PIPE_S", 5)
    assert read_text(pipe, "x") == "late\n"
    writer.wait()


@pytest.mark.parametrize("name", ["/dev/zero", "large"])
def test_a_file_is_read_within_bounds(tmp_path: Path, name: str) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match=f"x: found more than {MOST_BYTES} bytes"):
        read_text(tmp_path / name, "x")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a" * 300, "File name too long"),
        ("/proc/nowhere/x", "No such file or directory"),
        (".", "Is a directory"),
        ("file/x", "Not a directory"),
    ],
)
def test_what_cannot_be_written_is_told_before(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=f"cannot be written: {fault}"):
        hold_writable(tmp_path / name)
    hold_writable(tmp_path / "new" / "file")
    hold_writable(tmp_path / "ä" / ("ä" * 120))
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_name_may_be_as_long_as_the_system_lets_it(tmp_path: Path) -> None:
    _write(tmp_path / ("a" * 255))
    assert len([*tmp_path.iterdir()]) == 1


_KILLED = """
import os, signal, sys
from pathlib import Path
from tlm.files import whole_file
from tlm.scratch import scratch_folder
with whole_file(Path("out.json")) as scratch, scratch_folder() as folder:
    scratch.write_text("half")
    (folder / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_the_next_one_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", _KILLED], cwd=tmp_path, env=environment)
    assert len([*tmp_path.iterdir()]) == 2
    with scratch_folder() as others:  # held: it stays
        _write(tmp_path / "out.json")
        with scratch_folder():
            assert others.is_dir()
    assert [*tmp_path.iterdir()] == [tmp_path / "out.json"]
