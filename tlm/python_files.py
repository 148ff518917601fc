"""What a user's Python file holds under a name, such as a scheduler: ``FILE.py:NAME``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from hashlib import sha256
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, NamedTuple

from tlm.errors import InputError
from tlm.files import read_text

_SIGN = ".py:"


class PythonName(NamedTuple):
    """A file of Python and a name in it."""

    file: Path
    name: str

    @classmethod
    def of(cls, asked: str, told: str) -> "PythonName":
        """The two parts of ``FILE.py:NAME``.

        Args:
            asked: What was written.
            told: What it is of, for messages.

        Raises:
            InputError: if it has another form.
        """
        file, _, name = asked.rpartition(":")
        if not (file.endswith(".py") and name.isidentifier()):
            raise InputError(f"{told}: found '{asked}'; write FILE.py:NAME")
        return cls(Path(file), name)

    @property
    def told(self) -> str:
        """How a result calls it: without the folder."""
        return f"{self.file.name}:{self.name}"

    @property
    def content_hash(self) -> str:
        """Hash of the file.

        Raises:
            InputError: if it cannot be read.
        """
        return _hash(read_text(self.file, str(self.file)))

    def load(self) -> Any:
        """Run the file, once for each content, and take what it calls so.

        Raises:
            InputError: naming the file, and the line if it is at fault.
        """
        found = _loaded(str(self.file), read_text(self.file, str(self.file)))
        if not hasattr(found, self.name):
            known = ", ".join(name for name in vars(found) if not name.startswith("_"))
            raise InputError(f"{self.file}: found no '{self.name}'; it has: {known}")
        return getattr(found, self.name)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the file's code: what it prints goes to stderr, beside the messages.

        Raises:
            InputError: naming the file and its line, for whatever went wrong there.
        """
        try:
            with redirect_stdout(sys.stderr):
                yield
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(error) from error

    def _fault(self, error: BaseException) -> InputError:
        """What went wrong as the file's code ran, with the line of the file."""
        lines = [each.lineno for each in extract_tb(error.__traceback__) if self._is_here(each)]
        if isinstance(error, SyntaxError) and not lines:
            return InputError(f"{self.file}: not Python: line {error.lineno}: {error.msg}")
        at = f" line {lines[-1]}:" if lines else ""
        try:
            told = f"{type(error).__name__}: {error}"
        except Exception:  # that of a class of the file
            told = type(error).__name__
        return InputError(f"{self.file}:{at} {told.removesuffix(': ')}")

    def _is_here(self, frame: Any) -> bool:
        return bool(frame.filename == str(self.file))


def names_python(asked: str) -> bool:
    """Whether a name is one of a file of Python."""
    return _SIGN in asked or asked.endswith(".py")


@cache
def _loaded(file: str, text: str) -> ModuleType:
    name = f"{Path(file).stem}_{_hash(text)}"
    found = ModuleType(name)
    found.__file__ = file
    sys.modules[name] = found  # dataclasses look their module up
    try:
        with PythonName(Path(file), "").running():
            exec(compile(text, file, "exec"), found.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return found


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
