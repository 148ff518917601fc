"""Which files a module is made of: itself, and all that it imports, directly or by way of others.

They are read and not run, so that what rests on a module can be told without it.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def imported_files(modules: Iterable[str], folder: Path) -> list[Path]:
    """Files of a folder that some modules are made of, in order.

    Args:
        modules: Dotted names.
        folder: Where their packages lie; what is imported from elsewhere is not followed.
    """
    found: set[Path] = set()
    ahead = list(modules)
    while ahead:
        for file in _files_of(ahead.pop(), folder):
            if file not in found:
                found.add(file)
                ahead += _imported_by(file.read_text(encoding="utf-8"))
    return sorted(found)


def _files_of(name: str, folder: Path) -> Iterator[Path]:
    """The file of a module, and those of the packages around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:count])
        for file in (place / "__init__.py", place.parent / f"{place.name}.py"):
            if file.is_file():
                yield file


def _imported_by(text: str) -> Iterator[str]:
    """Names that a text imports, of no package by dots alone; some are of no module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
