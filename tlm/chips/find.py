"""Chips as a user names them: shipped ones, files, and figures that are changed."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from tlm.chips.gpu import GpuBox, box_fields, box_text, gpu_box_names, load_gpu_box
from tlm.chips.profile import Chip, chip_fields, chip_names, chip_text, is_chip, load_chip
from tlm.errors import InputError
from tlm.files import names_file, read_text
from tlm.tables import toml_fields

AnyChip = Chip | GpuBox

# A field that servers of GPUs alone have tells which of the two a file is about.
_OF_GPUS = "peak_flops"
_WORD = re.compile(r"[A-Za-z][\w.-]*")


def find_chip(asked: str, changes: Sequence[str] = ()) -> AnyChip:
    """A chip by its name, or of a file, with some figures changed.

    Args:
        asked: What ends in ``.toml`` or has a path separator is a file, else a shipped name.
        changes: Each as ``TABLE.FIELD=VALUE``, the value as TOML reads it; a bare word is a string.

    Returns:
        Tiles, or a server of GPUs. A file's chip is called as it says, else as the file.

    Raises:
        InputError: for a name that is not known, and for a fault in the file or in a change.
    """
    if names_file(asked):
        fields, told = _file_fields(asked), asked
        chip = _made(fields, told)  # what is wrong without changes is the file's fault
    else:
        chip = _shipped(asked)
        fields, told = _shipped_fields(asked) if changes else {}, f"chip '{asked}'"
    return _made(_changed(fields, changes), f"--set: {told}") if changes else chip


def find_tiles(asked: str, changes: Sequence[str] = ()) -> Chip:
    """A chip of tiles; else as `find_chip`.

    Raises:
        InputError: as there, and for a server of GPUs.
    """
    if not names_file(asked) and asked not in gpu_box_names():
        load_chip(asked)  # an unknown name is told those of tiles alone
    chip = find_chip(asked, changes)
    if isinstance(chip, GpuBox):
        raise InputError(
            f"--chip: '{chip.name}' is a server of GPUs, which lacks [grid], [tile] and [noc]; "
            f"known chips of tiles: {', '.join(chip_names())}"
        )
    return chip


def text_of(asked: str) -> str:
    """The file of a chip, or the one to start from: with its comments.

    Raises:
        InputError: for a name that is not known, and for a file that cannot be read.
    """
    if names_file(asked):
        return read_text(Path(asked), asked)
    _shipped(asked)
    return chip_text(asked) if is_chip(asked) else box_text(asked)


def all_chip_names() -> tuple[str, ...]:
    """Names of the shipped chips, those of tiles first."""
    return (*chip_names(), *gpu_box_names())


def shipped_as(chip: AnyChip) -> str | None:
    """Name of the shipped chip with the same figures; None if there is none."""
    names = [name for name in all_chip_names() if is_chip(name) or name in gpu_box_names()]
    if isinstance(chip, Chip) and is_chip(own := f"rtl-{chip.grid.rows}x{chip.grid.cols}"):
        names.append(own)
    names.sort(key=lambda name: name != chip.name)  # most chips are what they are called
    return next((name for name in names if find_chip(name).same_figures(chip)), None)


def _made(fields: Mapping[str, Any], told: str) -> AnyChip:
    table: type[AnyChip] = GpuBox if _OF_GPUS in fields else Chip
    return table.made(fields, told)


def _shipped(name: str) -> AnyChip:
    if is_chip(name):
        return load_chip(name)
    if name in gpu_box_names():
        return load_gpu_box(name)
    raise InputError(f"unknown chip '{name}'; known: {', '.join(sorted(all_chip_names()))}")


def _shipped_fields(name: str) -> dict[str, Any]:
    return chip_fields(name) if is_chip(name) else box_fields(name)


def _file_fields(file: str) -> dict[str, Any]:
    if file.endswith(".json"):
        raise InputError(f"{file}: found JSON; allowed as a chip: a file that ends in .toml")
    return {"name": Path(file).stem} | toml_fields(Path(file), file)


def _changed(fields: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    changed = deepcopy(dict(fields))
    for change in changes:
        *tables, field = (path := _path(change))
        table = changed
        for depth, name in enumerate(tables):
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                found = ".".join(path[: depth + 1])
                raise InputError(f"--set: found '{change}'; {found} is no table, it is {table!r}")
        table[field] = _value(change)
    return changed


def _path(change: str) -> list[str]:
    """The names before the sign, as TOML writes a dotted key."""
    key, sign, _ = change.partition("=")
    path = []
    try:
        within = tomllib.loads(f"{key} = 0") if sign and "\n" not in key else {}
    except tomllib.TOMLDecodeError:
        within = {}
    while isinstance(within, dict) and within:
        [(name, within)] = within.items()
        path.append(name)
    if not path:
        raise InputError(f"--set: found '{change}'; write TABLE.FIELD=VALUE, as noc.hop_cycles=2")
    return path


def _value(change: str) -> Any:
    text = change.partition("=")[2].strip()
    try:
        if "\n" not in text:
            return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    if _WORD.fullmatch(text):
        return text
    raise InputError(f"--set: found '{change}'; allowed: a value as TOML writes it, or a word")
