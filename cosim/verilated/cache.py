"""Models built from Verilog are kept: one folder for each content, built once.

A model is of its Verilog: the sources, and what Verilator says that it read beside them, such as
files that sources include, libraries of ``-y``, options of ``-f``. That is asked once for the
sources and for all that may be read; the answer is kept, too. So is it of any file that a string in
these names: data of ``$readmemh``.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from cosim.errors import SimulationError
from cosim.verilated.progress import BUILDING, Work, told
from cosim.verilated.toolchain import ended_badly, verilator_environment
from tlm.calibrated import REPOSITORY, file_hash
from tlm.children import run
from tlm.errors import InputError
from tlm.files import is_file, whole_file
from tlm.scratch import scratch_folder

#: Beside a model; where it is, the model is whole.
_WHOLE = "whole"
#: Folder of answers: what Verilator reads.
_ANSWERS = "asked"
#: Strings of Verilog, and of options within JSON: each may name data, for a parameter, too.
_STRING, _STRING_IN_JSON = re.compile(r'"([^"\\\n]+)\\?"'), re.compile(r'\\"([^"\\]+)\\"')

#: Has Verilator write its file for make into a folder (`ask_verilator`).
Ask = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A built model.

    Attributes:
        folder: Where it is.
        read: Files that it was made of, or reads as it runs, and that nobody had named.
    """

    folder: Path
    read: tuple[Path, ...] = ()


def cache_folder() -> Path:
    """Folder of built models.

    ``$WAFERTLM_CACHE``; else ``build/`` in a checkout, and of an installed package a folder among
    the user's caches.
    """
    if given := os.environ.get("WAFERTLM_CACHE"):
        return Path(given)
    checkout = (REPOSITORY / "pyproject.toml").is_file()
    return REPOSITORY / "build" if checkout else user_cache_path("wafertlm")


def cached(
    name: str,
    content: object,
    make: Callable[[Path], None],
    *,
    shown: str,
    nodes: int,
    ask: Ask | None = None,
    include_folders: Sequence[Path] = (),
    work: Work = BUILDING,
) -> Built:
    """A model; the same content is made once, also by two runs at a time.

    Args:
        name: What the folder's name begins with.
        content: All that the caller knows the model to depend on, as JSON.
        make: Fills an empty folder, which is renamed afterwards. Of what it leaves, the sources and
            objects of the compiler are dropped: they take sixty times the room.
        shown: What it is, for messages.
        nodes: Of a mesh, how many: the more, the longer it takes; else 1.
        ask: Asks Verilator what else it reads; None: nothing.
        include_folders: Where included files are looked for.
        work: What is done to make it, if it is not built.

    Raises:
        InputError: if the folder of built models cannot be written.
    """
    cache = cache_folder()
    read = {} if ask is None else _read(name, content, ask, include_folders)
    # By name and content alone: the same Verilog may lie anywhere.
    unnamed = sorted((path.name, hashed) for path, hashed in read.items())
    folder = cache / f"{name}-{_key([content, unnamed])}"
    if not (folder / _WHOLE).is_file():  # what is there needs no lock: others may have built it
        _hold_writable(cache)
        with FileLock(f"{folder}.lock"):
            if not (folder / _WHOLE).is_file():
                _build(folder, make, shown, nodes, work)
    return Built(folder, tuple(read))


def _build(folder: Path, make: Callable[[Path], None], shown: str, nodes: int, work: Work) -> None:
    # A build that was killed may have left processes that write on: never into the folder itself.
    for left in folder.parent.glob(f"{folder.name}.*[0-9]"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    scratch.mkdir()
    try:
        with told(shown, scratch, nodes, work):
            make(scratch)
    except KeyboardInterrupt:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for path in scratch.iterdir():
        if path.suffix in {".a", ".cpp", ".d", ".gch", ".h", ".o"}:
            path.unlink()
    (scratch / _WHOLE).touch()
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)


def _key(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _read(name: str, content: object, ask: Ask, include_folders: Sequence[Path]) -> dict[Path, str]:
    """Files that are read and that the content does not know, with their hashes."""
    known = json.dumps(content)
    found = _verilog(name, content, ask, include_folders)
    found |= {path: file_hash(path) for path in _data(found, known)}
    return {path: hashed for path, hashed in sorted(found.items()) if hashed not in known}


def _verilog(
    name: str, content: object, ask: Ask, include_folders: Sequence[Path]
) -> dict[Path, str]:
    """Files that Verilator reads, with their hashes."""
    # Files are also found from the working folder; there, what comes and goes is asked for anew.
    places = [str(Path.cwd()), *map(str, include_folders)]
    asked = _key([content, included_content(include_folders), places])
    file = cache_folder() / _ANSWERS / f"{name}-{asked}.json"
    with suppress(
        OSError, ValueError, AttributeError, RecursionError, TypeError
    ):  # there, and whole
        answer = {Path(path): old for path, old in json.loads(file.read_text()).items()}
        if all(file_hash(path) == old for path, old in answer.items()):
            return answer
    _hold_writable(cache_folder())
    with scratch_folder() as scratch:
        ask(scratch)
        answer = {path: file_hash(path) for path in _read_by_verilator(scratch)}
    with whole_file(file) as whole:
        text = json.dumps({str(path): hashed for path, hashed in answer.items()}, indent=1)
        whole.write_text(text + "\n", encoding="utf-8")
    return answer


def _data(read: Iterable[Path], options: str) -> set[Path]:
    """Files that a string in what was read, or in options, names: they are read as it runs."""
    names = _STRING_IN_JSON.findall(options)
    for path in read:
        names += _STRING.findall(path.read_text(encoding="utf-8", errors="replace"))
    return {Path(name).resolve() for name in names if is_file(Path(name))}


def ask_verilator(folder: Path, top: str, arguments: Sequence[str]) -> str:
    """Have Verilator read sources and write what they are into a folder; no model is made.

    Args:
        folder: Where it writes.
        top: The top module.
        arguments: Options and sources.

    Returns:
        What it printed if there are errors in the sources; else nothing.
    """
    command = [
        "verilator", "--json-only", "--json-only-output", os.devnull,
        "--json-only-meta-output", os.devnull, "--MMD", "-Wno-fatal", "-Mdir", str(folder),
        "--top-module", top, *arguments,
    ]  # fmt: skip
    return ended_badly(run(command, verilator_environment()))


def _read_by_verilator(folder: Path) -> list[Path]:
    """What Verilator says that it read: its file for make."""
    found: set[Path] = set()
    tools = Path(verilator_environment()["VERILATOR_ROOT"]).resolve()
    lists = [*folder.rglob("*__ver.d")]
    if not lists:
        raise SimulationError("Verilator does not say what it read")
    for listed in lists:
        names = listed.read_text(encoding="utf-8").partition(" : ")[2]
        for name in re.split(r"(?<!\\)\s+", names.strip()):
            path = Path(name.replace("\\ ", " ")).resolve()
            if path.is_file() and not path.is_relative_to(tools):
                found.add(path)
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
