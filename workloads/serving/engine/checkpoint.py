"""Long runs that can be killed and go on: the state of a run in a file.

The file holds Python objects, but only the kinds that a run is made of are made from it.
"""

import hashlib
import os
import pickle
import pickletools
import time
from array import _array_reconstructor, array  # type: ignore[attr-defined]  # of CPython itself
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from tlm.errors import InputError
from tlm.files import read_bytes, whole_file

_MAGIC = b"wafertlm serving checkpoint 1\n"
_KINDS = {
    "builtins": {"range"},
    "numpy": {"dtype"},
    "numpy._core.multiarray": {"scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}
_OWN = "workloads.serving."
_LARGEST = 1 << 30
_NEVER_WRITTEN = {"PUT", "BINPUT", "LONG_BINPUT", "EXT1", "EXT2", "EXT4", "LONG", "LONG4", "INT"}
#: What reading a state that is none may raise.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, ImportError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
CHECKPOINT_EVERY_S = 30.0


@dataclass(slots=True)
class Checkpoint:
    """Where the state of a run is kept, and how often.

    Attributes:
        path: The file; it is whole at any time, and gone when the run has ended.
        run: Says which run it is of: another's is refused.
        every_s: Seconds between two copies.
    """

    path: Path
    run: str
    every_s: float = CHECKPOINT_EVERY_S
    _due_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            InputError: if the time is negative or no number.
        """
        if not self.every_s >= 0:
            raise InputError(f"checkpoint every: found {self.every_s} s; allowed: 0 or more")
        self._due_s = time.monotonic() + self.every_s

    @property
    def is_due(self) -> bool:
        """Whether it is time for another copy."""
        return time.monotonic() >= self._due_s

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state.

        Raises:
            InputError: if the file cannot be written.
        """
        with whole_file(self.path) as scratch:
            content = pickle.dumps(state, 5)
            digest = hashlib.sha256(content).hexdigest()
            scratch.write_bytes(_MAGIC + f"{self.run}\n{digest}\n".encode() + content)
        self._due_s = time.monotonic() + self.every_s

    def load(self) -> dict[str, Any] | None:
        """The state that was kept; None if there is no file.

        Raises:
            InputError: if the file cannot be read, is of another run, or is no checkpoint.
        """
        if not os.path.lexists(self.path):
            return None
        content = read_bytes(self.path, str(self.path), _LARGEST)
        if not content.startswith(_MAGIC):
            raise InputError(f"{self.path}: is no checkpoint of a serving run")
        run, digest, state = (*content[len(_MAGIC) :].split(b"\n", 2), b"", b"")[:3]
        if run != self.run.encode():
            raise InputError(
                f"{self.path}: is the checkpoint of another run; allowed: one of the same options, "
                "with or without --requests-csv as now, by the same version of the code"
            )
        if digest != hashlib.sha256(state).hexdigest().encode():
            raise InputError(f"{self.path}: is a damaged checkpoint")
        with self.resuming():
            try:
                _hold_plain(state)
                loaded: dict[str, Any] = _Reader(BytesIO(state)).load()
            except pickle.UnpicklingError as error:
                raise InputError(f"{self.path}: holds what is no part of a run: {error}") from error
        return loaded

    @contextmanager
    def resuming(self) -> Iterator[None]:
        """Within it, the state is made use of.

        Raises:
            InputError: if a part of the state is missing or is not what it should be.
        """
        try:
            yield
        except _DAMAGE as error:
            kind = type(error).__name__
            raise InputError(f"{self.path}: is no whole state of a run: {kind}: {error}") from error

    def remove(self) -> None:
        """The run has ended."""
        self.path.unlink(missing_ok=True)


def _hold_plain(state: bytes) -> None:
    """Hold that a state only has what `Checkpoint.save` writes: no numbers of places, no codes."""
    for operation, _, _ in pickletools.genops(state):
        if operation.name in _NEVER_WRITTEN:
            raise pickle.UnpicklingError(f"found {operation.name}")


def _made(kind: type) -> Callable[..., Any]:
    """A kind that is made of what the file holds, not of all that a range in it stands for."""

    def make(*parts: Any) -> Any:
        if not all(isinstance(part, list | tuple | dict | int | None) for part in parts):
            raise pickle.UnpicklingError(f"found a {kind.__name__} of {parts!r:.40}")
        return kind(*parts)

    return make


def _empty(kind: type, shape: tuple[int, ...], code: bytes) -> Any:
    """An array that its state is put into, which is as long as the file says."""
    if shape != (0,):
        raise pickle.UnpicklingError(f"found an empty array of {shape!r:.40}")
    return np.ndarray(shape, dtype=np.int8)


def _numbers(kind: type, *parts: Any) -> Any:
    """A list of numbers of the bytes that hold them."""
    return _array_reconstructor(array, *parts)


#: Made otherwise than by their names, which would take any size.
_BOUNDED = {
    ("array", "array"): "array",
    ("array", "_array_reconstructor"): _numbers,
    **{("builtins", "set"): _made(set), ("collections", "Counter"): _made(Counter)},
    ("collections", "deque"): _made(deque),
    ("numpy", "ndarray"): "ndarray",
    ("numpy._core.multiarray", "_reconstruct"): _empty,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _BOUNDED:
            return _BOUNDED[module, name]
        if name in _KINDS.get(module, ()):
            return super().find_class(module, name)
        if module.startswith(_OWN) and "." not in name:
            kind = super().find_class(module, name)
            if isinstance(kind, type) and kind.__module__ == module:
                return kind
        raise pickle.UnpicklingError(f"found {module}.{name}")
