"""The front door: the command, its reports, and what Python calls (docs/python.md).

The public names stand in ``__init__.pyi``. They are loaded when they are first asked for, so that
the command starts at once.
"""

import sys
from types import ModuleType
from typing import Any

import lazy_loader

from wafertlm.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _FrontDoor(ModuleType):
    """The package, whose functions are not hidden by packages of the same name within it."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python enters a package as an attribute when it is imported, as `wafertlm.iteration`.
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
