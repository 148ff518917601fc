"""The front door: the command, its reports, and what Python calls (docs/python.md).

The names below are loaded when they are first asked for, so that the command starts at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wafertlm.version import __version__ as __version__

if TYPE_CHECKING:
    from wafertlm.api import (
        CalibrationRun,
        CheckFailedError,
        ComparisonRun,
        InputError,
        IterationRun,
        KernelRun,
        ServingRun,
        StudyRun,
        calibrate,
        chip,
        chips,
        compare,
        iteration,
        kernels,
        model,
        models,
        run_kernel,
        serve,
        study,
    )

__all__ = [
    "CalibrationRun",
    "CheckFailedError",
    "ComparisonRun",
    "InputError",
    "IterationRun",
    "KernelRun",
    "ServingRun",
    "StudyRun",
    "calibrate",
    "chip",
    "chips",
    "compare",
    "iteration",
    "kernels",
    "model",
    "models",
    "run_kernel",
    "serve",
    "study",
]
_PUBLIC = frozenset(__all__)


class _FrontDoor(ModuleType):
    """The package, whose functions are not hidden by packages of the same name within it."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return getattr(import_module("wafertlm.api"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Python enters a package as an attribute when it is imported, as `wafertlm.iteration`.
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _FrontDoor
