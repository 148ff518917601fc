"""A kernel of a user's file: ``FILE.py:NAME``, whose faults name the file."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from tlm.errors import InputError, choose
from tlm.python_files import PythonName, names_python
from workloads.kernels.catalogue import KERNELS, Kernel

#: What a kernel does by the user's own code.
_STEPS = ("macs", "plan", "program", "closed_form", "without_memory")


def custom_name(asked: str) -> PythonName | None:
    """Where a kernel of a user's file is; None of a shipped one.

    Raises:
        InputError: if it is written in another form.
    """
    return PythonName.of(asked, "kernel") if names_python(asked) else None


def find_kernel(asked: str) -> Kernel:
    """A shipped kernel by name, or that of a user's file.

    Raises:
        InputError: for a name that is not known, and a file at fault.
    """
    named = custom_name(asked)
    if named is None:
        return KERNELS[choose("kernel", asked, list(KERNELS))]
    found = named.load()
    if not isinstance(found, Kernel):
        kind = type(found).__name__
        raise InputError(
            f"{named.file}: '{named.name}' is of type {kind}; allowed: a Kernel of "
            "workloads.kernels.catalogue"
        )
    told: dict[str, Any] = {name: _told(named, getattr(found, name)) for name in _STEPS}
    return replace(found, **told)


def _told(named: PythonName, step: Callable[..., Any]) -> Callable[..., Any]:
    """A step of the user's kernel, whose faults are told with the file and the line."""

    @wraps(step)
    def run(*given: Any) -> Any:
        with named.running():
            return step(*given)

    return run
