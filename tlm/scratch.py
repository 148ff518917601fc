"""Files and folders for a while: what a killed run leaves behind, the next one removes.

A run holds a lock on what it makes, which the system drops when the run ends, in whichever way.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

_PREFIX = "wafertlm-run-"
_KEPT = "kept"
_of_runs: dict[Path, int] = {}
_one_at_a_time = Lock()  # runs go side by side


@contextmanager
def scratch_folder(place: Path | None = None) -> Iterator[Path]:
    """A folder of the system's temporary ones, or of another place; it is removed at the end."""
    folder, lock = _new(place or Path(tempfile.gettempdir()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def run_folder() -> Path:
    """A folder that the caller removes; if it does not, it stays for who looks for a fault."""
    with _one_at_a_time:
        for removed in [folder for folder in _of_runs if not folder.exists()]:
            os.close(_of_runs.pop(removed))
        folder, lock = _new(Path(tempfile.gettempdir()))
        _of_runs[folder] = lock
    return folder


def drop_run_folders() -> None:
    """Remove those that stayed: the run was interrupted, and nobody looks for a fault."""
    for folder in list(_of_runs):
        shutil.rmtree(folder, ignore_errors=True)


@atexit.register
def _keep() -> None:
    """Mark what has not been removed. A run that is killed does not come here."""
    for folder in _of_runs:
        with suppress(OSError):
            (folder / _KEPT).touch()


def _new(place: Path) -> tuple[Path, int]:
    """A new folder, and the lock by which it is held."""
    swept(place, f"{_PREFIX}*")
    while True:  # another run may sweep it before it is held
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        if (lock := _lock(folder, os.O_RDONLY)) is not None:
            return folder, lock


@contextmanager
def scratch_file(path: Path) -> Iterator[Path]:
    """A file to write, or to move away; removed at the end if it is still there."""
    lock = _lock(path, os.O_RDWR | os.O_CREAT)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def swept(place: Path, pattern: str) -> None:
    """Remove what matches in a folder and no run holds any more; what is others' stays."""
    for path in place.glob(pattern):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid() and not (path / _KEPT).exists():
                lock = _lock(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, must=True)
                if lock is not None:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    os.close(lock)


def _lock(path: Path, how: int, *, must: bool = False) -> int | None:
    """Open and hold; None: another has it, or it is gone.

    Args:
        path: What is held.
        how: It is opened.
        must: Also None on file systems without locks; else what is there counts as held.

    Raises:
        OSError: if it cannot be opened.
    """
    while True:
        try:
            lock = os.open(path, how, 0o666)
        except FileNotFoundError:
            if how & os.O_CREAT:
                raise
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if must or isinstance(error, BlockingIOError):
                os.close(lock)
                return None
        # Another run may have held and removed it since it was opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)
