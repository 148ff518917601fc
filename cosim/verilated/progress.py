"""How far the build of a model is, on stderr, and how long it took the last time."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tlm.errors import InputError
from tlm.files import whole_file

#: So often it is said how far a build is.
_EVERY_S = 10.0
_TIMES = "build-times.json"


def _compiled(folder: Path) -> str:
    """The step that a build is at: Verilator writes C++, a file of which becomes an object."""
    names = [name for _, _, files in os.walk(folder) for name in files if name.startswith("V")]
    sources = {Path(name).stem for name in names if name.endswith(".cpp")}
    done = {Path(name).stem for name in names if name.endswith(".o")}
    # Verilator's name of the file that includes all others, where there is one.
    sources = {name for name in sources if name.endswith("__ALL")} or sources
    if not sources:
        return "Verilator reads the Verilog"
    return f"{len(sources & done)} of {len(sources)} C++ files compiled"


@dataclass(frozen=True, slots=True)
class Work:
    """What is done in a folder.

    Attributes:
        doing: Its verb.
        done: The same, when it has been done.
        first_s: Seconds that it takes on two idle processors.
        node_s: Seconds for each further node of a mesh.
        how_far: The step that it is at, by the folder.
    """

    doing: str
    done: str
    first_s: float
    node_s: float
    how_far: Callable[[Path], str]


#: Verilog becomes a program.
BUILDING = Work("building", "built", 10, 2, _compiled)


@contextmanager
def told(shown: str, folder: Path, nodes: int, work: Work = BUILDING) -> Iterator[None]:
    """Say that a model is built, how long that took the last time, how far it is, and its end.

    Args:
        shown: What it is; by that its times are kept, beside the folder.
        folder: Where it is built.
        nodes: Of a mesh, how many, by which it is guessed how long a first build takes.
        work: What is done, if something else is.
    """
    times = folder.parent / _TIMES
    last = _last(times).get(shown)
    guess = f"about {round(work.first_s + work.node_s * (nodes - 1), -1):.0f} s, once"
    _say(f"{work.doing} {shown}, {guess if last is None else f'{last:.0f} s the last time'}")
    begin, ended = time.monotonic(), threading.Event()
    watch = threading.Thread(target=_watch, args=(shown, folder, work, begin, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()
    took = time.monotonic() - begin
    # Not when they are another user's: they are a guess.
    with suppress(OSError, InputError), FileLock(f"{times}.lock"), whole_file(times) as scratch:
        known = {**_last(times), shown: round(took, 1)}
        scratch.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    _say(f"{work.done} {shown} in {took:.0f} s")


def _watch(shown: str, folder: Path, work: Work, begin: float, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        _say(f"{shown}: {work.how_far(folder)}, {time.monotonic() - begin:.0f} s")


def _last(times: Path) -> dict[str, float]:
    """Seconds that models took, by what they are."""
    try:
        known = json.loads(times.read_text(encoding="utf-8"))
        return {name: float(seconds) for name, seconds in known.items()}
    except (OSError, ValueError, AttributeError, RecursionError, TypeError):
        return {}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
