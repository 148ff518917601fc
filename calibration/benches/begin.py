"""How Python begins in a simulator: without pytest, which cocotb imports for some of its classes.

That took a quarter of a short run. A bench raises none of pytest's exceptions and expects none.
"""

import os
import sys
from types import ModuleType
from typing import Any


class _NeverRaisedError(Exception):
    """In the place of pytest's exceptions."""


class _Unused:
    """In the place of what pytest raises them by."""

    Exception = _NeverRaisedError


def begin() -> None:
    """Put empty modules where pytest would be, and begin as cocotb does by itself."""
    names = "raises", "skip", "xfail"
    _stand_for("pytest", **dict.fromkeys(names, _Unused))
    _stand_for("_pytest")
    _stand_for("_pytest.assertion", install_importhook=None)
    _stand_for("_pytest.config", Config=None)
    del os.environ["PYGPI_USERS"]
    from pygpi.entry import load_entry

    load_entry()


def _stand_for(name: str, **content: Any) -> None:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(content)
