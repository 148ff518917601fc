"""Models built from Verilog are kept: one folder for each content, built once.

A folder also says what Verilator read that the caller did not name: files that sources include
through the working folder, libraries of ``-y``, options of ``-f``, data of ``$readmemh``. Where one
has changed, another model is built beside it.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from filelock import FileLock

from cosim.verilated.toolchain import verilator_environment
from tlm.calibrated import REPOSITORY, file_hash
from tlm.errors import InputError
from tlm.files import whole_file

#: What Verilator read, beside a model; where it is, the model is whole.
_READ = "read.json"
_DATA = re.compile(r'\$readmem[bh]\s*\(\s*"([^"]+)"')
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
        content: All that the caller knows the model to depend on, as JSON.
        make: Fills an empty folder. Of what it leaves, the sources and objects of the compiler are
            dropped: they take sixty times the room.
        shown: What it is. That, and about how long it takes, is said on stderr before it is made.
        nodes: Of a mesh, how many: the more, the longer it takes; else 1.

    Raises:
        InputError: if the folder of built models cannot be written.
    """
    known = json.dumps(content)
    key = hashlib.sha256(known.encode()).hexdigest()[:16]
    first = cache_folder() / f"{name}-{key}"
    _hold_writable(first.parent)
    with FileLock(f"{first}.lock"):
        # One for each content of what the caller did not name: a process may have others loaded.
        folder = next(each for each in _numbered(first) if not _is_whole(each) or _is_fresh(each))
        if not _is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            seconds = round(_BUILD_S + _NODE_S * (nodes - 1), -1)
            print(f"building {shown}, about {seconds:.0f} s, once", file=sys.stderr, flush=True)
            make(folder)
            read = {str(path): file_hash(path) for path in _read_by_verilator(folder)}
            read = {name: found for name, found in read.items() if found not in known}
            for path in folder.iterdir():
                if path.suffix in {".a", ".cpp", ".d", ".gch", ".h", ".o"}:
                    path.unlink()
            with whole_file(folder / _READ) as scratch:
                scratch.write_text(json.dumps(read, indent=1) + "\n", encoding="utf-8")
    return folder


def read_files(folder: Path) -> list[Path]:
    """Files that a built model was made of and that nobody had named."""
    return [Path(name) for name in json.loads((folder / _READ).read_text(encoding="utf-8"))]


def _numbered(first: Path) -> Iterator[Path]:
    yield first
    yield from (first.with_name(f"{first.name}.{number}") for number in count(1))


def _is_whole(folder: Path) -> bool:
    return (folder / _READ).is_file()


def _is_fresh(folder: Path) -> bool:
    """Whether a model is of files that have not changed since."""
    read = json.loads((folder / _READ).read_text(encoding="utf-8"))
    return all(file_hash(Path(name)) == content for name, content in read.items())


def _read_by_verilator(folder: Path) -> list[Path]:
    """What Verilator says that it read (its file for make), and what that reads as it runs."""
    found: set[Path] = set()
    tools = Path(verilator_environment()["VERILATOR_ROOT"]).resolve()
    for listed in folder.rglob("*__ver.d"):
        names = listed.read_text(encoding="utf-8").partition(" : ")[2]
        for name in re.split(r"(?<!\\)\s+", names.strip()):
            path = Path(name.replace("\\ ", " ")).resolve()
            if path.is_file() and not path.is_relative_to(tools):
                found.add(path)
    for path in list(found):
        for name in _DATA.findall(path.read_text(encoding="utf-8", errors="replace")):
            found |= {each for each in (Path(name).resolve(),) if each.is_file()}
    return sorted(path for path in found if not path.is_relative_to(folder.resolve()))


def included_files(folders: Sequence[Path]) -> list[Path]:
    """All files of include folders but calibrations and findings, which come from the others."""
    paths = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in paths if not _is_found(path)]


def _is_found(path: Path) -> bool:
    return path.name.endswith(".calibration.json") or path.parent.name.endswith(".findings")


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
