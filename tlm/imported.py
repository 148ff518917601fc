"""Which files a module is made of: itself, and all that it imports, directly or by way of others.

They are read and not run, so that what rests on a module can be told without it.
"""

import ast
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

#: Where a statement holds further ones: an import is a statement, never part of an expression.
_HOLDS = ("body", "orelse", "finalbody", "handlers", "cases")


def imported_files(modules: Iterable[str], folder: Path) -> list[Path]:
    """Files of a folder that some modules are made of, in order.

    Args:
        modules: Dotted names.
        folder: Where their packages lie; what is imported from elsewhere is not followed.
    """
    found: list[Path] = []
    folders: dict[str, bool] = {}
    ahead = list(modules)
    while ahead:
        for file in _new_files(ahead.pop(), folder, folders):
            found.append(file)
            ahead += _imported_by(file.read_text(encoding="utf-8"))
    return sorted(found)


def _new_files(name: str, folder: Path, folders: dict[str, bool]) -> Iterator[Path]:
    """The file of a module, and those of the packages around it, that no name before it had.

    Args:
        name: Of the module.
        folder: Where packages lie.
        folders: Whether a folder for each part of a name is there, of all parts until now.
    """
    place = str(folder)  # text: a path of its own for each part takes most of the time
    for part in name.split("."):
        place = os.path.join(place, part)
        if place not in folders:
            folders[place] = os.path.isdir(place)
            for file in (os.path.join(place, "__init__.py"), f"{place}.py"):
                if os.path.isfile(file):
                    yield Path(file)
        if not folders[place]:
            return


@cache
def _imported_by(text: str) -> frozenset[str]:
    """Names that a text imports, of no package by dots alone; some are of no module.

    Each custom mesh that is read asks for the same texts again.
    """
    names: set[str] = set()
    ahead: list[ast.AST] = [ast.parse(text)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        for held in _HOLDS:
            ahead += getattr(node, held, ())
    return frozenset(names)
