"""Files that are read within bounds, and files that appear whole or not at all."""

import csv
import errno
import hashlib
import os
import select
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from tlm.errors import InputError
from tlm.scratch import scratch_file, scratch_folder, swept

#: More than any file that is read in one piece.
MOST_BYTES = 64 << 20
_LONGEST_LINE = 1 << 20
#: So long a pipe may be without anybody at its other end.
_PIPE_S = 5.0


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of ``path`` at the end.

    Folders that are missing are made, and go again if the file does not appear. What is no file,
    such as a device or a pipe, stays what it is: it is written to at the end. So is a link, whose
    file is replaced.

    Raises:
        InputError: naming the path, if it cannot be written.
    """
    if not path.name:
        raise InputError(f"'{path}' is no name of a file")
    try:
        target = Path(os.path.realpath(path))
        if _is_other(target):
            with scratch_folder() as folder:
                yield folder / path.name
                _copy(folder / path.name, target)
            return
        # The ending stays: writers take the format from it.
        begin = f".{hashlib.sha256(target.name.encode()).hexdigest()[:16]}"
        end = target.suffix if len(target.suffix) < 20 else ""
        with _made(target.parent):
            swept(target.parent, f"{begin}.*{end}")
            with scratch_file(target.with_name(f"{begin}.{os.getpid()}{end}")) as scratch:
                yield scratch
                scratch.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Have a folder, which stays only if all goes well."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):  # another has put something there
                each.rmdir()
        raise


def hold_writable(path: Path) -> None:
    """Hold that a file can be written, before any work; nothing is left behind.

    Raises:
        InputError: naming the path, and why not.
    """
    try:
        if path.is_dir() or not path.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target = Path(os.path.realpath(path))
        if _is_other(target):
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        _hold_room(target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def hold_writable_folder(path: Path) -> None:
    """The same of a folder, in which there are to be files.

    Raises:
        InputError: naming the path, and why not.
    """
    try:
        _hold_room(Path(os.path.realpath(path)))
    except OSError as error:
        raise InputError(f"{path}: cannot be written to: {error.strerror}") from error


def _hold_room(folder: Path) -> None:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    TemporaryFile(dir=there).close()


def _is_other(path: Path) -> bool:
    """Whether it is there and is neither file nor folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy(scratch: Path, target: Path) -> None:
    """Write a file's content to a device, or to a pipe that somebody reads."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags & ~(os.O_CREAT | os.O_TRUNC) | os.O_NONBLOCK)

    with scratch.open("rb") as content, FileIO(target, "w", opener=opener) as sink:
        os.set_blocking(sink.fileno(), True)
        shutil.copyfileobj(content, sink)


def open_to_read(path: Path) -> FileIO:
    """A file or a pipe, opened. A pipe that nobody writes to is not waited for without end.

    Raises:
        OSError: if it cannot be opened.
    """
    file = FileIO(path, opener=lambda name, how: os.open(name, how | os.O_NONBLOCK))
    if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        waiting = select.poll()
        waiting.register(file, select.POLLIN)
        # A writer that has not written yet is told from none by reading, which then would block.
        if not waiting.poll(1000 * _PIPE_S) and file.read(1) is not None:
            file.close()
            raise OSError(errno.EPIPE, "a pipe that nobody writes to")
    os.set_blocking(file.fileno(), True)
    return file


def read_bytes(path: Path, told: str, most: int = MOST_BYTES) -> bytes:
    """The content of a file, or of a pipe.

    Args:
        path: The file.
        told: What it is called.
        most: Bytes that it may have.

    Raises:
        InputError: beginning with ``told``, if it cannot be read or is larger.
    """
    try:
        with open_to_read(path) as file:
            parts, left = [], most + 1
            while left and (part := file.read(min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{told}: cannot be read: {reason}") from error
    if not left:
        raise InputError(f"{told}: found more than {most} bytes; allowed: at most so many")
    return b"".join(parts)


def read_text(path: Path, told: str) -> str:
    """The text of a file, or of a pipe, line ends as in Python.

    Raises:
        InputError: beginning with ``told``, if it cannot be read, is too large or is not UTF-8.
    """
    try:
        text = read_bytes(path, told).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{told}: cannot be read: not UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def bounded_lines(file: TextIO) -> Iterator[str]:
    """Lines of a text that is read piece by piece, as the reader of CSV takes them.

    Raises:
        csv.Error: at a line that would not end.
    """
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise csv.Error(f"a line of more than {_LONGEST_LINE} characters")
        yield line


def names_file(asked: str) -> bool:
    """Whether an option that takes a name or a file was given a file."""
    return asked.endswith((".toml", ".json")) or os.sep in asked


def is_file(path: Path) -> bool:
    """Whether it is a file; not so with a name that the system does not take."""
    with suppress(OSError):
        return path.is_file()
    return False
