"""Which files a module is made of: itself, and all that it imports, directly or by way of others.

They are read and not run, so that what rests on a module can be told without it.
"""

import ast
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
    found: set[Path] = set()
    named = set(modules)
    ahead = list(named)
    while ahead:
        for file in _files_of(ahead.pop(), folder):
            if file not in found:
                found.add(file)
                further = _imported_by(file.read_text(encoding="utf-8")) - named
                named |= further
                ahead += further
    return sorted(found)


def _files_of(name: str, folder: Path) -> Iterator[Path]:
    """The file of a module, and those of the packages around it."""
    place = folder
    for part in name.split("."):
        for file in (place / part / "__init__.py", place / f"{part}.py"):
            if file.is_file():
                yield file
        place /= part
        if not place.is_dir():
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
