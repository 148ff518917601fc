"""Routers in Verilog that are shipped as examples, to start one's own from."""

import shutil
from pathlib import Path

from tlm.errors import InputError, choose

#: A folder each, with a specification of its name.
_FOLDER = Path(__file__).parent / "custom_rtl"


def router_names() -> tuple[str, ...]:
    """Names of the examples."""
    found = (path for path in _FOLDER.iterdir() if (path / f"{path.name}.toml").is_file())
    return tuple(sorted(path.name for path in found))


def router_text(name: str) -> str:
    """The specification of an example, as it stands.

    Raises:
        InputError: for a name that is not known.
    """
    return (_folder(name) / f"{name}.toml").read_text(encoding="utf-8")


def router_files(name: str) -> list[Path]:
    """The files of an example: its specification and its Verilog.

    Raises:
        InputError: for a name that is not known.
    """
    return sorted(path for path in _folder(name).iterdir() if path.suffix in (".sv", ".toml"))


def copy_router(name: str, folder: Path) -> None:
    """Copy an example into a new folder.

    Raises:
        InputError: for a name that is not known, and a folder that is there or cannot be made.
    """
    files = router_files(name)
    try:
        folder.mkdir(parents=True)
        for path in files:
            shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise InputError(f"--into: {folder}: {error.strerror}; allowed: a new folder") from error


def _folder(name: str) -> Path:
    return _FOLDER / choose("router", name, router_names())
