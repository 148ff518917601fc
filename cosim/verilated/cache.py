"""Models built from Verilog are kept: one folder for each content, built once."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from tlm.calibrated import REPOSITORY, file_hash
from tlm.errors import InputError

#: Seconds of a build on two idle processors: of anything, and of each node of a mesh.
_BUILD_S, _NODE_S = 20, 1.2


def cache_folder() -> Path:
    """Folder of built models: ``$WAFERTLM_CACHE``, else ``build/`` beside the sources."""
    return Path(os.environ.get("WAFERTLM_CACHE", REPOSITORY / "build"))


def cached(
    name: str, content: object, make: Callable[[Path], None], *, shown: str, nodes: int
) -> Path:
    """The folder of a model; the same content is made once, also by two runs at a time.

    Args:
        name: What the folder's name begins with.
        content: All that the model depends on, as JSON.
        make: Fills an empty folder. Of what it leaves, the sources and objects of the compiler are
            dropped: they take sixty times the room.
        shown: What it is. That, and about how long it takes, is said on stderr before it is made.
        nodes: Of a mesh, how many: the more, the longer it takes; else 1.

    Raises:
        InputError: if the folder of built models cannot be written.
    """
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    folder = cache_folder() / f"{name}-{key}"
    _hold_writable(folder.parent)
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            seconds = round(_BUILD_S + _NODE_S * (nodes - 1), -1)
            print(f"building {shown}, about {seconds:.0f} s, once", file=sys.stderr, flush=True)
            make(folder)
            for path in folder.iterdir():
                if path.suffix in {".a", ".cpp", ".d", ".gch", ".h", ".o"}:
                    path.unlink()
            (folder / "done").touch()
    return folder


def included_files(folders: Sequence[Path]) -> list[Path]:
    """All files of include folders but stored calibrations, which are made from the others."""
    paths = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in paths if not path.name.endswith(".calibration.json")]


def included_content(folders: Sequence[Path]) -> list[tuple[str, str]]:
    """Names within their folders, and contents, of what may be included."""
    return [
        (path.relative_to(place).as_posix(), file_hash(path))
        for place in folders
        for path in included_files([place])
    ]


def _hold_writable(cache: Path) -> None:
    """Make the folder of built models, if it is missing."""
    problem = "" if not cache.is_dir() or os.access(cache, os.W_OK) else "cannot be written"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise InputError(
            f"$WAFERTLM_CACHE: found {cache}: {problem}; allowed: a folder that can be written"
        )
