"""Files and folders for a while, where several runs make and sweep them at a time."""

import fcntl
import shutil
from pathlib import Path

import pytest

from tlm import scratch


@pytest.fixture(autouse=True)
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Another run sweeps what is new first, after it is opened and before it is held."""
    gone: list[Path] = []
    hold = fcntl.flock

    def late(opened: int, how: int) -> None:
        if not gone:
            gone.extend(tmp_path.iterdir())
            shutil.rmtree(gone[0]) if gone[0].is_dir() else gone[0].unlink()
        hold(opened, how)

    monkeypatch.setattr(scratch.fcntl, "flock", late)
    return gone


def test_a_folder_is_there_and_held(
    swept: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch.scratch_folder() as folder:
        assert [folder] != swept
        scratch.swept(tmp_path, "*")
        assert folder.is_dir()
    assert not [*tmp_path.iterdir()]


def test_a_file_is_there_and_held(swept: list[Path], tmp_path: Path) -> None:
    with scratch.scratch_file(tmp_path / "new") as path:
        assert [path] == swept
        scratch.swept(tmp_path, "*")
        assert path.is_file()
    assert not [*tmp_path.iterdir()]
