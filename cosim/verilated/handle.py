"""A compiled model in this process: opened, asked why it stopped, closed once."""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from cosim.errors import SimulationError
from tlm.errors import InputError

POINTER, INT, U32, U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64
#: What a function of C++ returns, and what it takes.
Signature = tuple[Any, list[Any]]


class State(ctypes.Structure):
    """What a driver shows of its model; that of a driver which shows more has ``failure``, too."""

    _fields_ = [("failure", ctypes.c_char_p)]


class Handle:
    """A model under its driver in C++; a context that closes it.

    A driver has functions ``new``, ``state`` and ``delete``, whose names begin with its own. A
    subclass names the driver and says what its functions take.

    Args:
        name: The model's, for messages.
        library: What holds the driver.
        new: What ``new`` takes.

    Raises:
        SimulationError: if the model stops as it is opened.
    """

    _driver: ClassVar[str]
    _functions: ClassVar[Mapping[str, Signature]]
    _State: ClassVar[type[ctypes.Structure]] = State

    def __init__(self, name: str, library: Any, *new: object) -> None:
        self._name, self._library = name, library
        own = {
            "state": (ctypes.POINTER(self._State), [POINTER]),
            "delete": (None, [POINTER]),
        }
        for function, signature in (own | {**self._functions}).items():
            declare(library, f"{self._driver}_{function}", signature)
        self._pointer: int | None = self._function("new")(*new)
        self._state: Any = self._function("state")(self._pointer).contents
        try:
            self._hold_no_failure()
        except SimulationError:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The model itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the model go, and end its wave."""
        self.close()

    def close(self) -> None:
        """Let the model go, and end its wave."""
        if self._pointer is not None:
            self._state = self._State.from_buffer_copy(self._state)
            self._function("delete")(self._pointer)
            self._pointer = None

    @property
    def _open(self) -> int:
        """The pointer to the model; C++ must never see that of a closed one."""
        if self._pointer is None:
            raise SimulationError(f"{self._name}: the model is closed")
        return self._pointer

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"{self._driver}_{name}")

    def _hold_no_failure(self) -> None:
        """Raise what has stopped the model."""
        failure = self._state.failure
        if failure is not None:
            text = failure.decode(errors="replace").strip()
            raise SimulationError(f"{self._name}: {text}")


def declare(library: Any, name: str, signature: Signature) -> Any:
    """A function of a library, with its types."""
    function = getattr(library, name)
    function.restype, function.argtypes = signature
    return function


def check_wave(path: Path) -> None:
    """Begin the file of a wave, which C++ would not say that it cannot write.

    Raises:
        InputError: if it cannot be written.
    """
    try:
        path.open("wb").close()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; allowed: a file for the wave") from error
