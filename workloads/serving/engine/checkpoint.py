"""Long runs that can be killed and go on: the state of a run in a file.

The file holds Python objects, but only the kinds that a run is made of are made from it.
"""

import hashlib
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from tlm.errors import InputError
from tlm.files import whole_file

_MAGIC = b"wafertlm serving checkpoint 1\n"
_KINDS = {
    "array": {"array", "_array_reconstructor"},
    "builtins": {"range", "set"},
    "collections": {"Counter", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}
_OWN = "workloads.serving."
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
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from error
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
        except (AttributeError, EOFError, ImportError, LookupError, TypeError) as error:
            kind = type(error).__name__
            raise InputError(f"{self.path}: is no whole state of a run: {kind}: {error}") from error

    def remove(self) -> None:
        """The run has ended."""
        self.path.unlink(missing_ok=True)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _KINDS.get(module, ()):
            return super().find_class(module, name)
        if module.startswith(_OWN) and "." not in name:
            kind = super().find_class(module, name)
            if isinstance(kind, type) and kind.__module__ == module:
                return kind
        raise pickle.UnpicklingError(f"found {module}.{name}")
