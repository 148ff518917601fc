"""Routers in Verilog that come along, each with its specification: where a custom one begins."""

import os
import shutil
from pathlib import Path

from cosim.spec.mesh import load_spec
from tlm.errors import InputError, choose
from tlm.scratch import scratch_folder

_FOLDER = Path(__file__).with_name("custom_rtl").resolve()
_OPEN_TO_READ = 0o755


def router_names() -> list[str]:
    """Names of the routers."""
    return sorted(_files())


def specification(name: str) -> Path:
    """The specification of a router.

    Raises:
        InputError: for a name that is not known.
    """
    files = _files()
    return files[choose("router", name, sorted(files))]


def copy_router(name: str, folder: Path) -> list[str]:
    """Copy a router into a folder of its own: the specification, and its Verilog beside it.

    Args:
        name: Of the router.
        folder: What is made; it is not there yet, or empty.

    Returns:
        Names of the files, the specification first.

    Raises:
        InputError: for a name that is not known, and a folder that cannot be made.
    """
    spec = load_spec(specification(name))
    text = spec.file.read_text(encoding="utf-8")
    copied = {source: Path(source).name for source in spec.rtl.sources}
    for source, beside in copied.items():
        text = text.replace(f'"{source}"', f'"{beside}"')
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"--out: {folder}: found a folder with files; allowed: a new one")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder.parent) as scratch:
            made = scratch / "router"
            made.mkdir(mode=_OPEN_TO_READ)
            (made / spec.file.name).write_text(text, encoding="utf-8")
            for source, beside in copied.items():
                shutil.copyfile(spec.folder / source, made / beside)
            os.rename(made, folder)
    except OSError as error:
        raise InputError(f"--out: {folder}: cannot be written: {error.strerror}") from error
    return [spec.file.name, *copied.values()]


def _files() -> dict[str, Path]:
    found = [*_FOLDER.glob("*.toml"), *_FOLDER.glob("*/*.toml")]
    return {path.stem.replace("_", "-"): path for path in found}
